// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package identity

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"k8s.io/klog/v2"
)

const (
	fileMode = 0o600
	dirMode  = 0o700

	damagedSuffix = ".damaged"
	tempInfix     = ".tmp-"
)

var errNoDirectory = errors.New("no data directory given")

// MakeDirectory creates the data directory, and what is missing above it, with mode
// 0700. One that exists keeps its mode: the files in it are private by themselves. It
// is for a caller that must lock the directory before Ensure. It may be called
// concurrently. The error names dir, as those of Ensure do.
func MakeDirectory(dir string) error {
	if dir == "" {
		return errNoDirectory
	}
	if err := makeDirectory(dir); err != nil {
		return unusable(dir, err)
	}
	return nil
}

func unusable(dir string, cause error) error {
	return fmt.Errorf("data directory %q cannot be used: %w", dir, cause)
}

// makeDirectory creates dir, and what is missing above it, for the owner alone.
func makeDirectory(dir string) error {
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return fmt.Errorf("directory %q cannot be created: %w", dir, err)
	}
	return nil
}

// removeTemporaries deletes what a crash in the middle of writeFile has left.
func removeTemporaries(ctx context.Context, dir string, names ...string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return // the reads and writes that follow give the better error
	}
	for _, entry := range entries {
		for _, name := range names {
			if !strings.HasPrefix(entry.Name(), "."+name+tempInfix) {
				continue
			}
			path := filepath.Join(dir, entry.Name())
			if err := os.Remove(path); err != nil {
				klog.FromContext(ctx).Error(err, "Cannot remove a temporary file", "path", path)
			}
		}
	}
}

// WriteFile replaces a file of the data directory in one step: after a power cut
// there is the old content or the new one. The file is for its owner alone.
func WriteFile(path string, content []byte) error { return writeFile(path, content) }

// writeFile replaces path in one step: after a power cut there is the old
// content or the new one. The file is for its owner alone.
func writeFile(path string, content []byte) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("file %q cannot be written: %w", path, err)
		}
	}()
	dir, name := filepath.Split(path)
	// os.CreateTemp makes files of mode 0600.
	temp, err := os.CreateTemp(dir, "."+name+tempInfix+"*")
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name())
		}
	}()
	_, err = temp.Write(content)
	if err == nil {
		err = temp.Sync()
	}
	if closeErr := temp.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		return err
	}
	if err = os.Rename(temp.Name(), path); err != nil {
		return err
	}
	return syncDirectory(dir)
}

// syncDirectory makes a rename in dir survive a power cut.
func syncDirectory(dir string) error {
	if dir == "" {
		dir = "."
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) {
		err = nil // not every file system can sync a directory
	}
	return errors.Join(err, d.Close())
}

// readFile reads path and hands the content to parse. It returns false if there
// is no file, or if it was damaged: then it has been set aside. Missing
// permission is an error, because another identity must not silently replace one
// that is only out of reach.
func readFile(ctx context.Context, path string, parse func([]byte) error) (bool, error) {
	content, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case errors.Is(err, fs.ErrPermission):
		return false, fmt.Errorf("file %q cannot be read: %w", path, err)
	case err == nil:
		err = parse(content)
	}
	if err != nil {
		return false, setAside(ctx, path, err)
	}
	return true, restrict(ctx, path)
}

// setAside renames a damaged file. One damaged file per name is kept, which
// bounds the space that repeated damage can take.
func setAside(ctx context.Context, path string, cause error) error {
	aside := path + damagedSuffix
	err := os.Rename(path, aside)
	if err != nil && !errors.Is(err, fs.ErrPermission) {
		// An earlier leftover of another type (a directory) is in the way.
		if err = os.RemoveAll(aside); err == nil {
			err = os.Rename(path, aside)
		}
	}
	if err != nil {
		return fmt.Errorf("damaged file %q (%w) cannot be set aside: %w", path, cause, err)
	}
	klog.FromContext(ctx).Error(cause, "A damaged file was set aside and is made anew", "path", path, "setAside", aside)
	return nil
}

// restrict takes away the rights of others on a file with a private key.
func restrict(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("file %q: %w", path, err)
	}
	if info.Mode().Perm()&^fileMode == 0 {
		return nil
	}
	if err := os.Chmod(path, fileMode); err != nil {
		return fmt.Errorf("mode of file %q, which holds a private key, cannot be restricted: %w", path, err)
	}
	klog.FromContext(ctx).Info("A file with a private key was accessible to others and has been restricted", "path", path, "mode", info.Mode().Perm())
	return nil
}
