// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/grid-apiserver/grid-apiserver/pkg/testserver"
)

// A server outside of a test. In a test, Start does the same in one line.
func ExampleRun() {
	ctx := context.Background()
	server, err := testserver.Run(ctx, testserver.Options{
		Objects: []runtime.Object{&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "team"}}},
	})
	if err != nil {
		fmt.Println("starting the server:", err)
		return
	}
	defer func() {
		if err := server.Stop(); err != nil {
			fmt.Println("stopping the server:", err)
		}
	}()
	client := kubernetes.NewForConfigOrDie(server.Upstream)
	service, err := client.CoreV1().Services("team").Create(ctx, &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec:       corev1.ServiceSpec{Ports: []corev1.ServicePort{{Port: 80}}},
	}, metav1.CreateOptions{})
	if err != nil {
		fmt.Println("creating the Service:", err)
		return
	}
	fmt.Println(service.Spec.Type, service.Spec.Ports[0].TargetPort.String(), service.Spec.ClusterIP != "")
	_, err = client.CoreV1().Services("team").Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, metav1.CreateOptions{})
	fmt.Println(err)
	// Output:
	// ClusterIP 80 true
	// Service "web" is invalid: spec.ports: Required value
}

// A Service that is closed over its node units, as the nodes of two units see it.
func ExampleServer_StartView() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	labels := map[string]string{"app": "echo"}
	server, err := testserver.Run(ctx, testserver.Options{Objects: []runtime.Object{
		newNode("edge-1", map[string]string{"zone1": "a"}), newNode("edge-2", map[string]string{"zone1": "b"}),
		newPod("echo-1", "edge-1", "10.244.1.10", labels), newPod("echo-2", "edge-2", "10.244.2.10", labels),
		newService("echo", map[string]string{"topologyKeys": `["zone1"]`}),
	}})
	if err != nil {
		fmt.Println("starting the server:", err)
		return
	}
	defer func() { _ = server.Stop() }()

	for _, node := range []string{"edge-1", "edge-2"} {
		config, err := server.StartView(ctx, node)
		if err != nil {
			fmt.Println(err)
			return
		}
		client := kubernetes.NewForConfigOrDie(config)
		// The controllers work beside the test, which waits for what it wants to see.
		var addresses []string
		err = wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
			list, err := client.DiscoveryV1().EndpointSlices("default").List(ctx, metav1.ListOptions{LabelSelector: discoveryv1.LabelServiceName + "=echo"})
			if err != nil {
				return false, err
			}
			addresses = nil
			for _, slice := range list.Items {
				for _, endpoint := range slice.Endpoints {
					addresses = append(addresses, endpoint.Addresses...)
				}
			}
			slices.Sort(addresses)
			return len(addresses) > 0, nil
		})
		fmt.Println(node, addresses, err)
	}
	// Output:
	// edge-1 [10.244.1.10] <nil>
	// edge-2 [10.244.2.10] <nil>
}
