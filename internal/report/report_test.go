package report_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/report"
	"github.com/filewright/filewright/internal/systest"
)

// write returns the JSON of a report about a text, after change.
func write(t *testing.T, change func(*report.Report)) map[string]any {
	t.Helper()
	a := fileops.Func(report.Spec("go", "data", "Describes.", []format.Format{format.TXT}), func(_ context.Context, job *fileops.Job) error {
		r := report.New(job)
		change(r)
		return r.Write(job)
	})
	var out map[string]any
	systest.NoError(t, fileops.Run(t.Context(), a, nil, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		if f.Name() != "notes.json" {
			t.Errorf("the result is %s", f.Name())
		}
		b, err := io.ReadAll(f.Reader())
		systest.NoError(t, err)
		return json.Unmarshal(b, &out)
	}), fileops.Bytes("notes.txt", []byte("hello"))))
	return out
}

func TestKeys(t *testing.T) {
	t.Parallel()
	got := write(t, func(*report.Report) {})
	if want := "map[bytes:5 encrypted:false format:txt media_type:text/plain metadata:map[]]"; fmt.Sprint(got) != want {
		t.Errorf("got %v, want %s", got, want)
	}
}

func TestMetadata(t *testing.T) {
	t.Parallel()
	got := write(t, func(r *report.Report) {
		r.Set("title", " A <b> & c\xff ")
		r.Set("empty", " ")
		r.Set("long", strings.Repeat("ä", 5000))
		for i := range 300 {
			r.Set(fmt.Sprint("key ", i), "v")
		}
	})["metadata"].(map[string]any)
	if got["title"] != "A <b> & c\ufffd" || got["empty"] != nil || len(got) != 200 {
		t.Errorf("title %q, empty %v, %d values", got["title"], got["empty"], len(got))
	}
	if s := got["long"].(string); len(s) != 4000 || strings.Trim(s, "ä") != "" {
		t.Errorf("%d bytes of a long value", len(s))
	}
	for in, want := range map[string]string{
		"D:20240229130501+01'00'": "2024-02-29T13:05:01+01:00", "D:20240229130501Z": "2024-02-29T13:05:01Z", "D:20240229130501-08'00": "2024-02-29T13:05:01-08:00", "D:2024": "2024-01-01T00:00:00Z",
		"2024-02-29T13:05:01Z": "2024-02-29T13:05:01Z", "2024-02-29T13:05:01.5": "2024-02-29T13:05:01Z", "2024-02-29": "2024-02-29T00:00:00Z", "2011": "2011-01-01T00:00:00Z",
		"yesterday": "", "D:x": "", "": "", "2024-13-01": "",
	} {
		got := write(t, func(r *report.Report) { r.SetTime("t", in) })["metadata"].(map[string]any)["t"]
		if s, _ := got.(string); s != want {
			t.Errorf("%q is %q, want %q", in, s, want)
		}
	}
}
