// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// clockTick is the unit of times in /proc; it is the same on all architectures that Go runs on.
const clockTick = 10 * time.Millisecond

// cpuTime returns the processor time that a process has used, in steps of clockTick; see proc_pid_stat(5).
func cpuTime(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	// The command name, in parentheses, may hold spaces. User and system time are fields 14 and 15.
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(fields) < 13 {
		return 0, fmt.Errorf("unexpected /proc/%d/stat", pid)
	}
	total := 0
	for _, field := range fields[11:13] {
		ticks, err := strconv.Atoi(field)
		if err != nil {
			return 0, err
		}
		total += ticks
	}
	return time.Duration(total) * clockTick, nil
}

// memory is the resident memory of a process in MiB: all of it, and what is not mapped from files.
type memory struct{ resident, anonymous float64 }

func (m memory) String() string { return fmt.Sprintf("%.0f (%.0f) MiB", m.resident, m.anonymous) }

func residentMemory(pid int) (m memory, err error) {
	file, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return m, err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		fields := strings.Fields(lines.Text())
		if len(fields) != 3 || fields[0] != "VmRSS:" && fields[0] != "RssAnon:" {
			continue
		}
		kib, err := strconv.ParseFloat(fields[1], 64)
		if err != nil {
			return m, err
		}
		if fields[0] == "VmRSS:" {
			m.resident = kib / 1024
		} else {
			m.anonymous = kib / 1024
		}
	}
	return m, lines.Err()
}

// settle waits until the processes have used next to no processor time for a while, so that what is measured next
// does not pay for what was before. It gives up, silently, on one that never rests.
func settle(ctx context.Context, pids ...int) error {
	const interval, quiet, limit = 250 * time.Millisecond, 30 * time.Millisecond, 60
	for calm, i := 0, 0; calm < 4 && i < limit; i++ {
		before, err := totalTime(pids)
		if err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(interval):
		}
		after, err := totalTime(pids)
		if err != nil {
			return err
		}
		if calm++; after-before > quiet {
			calm = 0
		}
	}
	return nil
}

func totalTime(pids []int) (total time.Duration, err error) {
	for _, pid := range pids {
		used, err := cpuTime(pid)
		if err != nil {
			return 0, err
		}
		total += used
	}
	return total, nil
}

// reportMemory tells the memory of the server after a part of the run.
func (b *bench) reportMemory(part string) error {
	m, err := residentMemory(b.grid.PID())
	if err == nil {
		report("resident (anonymous) memory after %s: %s", part, m)
	}
	return err
}

// measureMemory tells what is left after all of the above, at once and after a rest.
func (b *bench) measureMemory(ctx context.Context) error {
	for _, test := range []struct {
		what string
		rest time.Duration
	}{{"after all of this", 0}, {"two minutes later", 2 * time.Minute}} {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(test.rest):
		}
		upstream, err := residentMemory(b.lab.Cloud.APIServer.PID())
		if err != nil {
			return err
		}
		grid, err := residentMemory(b.grid.PID())
		if err != nil {
			return err
		}
		b.add("resident (anonymous) memory "+test.what, upstream.String(), grid.String(), "")
	}
	return nil
}
