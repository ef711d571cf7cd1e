// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

// Package likeness sends the same requests to the real kube-apiserver and, with the same credentials, through the
// grid-apiserver of a node on which nothing is filtered, and compares what a client sees of the answers: status, headers
// and bodies, the events of watches, what kubectl prints, and for writes what is stored upstream afterwards.
//
// The cases are tables: reads_test.go, watches_test.go, writes_test.go, objects_test.go, errors_test.go,
// discovery_test.go and sessions_test.go. Each states the status or exit code that it wants, so that a case cannot agree
// by being wrong on both sides. What differs by nature (revisions, uids, times, allocated addresses) is normalised in
// normalize_test.go. What is meant to differ is listed with its reason in allowed_test.go, and an entry that no longer
// occurs fails the test.
//
// To see whether a difference is one of the test itself, compare the real server with itself:
//
//	go test ./likeness -through=kube-apiserver
package likeness
