// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/grid-apiserver/grid-apiserver/test/e2e/lab"
)

// state is what the background process tells the other commands, in a file in the cache folder. The file exists
// from the process's start to its orderly end; whether the process lives is told by the lock that it holds on it.
type state struct {
	PID   int
	Logs  string
	Guide string // empty until the lab is up
}

func stateFile() (string, error) {
	dir, err := lab.CacheDir()
	if err != nil {
		return "", err
	}
	return filepath.Join(dir, "lab.json"), os.MkdirAll(dir, 0o755)
}

// running reads the state of a live background process; nil: none runs.
func running() (*state, error) {
	path, err := stateFile()
	if err != nil {
		return nil, err
	}
	file, err := os.Open(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB) == nil {
		return nil, nil // nobody holds it: its process was killed
	}
	var s state
	if err := json.NewDecoder(file).Decode(&s); err != nil {
		return nil, fmt.Errorf("read %s: %w", path, err)
	}
	return &s, nil
}

// build makes the programs that are built once.
func build(ctx context.Context) error {
	_, err := lab.BuildPrograms(ctx, report)
	return err
}

// up starts the background process, shows its progress and waits until the lab is up.
func up(ctx context.Context) error {
	if s, err := running(); err != nil || s != nil {
		return errors.Join(err, status(ctx))
	}
	if err := lab.EnsurePackages(ctx, report); err != nil {
		return err
	}
	// Here rather than in the background: an interrupt during the long build then ends it.
	if err := build(ctx); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	path, err := stateFile()
	if err != nil {
		return err
	}
	logPath := filepath.Join(filepath.Dir(path), "lab.log")
	log, err := os.Create(logPath)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(self, "serve")
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	report("starting; progress is in %s", logPath)
	for {
		select {
		case err := <-ended:
			content, _ := os.ReadFile(logPath)
			return fmt.Errorf("the lab did not come up: %w\n%s", err, content)
		case <-ctx.Done():
			_ = cmd.Process.Signal(syscall.SIGTERM)
			<-ended
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
		if s, err := running(); err == nil && s != nil && s.Guide != "" {
			fmt.Print(s.Guide)
			return nil
		}
	}
}

// down ends the background process and waits for its end.
func down(ctx context.Context) error {
	s, err := running()
	if err != nil {
		return err
	}
	if s == nil {
		report("no lab is running")
		return nil
	}
	if err := syscall.Kill(s.PID, syscall.SIGTERM); err != nil {
		return fmt.Errorf("end the lab's process %d: %w", s.PID, err)
	}
	return lab.WaitFor(ctx, time.Minute, "the lab ends", func(context.Context) error {
		if s, err := running(); err != nil || s != nil {
			return errors.Join(err, errors.New("still running"))
		}
		return nil
	})
}

// status says whether the lab runs and what to try.
func status(context.Context) error {
	s, err := running()
	switch {
	case err != nil:
		return err
	case s == nil:
		fmt.Println("no lab is running")
	case s.Guide == "":
		fmt.Printf("the lab is starting (process %d)\n", s.PID)
	default:
		fmt.Printf("the lab is up (process %d, logs in %s)\n%s", s.PID, s.Logs, s.Guide)
	}
	return nil
}

// serve runs the lab until SIGTERM.
func serve(ctx context.Context) (err error) {
	path, err := stateFile()
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return err
	}
	defer file.Close()
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errors.New("a lab is running already")
	}
	defer os.Remove(path)
	if err := publish(file, state{PID: os.Getpid()}); err != nil {
		return err
	}
	l, err := lab.Start(ctx, lab.Options{Report: report})
	if err != nil {
		return err
	}
	defer func() {
		// After a failure the logs stay for whoever looks for its cause.
		err = errors.Join(err, l.Stop())
		if err == nil {
			err = l.RemoveFiles()
		}
	}()
	guide, err := demo(ctx, l)
	if err != nil {
		return fmt.Errorf("logs in %s: %w", l.Logs, err)
	}
	if err := publish(file, state{PID: os.Getpid(), Logs: l.Logs, Guide: guide}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

// publish replaces the content of the state file in place, because its lock belongs to the open file. It is one
// write, so a reader finds the old or the new state; the reader stops at the end of the first JSON value.
func publish(file *os.File, s state) error {
	content, err := json.Marshal(s)
	if err != nil {
		return err
	}
	if _, err := file.WriteAt(content, 0); err != nil {
		return err
	}
	return file.Truncate(int64(len(content)))
}
