// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	corev1 "k8s.io/api/core/v1"
)

// volumeFileMode is 0644, for the files of all volumes that the kubelet writes.
const volumeFileMode = corev1.ConfigMapVolumeSourceDefaultMode

// serviceAccountTokenSeconds is how long a projected token lives: an hour.
const serviceAccountTokenSeconds = int64(3600)

func setVolumeDefaults(volume *corev1.Volume) {
	source := &volume.VolumeSource
	if *source == (corev1.VolumeSource{}) {
		source.EmptyDir = &corev1.EmptyDirVolumeSource{}
	}
	if source.Image != nil {
		defaultTo(&source.Image.PullPolicy, pullPolicy(source.Image.Reference))
	}
	if source.HostPath != nil {
		defaultPointer(&source.HostPath.Type, corev1.HostPathUnset)
	}
	if source.Secret != nil {
		defaultPointer(&source.Secret.DefaultMode, volumeFileMode)
	}
	if source.ConfigMap != nil {
		defaultPointer(&source.ConfigMap.DefaultMode, volumeFileMode)
	}
	if source.DownwardAPI != nil {
		defaultPointer(&source.DownwardAPI.DefaultMode, volumeFileMode)
		setDownwardDefaults(source.DownwardAPI.Items)
	}
	if source.Projected != nil {
		setProjectedDefaults(source.Projected)
	}
	if source.Ephemeral != nil && source.Ephemeral.VolumeClaimTemplate != nil {
		setClaimSpecDefaults(&source.Ephemeral.VolumeClaimTemplate.Spec)
	}
	setAttachedDefaults(source)
}

func setProjectedDefaults(projected *corev1.ProjectedVolumeSource) {
	defaultPointer(&projected.DefaultMode, volumeFileMode)
	for i := range projected.Sources {
		if downward := projected.Sources[i].DownwardAPI; downward != nil {
			setDownwardDefaults(downward.Items)
		}
		if token := projected.Sources[i].ServiceAccountToken; token != nil {
			defaultPointer(&token.ExpirationSeconds, serviceAccountTokenSeconds)
		}
	}
}

func setDownwardDefaults(items []corev1.DownwardAPIVolumeFile) {
	for i := range items {
		setFieldRefDefaults(items[i].FieldRef)
	}
}

func setClaimSpecDefaults(spec *corev1.PersistentVolumeClaimSpec) {
	defaultPointer(&spec.VolumeMode, corev1.PersistentVolumeFilesystem)
	roundResources(spec.Resources.Limits)
	roundResources(spec.Resources.Requests)
}

// setAttachedDefaults is for the volumes of storage systems.
func setAttachedDefaults(source *corev1.VolumeSource) {
	if source.ISCSI != nil {
		defaultTo(&source.ISCSI.ISCSIInterface, "default")
	}
	if source.RBD != nil {
		defaultTo(&source.RBD.RBDPool, "rbd")
		defaultTo(&source.RBD.RadosUser, "admin")
		defaultTo(&source.RBD.Keyring, "/etc/ceph/keyring")
	}
	if disk := source.AzureDisk; disk != nil {
		defaultPointer(&disk.CachingMode, corev1.AzureDataDiskCachingReadWrite)
		defaultPointer(&disk.FSType, "ext4")
		defaultPointer(&disk.ReadOnly, false)
		defaultPointer(&disk.Kind, corev1.AzureSharedBlobDisk)
	}
	if source.ScaleIO != nil {
		defaultTo(&source.ScaleIO.StorageMode, "ThinProvisioned")
		defaultTo(&source.ScaleIO.FSType, "xfs")
	}
}
