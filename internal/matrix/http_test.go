package matrix_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/internal/systest"
)

// GET /formats, supported-operation and the matrix agree.
func TestServiceLists(t *testing.T) {
	t.Parallel()
	svc, err := httpapi.New(httpapi.Config{Actions: set.Actions(), Auth: httpapi.StaticKeys("k")})
	systest.NoError(t, err)
	srv := httptest.NewServer(svc)
	defer srv.Close()
	var table struct {
		Formats []struct {
			Ext     string
			Actions map[string]struct {
				Engines    []string
				Parameters map[string]any
				SameFormat []string `json:"same_format"`
			}
		}
	}
	call(t, srv, "GET", "/api/v1/formats", "", &table)
	got := make(map[string]bool)
	for _, f := range table.Formats {
		from := format.Format(f.Ext)
		if from == format.Any {
			f.Ext = "of-no-known-kind"
		}
		var overview struct {
			Available []string `json:"available_actions"`
		}
		call(t, srv, "POST", "/api/v1/supported-operation", fmt.Sprintf(`{"ext":%q}`, f.Ext), &overview)
		actions := slices.Sorted(maps.Keys(f.Actions))
		if from != format.Any { // actions for every file are listed once
			actions = slices.Compact(slices.Sorted(slices.Values(append(actions, "zip"))))
		}
		if !slices.Equal(actions, overview.Available) {
			t.Errorf("%s: formats lists %v, supported-operation %v", f.Ext, actions, overview.Available)
		}
		for action, a := range f.Actions {
			var one struct {
				Supported  bool
				Parameters map[string]any
			}
			call(t, srv, "POST", "/api/v1/supported-operation", fmt.Sprintf(`{"ext":%q,"action":%q}`, f.Ext, action), &one)
			if !one.Supported || len(one.Parameters)+len(a.Parameters) > 0 && !reflect.DeepEqual(one.Parameters, a.Parameters) {
				t.Errorf("%s %s: formats says %v, supported-operation %v", action, f.Ext, a.Parameters, one.Parameters)
			}
			values := []any{""}
			for _, p := range []string{"convert_to", "compression_value"} {
				if v, ok := a.Parameters[p].([]any); ok {
					values = v
				}
			}
			for _, v := range values {
				got[key(action, from, v.(string))] = true
			}
			if len(a.SameFormat) > 0 {
				got[key(action, from, f.Ext)] = true
			}
		}
	}
	want := make(map[string]bool) // several cells may differ only in their parameters
	for _, c := range cells {
		want[key(c.Action, c.From, c.Value)] = true
	}
	for k := range want {
		if !got[k] {
			t.Errorf("not in formats: %s", k)
		}
	}
	for k := range got {
		if !want[k] {
			t.Errorf("only in formats: %s", k)
		}
	}
}

func call(t *testing.T, srv *httptest.Server, method, path, body string, v any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, srv.URL+path, strings.NewReader(body))
	systest.NoError(t, err)
	req.Header.Set("Authorization", "Bearer k")
	req.Header.Set("Content-Type", "application/json")
	resp, err := srv.Client().Do(req)
	systest.NoError(t, err)
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != 200 {
		t.Fatalf("%s %s: %d %s (%v)", method, path, resp.StatusCode, b, err)
	}
	systest.NoError(t, json.Unmarshal(b, v))
}
