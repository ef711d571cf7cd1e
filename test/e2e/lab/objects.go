// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

const (
	// ZoneLabel is the node label that names the node unit in the lab.
	ZoneLabel = "zone1"
	// TopologyKeys is the annotation that closes a Service over its unit.
	TopologyKeys = "topologyKeys"
	// TopologyValue is the value of TopologyKeys for ZoneLabel.
	TopologyValue = `["zone1"]`
	// DemoService is the name of the Service that the lab shows first.
	DemoService = "servicegrid-demo-svc"

	gridAccount = "grid-apiserver"
)

// RegisterNode makes the node's Node object as its kubelet would. It may exist already: then only the labels are
// set, and labels that the lab gave it before are replaced.
func (l *Lab) RegisterNode(ctx context.Context, n *Node, labels map[string]string) error {
	nodes := l.Cloud.Kubernetes.CoreV1().Nodes()
	all := map[string]string{corev1.LabelHostname: n.Name, corev1.LabelOSStable: "linux"}
	for key, value := range labels {
		all[key] = value
	}
	node, err := nodes.Get(ctx, n.Name, metav1.GetOptions{})
	if err == nil {
		node.Labels = all
		_, err = nodes.Update(ctx, node, metav1.UpdateOptions{})
		return err
	}
	if !apierrors.IsNotFound(err) {
		return err
	}
	node, err = nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: n.Name, Labels: all}}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	node.Status.Addresses = []corev1.NodeAddress{
		{Type: corev1.NodeInternalIP, Address: n.Address.String()},
		{Type: corev1.NodeHostName, Address: n.Name},
	}
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	_, err = nodes.UpdateStatus(ctx, node, metav1.UpdateOptions{})
	return err
}

// SetUnits labels the nodes: units[i] is the unit of node i, "" none. A Node object that is missing is made.
func (l *Lab) SetUnits(ctx context.Context, units ...string) error {
	for i, unit := range units {
		labels := map[string]string{}
		if unit != "" {
			labels[ZoneLabel] = unit
		}
		if err := l.RegisterNode(ctx, l.Nodes[i], labels); err != nil {
			return err
		}
	}
	return nil
}

// Service returns an echo Service without selector.
func Service(name string, annotations map[string]string) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: name, Annotations: annotations},
		Spec: corev1.ServiceSpec{
			Ports: []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080), Protocol: corev1.ProtocolTCP}},
		},
	}
}

// Endpoint is an address on a node.
type Endpoint struct{ Address, Node string }

// EchoEndpoints are the echo servers of all nodes.
func (l *Lab) EchoEndpoints() []Endpoint {
	var endpoints []Endpoint
	for _, n := range l.Nodes {
		endpoints = append(endpoints, Endpoint{Address: n.Address.String(), Node: n.Name})
	}
	return endpoints
}

// Slice returns the EndpointSlice of a Service made by Service.
func Slice(service string, endpoints ...Endpoint) *discoveryv1.EndpointSlice {
	name, protocol, port, ready := "http", corev1.ProtocolTCP, int32(8080), true
	slice := &discoveryv1.EndpointSlice{
		ObjectMeta:  metav1.ObjectMeta{Name: service + "-1", Labels: map[string]string{discoveryv1.LabelServiceName: service}},
		AddressType: discoveryv1.AddressTypeIPv4,
		Ports:       []discoveryv1.EndpointPort{{Name: &name, Protocol: &protocol, Port: &port}},
	}
	for _, e := range endpoints {
		slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{
			Addresses:  []string{e.Address},
			NodeName:   &e.Node,
			Conditions: discoveryv1.EndpointConditions{Ready: &ready},
		})
	}
	return slice
}

// Endpoints returns the Endpoints object of a Service made by Service.
func Endpoints(service string, endpoints ...Endpoint) *corev1.Endpoints {
	subset := corev1.EndpointSubset{Ports: []corev1.EndpointPort{{Name: "http", Port: 8080, Protocol: corev1.ProtocolTCP}}}
	for _, e := range endpoints {
		subset.Addresses = append(subset.Addresses, corev1.EndpointAddress{IP: e.Address, NodeName: &e.Node})
	}
	// Its slice is made beside it: none is to be made of it.
	labels := map[string]string{discoveryv1.LabelSkipMirror: "true"}
	return &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: service, Labels: labels}, Subsets: []corev1.EndpointSubset{subset}}
}

// CreateService creates a Service with its EndpointSlice and its Endpoints object in namespace default and
// returns it as created.
func (l *Lab) CreateService(ctx context.Context, service *corev1.Service, endpoints ...Endpoint) (*corev1.Service, error) {
	client := l.Cloud.Kubernetes
	created, err := client.CoreV1().Services(metav1.NamespaceDefault).Create(ctx, service, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	if _, err := client.CoreV1().Endpoints(metav1.NamespaceDefault).Create(ctx, Endpoints(service.Name, endpoints...), metav1.CreateOptions{}); err != nil {
		return nil, err
	}
	_, err = client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Create(ctx, Slice(service.Name, endpoints...), metav1.CreateOptions{})
	return created, err
}

// DeleteService deletes what CreateService created; what is gone already is no error.
func (l *Lab) DeleteService(ctx context.Context, name string) error {
	client := l.Cloud.Kubernetes
	var errs []error
	for _, err := range []error{
		client.CoreV1().Services(metav1.NamespaceDefault).Delete(ctx, name, metav1.DeleteOptions{}),
		client.CoreV1().Endpoints(metav1.NamespaceDefault).Delete(ctx, name, metav1.DeleteOptions{}),
		client.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Delete(ctx, name+"-1", metav1.DeleteOptions{}),
	} {
		if !apierrors.IsNotFound(err) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// grantGrid applies the RBAC rules that the project ships, as they are, and writes a kubeconfig for
// grid-apiserver with a token of its service account.
func (l *Lab) grantGrid(ctx context.Context) error {
	if l.Cloud.Kind == Standalone {
		// It knows one identity, and no RBAC.
		l.gridKubeconfig = l.Cloud.AdminKubeconfig
		return nil
	}
	rules := filepath.Join(l.Programs.Repository(), "artifacts", "rbac.yaml")
	if _, err := l.Kubectl(ctx, "apply", "-f", rules); err != nil {
		return fmt.Errorf("apply the shipped RBAC rules: %w", err)
	}
	accounts := l.Cloud.Kubernetes.CoreV1().ServiceAccounts(metav1.NamespaceSystem)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: gridAccount}}
	if _, err := accounts.Create(ctx, account, metav1.CreateOptions{}); err != nil && !apierrors.IsAlreadyExists(err) {
		return err
	}
	token, err := accounts.CreateToken(ctx, gridAccount, &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	l.gridKubeconfig, err = l.Cloud.kubeconfig(gridAccount, &clientcmdapi.AuthInfo{Token: token.Status.Token})
	return err
}
