// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"
)

const (
	modulePath = "github.com/grid-apiserver/grid-apiserver/test/e2e"
	// cacheEnv names the environment variable that overrides the folder of built programs.
	cacheEnv = "GRID_E2E_CACHE"
)

// The programs of the lab and their packages, by the name they get in the cache.
var programPackages = map[string]string{
	"etcd":                    "go.etcd.io/etcd/server/v3",
	"kube-apiserver":          "k8s.io/kubernetes/cmd/kube-apiserver",
	"kube-controller-manager": "k8s.io/kubernetes/cmd/kube-controller-manager",
	"kube-proxy":              "k8s.io/kubernetes/cmd/kube-proxy",
	"kubectl":                 "k8s.io/kubernetes/cmd/kubectl",
}

// Programs are the built third-party programs of the lab.
type Programs struct {
	dir       string
	moduleDir string
}

// Path returns the file of a program, for example "kubectl".
func (p *Programs) Path(name string) string { return filepath.Join(p.dir, name) }

// CacheDir returns the folder for built programs and for the state of a lab in the background:
// $GRID_E2E_CACHE, else grid-apiserver-e2e in the user's cache folder.
func CacheDir() (string, error) {
	if dir := os.Getenv(cacheEnv); dir != "" {
		return filepath.Abs(dir)
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("no cache folder (set %s): %w", cacheEnv, err)
	}
	return filepath.Join(dir, "grid-apiserver-e2e"), nil
}

// BuildPrograms builds the third-party programs that the cache lacks. The cache's key covers their modules, the
// Go version and the build flags, and it lies outside the checkout, so a clean clone builds nothing again. From
// cold it takes about eight minutes on two cores. Processes that build at the same time wait for each other.
func BuildPrograms(ctx context.Context, report Report) (*Programs, error) {
	module, err := goCommand(ctx, "", "list", "-m", "-f", "{{.Dir}}", modulePath)
	if err != nil {
		return nil, fmt.Errorf("the lab is run from inside its own module, test/e2e: %w", err)
	}
	cache, err := CacheDir()
	if err != nil {
		return nil, err
	}
	version, err := goCommand(ctx, module, "list", "-m", "-f", "{{.Version}}", "k8s.io/kubernetes")
	if err != nil {
		return nil, err
	}
	flags := []string{"-trimpath", "-buildvcs=false", "-ldflags=-s -w " + versionStamp(version)}
	key, err := cacheKey(ctx, module, flags)
	if err != nil {
		return nil, err
	}
	p := &Programs{dir: filepath.Join(cache, key), moduleDir: module}
	if err := os.MkdirAll(p.dir, 0o755); err != nil {
		return nil, err
	}
	unlock, err := lockFile(filepath.Join(cache, key+".lock"))
	if err != nil {
		return nil, err
	}
	defer unlock()
	var missing []string
	for name := range programPackages {
		if _, err := os.Stat(p.Path(name)); errors.Is(err, os.ErrNotExist) {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return p, nil
	}
	report("building %s in %s (about eight minutes from cold)", strings.Join(missing, ", "), p.dir)
	for _, name := range missing {
		if err := p.build(ctx, name, flags, report); err != nil {
			return nil, err
		}
	}
	return p, nil
}

func (p *Programs) build(ctx context.Context, name string, flags []string, report func(string, ...any)) error {
	start := time.Now()
	temp := p.Path(fmt.Sprintf(".%s.%d", name, os.Getpid()))
	defer os.Remove(temp)
	stop := everyHalfMinute(func() { report("still building %s (%v)", name, time.Since(start).Round(time.Second)) })
	defer stop()
	args := append(append([]string{"build"}, flags...), "-o", temp, programPackages[name])
	if _, err := goCommand(ctx, p.moduleDir, args...); err != nil {
		return err
	}
	report("built %s in %v", name, time.Since(start).Round(time.Second))
	return os.Rename(temp, p.Path(name))
}

// BuildGrid builds grid-apiserver from this checkout into dir and returns its path. Go's build cache makes it
// cheap to repeat.
func (p *Programs) BuildGrid(ctx context.Context, dir string) (string, error) {
	return p.BuildCommand(ctx, dir, "grid-apiserver")
}

// BuildCommand builds a command of this checkout's cmd folder, as BuildGrid does.
func (p *Programs) BuildCommand(ctx context.Context, dir, name string) (string, error) {
	path := filepath.Join(dir, name)
	_, err := goCommand(ctx, p.Repository(), "build", "-buildvcs=false", "-ldflags", "-X k8s.io/component-base/version.gitVersion=v0.0.0-lab", "-o", path, "./cmd/"+name)
	return path, err
}

// Repository is the root of the checkout.
func (p *Programs) Repository() string { return filepath.Join(p.moduleDir, "..", "..") }

// versionStamp is what the release build of Kubernetes links in; without it the programs call themselves v0.0.0.
func versionStamp(version string) string {
	parts := strings.Split(strings.TrimPrefix(version, "v"), ".")
	const pkg = "k8s.io/component-base/version."
	return fmt.Sprintf("-X %sgitVersion=%s -X %sgitMajor=%s -X %sgitMinor=%s -X %sgitTreeState=clean", pkg, version, pkg, parts[0], pkg, parts[1], pkg)
}

// cacheKey covers the modules that the programs are made of, and not the others of this module: those change with
// every dependency of the main module.
func cacheKey(ctx context.Context, module string, flags []string) (string, error) {
	const format = `{{with .Module}}{{with or .Replace .}}{{.Path}} {{.Version}}{{end}}{{end}}`
	args := []string{"list", "-deps", "-f", format}
	list, err := goCommand(ctx, module, slices.AppendSeq(args, maps.Values(programPackages))...)
	if err != nil {
		return "", err
	}
	modules := strings.Split(list, "\n")
	slices.Sort(modules)
	env, err := goCommand(ctx, module, "env", "GOVERSION", "GOOS", "GOARCH", "CGO_ENABLED")
	if err != nil {
		return "", err
	}
	hash := sha256.New()
	fmt.Fprintf(hash, "%q\n%s\n%q\n", slices.Compact(modules), env, flags)
	return fmt.Sprintf("%x", hash.Sum(nil))[:16], nil
}

func goCommand(ctx context.Context, dir string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = dir
	out, err := output(cmd)
	return strings.TrimSpace(out), err
}

// lockFile takes an exclusive lock that ends with the process at the latest.
func lockFile(path string) (unlock func(), err error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX); err != nil {
		file.Close()
		return nil, fmt.Errorf("lock %s: %w", path, err)
	}
	return func() { file.Close() }, nil
}

// everyHalfMinute calls fn twice a minute until stop.
func everyHalfMinute(fn func()) (stop func()) {
	ticker := time.NewTicker(30 * time.Second)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-ticker.C:
				fn()
			case <-done:
				return
			}
		}
	}()
	return func() { ticker.Stop(); close(done) }
}
