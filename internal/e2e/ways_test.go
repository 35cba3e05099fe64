//go:build linux

package e2e

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// Every way in refuses the same mistake with the same slug, names the same parameter, and leaves
// nothing: an operation, an operation of several steps, and one call.
func TestSameErrors(t *testing.T) {
	t.Parallel()
	s := startLean(t, filepath.Join(t.TempDir(), "data"))
	text := []byte("a,b\n1,2\n")
	keys := make(map[string]string)
	for _, name := range []string{"a.csv", "a.png", "a.unknown"} {
		keys[name] = s.upload(t, name, text, 1)
	}
	before := len(slices.DeleteFunc(s.dataFiles(t), s.lasting))
	for _, tt := range []struct {
		name, slug, param string
		action            string
		file              string
		params            map[string]any
	}{
		{"unknown action", "unsupported_operation", "action", "fold", "a.csv", nil},
		{"action not for the file", "unsupported_operation", "action", "unlock", "a.csv", map[string]any{"password": "x"}},
		{"unknown format", "unsupported_operation", "action", "convert", "a.unknown", map[string]any{"convert_to": "json"}},
		{"parameter missing", "invalid_request", "parameters.convert_to", "convert", "a.csv", nil},
		{"target not for the file", "unsupported_operation", "parameters.convert_to", "convert", "a.csv", map[string]any{"convert_to": "mp3"}},
		{"unknown parameter", "unsupported_operation", "parameters.shade", "convert", "a.csv", map[string]any{"convert_to": "json", "shade": "red"}},
		{"value not allowed", "unsupported_operation", "parameters.quality", "convert", "a.png", map[string]any{"convert_to": "jpg", "quality": 500}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			query := url.Values{"file_name": {tt.file}}
			for name, v := range tt.params {
				query.Set(name, fmt.Sprint(v))
			}
			resp := s.call(t, tt.action+"?"+query.Encode(), bytes.NewReader(text))
			raw, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			systest.NoError(t, err)
			call := &response{status: resp.StatusCode, raw: raw}
			systest.NoError(t, json.Unmarshal(raw, &call.body))
			for way, r := range map[string]*response{
				"do":    s.request(t, "POST", "/api/v1/do", map[string]any{"action": tt.action, "file_keys": []string{keys[tt.file]}, "parameters": tt.params}),
				"steps": s.request(t, "POST", "/api/v1/do", map[string]any{"file_keys": []string{keys[tt.file]}, "steps": []map[string]any{step(tt.action, tt.params)}}),
				"run":   call,
			} {
				if r.status != 400 || r.str("error") != tt.slug || strings.TrimPrefix(r.str("param"), "steps[0].") != tt.param {
					t.Errorf("%s: %d %s, want 400 %s for %s", way, r.status, r.raw, tt.slug, tt.param)
				}
			}
		})
	}
	systest.Until(t, "the files of the calls are deleted", func() bool {
		return len(slices.DeleteFunc(s.dataFiles(t), s.lasting)) == before
	})
	if r := s.want(t, 200, "", "GET", "/api/v1/operations", nil); len(r.body["operations"].([]any)) != 0 {
		t.Errorf("refused operations are listed: %s", r.raw)
	}
}
