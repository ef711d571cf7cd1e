// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

// withoutCredentials matches the cases whose requests carry none.
const withoutCredentials = ".*(without credentials|with an empty authorization|with another kind of authorization)"

// allowed are all differences that are meant. One that no longer occurs fails the run (see unneeded).
var allowed = []allowance{
	{
		reason: "priority and fairness is the business of upstream: its verdict on a request that is answered here does not exist",
		part:   "header X-Kubernetes-Pf-.*",
	},
	{
		reason: "who has no credentials reaches the health endpoints only: 401 here, the rights of system:anonymous upstream",
		cases:  withoutCredentials, part: "status",
	},
	{
		reason: "the same, in the body",
		cases:  withoutCredentials, part: "body",
	},
	{
		reason: "the same: what is refused here has the header of a Status",
		cases:  withoutCredentials, part: "header X-Content-Type-Options",
	},
	{
		reason: "the message names a Go type, which is that of the served version here and an internal one upstream",
		part:   "body", pattern: `\(\*(core|discovery|networking|v1)\.`, instead: "(*<package>.",
	},
	{
		reason: "a watch from a revision that does not exist yet is told so; upstream's waits in silence",
		cases:  ".*/future revision", part: "body",
		pattern: `(?s)^.*(Too large resource version|\A\z).*$`,
	},
}
