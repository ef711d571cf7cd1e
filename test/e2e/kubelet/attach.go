// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

func (s *Server) serveAttach(w http.ResponseWriter, r *http.Request) {
	p, ok := s.pod(w, r)
	if !ok {
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeAttach(w, r, podAttacher{p}, p.name, "", p.container, options,
		idleTimeout, remotecommand.DefaultStreamCreationTimeout, remotecommand.SupportedStreamingProtocols)
}

// podAttacher attaches to one pod.
type podAttacher struct{ pod *Pod }

// AttachContainer implements remotecommand.Attacher. It ends when the pod's process does, which the end of the client's
// input does not cause: other clients may be attached.
func (a podAttacher) AttachContainer(_ context.Context, _, _, _ string, in io.Reader, out, errOut io.WriteCloser, tty bool,
	_ <-chan remotecommand.TerminalSize) error {
	if tty {
		return fmt.Errorf("pod %s has no terminal", a.pod.name)
	}
	defer a.pod.attach(&attachment{stdout: writerOrNil(out), stderr: writerOrNil(errOut)})()
	if in != nil {
		go func() { _, _ = io.Copy(a.pod.stdin, in) }()
	}
	<-a.pod.done
	return nil
}

// writerOrNil keeps a nil io.WriteCloser nil.
func writerOrNil(w io.WriteCloser) io.Writer {
	if w == nil {
		return nil
	}
	return w
}
