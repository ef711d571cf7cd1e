// Copyright The grid-apiserver Authors.
// SPDX-License-Identifier: Apache-2.0

package testserver_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/grid-apiserver/grid-apiserver/pkg/testserver"
)

const nodeLabel = "example.org/node"

// podLabeler is a controller like any other: it labels each Pod with the name of its node.
type podLabeler struct {
	client kubernetes.Interface
	pods   informers.SharedInformerFactory
	queue  workqueue.TypedRateLimitingInterface[cache.ObjectName]
}

func newPodLabeler(client kubernetes.Interface) *podLabeler {
	return &podLabeler{
		client: client, pods: informers.NewSharedInformerFactory(client, 0),
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[cache.ObjectName]()),
	}
}

// run works until ctx ends.
func (l *podLabeler) run(ctx context.Context) error {
	informer := l.pods.Core().V1().Pods()
	enqueue := func(object any) {
		if name, err := cache.ObjectToName(object); err == nil {
			l.queue.Add(name)
		}
	}
	if _, err := informer.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: enqueue, UpdateFunc: func(_, object any) { enqueue(object) },
	}); err != nil {
		return err
	}
	l.pods.Start(ctx.Done())
	defer l.pods.Shutdown()
	l.pods.WaitForCacheSync(ctx.Done())
	context.AfterFunc(ctx, l.queue.ShutDown)
	for {
		name, shutdown := l.queue.Get()
		if shutdown {
			return nil
		}
		if pod, err := informer.Lister().Pods(name.Namespace).Get(name.Name); err == nil {
			err = l.label(ctx, pod)
			if err != nil {
				l.queue.AddRateLimited(name)
			} else {
				l.queue.Forget(name)
			}
		}
		l.queue.Done(name)
	}
}

func (l *podLabeler) label(ctx context.Context, pod *corev1.Pod) error {
	if pod.Spec.NodeName == "" || pod.Labels[nodeLabel] == pod.Spec.NodeName {
		return nil
	}
	patch := fmt.Sprintf(`{"metadata":{"labels":{%q:%q}}}`, nodeLabel, pod.Spec.NodeName)
	_, err := l.client.CoreV1().Pods(pod.Namespace).Patch(ctx, pod.Name, types.StrategicMergePatchType, []byte(patch), metav1.PatchOptions{})
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// A controller with an informer and a work queue, run against a real API server.
// In a test, testserver.Start(t, options) takes the place of Run and Stop.
func Example_controller() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	server, err := testserver.Run(ctx, testserver.Options{Objects: []runtime.Object{
		&corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "echo"},
			Spec:       corev1.PodSpec{NodeName: "edge-1", Containers: []corev1.Container{{Name: "echo", Image: "example.org/echo"}}},
		},
	}})
	if err != nil {
		fmt.Println("starting the server:", err)
		return
	}
	defer func() { _ = server.Stop() }()

	client := kubernetes.NewForConfigOrDie(server.Upstream)
	var running sync.WaitGroup
	defer running.Wait()
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	running.Go(func() {
		if err := newPodLabeler(client).run(ctx); err != nil {
			fmt.Println("the controller:", err)
		}
	})

	err = wait.PollUntilContextCancel(ctx, 10*time.Millisecond, true, func(ctx context.Context) (bool, error) {
		found, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{
			LabelSelector: nodeLabel + "=edge-1", FieldSelector: fields.OneTermEqualSelector("spec.nodeName", "edge-1").String(),
		})
		return err == nil && len(found.Items) == 1, err
	})
	fmt.Println("labelled:", err == nil)
	// Output:
	// labelled: true
}
