// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// DistributionKubectl is the kubectl of the machine's distribution. Debian 12 has version 1.20, which knows SPDY only;
// a machine may have another one there.
const DistributionKubectl = "/usr/bin/kubectl"

// packageOf names the Debian package of each command that the lab, kube-proxy or a person trying it calls.
var packageOf = map[string]string{
	"conntrack": "conntrack",
	"curl":      "curl",
	"ip":        "iproute2",
	"iptables":  "iptables",
	"nft":       "nftables",
	"sysctl":    "procps",
	// An old kubectl, beside the lab's own, which is called by its path.
	DistributionKubectl: "kubernetes-client",
}

// EnsurePackages checks that this process is root and installs the Debian packages that are missing, saying so
// through report. It also puts the sbin folders on PATH, which a user's shell may lack.
func EnsurePackages(ctx context.Context, report Report) error {
	if os.Geteuid() != 0 {
		return errors.New("the lab needs root: it makes network namespaces and runs kube-proxy in them")
	}
	if err := os.Setenv("PATH", os.Getenv("PATH")+":/usr/sbin:/sbin"); err != nil {
		return err
	}
	var missing []string
	for command, pkg := range packageOf {
		if _, err := exec.LookPath(command); err != nil {
			missing = append(missing, pkg)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	slices.Sort(missing)
	if _, err := exec.LookPath("apt-get"); err != nil {
		return fmt.Errorf("the lab needs the packages %s, and there is no apt-get to install them with", strings.Join(missing, ", "))
	}
	report("installing the Debian packages %s", strings.Join(missing, ", "))
	for _, args := range [][]string{
		{"update", "-q"},
		append([]string{"install", "-q", "-y", "--no-install-recommends", "-o", "DPkg::Lock::Timeout=120"}, missing...),
	} {
		cmd := exec.CommandContext(ctx, "apt-get", args...)
		cmd.Env = append(os.Environ(), "DEBIAN_FRONTEND=noninteractive")
		if _, err := output(cmd); err != nil {
			return err
		}
	}
	return nil
}
