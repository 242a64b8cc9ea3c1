//go:build linux

package deploy

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/yaml"

	"github.com/goodput/goodput/e2e/internal/rig"
)

func TestMain(m *testing.M) {
	code := m.Run()
	rig.Clean()
	os.Exit(code)
}

// A manifest is kubernetes/sidecar.yaml.
type manifest struct {
	policy     corev1.ConfigMap
	service    corev1.Service
	deployment appsv1.Deployment
	sidecar    corev1.Container
	app        corev1.Container
}

// read decodes the manifest strictly: an unknown field or one that stands twice is an
// error, as with kubectl apply --validate=strict.
func read(t *testing.T) manifest {
	t.Helper()
	src, err := os.ReadFile("../../deploy/kubernetes/sidecar.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var m manifest
	docs := strings.Split(string(src), "\n---\n")
	into := []any{&m.policy, &m.service, &m.deployment}
	if len(docs) != len(into) {
		t.Fatalf("%d documents, want %d", len(docs), len(into))
	}
	for i, doc := range docs {
		if err := yaml.UnmarshalStrict([]byte(doc), into[i]); err != nil {
			t.Fatalf("document %d: %v", i, err)
		}
	}
	for i, want := range []struct{ kind, version string }{{"ConfigMap", "v1"}, {"Service", "v1"}, {"Deployment", "apps/v1"}} {
		meta := []struct{ kind, version string }{
			{m.policy.Kind, m.policy.APIVersion}, {m.service.Kind, m.service.APIVersion}, {m.deployment.Kind, m.deployment.APIVersion},
		}[i]
		if meta != want {
			t.Errorf("document %d is a %s of %s", i, meta.kind, meta.version)
		}
	}
	spec := m.deployment.Spec.Template.Spec
	if len(spec.InitContainers) != 1 || len(spec.Containers) != 1 {
		t.Fatalf("%d sidecars and %d containers", len(spec.InitContainers), len(spec.Containers))
	}
	m.sidecar, m.app = spec.InitContainers[0], spec.Containers[0]
	return m
}

// flag returns the value of --name=value among the arguments of goodput.
func (m manifest) flag(t *testing.T, name string) string {
	t.Helper()
	for _, arg := range m.sidecar.Args {
		if value, ok := strings.CutPrefix(arg, "--"+name+"="); ok {
			return value
		}
	}
	t.Fatalf("--%s= is not among %q", name, m.sidecar.Args)
	return ""
}

func (m manifest) seconds(t *testing.T, flag string) int64 {
	t.Helper()
	d, err := time.ParseDuration(m.flag(t, flag))
	if err != nil || d%time.Second != 0 {
		t.Fatalf("--%s: %v, %v", flag, d, err)
	}
	return int64(d / time.Second)
}

func port(c corev1.Container, name string) int32 {
	for _, p := range c.Ports {
		if p.Name == name {
			return p.ContainerPort
		}
	}
	return 0
}

// Names and numbers that stand in two places are the same in both.
func TestManifestAgreesWithItself(t *testing.T) {
	m := read(t)
	spec := m.deployment.Spec.Template.Spec
	if p := m.sidecar.RestartPolicy; p == nil || *p != corev1.ContainerRestartPolicyAlways {
		t.Error("goodput is an init container that must end before the application starts, not a sidecar")
	}
	labels := m.deployment.Spec.Template.Labels
	for _, selector := range []map[string]string{m.deployment.Spec.Selector.MatchLabels, m.service.Spec.Selector} {
		for name, value := range selector {
			if labels[name] != value {
				t.Errorf("the pods have no label %s: %s", name, value)
			}
		}
	}
	if m.service.Spec.Ports[0].TargetPort != intstr.FromString("http") {
		t.Error("the Service does not lead to goodput")
	}
	file := m.flag(t, "config")
	mount := m.sidecar.VolumeMounts[0]
	if path.Dir(file) != mount.MountPath || m.policy.Data[path.Base(file)] == "" || mount.Name != spec.Volumes[0].Name ||
		spec.Volumes[0].ConfigMap.Name != m.policy.Name || mount.SubPath != "" {
		t.Errorf("--config=%s is not what the ConfigMap is mounted as", file)
	}
	policy := m.policy.Data[path.Base(file)]
	for text, want := range map[string]string{
		policy:             fmt.Sprintf("listen: \":%d\"\n", port(m.sidecar, "http")),
		policy + " ":       fmt.Sprintf("upstream: http://127.0.0.1:%d\n", port(m.app, "app")),
		m.flag(t, "admin"): fmt.Sprintf(":%d", port(m.sidecar, "admin")),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in %q", want, text)
		}
	}
	requests, limits := m.sidecar.Resources.Requests, m.sidecar.Resources.Limits
	if !requests.Memory().Equal(*limits.Memory()) || !limits.Cpu().IsZero() {
		t.Error("memory: what is requested is the limit; CPU: there is none")
	}
	var memory int64
	if _, err := fmt.Sscanf(m.sidecar.Env[0].Value, "%dMiB", &memory); err != nil || memory<<20 > limits.Memory().Value()*9/10 {
		t.Errorf("GOMEMLIMIT is %s of %v", m.sidecar.Env[0].Value, limits.Memory())
	}
	sec := m.sidecar.SecurityContext
	if !*spec.SecurityContext.RunAsNonRoot || !*sec.ReadOnlyRootFilesystem || *sec.AllowPrivilegeEscalation ||
		!slices.Equal(sec.Capabilities.Drop, []corev1.Capability{"ALL"}) {
		t.Errorf("%+v", sec)
	}
}

// The application lives until goodput has left, and the pod until the application has.
func TestManifestEndsInOrder_C092(t *testing.T) {
	m := read(t)
	delay, timeout := m.seconds(t, "drain-delay"), m.seconds(t, "drain-timeout")
	sleep, grace := m.app.Lifecycle.PreStop.Sleep.Seconds, *m.deployment.Spec.Template.Spec.TerminationGracePeriodSeconds
	if delay+timeout >= sleep {
		t.Errorf("the application is ended after %d s, goodput may serve for %d s", sleep, delay+timeout)
	}
	if sleep+10 > grace {
		t.Errorf("of %d s the application has %d s to end", grace, grace-sleep)
	}
	ready := m.sidecar.ReadinessProbe
	if notice := int64(ready.PeriodSeconds * (ready.FailureThreshold + 1)); notice > delay*3/4 {
		t.Errorf("a balancer that probes like Kubernetes knows after %d s, HTTP/2 connections are closed after %d s", notice, delay*3/4)
	}
	// What it is told when the pod begins to end, since its SIGTERM comes after the
	// application's.
	if got := m.sidecar.Lifecycle.PreStop.Exec.Command; !slices.Equal(got, []string{"/bin/kill", "-TERM", "1"}) {
		t.Errorf("preStop is %q", got)
	}
	if copied := instructions(t)["COPY"]; !slices.Contains(copied, "--from=tools /bin/busybox /bin/kill") {
		t.Errorf("/bin/kill is not in the image: %q", copied)
	}
}

// goodput runs with these arguments and this policy, answers the probes as the kubelet
// asks them, and leaves with 0.
func TestManifestRuns(t *testing.T) {
	m := read(t)
	policy := strings.Replace(m.policy.Data["goodput.yaml"], `":8080"`, `"127.0.0.1:0"`, 1)
	file := rig.File(t, "goodput.yaml", policy)
	if out, err := exec.Command(rig.Program(t), "check", file).CombinedOutput(); err != nil {
		t.Errorf("goodput check: %v\n%s", err, out)
	}
	args := slices.Clone(m.sidecar.Args)
	for i, arg := range args {
		switch name, _, _ := strings.Cut(arg, "="); name {
		case "--config":
			args[i] = name + "=" + file
		case "--admin":
			args[i] = name + "=127.0.0.1:0"
		case "--drain-delay":
			args[i] = name + "=100ms" // enough to see that it is not ready
		}
	}
	p := rig.Serve(t, args...)
	ask := func(probe *corev1.Probe) int {
		req, err := http.NewRequest(http.MethodGet, "http://"+p.Admin+probe.HTTPGet.Path, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = fmt.Sprintf("10.42.0.7:%d", port(m.sidecar, probe.HTTPGet.Port.StrVal))
		req.Header.Set("User-Agent", "kube-probe/1.34")
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close() //nolint:errcheck // the status is what counts
		return res.StatusCode
	}
	for _, probe := range []*corev1.Probe{m.sidecar.StartupProbe, m.sidecar.ReadinessProbe, m.sidecar.LivenessProbe} {
		if status := ask(probe); status != http.StatusOK || probe.HTTPGet.Port.StrVal != "admin" {
			t.Errorf("%s on port %s: %d", probe.HTTPGet.Path, probe.HTTPGet.Port.StrVal, status)
		}
	}
	// The hook of the sidecar, as the image has it.
	if out, err := exec.Command("kill", "-TERM", fmt.Sprint(p.Pid())).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if code := p.Exit(t, 5*time.Second); code != 0 {
		t.Errorf("exit code %d\n%s", code, p.Log())
	}
	if !strings.Contains(p.Log(), syscall.SIGTERM.String()) {
		t.Errorf("the log does not say why it ended:\n%s", p.Log())
	}
}
