// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os/exec"
	"strings"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"
)

// waitDelay is how long the output of a process that has ended may take to its reader, who may be slow.
const waitDelay = 20 * time.Second

func (s *Server) serveExec(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.pod(w, r); !ok {
		return
	}
	options, err := remotecommand.NewOptions(r)
	command := r.URL.Query()["command"]
	if err == nil && len(command) == 0 {
		err = errors.New("no command")
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	remotecommand.ServeExec(w, r, s, r.PathValue("pod"), "", r.PathValue("container"), command, options,
		idleTimeout, remotecommand.DefaultStreamCreationTimeout, remotecommand.SupportedStreamingProtocols)
}

// ExecInContainer implements remotecommand.Executor. Whatever the container, the command runs on the host.
func (s *Server) ExecInContainer(ctx context.Context, _, _, _ string, command []string, in io.Reader, out, errOut io.WriteCloser,
	tty bool, resize <-chan remotecommand.TerminalSize, _ time.Duration) error {
	s.running.Add(1)
	defer s.running.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(s.ctx, cancel)()
	cmd := s.host.Command(ctx, command[0], command[1:]...)
	cmd.WaitDelay = waitDelay
	if tty {
		return exitError(runOnTerminal(cmd, in, out, resize))
	}
	return exitError(runOnPipes(cmd, in, out, errOut))
}

// runOnPipes runs a command. It does not wait for the end of its input: the client may never end it.
func runOnPipes(cmd *exec.Cmd, in io.Reader, out, errOut io.Writer) error {
	cmd.Stdout, cmd.Stderr = out, errOut
	var stdin io.WriteCloser
	if in != nil {
		var err error
		if stdin, err = cmd.StdinPipe(); err != nil {
			return err
		}
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	if in != nil {
		go func() {
			_, _ = io.Copy(stdin, in)
			_ = stdin.Close()
		}()
	}
	return cmd.Wait()
}

// exitError turns the exit code of a command into the error that remotecommand reports it by.
func exitError(err error) error {
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() {
		return utilexec.CodeExitError{Err: err, Code: exit.ExitCode()}
	}
	return err
}

// serveRun runs a command without input and answers with its output.
func (s *Server) serveRun(w http.ResponseWriter, r *http.Request) {
	if _, ok := s.pod(w, r); !ok {
		return
	}
	command := strings.Fields(r.FormValue("cmd"))
	if len(command) == 0 {
		http.Error(w, "no command", http.StatusBadRequest)
		return
	}
	out, err := s.host.Command(r.Context(), command[0], command[1:]...).CombinedOutput()
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write(out)
}
