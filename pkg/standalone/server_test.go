// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone"
)

func TestFirstObjects(t *testing.T) {
	_, client := start(t, newConfig(t))
	namespaces, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, namespace := range namespaces.Items {
		names = append(names, namespace.Name)
	}
	if diff := cmp.Diff([]string{"default", "kube-node-lease", "kube-public", "kube-system"}, names); diff != "" {
		t.Errorf("namespaces (-want +got):\n%s", diff)
	}
	service, err := client.CoreV1().Services("default").Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if service.Spec.ClusterIP != "10.96.0.1" {
		t.Errorf("the Service kubernetes has the address %s", service.Spec.ClusterIP)
	}
	cidr, err := client.NetworkingV1().ServiceCIDRs().Get(t.Context(), "kubernetes", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"10.96.0.0/16", "fd00:10:96::/112"}, cidr.Spec.CIDRs); diff != "" {
		t.Errorf("ServiceCIDR (-want +got):\n%s", diff)
	}
	version, err := client.Discovery().ServerVersion()
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(version.GitVersion, standalone.KubernetesVersion+"+") || version.Minor != "37" {
		t.Errorf("version %s, minor %s", version.GitVersion, version.Minor)
	}
}

func TestOnlyTheTokenOpensTheServer(t *testing.T) {
	server, _ := start(t, newConfig(t))
	for name, token := range map[string]string{"no token": "", "another token": "secret"} {
		t.Run(name, func(t *testing.T) {
			config := server.ClientConfig()
			config.BearerToken = token
			client := newClient(t, config)
			if _, err := client.CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsUnauthorized(err) {
				t.Errorf("listing namespaces: %v", err)
			}
		})
	}
	config := server.ClientConfig()
	config.BearerToken = ""
	if _, err := newClient(t, config).Discovery().RESTClient().Get().AbsPath("/readyz").Do(t.Context()).Raw(); err != nil {
		t.Errorf("health without a token: %v", err)
	}
	config = server.ClientConfig()
	config.Impersonate = rest.ImpersonationConfig{UserName: "jane"}
	if _, err := newClient(t, config).CoreV1().Namespaces().List(t.Context(), metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing namespaces as jane: %v", err)
	}
}

func TestReviews(t *testing.T) {
	server, client := start(t, newConfig(t))
	token := server.ClientConfig().BearerToken
	for _, test := range []struct {
		token string
		want  authenticationv1.TokenReviewStatus
	}{
		{token, authenticationv1.TokenReviewStatus{Authenticated: true, User: authenticationv1.UserInfo{
			Username: standalone.AdminUser, Groups: []string{"system:masters", "system:authenticated"},
		}}},
		{"secret", authenticationv1.TokenReviewStatus{}},
	} {
		review, err := client.AuthenticationV1().TokenReviews().Create(t.Context(), &authenticationv1.TokenReview{
			Spec: authenticationv1.TokenReviewSpec{Token: test.token},
		}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, review.Status); diff != "" {
			t.Errorf("token review (-want +got):\n%s", diff)
		}
	}
	for _, test := range []struct {
		name    string
		spec    authorizationv1.SubjectAccessReviewSpec
		allowed bool
	}{
		{"a group with all rights", authorizationv1.SubjectAccessReviewSpec{
			User: "x", Groups: []string{"system:masters"}, ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "delete", Resource: "nodes"},
		}, true},
		{"a user without rights", authorizationv1.SubjectAccessReviewSpec{
			User: "x", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get", Resource: "services"},
		}, false},
		{"health", authorizationv1.SubjectAccessReviewSpec{
			User: "x", NonResourceAttributes: &authorizationv1.NonResourceAttributes{Verb: "get", Path: "/readyz"},
		}, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			review, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: test.spec}, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if review.Status.Allowed != test.allowed {
				t.Errorf("got %+v", review.Status)
			}
		})
	}
	self, err := client.AuthenticationV1().SelfSubjectReviews().Create(t.Context(), &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
	if err != nil || self.Status.UserInfo.Username != standalone.AdminUser {
		t.Errorf("self review: %v, %v", self, err)
	}
	rules, err := client.AuthorizationV1().SelfSubjectRulesReviews().Create(t.Context(), &authorizationv1.SelfSubjectRulesReview{
		Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"},
	}, metav1.CreateOptions{})
	if err != nil || len(rules.Status.ResourceRules) != 1 || rules.Status.ResourceRules[0].Verbs[0] != "*" {
		t.Errorf("rules review: %v, %v", rules, err)
	}
	for name, spec := range map[string]authorizationv1.SubjectAccessReviewSpec{
		"no user":      {ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "get"}},
		"no attribute": {User: "x"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
			if !apierrors.IsBadRequest(err) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestKubeconfigStaysGoodAfterARestart(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, standalone.AdminKubeconfig)
	var first *rest.Config
	for range 2 {
		t.Run("start", func(t *testing.T) {
			config := newConfig(t)
			config.DataDir = dir
			start(t, config)
			got, err := clientcmd.BuildConfigFromFlags("", path)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := newClient(t, got).CoreV1().Namespaces().Get(t.Context(), "default", metav1.GetOptions{}); err != nil {
				t.Error(err)
			}
			if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("mode %v, %v", info.Mode(), err)
			}
			if first == nil {
				first = got
			} else if got.BearerToken != first.BearerToken || string(got.CAData) != string(first.CAData) {
				t.Error("the token or the CA is another one")
			}
		})
	}
}

func TestDataDirectoryHasOneUser(t *testing.T) {
	config := newConfig(t)
	start(t, config)
	other := newConfig(t)
	other.DataDir = config.DataDir
	_, err := other.Complete().New(t.Context())
	if !errors.Is(err, standalone.ErrInUse) || !strings.Contains(err.Error(), config.DataDir) {
		t.Errorf("a second server: %v", err)
	}
}

func TestServerThatIsNotRunIsClosed(t *testing.T) {
	server, err := newConfig(t).Complete().New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	server.Close()
}

func TestCustomResources(t *testing.T) {
	config := newConfig(t)
	config.CustomResources = true
	_, client := start(t, config)
	if _, err := client.Discovery().ServerResourcesForGroupVersion("apiextensions.k8s.io/v1"); err != nil {
		t.Error(err)
	}
}

func TestWaitReadySaysWhatItWaitsFor(t *testing.T) {
	config := newConfig(t)
	server, err := config.Complete().New(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("no patience"))
	if err := server.WaitReady(ctx); err == nil || !strings.Contains(err.Error(), "no patience") {
		t.Errorf("got %v", err)
	}
}

func TestBadConfigurationsAreRefused(t *testing.T) {
	prefixes := func(texts ...string) (out []netip.Prefix) {
		for _, text := range texts {
			out = append(out, netip.MustParsePrefix(text))
		}
		return out
	}
	for name, test := range map[string]struct {
		change func(*standalone.Config)
		want   string
	}{
		"no directory": {func(c *standalone.Config) { c.DataDir = "" }, "data directory"},
		"no listener":  {func(c *standalone.Config) { c.SecureServing = nil }, "listener"},
		"three ranges": {func(c *standalone.Config) {
			c.ServiceClusterIPRanges = prefixes("10.0.0.0/24", "fd00::/112", "10.1.0.0/24")
		}, "3 ranges"},
		"one family twice":   {func(c *standalone.Config) { c.ServiceClusterIPRanges = prefixes("10.0.0.0/24", "10.1.0.0/24") }, "different IP families"},
		"host bits":          {func(c *standalone.Config) { c.ServiceClusterIPRanges = prefixes("10.0.0.7/24") }, "10.0.0.0/24"},
		"too small":          {func(c *standalone.Config) { c.ServiceClusterIPRanges = prefixes("10.0.0.0/31") }, "too small"},
		"a file as data dir": {func(c *standalone.Config) { c.DataDir = os.Args[0] }, os.Args[0]},
	} {
		t.Run(name, func(t *testing.T) {
			config := newConfig(t)
			test.change(config)
			if _, err := config.Complete().New(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want it to name %q", err, test.want)
			}
		})
	}
}

func TestFirstObjectsComeBack(t *testing.T) {
	_, client := start(t, newConfig(t))
	if err := client.CoreV1().Namespaces().Delete(t.Context(), "kube-node-lease", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := client.CoreV1().Services("default").Delete(t.Context(), "kubernetes", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
		namespace, err := client.CoreV1().Namespaces().Get(ctx, "kube-node-lease", metav1.GetOptions{})
		if err != nil || namespace.DeletionTimestamp != nil {
			return false, nil
		}
		service, err := client.CoreV1().Services("default").Get(ctx, "kubernetes", metav1.GetOptions{})
		return err == nil && service.Spec.ClusterIP == "10.96.0.1", nil
	})
	if err != nil {
		t.Error(err)
	}
}

// Whenever a server is told to end, it ends, and the process goes on.
func TestServerEndsDuringItsStart(t *testing.T) {
	for _, custom := range []bool{false, true} {
		for after := range 8 {
			t.Run(fmt.Sprintf("custom resources %v, after %d ms", custom, after), func(t *testing.T) {
				t.Parallel()
				config := newConfig(t)
				config.CustomResources = custom
				server, err := config.Complete().New(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(after)*time.Millisecond)
				defer cancel()
				if err := server.PrepareRun().Run(ctx); err != nil {
					t.Error(err)
				}
			})
		}
	}
}

func TestTokenThatIsNoSecretIsReplaced(t *testing.T) {
	secret := strings.Repeat("s", 44)
	for name, test := range map[string]struct {
		prepare func(path string) error
		kept    bool
	}{
		"for its owner": {func(path string) error { return os.WriteFile(path, []byte(secret), 0o600) }, true},
		"for the group": {func(path string) error { return os.WriteFile(path, []byte(secret), 0o640) }, false},
		"words":         {func(path string) error { return os.WriteFile(path, []byte(strings.Repeat("pass phrase ", 5)), 0o600) }, false},
		"no text":       {func(path string) error { return os.WriteFile(path, bytes.Repeat([]byte{0, 255}, 5000), 0o600) }, false},
		"cut":           {func(path string) error { return os.WriteFile(path, []byte(secret[:20]), 0o600) }, false},
		"a symbolic link": {func(path string) error {
			if err := os.WriteFile(path+".other", []byte(secret), 0o600); err != nil {
				return err
			}
			return os.Symlink(path+".other", path)
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			config := newConfig(t)
			path := filepath.Join(config.DataDir, "standalone", "admin.token")
			if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), test.prepare(path)); err != nil {
				t.Fatal(err)
			}
			server, err := config.Complete().New(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer server.Close()
			if kept := server.ClientConfig().BearerToken == secret; kept != test.kept {
				t.Errorf("the token was kept: %v", kept)
			}
			if info, err := os.Lstat(path); err != nil || info.Mode() != 0o600 {
				t.Errorf("the file has mode %v, %v", info.Mode(), err)
			}
		})
	}
}
