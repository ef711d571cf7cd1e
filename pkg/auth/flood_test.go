// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package auth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// flooded is an upstream with a round trip of 300 ms and numbered users: "good" ones
// may do everything, "low" ones nothing, and there is one that may get services.
func flooded() *answers {
	a := &answers{
		users: map[string]authenticationv1.UserInfo{"getter-token": {Username: "getter"}},
		allowed: func(spec authorizationv1.SubjectAccessReviewSpec) bool {
			return strings.HasPrefix(spec.User, "good-") || spec.User == "getter" && spec.ResourceAttributes.Verb == "get"
		},
		before: func(context.Context) error { <-time.After(300 * time.Millisecond); return nil },
	}
	for i := range 60 {
		for _, name := range []string{"good", "low"} {
			name = fmt.Sprint(name, "-", i)
			a.users[name+"-token"] = authenticationv1.UserInfo{Username: name}
		}
	}
	return a
}

// countedAccess knows the most reviews of one user that were under way at a time.
type countedAccess struct {
	fakeAccess
	lock  sync.Mutex
	users map[string]int
	most  int
}

func (c *countedAccess) Create(ctx context.Context, review *authorizationv1.SubjectAccessReview, options metav1.CreateOptions) (*authorizationv1.SubjectAccessReview, error) {
	count := func(by int) {
		c.lock.Lock()
		defer c.lock.Unlock()
		c.users[review.Spec.User] += by
		c.most = max(c.most, c.users[review.Spec.User])
	}
	count(1)
	defer count(-1)
	return c.fakeAccess.Create(ctx, review, options)
}

func TestFloodLocksNobodyOut(t *testing.T) {
	const name = "/api/v1/namespaces/ns/services/"
	for _, tc := range []struct {
		name    string
		callers int
		request func(caller, n int) *http.Request
		// known clients have been here before; without it they come for the
		// first time.
		known bool
	}{
		{"made-up tokens", 600, func(caller, n int) *http.Request {
			return get(services, fmt.Sprint("made-up-", caller, "-", n))
		}, true},
		{"names by one user without the right", 320, func(caller, n int) *http.Request {
			return get(fmt.Sprint(name, caller, "-", n), "low-0-token")
		}, false},
		{"names by one user with the right", 320, func(caller, n int) *http.Request {
			return get(fmt.Sprint(name, caller, "-", n), "getter-token")
		}, false},
		{"names impersonated by one user", 320, func(caller, n int) *http.Request {
			req := get(services, "low-0-token")
			req.Header.Set("Impersonate-User", fmt.Sprint(caller, "-", n))
			return req
		}, false},
		{"names by many users", 600, func(caller, n int) *http.Request {
			return get(fmt.Sprint(name, caller, "-", n), fmt.Sprint("low-", caller%60, "-token"))
		}, true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			lines := strings.Count(logs.String(), "Upstream ")
			synctest.Test(t, func(t *testing.T) {
				a := flooded()
				access := &countedAccess{fakeAccess: fakeAccess{a}, users: map[string]int{}}
				handler := newChain(t, fakeTokens{a}, access, newTestCAs(t))
				clients := func() {
					var wg sync.WaitGroup
					for i := range 60 {
						wg.Go(func() {
							if got := serve(t, handler, get(services, fmt.Sprint("good-", i, "-token"))); got.code != http.StatusOK {
								t.Errorf("client %d: got %d %s", i, got.code, got.status.Message)
							}
						})
					}
					wg.Wait()
				}
				// The tokens of the flood are accepted beforehand, where it has any.
				for i := range 60 {
					serve(t, handler, get(services, fmt.Sprint("low-", i, "-token")))
				}
				serve(t, handler, get(services, "getter-token"))
				if tc.known {
					clients()
					<-time.After(accessAllowedTTL + time.Second) // no answer is remembered
				}

				ctx, cancel := context.WithCancel(t.Context())
				var busy atomic.Int32
				var flood sync.WaitGroup
				for caller := range tc.callers {
					flood.Go(func() {
						for n := 0; ctx.Err() == nil; n++ {
							got := serve(t, handler, tc.request(caller, n))
							if strings.Contains(got.status.Message, errBusy.Error()) {
								busy.Add(1)
								checkUnavailable(t, got)
							}
							<-time.After(100 * time.Millisecond)
						}
					})
				}
				<-time.After(2 * time.Second)
				clients()
				<-time.After(tokenAcceptedTTL)
				clients()
				cancel()
				flood.Wait()
				if busy.Load() == 0 {
					t.Error("the flood has always found a slot, so it was none")
				}
				<-time.After(slotWait + reviewTimeout) // what was left behind ends
				access.lock.Lock()                     // there may be one that nobody waits for any more
				defer access.lock.Unlock()
				if access.most > maxReviews/2 {
					t.Errorf("%d of %d slots went to one user", access.most, maxReviews)
				}
			})
			if got := strings.Count(logs.String(), "Upstream "); got != lines {
				t.Errorf("%d log lines say that upstream fails", got-lines)
			}
		})
	}
}

func TestRejectedQuestionsPushOutNoAnswers(t *testing.T) {
	for _, tc := range []struct {
		name    string
		flood   int
		request func(n int) *http.Request
	}{
		{"tokens", 2 * tokenCacheSize, func(n int) *http.Request { return get(services, fmt.Sprint("made-up-", n)) }},
		{"rights", 2 * accessCacheSize, func(n int) *http.Request {
			return get(fmt.Sprint("/api/v1/namespaces/ns/services/", n), "nobody-token")
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := cluster()
				handler := newChain(t, fakeTokens{a}, fakeAccess{a}, newTestCAs(t))
				serve(t, handler, get(services, "reader-token"))
				for n := range tc.flood {
					serve(t, handler, tc.request(n))
				}
				before := [2]int32{a.tokenReviews.Load(), a.accessReviews.Load()}
				if got := serve(t, handler, get(services, "reader-token")); got.code != http.StatusOK {
					t.Errorf("got %d, want 200", got.code)
				}
				if after := [2]int32{a.tokenReviews.Load(), a.accessReviews.Load()}; after != before {
					t.Errorf("got %v token and access reviews, want %v: the answers were forgotten", after, before)
				}
			})
		})
	}
}

func TestMemoryProvesOnlyWhatIsAccepted(t *testing.T) {
	for _, tc := range []struct {
		name   string
		do     func(m *memory[int], key string)
		proven bool
		answer int
	}{
		{"new", func(*memory[int], string) {}, false, 0},
		{"accepted", func(m *memory[int], k string) { m.accept(k, 1, time.Second) }, true, 1},
		{"accepted, the answer has expired", func(m *memory[int], k string) { m.accept(k, 1, time.Second); <-time.After(2 * time.Second) }, true, 0},
		{"accepted long ago", func(m *memory[int], k string) { m.accept(k, 1, time.Second); <-time.After(provenTTL + time.Second) }, false, 0},
		{"accepted again", func(m *memory[int], k string) {
			m.accept(k, 1, time.Second)
			<-time.After(provenTTL / 2)
			m.accept(k, 2, time.Second)
			<-time.After(provenTTL / 2)
			<-time.After(time.Minute)
		}, true, 0},
		{"rejected", func(m *memory[int], k string) { m.reject(k, 2, time.Second) }, false, 2},
		{"accepted, then rejected", func(m *memory[int], k string) { m.accept(k, 1, time.Second); m.reject(k, 2, time.Second) }, false, 2},
		{"rejected, then accepted", func(m *memory[int], k string) { m.reject(k, 2, time.Second); m.accept(k, 1, time.Second) }, true, 1},
		{"accepted before many others", func(m *memory[int], k string) {
			m.accept(k, 1, time.Second)
			for i := range 2 * provenSize {
				m.accept(m.key(fmt.Append(nil, i)), 1, time.Second)
			}
		}, false, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newMemory[int](8)
				key := m.key([]byte("question"))
				tc.do(m, key)
				if got := m.isProven(key); got != tc.proven {
					t.Errorf("proven: got %v, want %v", got, tc.proven)
				}
				if got, _ := m.get(key); got != tc.answer {
					t.Errorf("answer: got %v, want %v", got, tc.answer)
				}
				if strings.Contains(key, "question") {
					t.Error("the key shows the question")
				}
			})
		})
	}
}

// The slots are given back, and one asker never holds more than its share.
func TestSlotsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const share, queue = maxReviews / 4, maxReviews
		s := newSlots(share, queue)
		type outcome struct{ got, refused atomic.Int32 }
		var one, all outcome
		var wg sync.WaitGroup
		try := func(name string, o *outcome) {
			wg.Go(func() {
				release, err := s.acquire(name)
				if err != nil {
					o.refused.Add(1)
					return
				}
				o.got.Add(1)
				<-time.After(2 * slotWait)
				release()
			})
		}
		check := func(when string, o *outcome, got, refused int32) {
			t.Helper()
			synctest.Wait()
			if o.got.Load() != got || o.refused.Load() != refused {
				t.Errorf("%s: got %d slots and %d refusals, want %d and %d", when, o.got.Load(), o.refused.Load(), got, refused)
			}
		}
		for range queue + 5 {
			try("one", &one)
		}
		check("one asker at once", &one, share, 5)
		for i := range maxReviews {
			try(fmt.Sprint("other-", i), &all)
		}
		check("others at once", &all, maxReviews-share, 0)
		<-time.After(slotWait + time.Millisecond)
		check("one asker after the wait", &one, share, 5+queue-share)
		check("others after the wait", &all, maxReviews-share, share)
		wg.Wait()
		if len(s.askers) != 0 || len(s.all) != 0 {
			t.Errorf("%d askers and %d slots are left", len(s.askers), len(s.all))
		}
		try("one", &one)
		check("afterwards", &one, share+1, 5+queue-share)
		wg.Wait()
	})
}

// A review that found no slot among those of all gives back the one of its asker, also
// while the asker has others.
func TestRefusedReviewsKeepNoShare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlots(2, maxReviews)
		hold := func(name string) (release func()) {
			t.Helper()
			release, err := s.acquire(name)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			return release
		}
		defer hold("one")()
		var releases []func()
		for i := range maxReviews - 1 {
			releases = append(releases, hold(fmt.Sprint("other-", i)))
		}
		for range 3 {
			if _, err := s.acquire("one"); !errors.Is(err, errBusy) {
				t.Errorf("got error %v, want that all slots are taken", err)
			}
		}
		for _, release := range releases {
			release()
		}
		hold("one")()
	})
}

// However upstream fails, the log has two lines for each outage, and outages are far
// enough apart.
func TestOutageIsToldOnce(t *testing.T) {
	const begin, end = "Upstream cannot be asked for reviews", "Upstream answers reviews again"
	for _, tc := range []struct {
		name string
		// failing tells for each request, 100 ms apart, whether upstream fails.
		failing    func(n int) bool
		begin, end int
	}{
		{"never", func(int) bool { return false }, 0, 0},
		{"always", func(int) bool { return true }, 1, 0},
		{"every other review", func(n int) bool { return n%2 == 0 }, 1, 0},
		{"for a while", func(n int) bool { return n < 20 }, 1, 1},
		{"twice", func(n int) bool { return n < 20 || n >= 200 && n < 220 }, 2, 1},
	} {
		t.Run(tc.name, func(t *testing.T) {
			before := logs.String()
			synctest.Test(t, func(t *testing.T) {
				a := cluster()
				var n int
				a.before = func(context.Context) error {
					if tc.failing(n) {
						return errUpstream
					}
					return nil
				}
				handler := newChain(t, fakeTokens{a}, fakeAccess{a}, newTestCAs(t))
				for n = range 250 {
					serve(t, handler, get(services, fmt.Sprint("token-", n)))
					<-time.After(100 * time.Millisecond)
				}
			})
			written := strings.TrimPrefix(logs.String(), before)
			if got := [2]int{strings.Count(written, begin), strings.Count(written, end)}; got != [2]int{tc.begin, tc.end} {
				t.Errorf("got %v lines for begin and end, want [%d %d]", got, tc.begin, tc.end)
			}
		})
	}
}
