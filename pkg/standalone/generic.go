// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package standalone

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/admission"
	admissionmetrics "k8s.io/apiserver/pkg/admission/metrics"
	"k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle"
	"k8s.io/apiserver/pkg/authentication/authenticator"
	genericapiserver "k8s.io/apiserver/pkg/server"

	superedgev1 "github.com/grid-apiserver/grid-apiserver/pkg/apis/superedge/v1"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/backend"
	"github.com/grid-apiserver/grid-apiserver/pkg/standalone/scheme"
)

// genericConfig is the configuration of the genericapiserver.
func (s *Server) genericConfig(c *completedConfig, codecs serializer.CodecFactory, tokens authenticator.Token) (*genericapiserver.Config, error) {
	config := genericapiserver.NewConfig(codecs)
	config.EffectiveVersion = newEffectiveVersion()
	config.SecureServing = c.SecureServing
	config.SecureServing.Cert = s.identity.Serving()
	config.LoopbackClientConfig = s.loopback
	config.ExternalAddress = s.address.String()
	config.Authentication.Authenticator = newAuthenticator(tokens)
	config.Authorization.Authorizer = access{}
	// Their documents are made on demand, see the package openapi.
	config.SkipOpenAPIInstallation = true
	config.RESTOptionsGetter = s.backend
	config.EnableProfiling = false
	config.ShutdownWatchTerminationGracePeriod = drainTimeout
	config.ReadyzChecks = append(config.ReadyzChecks, s.readinessChecks()...)
	// The only client that asks for an estimate is priority and fairness, which is off.
	config.StorageObjectCountTracker = nil
	admit, err := s.newAdmission()
	if err != nil {
		return nil, err
	}
	config.AdmissionControl = admit
	return config, nil
}

// newAdmission refuses what belongs into no namespace, or into one that is being
// deleted. It is the only admission plug-in: those that inject something, count
// or ask webhooks have no part here.
func (s *Server) newAdmission() (admission.Interface, error) {
	namespaces, err := lifecycle.NewLifecycle(sets.New(metav1.NamespaceDefault, metav1.NamespaceSystem, metav1.NamespacePublic))
	if err != nil {
		return nil, err
	}
	namespaces.SetExternalKubeClientSet(s.client)
	namespaces.SetExternalKubeInformerFactory(s.informers)
	if err := namespaces.ValidateInitialization(); err != nil {
		return nil, err
	}
	return admissionmetrics.WithControllerMetrics(namespaces, lifecycle.PluginName), nil
}

// storageCodecs gives each built-in kind its stored form: protobuf, as in
// kube-apiserver, where the types have one.
func storageCodecs(codecs serializer.CodecFactory) backend.CodecFunc {
	versions := map[string]schema.GroupVersion{}
	for _, version := range scheme.Versions() {
		versions[version.Group] = version
	}
	// The Events of both groups are stored in one form.
	versions[eventsv1.GroupName] = corev1.SchemeGroupVersion
	return func(resource schema.GroupResource) (runtime.Codec, error) {
		version, ok := versions[resource.Group]
		if !ok {
			return nil, fmt.Errorf("the group %s has no stored form", resource.Group)
		}
		mediaType := runtime.ContentTypeProtobuf
		if resource.Group == superedgev1.GroupName {
			mediaType = runtime.ContentTypeJSON
		}
		return backend.NewCodec(codecs, mediaType, version)
	}
}
