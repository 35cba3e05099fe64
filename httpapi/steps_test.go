package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload"
)

// results keeps the names of the results in a file store.
type results struct {
	upload.Store
	mu    sync.Mutex
	names map[string]string // by key
}

func (r *results) Create(ctx context.Context, f *upload.File) (*upload.File, error) {
	g, err := r.Store.Create(ctx, f)
	if err == nil && f.Task != "" {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.names[f.Key] = f.Name
	}
	return g, err
}

func (r *results) Delete(ctx context.Context, key string) error {
	r.mu.Lock()
	delete(r.names, key)
	r.mu.Unlock()
	return r.Store.Delete(ctx, key)
}

// want waits until exactly the named results exist.
func (r *results) want(t *testing.T, names ...string) {
	t.Helper()
	systest.Until(t, fmt.Sprintf("the results are %q", names), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return slices.Equal(slices.Sorted(maps.Values(r.names)), names)
	})
}

// stepActions are actions for text: convert, which cuts a file at each "|" and fails for "bad";
// join, which takes all files; seal, which needs a password; hang.
func stepActions(seen chan<- string) []fileops.Action {
	act := func(name, family string, joint bool, formats []format.Format, params fileops.Schema, do func(context.Context, *fileops.Job) error) fileops.Action {
		return fileops.Func(fileops.Spec{
			Name: name, Engine: "go", Family: family, Summary: "Is for tests.", Joint: joint,
			Accepts: []fileops.Accept{{Formats: formats, Params: params}},
		}, do)
	}
	text, md := []format.Format{format.TXT}, []format.Format{format.MD}
	return []fileops.Action{
		act("convert", "cut", false, text, fileops.Schema{fileops.Enum("convert_to", "Target.", "md")}, func(_ context.Context, job *fileops.Job) error {
			b, err := job.Input().ReadAll(1 << 20)
			if err != nil {
				return err
			}
			if string(b) == "bad" {
				return fileops.Fail(fileops.ErrCorruptInput, nil, "the file is damaged")
			}
			job.Warn(fileops.WarnLinksDropped, "%s", job.Input().Name())
			for i, part := range strings.Split(string(b), "|") {
				if err := job.WriteBytes(fmt.Sprintf("%s-%d.md", strings.TrimSuffix(job.Input().Name(), ".txt"), i), []byte(part)); err != nil {
					return err
				}
			}
			return nil
		}),
		act("join", "join", true, md, nil, func(_ context.Context, job *fileops.Job) error {
			var all [][]byte
			for _, f := range job.Inputs {
				b, err := f.ReadAll(1 << 20)
				if err != nil {
					return err
				}
				all = append(all, b)
			}
			return job.WriteBytes("joined.md", bytes.Join(all, []byte("+")))
		}),
		act("seal", "seal", false, md, fileops.Schema{fileops.Secret("password", "Password.")}, func(_ context.Context, job *fileops.Job) error {
			b, err := job.Input().ReadAll(1 << 20)
			if err != nil {
				return err
			}
			job.Warn(fileops.WarnLayoutSimplified, "sealed")
			seen <- job.Params.Get("password")
			return job.WriteBytes("sealed-"+job.Input().Name(), append([]byte("sealed "), b...))
		}),
		act("hang", "hang", false, md, nil, func(ctx context.Context, _ *fileops.Job) error {
			seen <- "hangs"
			<-ctx.Done()
			return ctx.Err()
		}),
	}
}

func (a *api) steps(t *testing.T, keys []string, steps string, more string) (int, map[string]any) {
	t.Helper()
	list, err := json.Marshal(keys)
	systest.NoError(t, err)
	return a.call(t, "key-a", "POST", "/api/v1/do", fmt.Sprintf(`{"file_keys":%s,"steps":%s%s}`, list, steps, more))
}

func (a *api) final(t *testing.T, do map[string]any) map[string]any {
	t.Helper()
	_, m := a.call(t, "key-a", "GET", fmt.Sprintf("/api/v1/status/%s?wait=30s", do["main_task_id"]), "")
	return m
}

// stepStates returns the states of the steps in one text.
func stepStates(m map[string]any) string {
	var states []string
	for _, s := range m["steps"].([]any) {
		states = append(states, fmt.Sprint(s.(map[string]any)["action"], " ", s.(map[string]any)["status"]))
	}
	return strings.Join(states, ", ")
}

func stepService(t *testing.T, cfg httpapi.Config) (*api, *results, chan string) {
	seen := make(chan string, 100)
	files := &results{Store: new(upload.MemStore), names: make(map[string]string)}
	cfg.Actions, cfg.Files = stepActions(seen), files
	return serve(t, cfg), files, seen
}

func TestSteps(t *testing.T) {
	t.Parallel()
	ops := status.NewMemStore()
	a, files, seen := stepService(t, httpapi.Config{Operations: ops})
	one, two := a.upload(t, "key-a", "one.txt", "a|b"), a.upload(t, "key-a", "two.txt", "c")
	const steps = `[{"action":"CONVERT","parameters":{"convert_to":"md"}},{"action":"join"},{"action":"seal","parameters":{"password":"s3cret"}}]`
	st, do := a.steps(t, []string{one, two}, steps, `,"notes":{"n":"1"}`)
	if st != 200 {
		t.Fatalf("do: %d %v", st, do)
	}
	m := a.final(t, do)
	if m["operation_status"] != "completed" || m["action"] != "steps" || stepStates(m) != "convert completed, join completed, seal completed" || len(m["files_data"].([]any)) != 1 {
		t.Fatalf("%v", m)
	}
	f := first(m)
	if keys := fmt.Sprint(f["input_file_keys"]); keys != fmt.Sprint([]string{one, two}) || f["input_file_key"] != one || f["file_name"] != "sealed-joined.md" {
		t.Errorf("result %v", f)
	}
	var warned []string
	for _, w := range f["warnings"].([]any) {
		warned = append(warned, fmt.Sprint(w.(map[string]any)["message"]))
	}
	if fmt.Sprint(warned) != "[one.txt two.txt sealed]" {
		t.Errorf("warnings %q", warned)
	}
	if _, d := a.call(t, "", "GET", f["download_link"].(string), ""); d["raw"] != "sealed a+b+c" {
		t.Errorf("result %v", d)
	}
	if got := <-seen; got != "s3cret" {
		t.Errorf("password %q", got)
	}
	if strings.Contains(a.log.String(), "s3cret") {
		t.Error("the log has the password")
	}
	files.want(t, "sealed-joined.md")
	op, err := ops.Get(t.Context(), m["main_task_id"].(string))
	systest.NoError(t, err)
	if len(op.Args) != 0 || len(op.Items) != 4 {
		t.Errorf("operation %+v", op)
	}
	for _, key := range []string{op.Items[0].Results[0].Key, op.Items[2].Results[0].Key} {
		if st, _ := a.call(t, "key-a", "GET", "/v1/download/"+key, ""); st != 404 {
			t.Errorf("a result of a step: %d", st)
		}
	}

	// With keep the results of all steps stay, and the status shows them.
	_, do = a.steps(t, []string{one}, `[{"action":"convert","parameters":{"convert_to":"md"}},{"action":"join"}]`, `,"keep":true`)
	m = a.final(t, do)
	kept := m["steps"].([]any)[0].(map[string]any)["files_data"].([]any)
	if len(kept) != 2 || len(m["files_data"].([]any)) != 1 {
		t.Fatalf("%v", m)
	}
	if _, d := a.call(t, "", "GET", kept[1].(map[string]any)["download_link"].(string), ""); d["raw"] != "b" {
		t.Errorf("kept result %v", d)
	}
	files.want(t, "joined.md", "one-0.md", "one-1.md", "sealed-joined.md")

	// A single step, and one that makes several files of one.
	_, do = a.steps(t, []string{two, one}, `[{"action":"convert","parameters":{"convert_to":"md"}},{"action":"seal","parameters":{"password":"x"}}]`, "")
	m = a.final(t, do)
	var names []string
	for _, f := range m["files_data"].([]any) {
		names = append(names, fmt.Sprint(f.(map[string]any)["file_name"], " of ", f.(map[string]any)["input_file_key"]))
	}
	if want := fmt.Sprint([]string{"sealed-two-0.md of " + two, "sealed-one-0.md of " + one, "sealed-one-1.md of " + one}); fmt.Sprint(names) != want {
		t.Errorf("results %v, want %v", names, want)
	}
	_, do = a.steps(t, []string{two}, `[{"action":"convert","parameters":{"convert_to":"md"}}]`, "")
	if m = a.final(t, do); stepStates(m) != "convert completed" || first(m)["file_name"] != "two-0.md" {
		t.Errorf("%v", m)
	}
}

// A file that fails does not enter the next step. A joint step needs all files.
func TestStepsFailures(t *testing.T) {
	t.Parallel()
	a, files, _ := stepService(t, httpapi.Config{})
	bad, good := a.upload(t, "key-a", "bad.txt", "bad"), a.upload(t, "key-a", "good.txt", "good")
	const convert = `{"action":"convert","parameters":{"convert_to":"md"}}`
	_, do := a.steps(t, []string{bad, good}, `[`+convert+`,{"action":"seal","parameters":{"password":"x"}}]`, "")
	m := a.final(t, do)
	all := m["files_data"].([]any)
	if m["operation_status"] != "completed" || len(all) != 2 || first(m)["error_code"] != "corrupt_input" || first(m)["file_name"] != "bad.txt" ||
		all[1].(map[string]any)["file_name"] != "sealed-good-0.md" {
		t.Errorf("%v", m)
	}
	if st, p := a.call(t, "key-a", "GET", fmt.Sprintf("/api/v1/status/%s/%s", do["main_task_id"], good), ""); st != 200 || len(p["files_data"].([]any)) != 1 {
		t.Errorf("one file: %v", p)
	}
	files.want(t, "sealed-good-0.md")

	_, do = a.steps(t, []string{bad, good}, `[`+convert+`,{"action":"join"}]`, "")
	m = a.final(t, do)
	all = m["files_data"].([]any)
	joint := all[1].(map[string]any)
	if m["operation_status"] != "failed" || stepStates(m) != "convert completed, join failed" || len(all) != 2 || joint["error_code"] != "corrupt_input" ||
		joint["error_message"] != "step 2 (join) needs all files, and a file failed in step 1 (convert): the file is damaged" || joint["input_file_key"] != good {
		t.Errorf("%v", m)
	}
	_, do = a.steps(t, []string{bad}, `[`+convert+`,{"action":"join"}]`, "")
	if m = a.final(t, do); m["operation_status"] != "failed" || stepStates(m) != "convert failed, join failed" || len(m["files_data"].([]any)) != 1 {
		t.Errorf("%v", m)
	}
	files.want(t, "sealed-good-0.md")
}

// An operation can be cancelled within each step, and leaves no results of steps.
func TestStepsCancelled(t *testing.T) {
	t.Parallel()
	a, files, seen := stepService(t, httpapi.Config{Concurrency: map[string]int{"cut": 1, "hang": 1, "join": 1, "seal": 1}})
	key := a.upload(t, "key-a", "a.txt", "a|b")
	_, do := a.steps(t, []string{key}, `[{"action":"convert","parameters":{"convert_to":"md"}},{"action":"hang"},{"action":"join"}]`, "")
	<-seen
	path := fmt.Sprint("/api/v1/status/", do["main_task_id"])
	_, m := a.call(t, "key-a", "GET", path, "")
	if m["operation_status"] != "running" || stepStates(m) != "convert completed, hang running, join queued" || m["progress"] != 33.0 || len(m["files_data"].([]any)) != 2 || first(m)["file_key"] != key {
		t.Errorf("%v", m)
	}
	a.call(t, "key-a", "DELETE", path, "")
	m = a.final(t, do)
	if m["operation_status"] != "failed" || first(m)["error_code"] != "cancelled" || stepStates(m) != "convert completed, hang failed, join failed" {
		t.Errorf("%v", m)
	}
	files.want(t)
}

// Steps that do not fit are refused before anything is queued, and nothing is left.
func TestStepsRefused(t *testing.T) {
	t.Parallel()
	a, files, _ := stepService(t, httpapi.Config{Limits: httpapi.Limits{Steps: 3}})
	key := a.upload(t, "key-a", "a.txt", "a")
	const convert = `{"action":"convert","parameters":{"convert_to":"md"}}`
	for _, tt := range []struct{ steps, more, slug, param, message string }{
		{`[]`, "", "invalid_request", "steps", "at least one"},
		{`[` + convert + `]`, `,"action":"convert"`, "invalid_request", "action", "steps replace"},
		{`[` + convert + `]`, `,"parameters":{"x":1}`, "invalid_request", "parameters", "steps replace"},
		{`[` + strings.Repeat(convert+",", 3) + convert + `]`, "", "invalid_request", "steps", "at most 3 steps"},
		{`[` + convert + `,{}]`, "", "invalid_request", "steps[1].action", "needs an action"},
		{`[` + convert + `,{"action":" "}]`, "", "invalid_request", "steps[1].action", "needs an action"},
		{`[` + convert + `,7]`, "", "invalid_request", "steps[1]", "steps[1] must be an object, not a number"},
		{`{}`, "", "invalid_request", "steps", "must be an array"},
		{`[{"action":"join"}]`, "", "unsupported_operation", "steps[0].action", "step 1 (join) does not accept txt; it accepts md"},
		{`[` + convert + `,` + convert + `]`, "", "unsupported_operation", "steps[1].action", "step 2 (convert) does not accept md from step 1 (convert); it accepts txt"},
		{`[` + convert + `,{"action":"fly"}]`, "", "unsupported_operation", "steps[1].action", `step 2 (fly)`},
		{`[` + convert + `,{"action":"seal"}]`, "", "invalid_request", "steps[1].parameters.password", `step 2 (seal): parameter "password"`},
		{`[{"action":"convert","parameters":{"convert_to":"pdf"}}]`, "", "unsupported_operation", "steps[0].parameters.convert_to", "must be one of: md"},
	} {
		st, m := a.steps(t, []string{key}, tt.steps, tt.more)
		if st != 400 || m["error"] != tt.slug || m["param"] != tt.param || !strings.Contains(fmt.Sprint(m["message"]), tt.message) {
			t.Errorf("%s%s: %d %v", tt.steps, tt.more, st, m)
		}
	}
	if st, m := a.steps(t, []string{key}, `[`+convert+`,`+convert+`]`, ""); st != 400 || fmt.Sprint(m["allowed"]) != "[txt]" {
		t.Errorf("allowed %v", m["allowed"])
	}
	if st, m := a.steps(t, []string{key, "aaaaaaaaaaaaaaaaaaaaaaaaaa"}, `[`+convert+`]`, ""); st != 404 || m["param"] != "file_keys[1]" {
		t.Errorf("%d %v", st, m)
	}
	if _, m := a.call(t, "key-a", "GET", "/api/v1/operations", ""); len(m["operations"].([]any)) != 0 {
		t.Errorf("refused requests left operations: %v", m)
	}
	files.want(t)

	// supported-operation gives the same answers.
	for steps, want := range map[string]string{
		`[` + convert + `,{"action":"JOIN"}]`: "true <nil>",
		`[` + convert + `,` + convert + `]`:   "false step 2 (convert) does not accept md from step 1 (convert); it accepts txt",
	} {
		st, m := a.call(t, "key-a", "POST", "/api/v1/supported-operation", `{"ext":"txt","steps":`+steps+`}`)
		if got := fmt.Sprint(m["supported"], " ", m["reason"]); st != 200 || got != want {
			t.Errorf("%s: %d %s, want %s", steps, st, got, want)
		}
	}
	if st, m := a.call(t, "key-a", "POST", "/api/v1/supported-operation", `{"ext":"txt","steps":[]}`); st != 400 || m["param"] != "steps" {
		t.Errorf("no steps: %d %v", st, m)
	}
}
