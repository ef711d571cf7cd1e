// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package namespace

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/discovery"
)

// The reasons and messages are those of kube-controller-manager: "kubectl
// describe" shows them and people look for them.
var fine = []corev1.NamespaceCondition{
	{Type: corev1.NamespaceDeletionDiscoveryFailure, Reason: "ResourcesDiscovered", Message: "All resources successfully discovered"},
	{Type: corev1.NamespaceDeletionGVParsingFailure, Reason: "ParsedGroupVersions", Message: "All legacy kube types successfully parsed"},
	{Type: corev1.NamespaceDeletionContentFailure, Reason: "ContentDeleted", Message: "All content successfully deleted, may be waiting on finalization"},
	{Type: corev1.NamespaceContentRemaining, Reason: "ContentRemoved", Message: "All content successfully removed"},
	{Type: corev1.NamespaceFinalizersRemaining, Reason: "ContentHasNoFinalizers", Message: "All content-preserving finalizers finished"},
}

// conditions returns the five conditions that tell the findings, without times.
func (f *findings) conditions() []corev1.NamespaceCondition {
	conditions := slices.Clone(fine)
	for i := range conditions {
		c := &conditions[i]
		c.Status = corev1.ConditionFalse
		reason, message := f.trouble(c.Type)
		if reason != "" {
			c.Status, c.Reason, c.Message = corev1.ConditionTrue, reason, message
		}
	}
	return conditions
}

// trouble returns the reason and the message of a condition that is true.
func (f *findings) trouble(condition corev1.NamespaceConditionType) (reason, message string) {
	switch condition {
	case corev1.NamespaceDeletionDiscoveryFailure:
		if f.discovery == nil {
			return "", ""
		}
		failed := &discovery.ErrGroupDiscoveryFailed{}
		if errors.As(f.discovery, &failed) {
			return "DiscoveryFailed", fmt.Sprintf("Discovery failed for some groups, %d failing: %v", len(failed.Groups), f.discovery)
		}
		return "DiscoveryFailed", f.discovery.Error()
	case corev1.NamespaceDeletionGVParsingFailure:
		if f.parsing != nil {
			return "GroupVersionParsingFailed", f.parsing.Error()
		}
	case corev1.NamespaceDeletionContentFailure:
		if len(f.content) > 0 {
			texts := sorted(f.content, func(err error) string { return err.Error() })
			return "ContentDeletionFailed", fmt.Sprintf("Failed to delete all resource types, %d remaining: %s", len(f.content), texts)
		}
	case corev1.NamespaceContentRemaining:
		var texts []string
		for resource, count := range f.remaining {
			texts = append(texts, fmt.Sprintf("%s.%s has %d resource instances", resource.Resource, resource.Group, count))
		}
		if len(texts) > 0 {
			return "SomeResourcesRemain", "Some resources are remaining: " + sorted(texts, func(text string) string { return text })
		}
	case corev1.NamespaceFinalizersRemaining:
		var texts []string
		for finalizer, count := range f.finalizers {
			texts = append(texts, fmt.Sprintf("%s in %d resource instances", finalizer, count))
		}
		if len(texts) > 0 {
			return "SomeFinalizersRemain", "Some content in the namespace has finalizers remaining: " + sorted(texts, func(text string) string { return text })
		}
	}
	return "", ""
}

// sorted joins the texts in an order that does not change from round to round.
func sorted[T any](items []T, text func(T) string) string {
	texts := make([]string, 0, len(items))
	for _, item := range items {
		texts = append(texts, text(item))
	}
	slices.Sort(texts)
	return strings.Join(texts, ", ")
}

// mergeConditions returns the conditions after a round and whether they differ.
// Conditions of others are kept; the time of transition moves only with the
// status. The old conditions are not written to.
func mergeConditions(old, found []corev1.NamespaceCondition, now metav1.Time) ([]corev1.NamespaceCondition, bool) {
	merged := slices.Clone(old)
	changed := false
	for _, condition := range found {
		i := slices.IndexFunc(merged, func(c corev1.NamespaceCondition) bool { return c.Type == condition.Type })
		if i < 0 {
			condition.LastTransitionTime = now
			merged = append(merged, condition)
			changed = true
			continue
		}
		condition.LastTransitionTime = merged[i].LastTransitionTime
		if merged[i].Status != condition.Status {
			condition.LastTransitionTime = now
		}
		if merged[i].Status != condition.Status || merged[i].Reason != condition.Reason || merged[i].Message != condition.Message {
			merged[i] = condition
			changed = true
		}
	}
	return merged, changed
}
