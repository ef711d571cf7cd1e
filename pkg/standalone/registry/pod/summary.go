// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/grid-apiserver/grid-apiserver/pkg/registry/table"
)

// Reasons that the node lifecycle and the kubelet write, and that change what
// is shown.
const (
	nodeLost         = "NodeLost"
	podInitializing  = "PodInitializing"
	completed        = "Completed"
	schedulingGated  = corev1.PodReasonSchedulingGated
	initReasonPrefix = "Init:"
	shownTerminating = "Terminating"
	shownUnknown     = "Unknown"
	shownRunning     = "Running"
	shownNotReady    = "NotReady"
)

// summary is a pod in one line of a table.
type summary struct {
	containers, ready int
	reason            string
	restarts          int32
	lastRestart       metav1.Time
}

func (s *summary) restartsText(now time.Time) string {
	count := strconv.Itoa(int(s.restarts))
	if s.restarts == 0 || s.lastRestart.IsZero() {
		return count
	}
	return fmt.Sprintf("%s (%s ago)", count, table.Age(s.lastRestart, now))
}

func (s *summary) countRestarts(status *corev1.ContainerStatus) {
	s.restarts += status.RestartCount
	if last := status.LastTerminationState.Terminated; last != nil && s.lastRestart.Before(&last.FinishedAt) {
		s.lastRestart = last.FinishedAt
	}
}

// summarize finds the word for what a pod is doing: its phase, unless a reason
// of the pod or of one of its containers says more.
func summarize(pod *corev1.Pod) summary {
	status := &pod.Status
	s := summary{containers: len(pod.Spec.Containers), reason: cmp.Or(status.Reason, string(status.Phase))}
	for i := range status.Conditions {
		if status.Conditions[i].Type == corev1.PodScheduled && status.Conditions[i].Reason == schedulingGated {
			s.reason = schedulingGated
		}
	}

	sidecars := summary{} // their restarts count on when the pod has begun
	initializing := s.initialize(pod, &sidecars)
	if !initializing || conditionIsTrue(status, corev1.PodInitialized) {
		s.restarts, s.lastRestart = sidecars.restarts, sidecars.lastRestart
		s.run(status)
	}

	if pod.DeletionTimestamp != nil {
		switch {
		case status.Reason == nodeLost:
			s.reason = shownUnknown
		case status.Phase != corev1.PodSucceeded && status.Phase != corev1.PodFailed:
			s.reason = shownTerminating
		}
	}
	return s
}

// initialize goes through the init containers up to the first that is not done,
// and tells whether there is one.
func (s *summary) initialize(pod *corev1.Pod, sidecars *summary) bool {
	sidecar := map[string]bool{}
	for i := range pod.Spec.InitContainers {
		container := &pod.Spec.InitContainers[i]
		if container.RestartPolicy != nil && *container.RestartPolicy == corev1.ContainerRestartPolicyAlways {
			sidecar[container.Name] = true
			s.containers++
		}
	}
	for i := range pod.Status.InitContainerStatuses {
		container := &pod.Status.InitContainerStatuses[i]
		s.countRestarts(container)
		if sidecar[container.Name] {
			sidecars.countRestarts(container)
		}
		terminated := container.State.Terminated
		switch {
		case terminated != nil && terminated.ExitCode == 0:
		case sidecar[container.Name] && container.Started != nil && *container.Started:
			if container.Ready {
				s.ready++
			}
		case terminated != nil:
			s.reason = initReasonPrefix + terminationReason(terminated)
			return true
		case container.State.Waiting != nil && container.State.Waiting.Reason != "" && container.State.Waiting.Reason != podInitializing:
			s.reason = initReasonPrefix + container.State.Waiting.Reason
			return true
		default:
			s.reason = fmt.Sprintf("%s%d/%d", initReasonPrefix, i, len(pod.Spec.InitContainers))
			return true
		}
	}
	return false
}

// run goes through the containers. The first one has the last word.
func (s *summary) run(status *corev1.PodStatus) {
	var running bool
	var failure string
	for i := range slices.Backward(status.ContainerStatuses) {
		container := &status.ContainerStatuses[i]
		s.countRestarts(container)
		switch state := &container.State; {
		case state.Waiting != nil && state.Waiting.Reason != "":
			s.reason = state.Waiting.Reason
		case state.Terminated != nil:
			s.reason = terminationReason(state.Terminated)
			if state.Terminated.ExitCode != 0 {
				failure = s.reason
			}
		case container.Ready && state.Running != nil:
			running = true
			s.ready++
		}
	}
	if s.reason != completed {
		return
	}
	// One container has completed; that is not yet the pod.
	switch {
	case running && conditionIsTrue(status, corev1.PodReady):
		s.reason = shownRunning
	case failure != "":
		s.reason = failure
	case running:
		s.reason = shownNotReady
	}
}

func terminationReason(terminated *corev1.ContainerStateTerminated) string {
	switch {
	case terminated.Reason != "":
		return terminated.Reason
	case terminated.Signal != 0:
		return fmt.Sprintf("Signal:%d", terminated.Signal)
	default:
		return fmt.Sprintf("ExitCode:%d", terminated.ExitCode)
	}
}
