// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package options

import (
	"fmt"
	"slices"
	"strings"
)

// The names of the controllers.
const (
	ServiceGrid            = "servicegrid"
	Endpoints              = "endpoints"
	EndpointSlice          = "endpointslice"
	EndpointSliceMirroring = "endpointslicemirroring"
)

const everyDefault = "*"

// known says of each controller whether it is on by default. In a real cluster kube-controller-manager has the others,
// and two of them would fight over every object that they do not write alike.
var known = map[string]bool{ServiceGrid: true, Endpoints: false, EndpointSlice: false, EndpointSliceMirroring: false}

// names returns the names of all controllers that are on by default, or of all others.
func names(onByDefault bool) []string {
	var result []string
	for name, on := range known {
		if on == onByDefault {
			result = append(result, name)
		}
	}
	slices.Sort(result)
	return result
}

// Enabled returns the names of the controllers that run. As with kube-controller-manager, the first entry that names a
// controller decides about it, and "*" about those that no entry names.
func (o *Options) Enabled() []string {
	var result []string
	for name, onByDefault := range known {
		i := slices.IndexFunc(o.Controllers, func(entry string) bool { return strings.TrimPrefix(entry, "-") == name })
		if i >= 0 && o.Controllers[i] == name || i < 0 && onByDefault && slices.Contains(o.Controllers, everyDefault) {
			result = append(result, name)
		}
	}
	slices.Sort(result)
	return result
}

func (o *Options) validateControllers() []error {
	var errs []error
	for _, entry := range o.Controllers {
		if _, ok := known[strings.TrimPrefix(entry, "-")]; !ok && entry != everyDefault {
			errs = append(errs, fmt.Errorf("--controllers: %q is none of %s", entry, strings.Join(append(names(true), names(false)...), ", ")))
		}
	}
	if len(errs) == 0 && len(o.Enabled()) == 0 {
		errs = append(errs, fmt.Errorf("--controllers: %q leaves none", strings.Join(o.Controllers, ",")))
	}
	return errs
}
