// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package service

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"
)

var (
	randomRuns = flag.Int("random", 4, "how often each random test runs")
	randomSeed = flag.Uint64("seed", 0, "replay the random tests with this seed alone")
)

// atRandom runs a test with random seeds. A run is a function of its seed, but
// for how its goroutines are scheduled.
func atRandom(t *testing.T, run func(t *testing.T, random *rand.Rand)) {
	t.Helper()
	if *randomSeed != 0 {
		run(t, rand.New(rand.NewPCG(*randomSeed, 0)))
		return
	}
	for range *randomRuns {
		seed := rand.Uint64()
		if !t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) { run(t, rand.New(rand.NewPCG(seed, 0))) }) {
			t.Fatalf("replay with -seed=%d", seed)
		}
	}
}

// TestPoolsHoldWhatTheServicesHold lets clients write what they like to a few
// Services of a cluster with hardly enough to give, over a store that fails now
// and then. At the end the pools hold exactly what the stored Services hold, and
// nothing is held twice. Alone, a client finds that after each write.
func TestPoolsHoldWhatTheServicesHold(t *testing.T) {
	for name, clients := range map[string]int{"alone": 1, "together": 8} {
		t.Run(name, func(t *testing.T) {
			atRandom(t, func(t *testing.T, random *rand.Rand) {
				c := newClusterOf(t, tinyConfig())
				c.pools.random = rand.Uint64N
				var mu sync.Mutex
				failures := rand.New(rand.NewPCG(random.Uint64(), random.Uint64()))
				c.store.before = func(string) error {
					mu.Lock()
					defer mu.Unlock()
					if failures.IntN(10) == 0 {
						return errDisk
					}
					return nil
				}
				var wg sync.WaitGroup
				for range clients {
					client := &randomClient{cluster: c, random: rand.New(rand.NewPCG(random.Uint64(), random.Uint64()))}
					wg.Go(func() {
						for range 300 {
							client.write()
							if clients == 1 {
								c.checkPools()
							}
						}
						mu.Lock()
						defer mu.Unlock()
						if client.written < 30 {
							t.Errorf("only %d writes have succeeded", client.written)
						}
					})
				}
				wg.Wait()
				c.checkPools()
			})
		})
	}
}

type randomClient struct {
	*cluster
	random  *rand.Rand
	written int
}

func (c *randomClient) one(n int) bool { return c.random.IntN(n) == 0 }

func pick[T any](c *randomClient, values ...T) T { return values[c.random.IntN(len(values))] }

func (c *randomClient) write() {
	name := pick(c, "a", "b", "c", "d", "e")
	dry := c.one(4)
	var err error
	switch c.random.IntN(6) {
	case 0:
		_, err = c.tryCreate(named(name, c.spec()), dry)
	case 1:
		_, err = c.tryPut(named(name, c.spec()), dry)
	case 2:
		err = c.tryDelete(name, dry)
	case 3:
		_, err = c.tryPatchStatus(name, c.finalizers)
	default:
		_, err = c.tryPatch(name, c.change, dry)
	}
	if err == nil && !dry {
		c.written++
	}
}

func (c *randomClient) finalizers(service *corev1.Service) {
	if c.one(3) && service.DeletionTimestamp == nil {
		addFinalizer(service)
	} else {
		clearFinalizer(service)
	}
}

// spec is one that a client could send; it is often refused.
func (c *randomClient) spec() corev1.ServiceSpec {
	var spec corev1.ServiceSpec
	for range 1 + c.random.IntN(2) {
		spec.Ports = append(spec.Ports, c.port())
	}
	service := &corev1.Service{Spec: spec}
	for range c.random.IntN(4) {
		c.change(service)
	}
	return service.Spec
}

func (c *randomClient) port() corev1.ServicePort {
	port := corev1.ServicePort{
		Name: pick(c, "x", "y", "z"), Port: int32(80 + c.random.IntN(3)), Protocol: pick(c, corev1.ProtocolTCP, corev1.ProtocolUDP),
	}
	if c.one(3) {
		port.NodePort = c.nodePort()
	}
	return port
}

func (c *randomClient) nodePort() int32 { return int32(30000 + c.random.IntN(8)) }

// change is one that a client could make to what is stored.
func (c *randomClient) change(service *corev1.Service) {
	spec := &service.Spec
	if c.one(5) {
		c.finalizers(service)
	}
	switch c.random.IntN(12) {
	case 0, 1:
		spec.Type = pick(c, corev1.ServiceTypeClusterIP, corev1.ServiceTypeNodePort, corev1.ServiceTypeLoadBalancer)
	case 2:
		spec.Type, spec.ExternalName = corev1.ServiceTypeExternalName, "example.com"
	case 3:
		spec.ExternalTrafficPolicy = pick(c, "", corev1.ServiceExternalTrafficPolicyCluster, corev1.ServiceExternalTrafficPolicyLocal)
	case 4:
		spec.HealthCheckNodePort = pick(c, 0, c.nodePort())
	case 5:
		spec.IPFamilyPolicy = pick(c, nil, single, prefer, require)
	case 6:
		spec.IPFamilies = pick(c, nil, families("IPv4"), families("IPv6"), families("IPv4", "IPv6"))
	case 7:
		spec.ClusterIP = pick(c, "", corev1.ClusterIPNone, fmt.Sprintf("10.96.0.%d", c.random.IntN(8)))
		spec.ClusterIPs = nil
	case 8:
		if len(spec.ClusterIPs) == 1 {
			spec.ClusterIPs = append(spec.ClusterIPs, fmt.Sprintf("fd00:10:96::%d", c.random.IntN(9)))
		} else if len(spec.ClusterIPs) == 2 {
			spec.ClusterIPs = spec.ClusterIPs[:1]
		}
	case 9:
		spec.AllocateLoadBalancerNodePorts = pick(c, nil, ptr.To(true), ptr.To(false))
	case 10:
		if len(spec.Ports) < 3 {
			spec.Ports = append(spec.Ports, c.port())
		} else {
			spec.Ports = spec.Ports[:1]
		}
	default:
		for i := range spec.Ports {
			spec.Ports[i].NodePort = pick(c, 0, spec.Ports[i].NodePort, c.nodePort())
		}
	}
}
