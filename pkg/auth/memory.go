// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"time"

	"k8s.io/apimachinery/pkg/util/cache"
)

const (
	// provenTTL is how long a question is known to have been accepted. It gives no
	// right, only a place beside the flood, so it may be long: a client that
	// comes every few minutes is still known. It is the usual lifetime of a
	// ServiceAccount token.
	provenTTL = time.Hour
	// provenSize entries of about 200 bytes: a day's tokens of some 100 pods.
	provenSize = 4096
)

// memory keeps answers under keyed hashes of their questions: it holds no tokens,
// and nobody can aim at a collision. Answers that say no have a place of their own,
// so that made-up questions push out nothing but each other. It may be used
// concurrently.
type memory[V any] struct {
	secret             []byte
	accepted, rejected *cache.LRUExpireCache
	// proven holds the questions that were accepted once, without the answer.
	proven *cache.LRUExpireCache
}

func newMemory[V any](size int) *memory[V] {
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // never fails
	return &memory[V]{
		secret:   secret,
		accepted: cache.NewLRUExpireCache(size),
		rejected: cache.NewLRUExpireCache(size),
		proven:   cache.NewLRUExpireCache(provenSize),
	}
}

// key stands for question in the other methods.
func (m *memory[V]) key(question []byte) string {
	mac := hmac.New(sha256.New, m.secret)
	mac.Write(question)
	return string(mac.Sum(nil))
}

func (m *memory[V]) get(key string) (V, bool) {
	answer, ok := m.accepted.Get(key)
	if !ok {
		answer, ok = m.rejected.Get(key)
	}
	if !ok {
		var none V
		return none, false
	}
	return answer.(V), true
}

func (m *memory[V]) isProven(key string) bool {
	_, ok := m.proven.Get(key)
	return ok
}

func (m *memory[V]) accept(key string, answer V, ttl time.Duration) {
	m.rejected.Remove(key)
	m.accepted.Add(key, answer, ttl)
	m.proven.Add(key, struct{}{}, provenTTL)
}

func (m *memory[V]) reject(key string, answer V, ttl time.Duration) {
	m.accepted.Remove(key)
	m.proven.Remove(key)
	m.rejected.Add(key, answer, ttl)
}
