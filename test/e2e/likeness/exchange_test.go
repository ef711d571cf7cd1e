// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package likeness

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// exchange is a case: requests that are made one after the other, on both sides.
type exchange struct {
	name string
	// given names the objects (see fixtures) that are made upstream before, in a namespace of each side's own.
	given []string
	steps []step
	// reset undoes, upstream, what the steps do to an object that the sides share. The sides then take turns.
	reset []step
}

// step is one request. In its texts "{ns}" stands for the namespace of the exchange on the side, "{node}" for ownNode, and
// what an earlier step with save "x" answered for "{x.rv}" (revision), "{x.uid}", "{x.continue}", "{x.etag}" ("{x.tag}"
// without quotes) and "{x.body}" ("{x.inner}" without its first brace).
type step struct {
	name    string // of the test; empty: the method and the path
	method  string // empty: GET
	path    string
	headers []string // "Name: value"
	body    string
	token   string // empty: the administrator's; noToken: none
	status  int    // that is wanted on both sides; 0: 200
	http1   bool
	save    string
	// upstream sends the request straight to kube-apiserver on both sides: it sets something up.
	upstream bool
	// effect is what is read straight from kube-apiserver afterwards, and compared as well.
	effect string
	// during are changes, sent upstream while the answer, a watch, is open. The watch has to show after before them, and
	// is closed when it has shown until.
	during       []step
	after, until string
	// onlyIf skips the step unless the direct answer contains it.
	onlyIf string
}

// noToken is for a step without credentials.
const noToken = "-"

func (s step) title() string {
	path, _, _ := strings.Cut(s.path, "\n")
	return cmp.Or(s.name, cmp.Or(s.method, http.MethodGet)+" "+path)
}

// conversation is an exchange under way on one side.
type conversation struct {
	side      *side
	namespace string
	values    []string // for a strings.Replacer
}

func newConversation(s *side, namespace string) *conversation {
	return &conversation{side: s, namespace: namespace, values: []string{"{ns}", namespace, "{node}", ownNode}}
}

func (c *conversation) fill(s step) request {
	replacer := strings.NewReplacer(c.values...)
	r := request{
		method: cmp.Or(s.method, http.MethodGet), path: replacer.Replace(s.path), body: s.body,
		token: cmp.Or(s.token, lab.AdminToken), http1: s.http1,
	}
	if len(s.body) < 1<<20 {
		r.body = replacer.Replace(s.body)
	}
	if s.token == noToken {
		r.token = ""
	}
	for _, header := range s.headers {
		r.headers = append(r.headers, replacer.Replace(header))
	}
	return r
}

// send makes one step and returns what a client sees.
func (c *conversation) send(ctx context.Context, s step) (*answer, error) {
	ctx, cancel := context.WithTimeout(ctx, exchangeTimeout)
	defer cancel()
	at := c.side
	if s.upstream {
		at = sides[0]
	}
	response, err := at.open(ctx, c.fill(s))
	if err != nil {
		return nil, fmt.Errorf("%s: %s: %w", at.title, s.title(), err)
	}
	if s.after != "" {
		if err := showUntil(response, s.after, false); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", at.title, s.title(), err)
		}
	}
	for _, change := range s.during {
		change.upstream = true
		if err := c.prepare(ctx, change); err != nil {
			response.Body.Close()
			return nil, err
		}
	}
	if s.until != "" {
		if err := showUntil(response, s.until, true); err != nil {
			return nil, fmt.Errorf("%s: %s: %w", at.title, s.title(), err)
		}
	}
	a := read(response, normalizer(c.namespace))
	if want := cmp.Or(s.status, http.StatusOK); a.code != want {
		a.parts["unwanted"] = fmt.Sprintf("%s: %s: status %d, want %d: %.500s", at.title, s.title(), a.code, want, a.body)
	}
	if s.effect != "" {
		response, err := sides[0].open(ctx, c.fill(step{path: s.effect}))
		if err != nil {
			return nil, err
		}
		a.parts["effect"] = read(response, normalizer(c.namespace)).whole()
	}
	if s.save != "" {
		c.remember(s.save, response.Header, a.body)
	}
	return a, nil
}

// prepare makes a step upstream whose answer is of no interest unless it fails.
func (c *conversation) prepare(ctx context.Context, s step) error {
	s.upstream = true
	a, err := c.send(ctx, s)
	if err != nil {
		return err
	}
	if s.status == 0 && a.code/100 != 2 {
		return fmt.Errorf("%s: %d %s", s.title(), a.code, a.body)
	}
	return nil
}

// remember keeps what later steps refer to.
func (c *conversation) remember(name string, header http.Header, body []byte) {
	var object struct {
		Metadata struct{ ResourceVersion, UID, Continue string }
	}
	_ = json.Unmarshal(body, &object)
	for suffix, value := range map[string]string{
		".rv": object.Metadata.ResourceVersion, ".uid": object.Metadata.UID, ".continue": object.Metadata.Continue,
		".etag": header.Get("ETag"), ".tag": strings.Trim(header.Get("ETag"), `"`), ".body": string(body), ".inner": strings.TrimPrefix(string(body), "{"),
	} {
		c.values = append(c.values, "{"+name+suffix+"}", value)
	}
}

// settle waits until the second side shows what is upstream.
func (c *conversation) settle(ctx context.Context, s step) error {
	path, _, _ := strings.Cut(s.path, "?")
	return lab.WaitFor(ctx, 5*time.Second, path+" through "+c.side.title, func(ctx context.Context) error {
		var bodies [2]string
		for i, at := range []*side{sides[0], c.side} {
			response, err := at.open(ctx, c.fill(step{path: path}))
			if err != nil {
				return err
			}
			bodies[i] = read(response, normalizer(c.namespace)).whole()
		}
		if bodies[0] != bodies[1] {
			return fmt.Errorf("upstream:\n%s\n%s:\n%s", bodies[0], c.side.title, bodies[1])
		}
		return nil
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
