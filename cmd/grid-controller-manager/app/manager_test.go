// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package app

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"

	"github.com/grid-apiserver/grid-apiserver/cmd/grid-controller-manager/app/options"
)

// process is a manager that runs.
type process struct {
	*manager
	url    string
	stop   context.CancelFunc
	result chan error
}

func startProcess(t *testing.T, cluster *fakeCluster, change func(*options.Options)) *process {
	t.Helper()
	o := options.New()
	o.Kubeconfig = cluster.kubeconfig(t)
	o.LeaderElection.LeaseDuration.Duration = 30 * time.Second
	o.LeaderElection.RenewDeadline.Duration = 20 * time.Second
	o.LeaderElection.RetryPeriod.Duration = 100 * time.Millisecond
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	o.SecureServing.Listener = listener
	if change != nil {
		change(o)
	}
	config, err := o.Complete().Config()
	if err != nil {
		t.Fatal(err)
	}
	// What fails here is meant to fail.
	ctx, stop := context.WithCancel(klog.NewContext(context.WithoutCancel(t.Context()), klog.Logger{}))
	m, err := newManager(ctx, config)
	if err != nil {
		t.Fatal(err)
	}
	p := &process{manager: m, url: "https://" + listener.Addr().String(), stop: stop, result: make(chan error, 1)}
	go func() {
		err := p.run(ctx)
		p.result <- err
		p.result <- err
	}()
	t.Cleanup(func() {
		stop()
		<-p.result
	})
	return p
}

// get returns the code and the body of an answer.
func (p *process) get(path, token string) (int, string) {
	transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequest(http.MethodGet, p.url+path, nil)
	if err != nil {
		return 0, err.Error()
	}
	if token != "" {
		request.Header.Set("Authorization", "Bearer "+token)
	}
	response, err := (&http.Client{Transport: transport, Timeout: 10 * time.Second}).Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return 0, err.Error()
	}
	return response.StatusCode, string(body)
}

func eventually(t *testing.T, what string, condition func() bool) {
	t.Helper()
	if err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, 30*time.Second, true, func(context.Context) (bool, error) {
		return condition(), nil
	}); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

func (p *process) ready() bool {
	code, _ := p.get("/readyz", "")
	return code == http.StatusOK
}

func (p *process) ended(t *testing.T, within time.Duration) error {
	t.Helper()
	select {
	case err := <-p.result:
		return err
	case <-time.After(within):
		t.Fatalf("still running after %s", within)
		return nil
	}
}

func TestOneWorksAtATimeAndHandsOver(t *testing.T) {
	cluster := newFakeCluster(t)
	first := startProcess(t, cluster, nil)
	eventually(t, "the first works", func() bool {
		return cluster.watched("servicegrids") == 1 && cluster.watched("services") == 1 && first.ready()
	})
	holder, _ := cluster.lastHolder()

	second := startProcess(t, cluster, nil)
	eventually(t, "the second waits, and is ready", second.ready)
	if now, changes := cluster.lastHolder(); now != holder || changes != 1 || cluster.watched("services") != 1 {
		t.Errorf("holder %s after %d changes, %d watches", now, changes, cluster.watched("services"))
	}

	first.stop()
	if err := first.ended(t, 5*time.Second); err != nil {
		t.Error(err)
	}
	if holders := cluster.allHolders(); holders[1] != "" {
		t.Errorf("the lease was not released: %q", holders)
	}
	// Sooner than the lease would have run out: the second asks every tenth of a second.
	eventually(t, "the second works", func() bool { return cluster.watched("servicegrids") == 2 })

	second.stop()
	if err := second.ended(t, 5*time.Second); err != nil {
		t.Error(err)
	}
	if now, changes := cluster.lastHolder(); now != "" || changes != 4 {
		t.Errorf("holders %q", cluster.allHolders())
	}
}

func TestLossOfTheLeaseIsAnError(t *testing.T) {
	cluster := newFakeCluster(t)
	p := startProcess(t, cluster, func(o *options.Options) {
		o.LeaderElection.LeaseDuration.Duration = 3 * time.Second
		o.LeaderElection.RenewDeadline.Duration = 2 * time.Second
	})
	eventually(t, "it works", func() bool { return cluster.watched("servicegrids") == 1 })
	cluster.set(func() { cluster.down = true })
	if err := p.ended(t, 20*time.Second); !errors.Is(err, errLost) {
		t.Error(err)
	}
}

func TestWaitingEndsWithItsContext(t *testing.T) {
	cluster := newFakeCluster(t)
	cluster.set(func() { cluster.down = true })
	p := startProcess(t, cluster, nil)
	eventually(t, "it is ready though the API server is away", p.ready)
	p.stop()
	if err := p.ended(t, 5*time.Second); err != nil {
		t.Error(err)
	}
}

func TestWithoutLeaderElection(t *testing.T) {
	cluster := newFakeCluster(t)
	p := startProcess(t, cluster, func(o *options.Options) { o.LeaderElection.LeaderElect = false })
	eventually(t, "it works", func() bool { return cluster.watched("servicegrids") == 1 })
	p.stop()
	if err := p.ended(t, 5*time.Second); err != nil {
		t.Error(err)
	}
	if holders := cluster.allHolders(); len(holders) > 0 {
		t.Error("there is a lease")
	}
}

func TestAllControllersRun(t *testing.T) {
	cluster := newFakeCluster(t)
	p := startProcess(t, cluster, func(o *options.Options) {
		o.Controllers = []string{"*", "endpoints", "endpointslice", "endpointslicemirroring"}
	})
	eventually(t, "they work", func() bool {
		for resource := range kinds {
			if cluster.watched(resource) != 1 {
				return false
			}
		}
		return p.ready()
	})
	p.stop()
	if err := p.ended(t, 5*time.Second); err != nil {
		t.Error(err)
	}
}

func TestReadyzNamesTheKindThatTheClusterLacks(t *testing.T) {
	cluster := newFakeCluster(t)
	cluster.set(func() { cluster.missing["servicegrids"] = true })
	p := startProcess(t, cluster, nil)
	eventually(t, "it works", func() bool { return cluster.watched("services") == 1 })
	eventually(t, "not ready", func() bool { return !p.ready() })
	if code, body := p.get("/readyz/informers", ""); code == http.StatusOK || !strings.Contains(body, "ServiceGrid") {
		t.Errorf("%d %s", code, body)
	}
	if code, body := p.get("/healthz", ""); code != http.StatusOK {
		t.Errorf("a restart would not help, but /healthz says %d %s", code, body)
	}
	cluster.set(func() { cluster.missing["servicegrids"] = false })
	eventually(t, "ready", p.ready)
}

func TestWhoMayReadWhat(t *testing.T) {
	p := startProcess(t, newFakeCluster(t), nil)
	eventually(t, "it is ready", p.ready)
	for _, tc := range []struct {
		path, token string
		code        int
	}{
		{"/healthz", "", http.StatusOK},
		{"/livez", "", http.StatusOK},
		{"/livez/leaderElection", "", http.StatusOK},
		{"/readyz?verbose", "", http.StatusOK},
		{"/metrics", "", http.StatusForbidden},
		{"/metrics", "bad", http.StatusUnauthorized},
		{"/metrics", "good", http.StatusOK},
		{"/", "good", http.StatusForbidden},
	} {
		code, body := p.get(tc.path, tc.token)
		if code != tc.code {
			t.Errorf("%s with token %q: %d %s, want %d", tc.path, tc.token, code, body, tc.code)
		}
		if tc.path != "/metrics" || tc.code != http.StatusOK {
			continue
		}
		for _, metric := range []string{`workqueue_depth{name="servicegrid"`, "rest_client_requests_total", "leader_election_master_status", "go_goroutines", "kubernetes_build_info"} {
			if !strings.Contains(body, metric) {
				t.Errorf("/metrics lacks %s", metric)
			}
		}
	}
}
