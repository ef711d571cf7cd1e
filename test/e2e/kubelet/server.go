// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package kubelet

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"k8s.io/cri-streaming/pkg/streaming/portforward"
	"k8s.io/cri-streaming/pkg/streaming/remotecommand"
)

// idleTimeout is the kubelet's default for streams that carry nothing.
const idleTimeout = 4 * time.Hour

// Host is where the processes of pods run.
type Host interface {
	// Command returns a command on the host.
	Command(ctx context.Context, path string, args ...string) *exec.Cmd
	// Dial connects from the host.
	Dial(ctx context.Context, network, address string) (net.Conn, error)
}

// Server is a kubelet's API. Its methods may be called concurrently.
type Server struct {
	host    Host
	dir     string // of the logs
	handler http.Handler
	ctx     context.Context
	cancel  context.CancelFunc
	running sync.WaitGroup

	mu   sync.Mutex
	pods map[podKey]*Pod
}

var (
	_ http.Handler              = &Server{}
	_ remotecommand.Executor    = &Server{}
	_ remotecommand.Attacher    = podAttacher{}
	_ portforward.PortForwarder = &Server{}
)

type podKey struct{ namespace, name string }

// New returns a Server without pods that keeps their logs in dir. Close ends what it started.
func New(host Host, dir string) *Server {
	s := &Server{host: host, dir: dir, pods: map[podKey]*Pod{}}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	mux := http.NewServeMux()
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", s.serveExec)
	mux.HandleFunc("/attach/{namespace}/{pod}/{container}", s.serveAttach)
	mux.HandleFunc("POST /run/{namespace}/{pod}/{container}", s.serveRun)
	mux.HandleFunc("/portForward/{namespace}/{pod}", s.servePortForward)
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", s.serveLogs)
	s.handler = mux
	return s
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Run starts a pod of one container that runs command.
func (s *Server) Run(namespace, name, container string, command ...string) (*Pod, error) {
	p := &Pod{name: name, container: container, attached: map[*attachment]struct{}{}, done: make(chan struct{})}
	var err error
	if p.log, err = newContainerLog(filepath.Join(s.dir, namespace+"_"+name+"_"+container+".log")); err != nil {
		return nil, err
	}
	if err := p.start(s.host.Command(s.ctx, command[0], command[1:]...), &s.running); err != nil {
		return nil, fmt.Errorf("pod %s/%s: %w", namespace, name, err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pods[podKey{namespace, name}] = p
	return p, nil
}

// Close kills all processes, which ends their streams, and waits for their end.
func (s *Server) Close() {
	s.cancel()
	s.running.Wait()
}

// pod finds the pod that a request names, and its container if the request names one. If it is unknown, the
// request has been answered.
func (s *Server) pod(w http.ResponseWriter, r *http.Request) (*Pod, bool) {
	s.mu.Lock()
	p, ok := s.pods[podKey{r.PathValue("namespace"), r.PathValue("pod")}]
	s.mu.Unlock()
	if !ok {
		http.Error(w, "pod does not exist", http.StatusNotFound)
		return nil, false
	}
	if name := r.PathValue("container"); name != "" && name != p.container {
		http.Error(w, fmt.Sprintf("container %q not found", name), http.StatusNotFound)
		return nil, false
	}
	return p, true
}
