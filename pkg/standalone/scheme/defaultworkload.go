// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// revisionsKept is how many old revisions a workload keeps for a rollback.
const revisionsKept = 10

func setDeploymentDefaults(deployment *appsv1.Deployment) {
	spec := &deployment.Spec
	defaultPointer(&spec.Replicas, 1)
	defaultTo(&spec.Strategy.Type, appsv1.RollingUpdateDeploymentStrategyType)
	if spec.Strategy.Type == appsv1.RollingUpdateDeploymentStrategyType {
		defaultPointer(&spec.Strategy.RollingUpdate, appsv1.RollingUpdateDeployment{})
		defaultPointer(&spec.Strategy.RollingUpdate.MaxUnavailable, intstr.FromString("25%"))
		defaultPointer(&spec.Strategy.RollingUpdate.MaxSurge, intstr.FromString("25%"))
	}
	defaultPointer(&spec.RevisionHistoryLimit, revisionsKept)
	defaultPointer(&spec.ProgressDeadlineSeconds, 600)
	setPodTemplateDefaults(&spec.Template)
}

func setDaemonSetDefaults(daemonSet *appsv1.DaemonSet) {
	spec := &daemonSet.Spec
	defaultTo(&spec.UpdateStrategy.Type, appsv1.RollingUpdateDaemonSetStrategyType)
	if spec.UpdateStrategy.Type == appsv1.RollingUpdateDaemonSetStrategyType {
		defaultPointer(&spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateDaemonSet{})
		defaultPointer(&spec.UpdateStrategy.RollingUpdate.MaxUnavailable, intstr.FromInt32(1))
		defaultPointer(&spec.UpdateStrategy.RollingUpdate.MaxSurge, intstr.FromInt32(0))
	}
	defaultPointer(&spec.RevisionHistoryLimit, revisionsKept)
	setPodTemplateDefaults(&spec.Template)
}

func setReplicaSetDefaults(replicaSet *appsv1.ReplicaSet) {
	defaultPointer(&replicaSet.Spec.Replicas, 1)
	setPodTemplateDefaults(&replicaSet.Spec.Template)
}

func setStatefulSetDefaults(set *appsv1.StatefulSet) {
	spec := &set.Spec
	defaultTo(&spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	if spec.UpdateStrategy.Type == "" {
		spec.UpdateStrategy.Type = appsv1.RollingUpdateStatefulSetStrategyType
		defaultPointer(&spec.UpdateStrategy.RollingUpdate, appsv1.RollingUpdateStatefulSetStrategy{})
	}
	if rolling := spec.UpdateStrategy.RollingUpdate; rolling != nil &&
		spec.UpdateStrategy.Type == appsv1.RollingUpdateStatefulSetStrategyType {
		defaultPointer(&rolling.Partition, 0)
		defaultPointer(&rolling.MaxUnavailable, intstr.FromInt32(1))
	}
	defaultPointer(&spec.PersistentVolumeClaimRetentionPolicy, appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{})
	defaultTo(&spec.PersistentVolumeClaimRetentionPolicy.WhenDeleted, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	defaultTo(&spec.PersistentVolumeClaimRetentionPolicy.WhenScaled, appsv1.RetainPersistentVolumeClaimRetentionPolicyType)
	defaultPointer(&spec.Replicas, 1)
	defaultPointer(&spec.RevisionHistoryLimit, revisionsKept)
	setPodTemplateDefaults(&spec.Template)
	for i := range spec.VolumeClaimTemplates {
		claim := &spec.VolumeClaimTemplates[i]
		// kube-apiserver fills these in for each template on its way out.
		claim.APIVersion, claim.Kind = "v1", "PersistentVolumeClaim"
		defaultTo(&claim.Status.Phase, corev1.ClaimPending)
		roundResources(claim.Status.Capacity)
		roundResources(claim.Status.AllocatedResources)
		setClaimSpecDefaults(&claim.Spec)
	}
}
