// Command kubecheck checks Kubernetes manifests against the types of k8s.io/api and against rules: members
// that the types do not have are errors, selectors and references must match, and pods must be
// confined. It is a module of its own, so that the project does not depend on Kubernetes.
//
//	kubecheck DIR
//
// DIR has a kustomization.yaml, whose resources are checked.
package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"

	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/yaml"
)

func main() {
	if err := check(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// A kustomization is the part of kustomization.yaml that the example uses.
type kustomization struct {
	meta.TypeMeta `json:",inline"`
	Namespace     string   `json:"namespace"`
	Resources     []string `json:"resources"`
	Images        []struct {
		Name    string `json:"name"`
		NewName string `json:"newName"`
		NewTag  string `json:"newTag"`
	} `json:"images"`
}

// objects are the decoded manifests by kind and name.
type objects map[string]any

var separator = regexp.MustCompile(`(?m)^---$`)

func check(dir string) error {
	b, err := os.ReadFile(filepath.Join(dir, "kustomization.yaml"))
	if err != nil {
		return err
	}
	var k kustomization
	if err := yaml.UnmarshalStrict(b, &k); err != nil {
		return fmt.Errorf("kustomization.yaml: %w", err)
	}
	all := make(objects)
	var bad error
	for _, name := range k.Resources {
		b, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			return err
		}
		for _, doc := range separator.Split(string(b), -1) {
			if err := all.add([]byte(doc)); err != nil {
				bad = errors.Join(bad, fmt.Errorf("%s: %w", name, err))
			}
		}
	}
	return errors.Join(bad, all.rules(&k))
}

// add decodes a manifest.
func (o objects) add(doc []byte) error {
	var head struct {
		meta.TypeMeta `json:",inline"`
		Metadata      struct {
			Name string `json:"name"`
		} `json:"metadata"`
	}
	if err := yaml.Unmarshal(doc, &head); err != nil {
		return err
	}
	v := map[string]any{
		"v1 Namespace": &core.Namespace{}, "v1 ConfigMap": &core.ConfigMap{}, "v1 ServiceAccount": &core.ServiceAccount{}, "v1 Service": &core.Service{},
		"apps/v1 Deployment": &apps.Deployment{}, "policy/v1 PodDisruptionBudget": &policy.PodDisruptionBudget{},
		"autoscaling/v2 HorizontalPodAutoscaler": &autoscaling.HorizontalPodAutoscaler{},
		"networking.k8s.io/v1 NetworkPolicy":     &networking.NetworkPolicy{}, "networking.k8s.io/v1 Ingress": &networking.Ingress{},
	}[head.APIVersion+" "+head.Kind]
	if v == nil {
		return fmt.Errorf("unknown kind %s %s", head.APIVersion, head.Kind)
	}
	if err := yaml.UnmarshalStrict(bytes.TrimSpace(doc), v); err != nil {
		return fmt.Errorf("%s %s: %w", head.Kind, head.Metadata.Name, err)
	}
	key := head.Kind + " " + head.Metadata.Name
	if head.Metadata.Name == "" || o[key] != nil {
		return fmt.Errorf("%s: the name is missing or used twice", key)
	}
	o[key] = v
	return nil
}

// rules checks references between the objects.
func (o objects) rules(k *kustomization) (bad error) {
	fail := func(format string, args ...any) { bad = errors.Join(bad, fmt.Errorf(format, args...)) }
	if o["Namespace "+k.Namespace] == nil {
		fail("namespace %q is missing", k.Namespace)
	}
	images := make(map[string]bool)
	for _, i := range k.Images {
		images[i.Name] = i.NewTag != "" && i.NewTag != "latest"
	}
	budgets := make(map[string]bool)
	for name, v := range o {
		switch v := v.(type) {
		case *apps.Deployment:
			bad = errors.Join(bad, o.deployment(v, images))
		case *policy.PodDisruptionBudget:
			for _, d := range o.selected(v.Spec.Selector) {
				budgets[d] = true
			}
			if len(o.selected(v.Spec.Selector)) != 1 {
				fail("%s selects %q", name, o.selected(v.Spec.Selector))
			}
		case *networking.NetworkPolicy:
			if len(o.selected(&v.Spec.PodSelector)) == 0 {
				fail("%s selects no pod", name)
			}
		case *core.Service:
			bad = errors.Join(bad, o.service(v))
		case *autoscaling.HorizontalPodAutoscaler:
			bad = errors.Join(bad, o.autoscaler(v))
		case *networking.Ingress:
			bad = errors.Join(bad, o.ingress(v))
		}
	}
	for name, v := range o {
		if d, ok := v.(*apps.Deployment); ok && !budgets[d.Name] {
			fail("%s has no PodDisruptionBudget", name)
		}
		if d, ok := v.(*apps.Deployment); ok && o["HorizontalPodAutoscaler "+d.Name] == nil {
			fail("%s has no HorizontalPodAutoscaler", name)
		}
	}
	return bad
}

// service checks that a Service selects one Deployment, and that its ports exist.
func (o objects) service(v *core.Service) (bad error) {
	found := o.selected(&meta.LabelSelector{MatchLabels: v.Spec.Selector})
	if len(found) != 1 {
		return fmt.Errorf("Service %s selects %q", v.Name, found)
	}
	for _, p := range v.Spec.Ports {
		if !hasPort(o["Deployment "+found[0]].(*apps.Deployment), p.TargetPort.StrVal) {
			bad = errors.Join(bad, fmt.Errorf("Service %s: no container has the port %s", v.Name, p.TargetPort.String()))
		}
	}
	return bad
}

// autoscaler checks the target and the limits of a HorizontalPodAutoscaler.
func (o objects) autoscaler(v *autoscaling.HorizontalPodAutoscaler) error {
	d, ok := o["Deployment "+v.Spec.ScaleTargetRef.Name].(*apps.Deployment)
	if !ok || v.Spec.MinReplicas == nil || *v.Spec.MinReplicas < 1 || v.Spec.MaxReplicas < *v.Spec.MinReplicas {
		return fmt.Errorf("HorizontalPodAutoscaler %s: the target or the number of replicas is wrong", v.Name)
	}
	if d.Spec.Replicas != nil {
		return fmt.Errorf("HorizontalPodAutoscaler %s: %s has replicas, which each apply would reset", v.Name, d.Name)
	}
	return nil
}

// ingress checks that the services and ports of an Ingress exist.
func (o objects) ingress(v *networking.Ingress) (bad error) {
	for _, r := range v.Spec.Rules {
		for _, p := range r.HTTP.Paths {
			s, ok := o["Service "+p.Backend.Service.Name].(*core.Service)
			if !ok || !slices.ContainsFunc(s.Spec.Ports, func(have core.ServicePort) bool { return have.Name == p.Backend.Service.Port.Name }) {
				bad = errors.Join(bad, fmt.Errorf("Ingress %s: the service %s or its port is missing", v.Name, p.Backend.Service.Name))
			}
		}
	}
	return bad
}

// selected returns the names of the deployments whose pods a selector selects.
func (o objects) selected(s *meta.LabelSelector) (names []string) {
	sel, err := meta.LabelSelectorAsSelector(s)
	if err != nil {
		return nil
	}
	for _, v := range o {
		if d, ok := v.(*apps.Deployment); ok && sel.Matches(labels.Set(d.Spec.Template.Labels)) {
			names = append(names, d.Name)
		}
	}
	return names
}

func hasPort(d *apps.Deployment, name string) bool {
	for _, c := range d.Spec.Template.Spec.Containers {
		if slices.ContainsFunc(c.Ports, func(p core.ContainerPort) bool { return p.Name == name }) {
			return true
		}
	}
	return false
}

func isTrue(b *bool) bool  { return b != nil && *b }
func isFalse(b *bool) bool { return b != nil && !*b }

// deployment checks that pods are confined, have limits and probes, and stop gracefully.
func (o objects) deployment(d *apps.Deployment, images map[string]bool) (bad error) {
	fail := func(format string, args ...any) {
		bad = errors.Join(bad, fmt.Errorf("Deployment %s: "+format, append([]any{d.Name}, args...)...))
	}
	if !slices.Contains(o.selected(d.Spec.Selector), d.Name) {
		fail("the selector does not select its pods")
	}
	pod := d.Spec.Template.Spec
	if o["ServiceAccount "+pod.ServiceAccountName] == nil || !isFalse(pod.AutomountServiceAccountToken) {
		fail("the service account is missing, or its token is mounted")
	}
	s := pod.SecurityContext
	if s == nil || !isTrue(s.RunAsNonRoot) || s.RunAsUser == nil || *s.RunAsUser == 0 || s.SeccompProfile == nil || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
		fail("pods may run as root, or without the seccomp profile")
	}
	if pod.TerminationGracePeriodSeconds == nil || *pod.TerminationGracePeriodSeconds < 45 {
		fail("the grace period is shorter than --drain")
	}
	for i := range pod.Containers {
		o.container(d, &pod.Containers[i], images, fail)
	}
	return bad
}

// container checks a container of a Deployment and calls fail with each fault.
func (o objects) container(d *apps.Deployment, c *core.Container, images map[string]bool, fail func(format string, args ...any)) {
	if !images[c.Image] {
		fail("kustomization.yaml has no tag for the image %s", c.Image)
	}
	s := c.SecurityContext
	if s == nil || !isTrue(s.ReadOnlyRootFilesystem) || !isFalse(s.AllowPrivilegeEscalation) || s.Capabilities == nil || !slices.Contains(s.Capabilities.Drop, "ALL") {
		fail("the container %s is not confined", c.Name)
	}
	if c.LivenessProbe == nil || c.ReadinessProbe == nil || c.StartupProbe == nil {
		fail("the container %s has no probes", c.Name)
		return
	}
	for _, p := range []*core.Probe{c.LivenessProbe, c.ReadinessProbe, c.StartupProbe} {
		if p.HTTPGet == nil || !hasPort(d, p.HTTPGet.Port.StrVal) {
			fail("a probe of %s has no port", c.Name)
		}
	}
	if c.Resources.Limits.Memory().IsZero() || c.Resources.Requests.Cpu().IsZero() || c.Resources.Requests.Memory().IsZero() {
		fail("the container %s has no resources", c.Name)
	}
	for _, e := range c.EnvFrom {
		if e.ConfigMapRef != nil && o["ConfigMap "+e.ConfigMapRef.Name] == nil {
			fail("the ConfigMap %s is missing", e.ConfigMapRef.Name)
		}
	}
	for _, m := range c.VolumeMounts {
		if !slices.ContainsFunc(d.Spec.Template.Spec.Volumes, func(v core.Volume) bool { return v.Name == m.Name }) {
			fail("the volume %s is missing", m.Name)
		}
	}
}
