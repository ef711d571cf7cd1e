// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package topology

// cluster is a Locality that is computed from labels at every question: the
// definition of the interface rather than a fast implementation of it.
type cluster struct {
	self  string
	nodes map[string]map[string]string
}

var _ Locality = cluster{}

func (c cluster) Label(key string) (string, bool) {
	value, ok := c.nodes[c.self][key]
	return value, ok
}

func (c cluster) Member(key, nodeName string) bool {
	own, ok := c.nodes[c.self][key]
	other, otherOK := c.nodes[nodeName][key]
	return ok && otherOK && own == other
}

// onNode returns this cluster as another of its nodes sees it.
func (c cluster) onNode(name string) cluster {
	return cluster{self: name, nodes: c.nodes}
}

// unitCluster is the cluster of most tests: n1 and n2 form the unit zone1=a, n3
// the unit zone1=b, and n4 is in none.
func unitCluster() cluster {
	return cluster{self: "n1", nodes: map[string]map[string]string{
		"n1": {"zone1": "a", "kubernetes.io/hostname": "n1"},
		"n2": {"zone1": "a", "kubernetes.io/hostname": "n2"},
		"n3": {"zone1": "b", "kubernetes.io/hostname": "n3"},
		"n4": {},
	}}
}
