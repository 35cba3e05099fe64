package main

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/filewright/filewright/capability"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
)

func action(name, engine, family string, params ...fileops.Param) fileops.Action {
	return fileops.Func(fileops.Spec{Name: name, Engine: engine, Family: family, Summary: "Does it.", Accepts: []fileops.Accept{
		{Formats: []format.Format{format.PDF, format.PNG}, Params: params},
	}}, func(context.Context, *fileops.Job) error { return nil })
}

// TestUnion checks that server descriptions survive the exchange without loss.
func TestUnion(t *testing.T) {
	t.Parallel()
	convert := action("convert", "a", "image", fileops.Enum("convert_to", "The format.", "pdf", "png"),
		fileops.Param{Name: "quality", Doc: "How good.", Type: fileops.Integer, Default: 90, Min: 1, Max: 100},
		fileops.Param{Name: "ratio", Doc: "How wide.", Type: fileops.Number, Default: 0.5, Max: 1},
		fileops.Param{Name: "fast", Doc: "Whether.", Type: fileops.Boolean, Default: true},
		fileops.Param{Name: "kind", Doc: "Which.", Enum: []string{"x"}, Aliases: map[string]string{"y": "x"}, Pattern: "x"},
		fileops.Secret("password", "The password."))
	lock := action("lock", "b", "pdf")
	info := func(engines []nodeEngine, actions ...fileops.Action) []byte {
		n := nodeInfo{Version: "v", Role: roleWorker, Engines: engines}
		for _, a := range actions {
			n.Actions = append(n.Actions, a.Spec())
		}
		b, err := json.Marshal(n)
		systest.NoError(t, err)
		return b
	}
	actions, engines, err := union([][]byte{
		info([]nodeEngine{{Name: "a", Version: "1"}, {Name: "b", Err: "not found", Hint: "install it"}}, convert),
		info([]nodeEngine{{Name: "a", Err: "not found"}, {Name: "b", Version: "2"}, {Name: "c", Err: "not found"}}, convert, lock),
	})
	systest.NoError(t, err)
	if len(actions) != 2 || len(engines) != 3 || engines[0].Err != nil || engines[1].Err != nil || engines[1].Version != "2" || engines[2].Err == nil {
		t.Errorf("actions %d, engines %+v", len(actions), engines)
	}
	offer := func(actions ...fileops.Action) *capability.Matrix {
		reg, err := fileops.NewRegistry(actions...)
		systest.NoError(t, err)
		return capability.New(reg, nil)
	}
	here, there := offer(convert, lock), offer(actions...)
	for _, q := range []capability.Query{
		{Ext: "pdf"}, {Ext: "png", Action: "convert"}, {Ext: "pdf", Action: "lock"}, {Ext: "txt"},
		{Ext: "pdf", Action: "convert", Parameters: map[string]any{"convert_to": "png", "quality": 101}},
		{Ext: "pdf", Action: "convert", Parameters: map[string]any{"convert_to": "png", "kind": "Y", "password": "p"}},
	} {
		a, b := here.Query(q), there.Query(q)
		aj, _ := json.Marshal(a.Parameters)
		bj, _ := json.Marshal(b.Parameters)
		if a.Supported != b.Supported || fileops.Message(a.Err) != fileops.Message(b.Err) || string(aj) != string(bj) ||
			!reflect.DeepEqual(a.AvailableActions, b.AvailableActions) {
			t.Errorf("%+v: here %+v, there %+v", q, a, b)
		}
	}
	if err := actions[0].Do(t.Context(), nil); fileops.Code(err) != "engine_unavailable" {
		t.Errorf("what another server does ends with %v", err)
	}
	if _, _, err := union([][]byte{[]byte("{")}); err == nil {
		t.Error("what is no description was understood")
	}
	if a, e, err := union(nil); len(a)+len(e) != 0 || err != nil {
		t.Errorf("without servers: %v, %v, error %v", a, e, err)
	}
}

// The metric of workers follows servers that start and stop.
func TestWorkers(t *testing.T) {
	t.Parallel()
	node := func(families ...string) sqlstore.Node {
		var info nodeInfo
		for _, family := range families {
			info.Actions = append(info.Actions, fileops.Spec{Family: family})
		}
		b, err := json.Marshal(info)
		systest.NoError(t, err)
		return sqlstore.Node{Info: b}
	}
	c := &cluster{workers: newWorkers()}
	registry := prometheus.NewRegistry()
	registry.MustRegister(c.workers)
	for _, tt := range []struct {
		nodes []sqlstore.Node
		want  map[string]float64
	}{
		{[]sqlstore.Node{node("pdf", "pdf", "image"), node("pdf", "pdf", "image"), node("pdf")}, map[string]float64{"pdf": 3, "image": 2}},
		{[]sqlstore.Node{node("pdf")}, map[string]float64{"pdf": 1, "image": 0}},
		{nil, map[string]float64{"pdf": 0, "image": 0}},
	} {
		systest.NoError(t, c.count(tt.nodes))
		families, err := registry.Gather()
		if err != nil || len(families) != 1 {
			t.Fatalf("%v, %v", families, err)
		}
		got := make(map[string]float64)
		for _, m := range families[0].Metric {
			got[m.Label[0].GetValue()] = m.Gauge.GetValue()
		}
		if !maps.Equal(got, tt.want) {
			t.Errorf("of %d nodes: %v, want %v", len(tt.nodes), got, tt.want)
		}
	}
	if err := c.count([]sqlstore.Node{{Info: []byte("{")}}); err == nil {
		t.Error("what is no description was understood")
	}
}

func TestClusterConfig(t *testing.T) {
	t.Parallel()
	for flags, want := range map[string]string{
		"--role api":                            "--database-url",
		"--role boss":                           "must be all, api or worker",
		"--queues office":                       "--database-url",
		"--secret short":                        "at least 32",
		"--database-url mysql://x --blob-url b": "postgres://",
		"--database-url postgres://x":           "--blob-url",
		"--database-url postgres://x --blob-url b --lease 1s":               "--lease",
		"--database-url postgres://x --blob-url b --role api --queues data": "--queues",
	} {
		var out, errs strings.Builder
		code := run(t.Context(), append([]string{"serve", "--data-dir", t.TempDir()}, strings.Fields(flags)...), &out, &errs, func(string) (string, bool) { return "", false })
		if code == 0 || !strings.Contains(errs.String(), want) {
			t.Errorf("%s: exit code %d, says %q, want %q in it", flags, code, errs.String(), want)
		}
	}
}

func TestClusterLimits(t *testing.T) {
	t.Parallel()
	actions := []fileops.Action{action("convert", "a", "image"), action("lock", "b", "pdf"), action("zip", "c", "archive")}
	given := map[string]int{"image": 3, "pdf": 2}
	every := clusterConfig{role: roleAll, queues: []string{"image", "pdf", "archive"}}
	if got := every.limits(nil, actions); got != nil {
		t.Errorf("%+v: limits are %v, want none", every, got)
	}
	for _, c := range []struct {
		cfg  clusterConfig
		want map[string]int
	}{
		{clusterConfig{role: roleAll}, given},
		{clusterConfig{role: roleAPI}, map[string]int{}},
		{clusterConfig{role: roleWorker, queues: []string{"image", "archive"}}, map[string]int{"image": 3, "pdf": 0}},
	} {
		if got := c.cfg.limits(given, actions); !maps.Equal(got, c.want) || (got == nil) != (c.want == nil) {
			t.Errorf("%+v: limits are %v, want %v", c.cfg, got, c.want)
		}
	}
}
