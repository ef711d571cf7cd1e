// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package proxy

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"hash"
	"net/http"
	"sync"

	"k8s.io/utils/lru"
)

// maxKnownTokens is far more than a node has clients. A token that is forgotten is tried again, which costs its client
// nothing but the company of bad tokens for one request.
const maxKnownTokens = 1024

// tokenKey stands for the bearer token of a request.
type tokenKey [sha256.Size]byte

// knownTokens remembers the tokens that upstream has accepted. kube-apiserver answers a bad one over HTTP/2 with a 401 and
// closes the connection, which hits every request on it: so good tokens must not share a connection with those that nobody
// knows. A token is kept as an HMAC under a key of this process. Safe for concurrent use.
type knownTokens struct {
	macs  sync.Pool // of *tokenMAC: making one costs more than using it
	known *lru.Cache
}

func newKnownTokens() *knownTokens {
	secret := make([]byte, sha256.Size)
	_, _ = rand.Read(secret) // never fails
	return &knownTokens{
		macs:  sync.Pool{New: func() any { return &tokenMAC{Hash: hmac.New(sha256.New, secret)} }},
		known: lru.New(maxKnownTokens),
	}
}

// tokenMAC makes keys, with room for a token and a key.
type tokenMAC struct {
	hash.Hash
	token, key []byte
}

// key returns the key of all tokens of a request: with two of them, upstream accepts it if it accepts either.
func (k *knownTokens) key(tokens []string) tokenKey {
	mac := k.macs.Get().(*tokenMAC)
	defer k.macs.Put(mac)
	mac.Reset()
	for _, token := range tokens {
		mac.token = binary.BigEndian.AppendUint64(mac.token[:0], uint64(len(token)))
		mac.token = append(mac.token, token...)
		_, _ = mac.Write(mac.token)
		clear(mac.token) // a token stays nowhere
	}
	mac.key = mac.Sum(mac.key[:0])
	return tokenKey(mac.key)
}

func (k *knownTokens) has(key tokenKey) bool {
	_, ok := k.known.Get(key)
	return ok
}

// note learns from upstream's answer to a request with the token, which has told known when it began.
func (k *knownTokens) note(key tokenKey, known bool, method string, status int) {
	switch {
	case status == http.StatusUnauthorized:
		k.known.Remove(key)
	case !known && provesToken(method, status):
		k.known.Add(key, nil)
	}
}

// provesToken reports whether kube-apiserver gives this answer to authenticated requests alone. It checks a few things
// before it looks at the token, and answers those with 400, 429, 5xx, or a CORS preflight with 204.
func provesToken(method string, status int) bool {
	if method == http.MethodOptions {
		return false
	}
	return status == http.StatusSwitchingProtocols || status >= 200 && status < 300 ||
		status == http.StatusForbidden || status == http.StatusNotFound
}
