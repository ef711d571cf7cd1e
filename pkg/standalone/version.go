// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	apimachineryversion "k8s.io/apimachinery/pkg/version"
	"k8s.io/apiserver/pkg/util/compatibility"
	basecompatibility "k8s.io/component-base/compatibility"
)

// KubernetesVersion is the release whose API is served. Clients compare it with
// their own, and with what a chart or a plug-in asks for.
const KubernetesVersion = "v1.37.2"

// effectiveVersion is the version of the build, but for what is answered to /version.
type effectiveVersion struct {
	basecompatibility.EffectiveVersion
}

func newEffectiveVersion() basecompatibility.EffectiveVersion {
	return effectiveVersion{compatibility.DefaultBuildEffectiveVersion()}
}

// Info implements basecompatibility.EffectiveVersion.
func (v effectiveVersion) Info() *apimachineryversion.Info {
	info := *v.EffectiveVersion.Info()
	info.Major, info.Minor = "1", "37"
	// The suffix says that this is not kube-apiserver, in the way distributions do.
	info.GitVersion = KubernetesVersion + "+grid-standalone"
	return &info
}
