// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package auth authenticates and authorises requests that this server answers
// itself: reads of the view, and its own endpoints. Proxied requests are not its
// business, upstream decides about them.
//
// A bearer token is reviewed upstream (TokenReview) and wins over a client
// certificate. A client certificate of the local client CA is the local identity:
// it needs no upstream, and has a fixed read-only right. Everybody else's rights
// are those that upstream grants (SubjectAccessReview).
//
// A review that upstream cannot make is neither a yes nor a no: the request ends
// with 503 and Retry-After within 2 seconds, never with 401 or 403, which clients
// take for final.
//
// A flood of made-up tokens or names must not lock others out. What was accepted within
// the last hour is reviewed again in slots of its own, one user has no more than
// a share of the slots for access reviews, and answers that say no are remembered
// apart from the others. A review that finds no slot within a second ends as
// 503 with Retry-After too, with a message of its own; it says nothing about upstream,
// so no outage is logged for it. What a flood still delays is the first review of
// a new token.
package auth
