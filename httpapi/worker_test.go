package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/memblob"
)

// metric returns the sum of the metrics whose lines match a pattern.
func (a *api) metric(t *testing.T, pattern string) float64 {
	t.Helper()
	sum, _ := a.metrics(t, pattern)
	return sum
}

// metrics also reports whether there is such a metric.
func (a *api) metrics(t *testing.T, pattern string) (sum float64, ok bool) {
	t.Helper()
	resp, err := http.Get(a.URL + "/metrics")
	systest.NoError(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	systest.NoError(t, err)
	for _, m := range regexp.MustCompile(`(?m)^`+pattern+` (\S+)$`).FindAllStringSubmatch(string(body), -1) {
		f, err := strconv.ParseFloat(m[1], 64)
		systest.NoError(t, err)
		sum, ok = sum+f, true
	}
	return sum, ok
}

// away is a store that is unavailable for a while.
type away struct {
	*memblob.Store
	left atomic.Int32 // calls that fail
}

func (s *away) Open(ctx context.Context, key string) (blob.Object, error) {
	if s.left.Add(-1) >= 0 {
		return nil, fmt.Errorf("get: %w", blob.ErrUnavailable)
	}
	return s.Store.Open(ctx, key)
}

// A store stays unavailable for more attempts than MaxAttempts. No attempt counts, and the status
// says why the file waits.
func TestStoreAway(t *testing.T) {
	t.Parallel()
	store := &away{Store: memblob.New()}
	ops := status.NewMemStore()
	a := serve(t, httpapi.Config{Blobs: store, Operations: ops, Limits: httpapi.Limits{MaxAttempts: 1}})
	a.learn(t)
	key := a.upload(t, "key-a", "a.txt", "hello")
	store.left.Store(3)
	_, m := a.call(t, "key-a", "POST", "/api/v1/do", fmt.Sprintf(`{"action":"convert","file_keys":[%q],"parameters":{"convert_to":"md"}}`, key))
	id := m["main_task_id"].(string)
	for waits := 0; ; time.Sleep(20 * time.Millisecond) {
		_, m = a.call(t, "key-a", "GET", "/api/v1/status/"+id, "")
		if w, ok := first(m)["waiting"].(map[string]any); ok {
			if waits++; w["reason"] != status.WaitStorage || w["since"] == nil {
				t.Errorf("it waits for %v", w)
			}
			if n := a.metric(t, `filewright_items_waiting\{family="text",reason="storage_unavailable"\}`); waits == 60 && n != 1 {
				t.Errorf("%v items wait, want 1", n) // the metrics are at most a second old
			}
		}
		if m["operation_status"] != "queued" && m["operation_status"] != "running" {
			if waits == 0 {
				t.Error("the status did not say that it waits")
			}
			break
		}
	}
	op, err := ops.Get(t.Context(), id)
	if err != nil || op.State != status.Completed || op.Items[0].Attempt != 1 || op.Items[0].Claims != 4 || op.Items[0].Clean != 3 {
		t.Errorf("%+v, %v", op, err)
	}
	if n := a.metric(t, `filewright_item_waits_total\{reason="storage_unavailable"\}`); n != 3 {
		t.Errorf("%v waits are counted, want 3", n)
	}
	if n := a.metric(t, `filewright_item_failures_total\{.*\}`); n != 0 {
		t.Errorf("%v failures are counted, want none", n)
	}
}

// A cancelled item has not failed.
func TestCancelIsNoFailure(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{Concurrency: map[string]int{"text": 1}})
	key := a.upload(t, "key-a", "h.txt", "x")
	_, m := a.call(t, "key-a", "POST", "/api/v1/do", fmt.Sprintf(`{"action":"convert","file_keys":[%q],"parameters":{"convert_to":"md","mode":"hang"}}`, key))
	path := "/api/v1/status/" + m["main_task_id"].(string)
	for m["operation_status"] != "running" {
		_, m = a.call(t, "key-a", "GET", path, "")
	}
	a.call(t, "key-a", "DELETE", path, "")
	if _, m = a.call(t, "key-a", "GET", path+"?wait=20s", ""); first(m)["error_code"] != "cancelled" {
		t.Fatalf("%v", m)
	}
	if m := a.convert(t, "key-a", `{"convert_to":"md"}`); m["operation_status"] != "completed" { // the only slot is free again
		t.Errorf("%v", m)
	}
	if n := a.metric(t, `filewright_item_failures_total\{.*\}`); n != 0 {
		t.Errorf("%v failures are counted, want none", n)
	}
	if n := a.metric(t, `filewright_item_attempts_lost_total\{.*\}`); n != 0 {
		t.Errorf("%v attempts are counted as lost, want none", n)
	}
}

// crash is the error of a crashed engine.
type crash struct{}

func (crash) Error() string { return "killed by SIGSEGV" }
func (crash) Crashed() bool { return true }

// Each engine crash counts as an attempt of the file. The file fails with the error code of the
// first crash.
func TestCrashingFile(t *testing.T) {
	t.Parallel()
	var runs atomic.Int32
	spec := fileops.Spec{Name: "convert", Engine: "go", Family: "text", Summary: "Dies.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}, Params: fileops.Schema{fileops.Enum("convert_to", "Target.", "md")}}}}
	a := serve(t, httpapi.Config{Limits: httpapi.Limits{MaxAttempts: 2}, Actions: []fileops.Action{fileops.Func(spec, func(context.Context, *fileops.Job) error {
		runs.Add(1)
		return fileops.Fail(fileops.ErrEngine, errors.Join(crash{}, errors.New("EOF")), "")
	})}})
	if m := a.convert(t, "key-a", `{"convert_to":"md"}`); m["operation_status"] != "failed" || first(m)["error_code"] != "engine_failed" {
		t.Errorf("%v", m)
	}
	if runs.Load() != 2 {
		t.Errorf("it ran %d times, want 2", runs.Load())
	}
	if n := a.metric(t, `filewright_item_attempts_lost_total\{reason="crash"\}`); n != 2 {
		t.Errorf("%v attempts are counted as lost, want 2", n)
	}
}
