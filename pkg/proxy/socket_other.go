// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package proxy

import (
	"errors"
	"net"
)

// watchOver refuses: reads go over HTTP/2, whose pings find what leads nowhere.
func watchOver(net.Conn) error { return errors.ErrUnsupported }

// isSilent is not called, since there is no connection.
func isSilent(net.Conn) bool { return false }
