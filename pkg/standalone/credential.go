// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/grid-apiserver/grid-apiserver/pkg/identity"
)

const (
	lockFile  = "lock"
	tokenFile = "admin.token"

	// tokenBytes of randomness cannot be guessed; that is what a token is.
	tokenBytes = 32
	// maxTokenFile bounds what is read of a file that is not a token.
	maxTokenFile = 4 << 10
)

// ErrInUse is what New returns when another process uses the data directory.
var ErrInUse = errors.New("another process uses it")

// lockDirectory makes the caller the only user of dir, until the file is closed.
func lockDirectory(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		file.Close()
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = ErrInUse
		}
		return nil, fmt.Errorf("%s: %w", file.Name(), err)
	}
	return file, nil
}

// keptToken returns the token in dir, and makes one at the first start. What
// others could have read or written, or what was cut or damaged, is no token: it is
// replaced.
func keptToken(dir string) (string, error) {
	path := filepath.Join(dir, tokenFile)
	content, err := readPrivate(path)
	if err != nil {
		return "", err
	}
	if token := strings.TrimSpace(string(content)); isToken(token) {
		return token, nil
	}
	token := newToken()
	return token, identity.WriteFile(path, []byte(token+"\n"))
}

// isToken tells whether a text could be one of newToken, or an operator's of the
// same strength, and can be sent in a header.
func isToken(text string) bool {
	secret, err := base64.RawURLEncoding.DecodeString(text)
	return err == nil && len(secret) >= tokenBytes
}

// readPrivate returns the content of a file of ours that is only for us, else nothing.
func readPrivate(path string) ([]byte, error) {
	file, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW, 0)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ELOOP) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || int(owner.Uid) != os.Geteuid() || info.Mode().Perm()&0o077 != 0 {
		return nil, nil
	}
	return io.ReadAll(io.LimitReader(file, maxTokenFile))
}

func newToken() string {
	secret := make([]byte, tokenBytes)
	_, _ = rand.Read(secret) // it never fails
	return base64.RawURLEncoding.EncodeToString(secret)
}
