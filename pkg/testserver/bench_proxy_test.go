// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	k8sruntime "k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"github.com/grid-apiserver/grid-apiserver/pkg/testserver"
)

// benchTurn is how many requests go one way before as many go another way: few enough that a machine which slows down
// slows all, and enough for many collections of garbage. With 200 the share fell from 80 to 60 % between runs while direct
// requests became faster, as if one way paid for the garbage of both.
const benchTurn = 2000

// BenchmarkProxiedGet reads an object of 1 KB from the server itself and through
// the view of a node, which proxies it, in turns. Upstream, proxy and clients are
// in one process. What is reported without "direct" is of the requests that were
// proxied; "added" is the difference of the two; "bare" is of a proxy that does nothing else.
func BenchmarkProxiedGet(b *testing.B) {
	server := testserver.Start(b, testserver.Options{
		Node: newNode("n1", nil), WithoutControllers: true,
		Objects: []k8sruntime.Object{newConfigMap("small", map[string]string{"data": strings.Repeat("x", 700)})},
	})
	bareProxy := startBareProxy(b, server.Upstream)
	for _, protocol := range []string{"HTTP/2.0", "HTTP/1.1"} {
		for _, clients := range []int{1, 8} {
			b.Run(fmt.Sprintf("%s/%d-clients", protocol, clients), func(b *testing.B) {
				var direct, proxied, bare reads
				for way, config := range map[*reads]*rest.Config{&direct: server.Upstream, &proxied: server.View, &bare: bareProxy} {
					for range clients {
						way.clients = append(way.clients, newReader(b, config, protocol))
					}
					way.turn(b) // connects
					*way = reads{clients: way.clients}
				}
				for b.Loop() {
					direct.turn(b)
					proxied.turn(b)
					bare.turn(b)
				}
				report(b, &direct, &proxied, &bare)
			})
		}
	}
}

// startBareProxy starts the least that can stand between: what Go's libraries give, which checks nothing and decides
// nothing. It shows how much of the cost is that of one more hop.
func startBareProxy(b *testing.B, upstream *rest.Config) *rest.Config {
	b.Helper()
	tlsConfig, err := rest.TLSConfigFor(upstream)
	if err != nil {
		b.Fatal(err)
	}
	to, err := url.Parse(upstream.Host)
	if err != nil {
		b.Fatal(err)
	}
	transport := utilnet.SetTransportDefaults(&http.Transport{TLSClientConfig: tlsConfig})
	b.Cleanup(transport.CloseIdleConnections)
	server := httptest.NewUnstartedServer(&httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(to) },
	})
	server.EnableHTTP2 = true
	server.StartTLS()
	b.Cleanup(server.Close)
	config := rest.CopyConfig(upstream)
	config.Host = server.URL
	config.TLSClientConfig = rest.TLSClientConfig{CAData: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})}
	return config
}

// reads is what was measured of the requests that went one way.
type reads struct {
	clients   []*reader
	took      []time.Duration
	wall, cpu time.Duration
	mallocs   uint64
	allocated uint64
}

// turn makes benchTurn requests, as many from each client.
func (r *reads) turn(b *testing.B) {
	b.Helper()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, start := processTime(b), time.Now()
	took := make([][]time.Duration, len(r.clients))
	errs := make([]error, len(r.clients))
	var running sync.WaitGroup
	for i, c := range r.clients {
		running.Go(func() {
			for range benchTurn / len(r.clients) {
				begin := time.Now()
				if errs[i] = c.get(b.Context()); errs[i] != nil {
					return
				}
				took[i] = append(took[i], time.Since(begin))
			}
		})
	}
	running.Wait()
	r.wall += time.Since(start)
	r.cpu += processTime(b) - cpu
	runtime.ReadMemStats(&after)
	r.mallocs += after.Mallocs - before.Mallocs
	r.allocated += after.TotalAlloc - before.TotalAlloc
	r.took = append(r.took, slices.Concat(took...)...)
	if err := errors.Join(errs...); err != nil {
		b.Fatal(err)
	}
}

func (r *reads) percentile(p int) float64 {
	slices.Sort(r.took)
	return r.took[len(r.took)*p/100].Seconds() * 1000
}

func (r *reads) perSecond() float64 { return float64(len(r.took)) / r.wall.Seconds() }

// each is a number per request.
func (r *reads) each(total float64) float64 { return total / float64(len(r.took)) }

func report(b *testing.B, direct, proxied, bare *reads) {
	b.ReportMetric(direct.percentile(50), "direct-p50-ms")
	b.ReportMetric(proxied.percentile(50), "p50-ms")
	b.ReportMetric(proxied.percentile(50)-direct.percentile(50), "added-p50-ms")
	b.ReportMetric(direct.percentile(99), "direct-p99-ms")
	b.ReportMetric(proxied.percentile(99), "p99-ms")
	b.ReportMetric(direct.perSecond(), "direct-req/s")
	b.ReportMetric(proxied.perSecond(), "req/s")
	b.ReportMetric(proxied.perSecond()*100/direct.perSecond(), "share-%")
	b.ReportMetric(bare.perSecond()*100/direct.perSecond(), "bare-share-%")
	b.ReportMetric((bare.each(float64(bare.cpu))-direct.each(float64(direct.cpu)))/float64(time.Microsecond), "bare-added-cpu-µs")
	added := proxied.each(float64(proxied.cpu)) - direct.each(float64(direct.cpu))
	b.ReportMetric(added/float64(time.Microsecond), "added-cpu-µs")
	// In place of what the loop of the benchmark took.
	b.ReportMetric(proxied.each(float64(proxied.wall)), "ns/op")
	b.ReportMetric(proxied.each(float64(proxied.mallocs))-direct.each(float64(direct.mallocs)), "allocs/op")
	b.ReportMetric(proxied.each(float64(proxied.allocated))-direct.each(float64(direct.allocated)), "B/op")
}

// processTime is the CPU time that this process has used.
func processTime(b *testing.B) time.Duration {
	b.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		b.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// reader is a client with a connection of its own, made as client-go makes one.
type reader struct {
	http.Client
	url, protocol string
}

func newReader(b *testing.B, config *rest.Config, protocol string) *reader {
	b.Helper()
	tlsConfig, err := rest.TLSConfigFor(config)
	if err != nil {
		b.Fatal(err)
	}
	transport := &http.Transport{TLSClientConfig: tlsConfig}
	if protocol == "HTTP/1.1" {
		transport.Protocols = new(http.Protocols)
		transport.Protocols.SetHTTP1(true)
	} else {
		transport = utilnet.SetTransportDefaults(transport)
	}
	b.Cleanup(transport.CloseIdleConnections)
	wrapped, err := rest.HTTPWrappersForConfig(config, transport)
	if err != nil {
		b.Fatal(err)
	}
	return &reader{http.Client{Transport: wrapped}, config.Host + "/api/v1/namespaces/default/configmaps/small", protocol}
}

// get reads the object to its end.
func (c *reader) get(ctx context.Context) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return err
	}
	request.Header.Set("Accept", k8sruntime.ContentTypeJSON)
	request.Header.Set("Accept-Encoding", "gzip") // and nothing is unpacked
	response, err := c.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	size, err := io.Copy(io.Discard, response.Body)
	if err != nil || response.StatusCode != http.StatusOK || response.Proto != c.protocol || size < 1000 {
		return fmt.Errorf("%s over %s, %d bytes: %w", response.Status, response.Proto, size, err)
	}
	return nil
}
