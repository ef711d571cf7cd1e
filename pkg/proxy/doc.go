// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package proxy decides which requests the node answers itself and carries all others to the upstream API server.
//
// A request passes three decisions, each a pure function of its RequestInfo and headers: the router (IsLocal) picks the
// local handler or the proxy, the proxy picks the identity under which upstream sees the request (a bearer token goes
// through untouched, the local identity borrows the server's own credential for the little that LocalIdentityMay
// allows), and the write guard refuses what upstream would misread: revisions of the view, and the view's copies of objects that
// differ from those upstream.
//
// Nobody is authenticated here, so what a request may hold is bounded, and clients whose token upstream has not accepted yet
// share neither memory nor connections with the others.
//
// What is proxied is streamed: request target, headers, bodies and trailers reach the other side as they came, every
// chunk is flushed at once, and upgraded connections are joined byte for byte. Upstream is reached over HTTP/2; upgrades, and
// short reads while there are many, have connections of HTTP/1.1 for themselves.
package proxy
