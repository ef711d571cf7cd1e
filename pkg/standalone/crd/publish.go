// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	listers "k8s.io/apiextensions-apiserver/pkg/client/listers/apiextensions/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/discovery"
	"k8s.io/client-go/tools/cache"
	"k8s.io/kube-openapi/pkg/cached"
	"k8s.io/kube-openapi/pkg/handler"
	"k8s.io/kube-openapi/pkg/handler3"
	"k8s.io/kube-openapi/pkg/spec3"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Front is what clients ask when they want to know what is served.
type Front struct {
	// Groups answers /apis to clients that do not know the aggregated form.
	Groups discovery.GroupManager
	// V2 serves /openapi/v2, and StaticV2 is its document without custom resources.
	V2       *handler.OpenAPIService
	StaticV2 cached.Value[*spec.Swagger]
	// V3 serves /openapi/v3.
	V3 *handler3.OpenAPIService
}

// Publish keeps the front up to date with what is defined, from the start of the
// server on. It must be called once, before the front runs and after it has all
// groups of its own, which take precedence. Documents are built when a client
// asks for them.
func (s *Server) Publish(front Front) error {
	builtIn, err := front.Groups.Groups(context.Background(), &http.Request{})
	if err != nil {
		return fmt.Errorf("custom resources: %w", err)
	}
	definitions := s.Informers.Apiextensions().V1().CustomResourceDefinitions()
	p := &publisher{
		front:   front,
		lister:  definitions.Lister(),
		builtIn: sets.New[string](),
		own:     newOwnDocuments(s.GenericAPIServer.Handler.GoRestfulContainer.RegisteredWebServices()),
	}
	for _, group := range builtIn {
		p.builtIn.Insert(group.Name)
	}
	p.publishOwn()
	sync := func(any) { p.sync() }
	_, err = definitions.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    sync,
		UpdateFunc: func(_, _ any) { p.sync() },
		DeleteFunc: sync,
	})
	return err
}

// publisher is called by one goroutine, that of its event handler.
type publisher struct {
	front   Front
	lister  listers.CustomResourceDefinitionLister
	builtIn sets.Set[string]
	own     ownDocuments

	groups   map[string]metav1.APIGroup
	versions map[schema.GroupVersion][]*description
}

// publishOwn publishes the definitions themselves.
func (p *publisher) publishOwn() {
	gv := apiextensionsv1.SchemeGroupVersion
	p.builtIn.Insert(gv.Group)
	p.front.Groups.AddGroup(groupsOf(map[schema.GroupVersion]bool{gv: true})[gv.Group])
	for path, document := range p.own.v3 {
		p.front.V3.UpdateGroupVersionLazy(path, cached.Func(func() (*spec3.OpenAPI, string, error) {
			built, err := document()
			return built, "definitions", err
		}))
	}
	p.front.V2.UpdateSpecLazy(mergedV2(p.front.StaticV2, p.own, nil))
}

// sync publishes what has changed. It looks at all definitions, which is little
// work beside what led to the event.
func (p *publisher) sync() {
	definitions, err := p.lister.List(labels.Everything())
	if err != nil {
		utilruntime.HandleError(fmt.Errorf("publishing custom resources: %w", err))
		return
	}
	served := servedVersions(definitions)
	maps.DeleteFunc(served, func(gv schema.GroupVersion, _ []*apiextensionsv1.CustomResourceDefinition) bool {
		return p.builtIn.Has(gv.Group)
	})
	p.syncGroups(groupsOf(served))
	p.syncDocuments(served)
}

func (p *publisher) syncGroups(groups map[string]metav1.APIGroup) {
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		if !apiequality.Semantic.DeepEqual(groups[name], p.groups[name]) {
			p.front.Groups.AddGroup(groups[name])
		}
	}
	for name := range p.groups {
		if _, ok := groups[name]; !ok {
			p.front.Groups.RemoveGroup(name)
		}
	}
	p.groups = groups
}

func (p *publisher) syncDocuments(served map[schema.GroupVersion][]*apiextensionsv1.CustomResourceDefinition) {
	versions := map[schema.GroupVersion][]*description{}
	changed := false
	for gv, definitions := range served {
		for _, definition := range definitions {
			versions[gv] = append(versions[gv], p.describe(definition, gv))
		}
		if !slices.Equal(versions[gv], p.versions[gv]) {
			p.front.V3.UpdateGroupVersionLazy("apis/"+gv.String(), mergedV3(versions[gv]))
			changed = true
		}
	}
	for gv := range p.versions {
		if _, ok := versions[gv]; !ok {
			p.front.V3.DeleteGroupVersion("apis/" + gv.String())
			changed = true
		}
	}
	p.versions = versions
	if changed {
		var all []*description
		for _, descriptions := range versions {
			all = append(all, descriptions...)
		}
		p.front.V2.UpdateSpecLazy(mergedV2(p.front.StaticV2, p.own, all))
	}
}

// describe returns the description that is there already if nothing has changed,
// with the documents that it may have built.
func (p *publisher) describe(definition *apiextensionsv1.CustomResourceDefinition, gv schema.GroupVersion) *description {
	identity := identityOf(definition, gv.Version)
	for _, d := range p.versions[gv] {
		if d.identity == identity {
			return d
		}
	}
	return describe(definition, gv.Version)
}
