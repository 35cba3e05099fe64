package matrix

import (
	"bytes"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops/format"
)

// The list has 60 formats, and each pair that is missing has a reason.
func TestBreadth(t *testing.T) {
	t.Parallel()
	seen := make(map[format.Format]bool)
	for _, f := range fields() {
		for _, from := range f.from {
			seen[from] = true
		}
	}
	if len(seen) != 60 {
		t.Errorf("%d formats", len(seen))
	}
	var b bytes.Buffer
	breadth(&b, []Cell{{Action: "convert", From: "zip", Param: convertTo, Value: "7z"}, {Action: "convert", From: "pdf", Param: convertTo, Value: "png"}})
	for _, want := range []string{"| Archives | zip rar 7z tar tar.gz tar.bz2 | zip 7z tar tar.gz tar.bz2 rar | 1 of 30 |", "zip 7z tar tar.gz tar.bz2 → rar: No free program", "| All |  |  | 2 of "} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("%q is not in\n%s", want, &b)
		}
	}
}

func TestGapsHaveReasons(t *testing.T) {
	t.Parallel()
	for from, to := range map[format.Format]format.Format{"docx": "pages", "jpg": "psd", "odt": "mobi", "pdf": "psd", "xlsx": "txt"} {
		if why(from, to) == "" {
			t.Errorf("no reason for %s → %s", from, to)
		}
	}
	if r := why("jpg", "png"); r != "" {
		t.Errorf("a pair that exists has the reason %q", r)
	}
}
