// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package differential

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// names replaces what a side has chosen by chance, ClusterIPs and node ports, by names that are the same on both
// sides: the Service's name, what it is, and a number that grows when the Service gets another one. So a value that
// is kept, or not, shows. Values that a request may name (see chosen) stay as they are.
type names struct {
	mu    sync.Mutex
	known map[string]map[string]string // by owner, from value to name
	count map[string]int
}

func newNames() *names {
	return &names{known: map[string]map[string]string{}, count: map[string]int{}}
}

// nameLocked returns the name of a value of an owner.
func (n *names) nameLocked(owner, value string) string {
	if n.known[owner] == nil {
		n.known[owner] = map[string]string{}
	}
	name, ok := n.known[owner][value]
	if !ok {
		n.count[owner]++
		name = fmt.Sprintf("<%s %d>", owner, n.count[owner])
		n.known[owner][value] = name
	}
	return name
}

// chosenAddress tells whether the server has chosen a ClusterIP: it takes none of the first 256 addresses of a large
// range before the others are used up.
func chosenAddress(ip string) bool {
	address, err := netip.ParseAddr(ip)
	if err != nil {
		return false
	}
	bytes := address.AsSlice()
	return bytes[len(bytes)-2] != 0
}

// chosenPort tells the same of a node port: the first 86 of the default range are for requests that name one.
func chosenPort(port int64) bool { return port >= 30086 }

// object returns a copy of an object without what differs by nature.
func (n *names) object(object *unstructured.Unstructured) map[string]any {
	n.mu.Lock()
	defer n.mu.Unlock()
	o := object.DeepCopy()
	normalizeMetadata(o)
	switch o.GetKind() {
	case "Service":
		n.serviceLocked(o)
	case "ServiceGrid":
		if ip, _, _ := unstructured.NestedString(o.Object, "status", "clusterIP"); ip != "" {
			service, _, _ := unstructured.NestedString(o.Object, "status", "serviceName")
			_ = unstructured.SetNestedField(o.Object, n.addressLocked(service, ip), "status", "clusterIP")
		}
	}
	return o.Object
}

func (n *names) serviceLocked(service *unstructured.Unstructured) {
	spec, ok, _ := unstructured.NestedMap(service.Object, "spec")
	if !ok {
		return
	}
	service.Object["spec"] = spec
	if list, ok := spec["clusterIPs"].([]any); ok {
		for i := range list {
			list[i] = n.addressLocked(service.GetName(), list[i])
		}
	}
	if ip, ok := spec["clusterIP"]; ok {
		spec["clusterIP"] = n.addressLocked(service.GetName(), ip)
	}
	replacePort := func(in map[string]any, field, what string) {
		if number, ok := in[field].(int64); ok && chosenPort(number) {
			in[field] = n.nameLocked(what+" of "+service.GetName(), fmt.Sprint(number))
		}
	}
	ports, _ := spec["ports"].([]any)
	for _, p := range ports {
		if p, ok := p.(map[string]any); ok {
			replacePort(p, "nodePort", fmt.Sprintf("node port of %v/%v", p["port"], p["protocol"]))
		}
	}
	replacePort(spec, "healthCheckNodePort", "health check port")
}

// addressLocked names the ClusterIP of a Service, if the server has chosen it.
func (n *names) addressLocked(service string, value any) any {
	ip, ok := value.(string)
	if !ok || !chosenAddress(ip) {
		return value
	}
	family := "IPv4"
	if strings.Contains(ip, ":") {
		family = "IPv6"
	}
	return n.nameLocked("ClusterIP of "+service+" "+family, ip)
}

// status returns what a client can tell from an error.
func (n *names) status(err error) map[string]any {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return map[string]any{"error": err.Error()}
	}
	s := status.Status()
	result := map[string]any{"code": s.Code, "reason": string(s.Reason), "message": n.text(s.Message)}
	if s.Details == nil {
		return result
	}
	result["kind"], result["group"], result["name"] = s.Details.Kind, s.Details.Group, s.Details.Name
	var causes []any
	for _, cause := range s.Details.Causes {
		causes = append(causes, map[string]any{"type": string(cause.Type), "field": cause.Field, "message": n.text(cause.Message)})
	}
	if len(causes) > 1 {
		// Those of a map come in any order, and the message repeats them.
		sortByContent(causes)
		message, _, _ := strings.Cut(s.Message, "[")
		result["message"] = message
	}
	if causes != nil {
		result["causes"] = causes
	}
	return result
}

// addresses matches those of the range of ClusterIPs: that of a Service that could not be made is in no Service.
var addresses = regexp.MustCompile(`\b10\.96\.[0-9]+\.[0-9]+\b`)

// text replaces known values within a text.
func (n *names) text(text string) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, values := range n.known {
		for value, name := range values {
			text = strings.ReplaceAll(text, value, name)
		}
	}
	text = addresses.ReplaceAllStringFunc(text, func(ip string) string {
		if chosenAddress(ip) {
			return "<ClusterIP>"
		}
		return ip
	})
	return uids.ReplaceAllString(text, "<uid>")
}
