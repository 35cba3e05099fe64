package pdfops_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/internal/systest"
)

// TestLargeFiles compares the results of a document whose streams stay in the file with
// those of the same document in memory.
func TestLargeFiles(t *testing.T) {
	t.Parallel()
	// Nobody decodes it, and qpdf does not recompress it.
	picture := strings.Repeat("not a photo ", 10_000)
	in := handmade("1.4",
		"<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R 4 0 R]/Count 2>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 5 0 R/Resources<</XObject<</P 6 0 R>>>>>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 7 0 R>>",
		stream("", "/P Do"),
		stream("/Type/XObject/Subtype/Image/Width 99/Height 99/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter/DCTDecode", picture),
		stream("", "0 0 100 100 re f"))
	save := func(name string, b []byte) *fileops.File {
		path := filepath.Join(t.TempDir(), name)
		systest.NoError(t, os.WriteFile(path, b, 0o600))
		return fileops.Path(path)
	}
	tools := pdfops.Tools{QPDF: findQPDF(t)}.Large(100 << 10)
	plain := save("in.pdf", in)
	for name, c := range map[string]struct {
		action fileops.Action
		args   fileops.Args
		small  []*fileops.File
	}{
		"rotate":  {tools.Rotate(), fileops.Args{"angle": 90}, nil},
		"split":   {tools.Split(), nil, nil},
		"extract": {tools.ExtractPages(), fileops.Args{"pages": "2,1"}, nil},
		"merge":   {tools.Merge(), nil, []*fileops.File{pdf("small.pdf", simple("small"))}},
		"inspect": {tools.Inspect(), nil, nil},
	} {
		want, err := try(t.Context(), t, c.action, c.args, append([]*fileops.File{pdf("in.pdf", in)}, c.small...)...)
		systest.NoError(t, err)
		got, err := try(t.Context(), t, c.action, c.args, append([]*fileops.File{plain}, c.small...)...)
		systest.NoError(t, err)
		if len(got) != len(want) {
			t.Fatalf("%s: %d results, want %d", name, len(got), len(want))
		}
		for i := range want {
			if !bytes.Equal(content(t, got[i]), content(t, want[i])) {
				t.Errorf("%s: result %d differs", name, i)
			}
		}
	}
	locked := save("in.pdf", content(t, run(t, tools.Lock(), fileops.Args{"password": "key"}, plain)))
	fails(t, fileops.ErrPasswordRequired, tools.Rotate(), fileops.Args{"angle": 90}, locked)
	fails(t, fileops.ErrWrongPassword, tools.Rotate(), fileops.Args{"angle": 90, "password": "no"}, locked)
	for name, from := range map[string]pdfops.Tools{"qpdf": tools, "in memory": pdfops.Tools{}.Large(100 << 10)} {
		out, warnings := withWarnings(t, from.ExtractPages(), fileops.Args{"pages": "1", "password": "key"}, locked)
		if b := content(t, out); !bytes.Contains(b, []byte(picture)) {
			t.Errorf("%s: the picture of the locked file is missing", name)
		}
		if len(warnings) != 1 || warnings[0] != fileops.WarnProtectionRemoved {
			t.Errorf("%s: warnings %v", name, warnings)
		}
	}
	damaged := save("in.pdf", bytes.Replace(in, []byte("startxref"), []byte("startxxxx"), 1))
	if out := run(t, tools.Rotate(), fileops.Args{"angle": 90}, damaged); !bytes.Contains(content(t, out), []byte(picture)) {
		t.Error("the picture of the damaged file is missing")
	}
}
