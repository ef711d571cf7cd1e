// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package pod

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/registry/resource"
)

// validateVolumes also returns the names of the volumes that can be mounted.
func validateVolumes(volumes []corev1.Volume, path *field.Path) (map[string]bool, field.ErrorList) {
	var errs field.ErrorList
	names := map[string]bool{}
	for i := range volumes {
		volume, item := &volumes[i], path.Index(i)
		bad := validateVolumeSource(&volume.VolumeSource, item)
		if volume.Name == "" {
			bad = append(bad, field.Required(item.Child("name"), ""))
		} else {
			bad = append(bad, resource.DNSLabel(item.Child("name"), volume.Name)...)
		}
		if names[volume.Name] {
			bad = append(bad, field.Duplicate(item.Child("name"), volume.Name))
		}
		if len(bad) == 0 {
			names[volume.Name] = true
		}
		errs = append(errs, bad...)
	}
	return names, errs
}

// volumeType is one of the fields of which a volume has exactly one.
type volumeType struct {
	name string
	set  bool
	// required are names that must not be empty, by their field.
	required map[string]string
}

func volumeTypes(source *corev1.VolumeSource) []volumeType {
	types := []volumeType{
		{name: "emptyDir", set: source.EmptyDir != nil},
		{name: "gcePersistentDisk", set: source.GCEPersistentDisk != nil},
		{name: "awsElasticBlockStore", set: source.AWSElasticBlockStore != nil},
		{name: "gitRepo", set: source.GitRepo != nil},
		{name: "iscsi", set: source.ISCSI != nil},
		{name: "glusterfs", set: source.Glusterfs != nil},
		{name: "rbd", set: source.RBD != nil},
		{name: "flexVolume", set: source.FlexVolume != nil},
		{name: "cinder", set: source.Cinder != nil},
		{name: "cephfs", set: source.CephFS != nil},
		{name: "flocker", set: source.Flocker != nil},
		{name: "downwardAPI", set: source.DownwardAPI != nil},
		{name: "fc", set: source.FC != nil},
		{name: "azureFile", set: source.AzureFile != nil},
		{name: "vsphereVolume", set: source.VsphereVolume != nil},
		{name: "quobyte", set: source.Quobyte != nil},
		{name: "azureDisk", set: source.AzureDisk != nil},
		{name: "photonPersistentDisk", set: source.PhotonPersistentDisk != nil},
		{name: "projected", set: source.Projected != nil},
		{name: "portworxVolume", set: source.PortworxVolume != nil},
		{name: "scaleIO", set: source.ScaleIO != nil},
		{name: "storageos", set: source.StorageOS != nil},
		{name: "ephemeral", set: source.Ephemeral != nil},
		{name: "image", set: source.Image != nil},
	}
	add := func(name string, required map[string]string) {
		types = append(types, volumeType{name: name, set: true, required: required})
	}
	if source.HostPath != nil {
		add("hostPath", map[string]string{"path": source.HostPath.Path})
	}
	if source.Secret != nil {
		add("secret", map[string]string{"secretName": source.Secret.SecretName})
	}
	if source.ConfigMap != nil {
		add("configMap", map[string]string{"name": source.ConfigMap.Name})
	}
	if source.PersistentVolumeClaim != nil {
		add("persistentVolumeClaim", map[string]string{"claimName": source.PersistentVolumeClaim.ClaimName})
	}
	if source.NFS != nil {
		add("nfs", map[string]string{"server": source.NFS.Server, "path": source.NFS.Path})
	}
	if source.CSI != nil {
		add("csi", map[string]string{"driver": source.CSI.Driver})
	}
	return types
}

func validateVolumeSource(source *corev1.VolumeSource, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	var found string
	for _, t := range volumeTypes(source) {
		switch {
		case !t.set:
		case found != "":
			errs = append(errs, field.Forbidden(path.Child(t.name), "may not specify more than 1 volume type"))
		default:
			found = t.name
			for _, name := range slices.Sorted(maps.Keys(t.required)) {
				if t.required[name] == "" {
					errs = append(errs, field.Required(path.Child(t.name, name), ""))
				}
			}
		}
	}
	if found == "" {
		errs = append(errs, field.Required(path, "must specify a volume type"))
	}
	if source.EmptyDir != nil && source.EmptyDir.SizeLimit != nil && source.EmptyDir.SizeLimit.Sign() < 0 {
		errs = append(errs, field.Forbidden(path.Child("emptyDir", "sizeLimit"), "SizeLimit field must be a valid resource quantity"))
	}
	if found == "hostPath" && slices.Contains(strings.Split(source.HostPath.Path, "/"), "..") {
		errs = append(errs, field.Invalid(path.Child("hostPath", "path"), source.HostPath.Path, "must not contain '..'"))
	}
	return errs
}

// validateMounts checks where a container sees which volume. The paths of a
// wrong subPath have no index, as in the answers of kube-apiserver.
func validateMounts(container *corev1.Container, volumes map[string]bool, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	seen := map[string]bool{}
	list := path.Child("volumeMounts")
	for i := range container.VolumeMounts {
		mount, item := &container.VolumeMounts[i], list.Index(i)
		if mount.Name == "" {
			errs = append(errs, field.Required(item.Child("name"), ""))
		}
		if !volumes[mount.Name] {
			errs = append(errs, field.NotFound(item.Child("name"), mount.Name))
		}
		if mount.MountPath == "" {
			errs = append(errs, field.Required(item.Child("mountPath"), ""))
		}
		if seen[mount.MountPath] {
			errs = append(errs, field.Invalid(item.Child("mountPath"), mount.MountPath, "must be unique"))
		}
		seen[mount.MountPath] = true
		if mount.SubPath != "" && mount.SubPathExpr != "" {
			errs = append(errs, field.Invalid(item.Child("subPathExpr"), mount.SubPathExpr, "subPathExpr and subPath are mutually exclusive"))
		}
		errs = append(errs, validateSubPath(mount.SubPath, list.Child("subPath"))...)
		errs = append(errs, validateSubPath(mount.SubPathExpr, list.Child("subPathExpr"))...)
	}
	for i, device := range container.VolumeDevices {
		if !volumes[device.Name] {
			errs = append(errs, field.NotFound(path.Child("volumeDevices").Index(i).Child("name"), device.Name))
		}
	}
	return errs
}

func validateSubPath(subPath string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if strings.HasPrefix(subPath, "/") {
		errs = append(errs, field.Invalid(path, subPath, "must be a relative path"))
	}
	if slices.Contains(strings.Split(subPath, "/"), "..") {
		errs = append(errs, field.Invalid(path, subPath, "must not contain '..'"))
	}
	return errs
}
