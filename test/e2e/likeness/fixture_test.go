// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// fixture is an object that cases start from.
type fixture struct {
	// collection is where it is created, and name what it is called there.
	collection, name string
	body             string
}

func (f fixture) path() string { return f.collection + "/" + f.name }

const (
	core      = "/api/v1"
	inNS      = core + "/namespaces/{ns}"
	discovery = "/apis/discovery.k8s.io/v1"
	// widgets are the custom resource of all cases.
	widgetGroup = "likeness.example.com"
	widgets     = "/apis/" + widgetGroup + "/v1/namespaces/{ns}/widgets"
)

// fixtures are all objects that cases ask for by name.
var fixtures = map[string]fixture{
	"service": {inNS + "/services", "web", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"web","labels":{"app":"web","tier":"front"},"annotations":{"note":"a <b> & \"c\" é"}},
		"spec":{"selector":{"app":"web"},"ports":[{"name":"http","port":80,"targetPort":8080},{"name":"dns","port":53,"protocol":"UDP"}]}}`},
	"headless": {inNS + "/services", "headless", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"headless","labels":{"app":"headless"}},
		"spec":{"clusterIP":"None","selector":{"app":"web"},"ports":[{"port":80}]}}`},
	"external": {inNS + "/services", "external", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"external","labels":{"app":"external"}},
		"spec":{"type":"ExternalName","externalName":"example.com"}}`},
	"nodeport": {inNS + "/services", "nodeport", `{"apiVersion":"v1","kind":"Service","metadata":{"name":"nodeport"},
		"spec":{"type":"NodePort","externalIPs":["192.0.2.9"],"selector":{"app":"web"},"ports":[{"name":"http","port":80}]}}`},
	"endpoints": {inNS + "/endpoints", "web", `{"apiVersion":"v1","kind":"Endpoints","metadata":{"name":"web","labels":{"app":"web"}},
		"subsets":[{"addresses":[{"ip":"10.1.0.1","nodeName":"node0"},{"ip":"10.1.0.2","nodeName":"node1"}],"notReadyAddresses":[{"ip":"10.1.0.3"}],"ports":[{"name":"http","port":8080}]}]}`},
	"slice": {discovery + "/namespaces/{ns}/endpointslices", "web-1", `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice",
		"metadata":{"name":"web-1","labels":{"app":"web","kubernetes.io/service-name":"web"}},"addressType":"IPv4","ports":[{"name":"http","port":8080,"protocol":"TCP"}],
		"endpoints":[{"addresses":["10.1.0.1"],"nodeName":"node0","conditions":{"ready":true}},{"addresses":["10.1.0.2"],"nodeName":"node1","conditions":{"ready":false}}]}`},
	"empty slice": {discovery + "/namespaces/{ns}/endpointslices", "web-0", `{"apiVersion":"discovery.k8s.io/v1","kind":"EndpointSlice",
		"metadata":{"name":"web-0","labels":{"kubernetes.io/service-name":"web"}},"addressType":"IPv6","ports":[],"endpoints":[]}`},
	"configmap": {inNS + "/configmaps", "settings", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"settings","labels":{"app":"web"}},"data":{"color":"blue"}}`},
	"secret":    {inNS + "/secrets", "password", `{"apiVersion":"v1","kind":"Secret","metadata":{"name":"password","labels":{"app":"web"}},"stringData":{"password":"secret"}}`},
	"pod": {inNS + "/pods", "web-0", `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-0","labels":{"app":"web"}},
		"spec":{"terminationGracePeriodSeconds":0,"containers":[{"name":"main","image":"registry.invalid/web:1"}]}}`},
	"account": {inNS + "/serviceaccounts", "robot", `{"apiVersion":"v1","kind":"ServiceAccount","metadata":{"name":"robot","labels":{"app":"web"}}}`},
	"event": {inNS + "/events", "web.1", `{"apiVersion":"v1","kind":"Event","metadata":{"name":"web.1","labels":{"app":"web"}},"type":"Warning","reason":"Because","message":"It happened.",
		"involvedObject":{"kind":"Service","namespace":"{ns}","name":"web"},"firstTimestamp":"2026-01-01T00:00:00Z","lastTimestamp":"2026-01-01T00:00:00Z","count":3,"source":{"component":"likeness"}}`},
	"lease": {"/apis/coordination.k8s.io/v1/namespaces/{ns}/leases", "leader", `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"leader","labels":{"app":"web"}},"spec":{"holderIdentity":"one"}}`},
	"deployment": {"/apis/apps/v1/namespaces/{ns}/deployments", "web", `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","labels":{"app":"web"}},
		"spec":{"replicas":2,"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"main","image":"registry.invalid/web:1"}]}}}}`},
	"ingress": {"/apis/networking.k8s.io/v1/namespaces/{ns}/ingresses", "web", `{"apiVersion":"networking.k8s.io/v1","kind":"Ingress","metadata":{"name":"web","labels":{"app":"web"}},
		"spec":{"defaultBackend":{"service":{"name":"web","port":{"number":80}}}}}`},
	"role": {"/apis/rbac.authorization.k8s.io/v1/namespaces/{ns}/roles", "reader", `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"Role","metadata":{"name":"reader","labels":{"app":"web"}},
		"rules":[{"apiGroups":[""],"resources":["pods"],"verbs":["get"]}]}`},
	"widget": {widgets, "first", `{"apiVersion":"likeness.example.com/v1","kind":"Widget","metadata":{"name":"first","labels":{"app":"web"}},"spec":{"size":3,"color":"blue"}}`},
	"cidr":   {"/apis/networking.k8s.io/v1/servicecidrs", "{ns}", `{"apiVersion":"networking.k8s.io/v1","kind":"ServiceCIDR","metadata":{"name":"{ns}","labels":{"app":"web"}},"spec":{"cidrs":["10.99.0.0/24"]}}`},
	"node":   {"/api/v1/nodes", "{ns}", `{"apiVersion":"v1","kind":"Node","metadata":{"name":"{ns}","labels":{"app":"web"}}}`},
}

const widgetCRD = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.likeness.example.com"},
	"spec":{"group":"likeness.example.com","scope":"Namespaced","names":{"plural":"widgets","singular":"widget","kind":"Widget","listKind":"WidgetList","shortNames":["wd"],"categories":["all"]},
	"versions":[{"name":"v1","served":true,"storage":true,
		"subresources":{"status":{},"scale":{"specReplicasPath":".spec.size","statusReplicasPath":".status.size"}},
		"additionalPrinterColumns":[{"name":"Size","type":"integer","jsonPath":".spec.size"},{"name":"Color","type":"string","jsonPath":".spec.color","priority":1}],
		"schema":{"openAPIV3Schema":{"type":"object","properties":{
			"spec":{"type":"object","properties":{"size":{"type":"integer","minimum":1},"color":{"type":"string","enum":["blue","red","green"]}}},
			"status":{"type":"object","properties":{"size":{"type":"integer"}}}}}}}]}}`

const (
	// sharedNamespace is that of the cases that only read; it holds every namespaced fixture.
	sharedNamespace = "shared"
	// largeNamespace holds lists of more than 128 KiB, which are compressed on request.
	largeNamespace = "large"
)

var namespaces atomic.Int64

// newNamespace returns a name without the last letter, which tells the side.
func newNamespace() string { return fmt.Sprintf("case-%03d-", namespaces.Add(1)) }

// give makes a namespace and objects in it, and waits until the side shows them.
func (c *conversation) give(ctx context.Context, names []string) error {
	steps := []step{{method: http.MethodPost, path: core + "/namespaces", body: `{"metadata":{"name":"{ns}"}}`}}
	shown := []step{{path: core + "/namespaces/{ns}"}}
	for _, name := range names {
		f, ok := fixtures[name]
		if !ok {
			return fmt.Errorf("no fixture %q", name)
		}
		steps = append(steps, step{method: http.MethodPost, path: f.collection, body: f.body})
		shown = append(shown, step{path: f.path()})
	}
	for _, s := range steps {
		if err := c.prepare(ctx, s); err != nil {
			return err
		}
	}
	for _, s := range shown {
		if err := c.settle(ctx, s); err != nil {
			return err
		}
	}
	return nil
}

// createShared makes what all cases share, and waits until it is everywhere.
func createShared(ctx context.Context) error {
	all := newConversation(sides[1], sharedNamespace)
	err := all.prepare(ctx, step{method: http.MethodPost, path: "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", body: widgetCRD})
	if err != nil {
		return err
	}
	// Discovery and the documents of OpenAPI follow one by one.
	err = lab.WaitFor(ctx, 30*time.Second, "the custom resource is served and described", func(ctx context.Context) error {
		for path, want := range map[string]string{
			widgets: "WidgetList", "/openapi/v3": "apis/likeness.example.com/v1", "/openapi/v2": "com.example.likeness.v1.Widget", "/apis": widgetGroup,
		} {
			response, err := sides[0].open(ctx, all.fill(step{path: path}))
			if err != nil {
				return err
			}
			if a := read(response, normalizer(sharedNamespace)); a.code != http.StatusOK || !strings.Contains(string(a.body), want) {
				return fmt.Errorf("%s lacks %s (%d)", path, want, a.code)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	var names []string
	for name := range fixtures {
		names = append(names, name)
	}
	if err := all.give(ctx, names); err != nil {
		return err
	}
	return createLarge(ctx)
}

// createLarge makes 20 slices of 100 endpoints and 20 ConfigMaps of 8 KiB.
func createLarge(ctx context.Context) error {
	large := newConversation(sides[1], largeNamespace)
	if err := large.give(ctx, nil); err != nil {
		return err
	}
	for i := range 20 {
		var endpoints []string
		for j := range 100 {
			endpoints = append(endpoints, fmt.Sprintf(`{"addresses":["10.2.%d.%d"],"nodeName":"node%d","conditions":{"ready":true}}`, i, j, j%3))
		}
		slice := fmt.Sprintf(`{"metadata":{"name":"slice-%02d"},"addressType":"IPv4","endpoints":[%s]}`, i, strings.Join(endpoints, ","))
		settings := fmt.Sprintf(`{"metadata":{"name":"settings-%02d"},"data":{"text":"%s"}}`, i, strings.Repeat("abcdefg ", 1024))
		for path, body := range map[string]string{discovery + "/namespaces/{ns}/endpointslices": slice, inNS + "/configmaps": settings} {
			if err := large.prepare(ctx, step{method: http.MethodPost, path: path, body: body}); err != nil {
				return err
			}
		}
	}
	return large.settle(ctx, step{path: discovery + "/namespaces/{ns}/endpointslices"})
}
