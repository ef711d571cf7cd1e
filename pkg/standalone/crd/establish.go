// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package crd

import (
	"time"

	apiextensionshelpers "k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// settling is for how long after a definition was established the handler of
// custom resources holds each POST back for two seconds, so that all API servers
// of a cluster know it (k8s.io/apiextensions-apiserver, serveResource).
const settling = 2 * time.Second

// establishEarlier is a transform for the informer of that handler. It lets a
// definition that was established at once look as if that were longer ago: here
// there is one server only, and tests do not want to wait. It changes what the
// handler and the controllers of definitions see. Clients get the shifted time
// when such a controller writes the status again, and never a later one, as
// shifting it twice changes nothing.
func establishEarlier(object any) (any, error) {
	definition, ok := object.(*apiextensionsv1.CustomResourceDefinition)
	if !ok {
		return object, nil
	}
	condition := apiextensionshelpers.FindCRDCondition(definition, apiextensionsv1.Established)
	if condition == nil {
		return object, nil
	}
	created := definition.CreationTimestamp
	if condition.LastTransitionTime.Sub(created.Time) <= settling {
		condition.LastTransitionTime.Time = created.Add(-settling)
	}
	return definition, nil
}
