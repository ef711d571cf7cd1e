// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/yaml"

	"github.com/grid-apiserver/grid-apiserver/pkg/proxy/body"
)

// writer is one client. Its choices follow from its seed.
type writer struct {
	*randomRun
	random *rand.Rand
	// held are copies that are written back, some of them old.
	held map[string]written
}

func (w *writer) client() kubernetes.Interface {
	text, binary := w.view.clients()
	if w.random.IntN(2) == 0 {
		return text
	}
	return binary
}

// step makes one write, and looks at what it did.
func (w *writer) step(ctx context.Context) {
	kind := w.random.IntN(len(writtenKinds))
	k := writtenKinds[kind]
	name := fmt.Sprintf("o%d", w.random.IntN(3))
	id := fmt.Sprintf("%sm%d", mark, w.next.Add(1))
	troubles := w.troubles.Load()
	client := k.client(w.client())
	got := k.empty()
	var what string
	var err error
	into := func(request *rest.Request) error {
		return request.Namespace("default").Resource(k.resource).Do(ctx).Into(got)
	}
	patch := func(text string, args ...any) []byte { return fmt.Appendf(nil, text, args...) }
	creates, dry, reads := false, false, true
	copied := w.copyOf(ctx, k, name)
	if copied == nil || w.random.IntN(20) == 0 {
		what, creates = "create", true
		object := k.make(name)
		object.SetAnnotations(map[string]string{id: ""})
		if w.random.IntN(4) == 0 {
			what = "create of a generated name"
			object.SetName("")
			object.SetGenerateName("g-")
		}
		err = into(client.Post().Body(object))
	} else {
		revision := copied.GetResourceVersion()
		changed := copied.DeepCopyObject().(written)
		if changed.GetAnnotations() == nil {
			changed.SetAnnotations(map[string]string{})
		}
		changed.GetAnnotations()[id] = ""
		switch w.random.IntN(13) {
		case 0, 1:
			what = "update"
			err = into(client.Put().Name(name).Body(changed))
		case 2:
			what, dry = "dry run", true
			err = into(client.Put().Name(name).Param("dryRun", "All").Body(changed))
		case 3:
			what = "merge patch"
			err = into(client.Patch(types.MergePatchType).Name(name).Body(patch(`{"metadata":{"annotations":{%q:""}}}`, id)))
		case 4:
			what = "strategic patch of a revision"
			err = into(client.Patch(types.StrategicMergePatchType).Name(name).Body(
				patch(`{"metadata":{"resourceVersion":"0\u003%c%s","annotations":{%q:""},"resourceVersion":%q}}`, revision[0], revision[1:], id, revision)))
		case 5:
			what = "JSON patch of a revision"
			err = into(client.Patch(types.JSONPatchType).Name(name).Body(patch(
				`[{"op":"test","path":"/metadata/resourceVersion","value":%q},{"op":"add","path":"/metadata/annotations/mark~1%s","value":""}]`,
				revision, strings.TrimPrefix(id, mark))))
		case 6:
			what = "apply of metadata"
			err = into(client.Patch(types.ApplyYAMLPatchType).Name(name).Param("fieldManager", strings.TrimPrefix(id, mark)).Body(patch(
				"apiVersion: %s\nkind: %s\nmetadata:\n  name: %s\n  resourceVersion: '%s'\n  annotations: {%s: ''}\n", k.apiVersion, k.kind, name, revision, id)))
		case 7:
			what = "update in YAML"
			changed.GetObjectKind().SetGroupVersionKind(gvkOf(changed))
			var data []byte
			if data, err = yaml.Marshal(changed); err == nil {
				err = into(client.Put().Name(name).SetHeader("Content-Type", "application/yaml").Body(data))
			}
		case 8:
			what = "streamed update"
			err = w.stream(ctx, k, name, id, got)
		case 9:
			what, reads = "abandoned update", false
			hurried, cancel := context.WithTimeout(ctx, time.Duration(w.random.IntN(4000))*time.Microsecond)
			err = client.Put().Namespace("default").Resource(k.resource).Name(name).Body(changed).Do(hurried).Into(got)
			cancel()
			if err != nil && hurried.Err() != nil {
				return
			}
		case 10:
			if kind == 0 {
				what = "update of the status"
				changed = copied.DeepCopyObject().(written)
				service := changed.(*corev1.Service)
				service.Status.Conditions = append(service.Status.Conditions, metav1.Condition{
					Type: id, Status: "True", Reason: "Test", LastTransitionTime: metav1.Now().Rfc3339Copy(),
				})
				err = into(client.Put().Name(name).SubResource("status").Body(changed))
				break
			}
			fallthrough
		case 11:
			what, reads = "delete", false
			options := &metav1.DeleteOptions{Preconditions: &metav1.Preconditions{ResourceVersion: &revision}}
			if err = client.Delete().Namespace("default").Resource(k.resource).Name(name).Body(options).Do(ctx).Error(); err == nil {
				w.checkGone(ctx, k, copied, troubles)
			}
		case 12:
			what, reads = "filter", false
			value := []string{`""`, `"[\"zone1\"]"`}[w.random.IntN(2)]
			s := &corev1.Service{}
			err = w.client().CoreV1().RESTClient().Patch(types.MergePatchType).Namespace("default").Resource("services").Name(name).Body(
				patch(`{"metadata":{"annotations":{"topologyKeys":%s}}}`, value)).Do(ctx).Into(s)
		}
	}
	w.note(what+" of "+k.resource, id, err)
	if err != nil {
		w.checkError(what, kind, err, troubles)
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			delete(w.held, k.resource+name)
		}
		return
	}
	if !reads || dry {
		return
	}
	w.mu.Lock()
	w.acked = append(w.acked, acknowledged{kind, what, id, got.GetName(), got.GetUID()})
	w.mu.Unlock()
	if !marksOf(got)[id] {
		w.errorf("%s of %s %s: the answer does not show it", what, k.resource, name)
	}
	if creates && got.GetGenerateName() != "" {
		name = got.GetName()
	}
	w.checkRead(ctx, k, what, id, got, troubles)
	if body.IsViewRevision(got.GetResourceVersion()) {
		w.held[k.resource+name] = got
		if w.random.IntN(10) == 0 {
			w.watchFrom(kind, got, troubles)
		}
	}
}
