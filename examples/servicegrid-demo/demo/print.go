// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (d *demo) print(format string, values ...any) {
	fmt.Fprintf(d.out, format, values...)
}

// step says what is done, and how long it has taken if that is long.
func (d *demo) step(title string, do func() error) error {
	d.print("%s\n", title)
	begin := time.Now()
	ticker := time.NewTicker(time.Second)
	defer ticker.Stop()
	done := make(chan error, 1)
	go func() { done <- do() }()
	for {
		select {
		case err := <-done:
			if err != nil {
				return fmt.Errorf("%s: %w", strings.ToLower(title[:1])+title[1:], err)
			}
			return nil
		case <-ticker.C:
			d.print("  ... %d s\n", int(time.Since(begin).Seconds()))
		}
	}
}

// printViews prints the table, as the views have it.
func (d *demo) printViews(ctx context.Context) error {
	table := tabwriter.NewWriter(d.out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "  NODE\tUNIT\tCLUSTER-IP\tENDPOINTS\n")
	for _, v := range d.views {
		node, err := v.client.CoreV1().Nodes().Get(ctx, v.node, metav1.GetOptions{})
		if err != nil {
			return err
		}
		made, err := v.client.CoreV1().Services(metav1.NamespaceDefault).Get(ctx, service, metav1.GetOptions{})
		if err != nil {
			return err
		}
		sees, _, err := v.endpoints(ctx)
		if err != nil {
			return err
		}
		fmt.Fprintf(table, "  %s\t%s\t%s\t%s\n", v.node, node.Labels[unitKey], made.Spec.ClusterIP, sees)
	}
	return table.Flush()
}

func (d *demo) printChange(c change, after time.Duration, before endpoints) {
	d.print("  after %3d ms  the watch of %s says %s: %s -> %s\n", after.Milliseconds(), c.node, c.kind, before, c.after)
}

func (d *demo) printNext() {
	upstream := d.kubeconfig("admin.kubeconfig")
	d.print(`
It goes on until Ctrl-C. With kubectl, from another terminal:

  kubectl --kubeconfig %[1]s get nodes,pods,servicegrids,services -o wide
  kubectl --kubeconfig %[2]s get endpointslices
  kubectl --kubeconfig %[1]s label node %[3]s %[4]s=nodeunit1 --overwrite
  kubectl --kubeconfig %[2]s get endpointslices
`, upstream, d.kubeconfig("view-"+moved+".kubeconfig"), moved, unitKey)
}
