// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"net"
	"slices"

	"k8s.io/apimachinery/pkg/util/validation"
)

// subjectNames are the names that the serving certificate is valid for.
type subjectNames struct {
	dns []string
	ips []net.IP
}

// newSubjectNames are the loopback names, the reserved name, the node's name, and the
// address that is listened on. An unspecified bind address (0.0.0.0, ::) names nothing.
func newSubjectNames(nodeName string, bind net.IP) subjectNames {
	s := subjectNames{dns: []string{"localhost", serverName}, ips: []net.IP{net.IPv4(127, 0, 0, 1).To4(), net.IPv6loopback}}
	if ip := net.ParseIP(nodeName); ip != nil {
		s.addIP(ip)
	} else if len(validation.IsDNS1123Subdomain(nodeName)) == 0 && !slices.Contains(s.dns, nodeName) {
		s.dns = append(s.dns, nodeName)
	}
	if bind != nil && !bind.IsUnspecified() {
		s.addIP(bind)
	}
	return s
}

func (s *subjectNames) addIP(ip net.IP) {
	if v4 := ip.To4(); v4 != nil {
		ip = v4
	}
	if !slices.ContainsFunc(s.ips, ip.Equal) {
		s.ips = append(s.ips, ip)
	}
}

// equal compares with the names of an existing certificate.
func (s subjectNames) equal(dns []string, ips []net.IP) bool {
	return slices.Equal(s.dns, dns) && slices.EqualFunc(s.ips, ips, net.IP.Equal)
}
