// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io"
	stdlog "log"
	"net"
	"net/http"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/kubelet"
)

const (
	// ContainerName is the name of the one container of each pod of RunPod.
	ContainerName = "main"
	// kubeletClientName is who kube-apiserver is to a kubelet.
	kubeletClientName = "kube-apiserver-kubelet-client"
)

// Kubelet is the kubelet's API of a node, without the kubelet's work: pods run only if RunPod is told so.
type Kubelet struct {
	*kubelet.Server
	node   *Node
	server *http.Server
}

// StartKubelet serves the kubelet's API on the node's address, to kube-apiserver alone, and writes where into the
// Node object, which must exist. The upstream must be KubeAPIServer.
func (n *Node) StartKubelet(ctx context.Context) (*Kubelet, error) {
	ca := n.lab.Cloud.ca
	pair, err := ca.issue("kubelet-"+n.Name, pkix.Name{CommonName: "system:node:" + n.Name, Organization: []string{"system:nodes"}},
		[]net.IP{n.Address.AsSlice()}, []string{n.Name})
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.certPEM, pair.keyPEM)
	if err != nil {
		return nil, err
	}
	clients := x509.NewCertPool()
	clients.AddCert(ca.cert)
	listener, err := n.Listen(ctx, "tcp4", net.JoinHostPort(n.Address.String(), "0"))
	if err != nil {
		return nil, err
	}
	logs := filepath.Join(n.dir, "pods")
	if err := os.MkdirAll(logs, 0o755); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	k := &Kubelet{Server: kubelet.New(n.Host, logs), node: n}
	k.server = &http.Server{
		Handler:           fromAPIServer(k.Server),
		ReadHeaderTimeout: requestTimeout,
		// Connections that end in the middle of a handshake are no news at the end of a lab.
		ErrorLog: stdlog.New(io.Discard, "", 0),
		TLSConfig: &tls.Config{
			MinVersion:   tls.VersionTLS12,
			Certificates: []tls.Certificate{certificate},
			ClientAuth:   tls.RequireAndVerifyClientCert,
			ClientCAs:    clients,
		},
	}
	go func() {
		if err := k.server.ServeTLS(listener, "", ""); !errors.Is(err, http.ErrServerClosed) {
			n.lab.report("kubelet of %s: %v", n.Name, err)
		}
	}()
	port := listener.Addr().(*net.TCPAddr).Port
	if err := k.announce(ctx, int32(port)); err != nil { //nolint:gosec // a TCP port
		k.Stop()
		return nil, err
	}
	return k, nil
}

// fromAPIServer refuses everyone else.
func fromAPIServer(handler http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if name := r.TLS.PeerCertificates[0].Subject.CommonName; name != kubeletClientName {
			http.Error(w, name+" is not kube-apiserver", http.StatusForbidden)
			return
		}
		handler.ServeHTTP(w, r)
	})
}

func (k *Kubelet) announce(ctx context.Context, port int32) error {
	nodes := k.node.lab.Cloud.Kubernetes.CoreV1().Nodes()
	node, err := nodes.Get(ctx, k.node.Name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	node.Status.DaemonEndpoints.KubeletEndpoint.Port = port
	_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}

// RunPod runs a command as a pod of the node in namespace default and makes its Pod object. It listens, if at all, on
// the node's own address.
func (k *Kubelet) RunPod(ctx context.Context, name string, command ...string) (*kubelet.Pod, error) {
	pod, err := k.Run(metav1.NamespaceDefault, name, ContainerName, command...)
	if err != nil {
		return nil, err
	}
	return pod, k.CreatePod(ctx, name, command...)
}

// CreatePod makes the Pod object of a running pod, and nothing that runs.
func (k *Kubelet) CreatePod(ctx context.Context, name string, command ...string) error {
	pods := k.node.lab.Cloud.Kubernetes.CoreV1().Pods(metav1.NamespaceDefault)
	const image = "registry.invalid/none"
	object, err := pods.Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: corev1.PodSpec{
			NodeName:    k.node.Name,
			HostNetwork: true,
			Containers:  []corev1.Container{{Name: ContainerName, Image: image, Command: command, Stdin: true}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	now, started, address := metav1.Now(), true, k.node.Address.String()
	object.Status = corev1.PodStatus{
		Phase:     corev1.PodRunning,
		HostIP:    address,
		HostIPs:   []corev1.HostIP{{IP: address}},
		PodIP:     address,
		PodIPs:    []corev1.PodIP{{IP: address}},
		StartTime: &now,
		Conditions: []corev1.PodCondition{
			{Type: corev1.ContainersReady, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: corev1.ConditionTrue},
		},
		ContainerStatuses: []corev1.ContainerStatus{{
			Name: ContainerName, Image: image, ContainerID: "lab://" + name, Ready: true, Started: &started,
			State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: now}},
		}},
	}
	_, err = pods.UpdateStatus(ctx, object, metav1.UpdateOptions{})
	return err
}

// DeletePod deletes a Pod object. Its process goes on until Stop.
func (k *Kubelet) DeletePod(ctx context.Context, name string) error {
	return k.node.lab.Cloud.Kubernetes.CoreV1().Pods(metav1.NamespaceDefault).Delete(ctx, name, *metav1.NewDeleteOptions(0))
}

// Stop ends the server and the processes of its pods.
func (k *Kubelet) Stop() {
	k.Close()
	_ = k.server.Close()
}
