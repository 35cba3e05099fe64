package format_test

import (
	"mime"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops/format"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in   string
		want format.Format
		base string
	}{
		{"report.pdf", format.PDF, "report"},
		{"report.PDF", format.PDF, "report"},
		{".jpeg", format.JPG, ".jpeg"},
		{"jpeg", format.JPG, "jpeg"},
		{"JPE", format.JPG, "JPE"},
		{"a.tif", format.TIFF, "a"},
		{"a.htm", format.HTML, "a"},
		{"a.mpg", format.MPEG, "a"},
		{"a.m2ts", format.TS, "a"},
		{"a.qt", format.MOV, "a"},
		{"a.heif", format.HEIC, "a"},
		{"a.markdown", format.MD, "a"},
		{"a.tar.gz", format.TarGZ, "a"},
		{"a.TAR.GZ", format.TarGZ, "a"},
		{"tar.gz", format.TarGZ, "tar"},
		{".tar.gz", format.TarGZ, ".tar"},
		{"a.tgz", format.TarGZ, "a"},
		{"a.tar.BZ2", format.TarBZ2, "a"},
		{"a.b.tar.xz", format.TarXZ, "a.b"},
		{".tar.zst", format.TarZst, ".tar"},
		{"a.tbz2", format.TarBZ2, "a"},
		{"a.txz", format.TarXZ, "a"},
		{"a.xz", format.XZ, "a"},
		{"guitar.xz", format.XZ, "guitar"},
		{"a.gz", format.GZ, "a"},
		{"a.b.c.docx", format.DOCX, "a.b.c"},
		{"/etc/passwd.d/x.png", format.PNG, "x"},
		{`C:\Users\me\x.png`, format.PNG, "x"},
		{"dir.pdf/file", "file", "file"},
		{"Makefile", "makefile", "Makefile"},
		{".profile", "profile", ".profile"},
		{"name.", "", "name"},
		{"", "", ""},
		{".", "", "."},
		{"..", "", "."},
		{"a. pdf ", " pdf", "a"},
		{" a.pdf ", format.PDF, " a"},
		{"Äpfel.ODT", format.ODT, "Äpfel"},
		{"x.unknown", "unknown", "x"},
	} {
		t.Run(tt.in, func(t *testing.T) {
			t.Parallel()
			if got := format.Parse(tt.in); got != tt.want {
				t.Errorf("Parse: got %q, want %q", got, tt.want)
			}
			if got := format.Base(tt.in); got != tt.base {
				t.Errorf("Base: got %q, want %q", got, tt.base)
			}
		})
	}
}

// The table is consistent.
func TestKnown(t *testing.T) {
	t.Parallel()
	families := []format.Family{format.Document, format.Slides, format.Sheet, format.Image, format.Audio, format.Video, format.Archive}
	var all []format.Format
	taken := make(map[format.Format]format.Format)
	titles := make(map[string]format.Format)
	for f := range format.Known() {
		all = append(all, f)
		if !f.Known() || f == format.Any {
			t.Errorf("%s: Known says no, or it is Any", f)
		}
		if got := format.Parse(string(f)); got != f {
			t.Errorf("%s is parsed as %s", f, got)
		}
		if !slices.Contains(families, f.Family()) {
			t.Errorf("%s is of the family %q", f, f.Family())
		}
		major, minor, ok := strings.Cut(f.MIME(), "/")
		if mt, params, err := mime.ParseMediaType(f.MIME()); !ok || minor == "" || err != nil || mt != f.MIME() || len(params) > 0 {
			t.Errorf("%s has the type %q", f, f.MIME())
		}
		if fam := string(f.Family()); (fam == "image" || fam == "audio" || fam == "video") && major != fam {
			t.Errorf("%s: %s of the family %s", f, f.MIME(), fam)
		}
		if f.Title() == "" || titles[f.Title()] != "" {
			t.Errorf("%s has the title %q, as has %q", f, f.Title(), titles[f.Title()])
		}
		titles[f.Title()] = f
		for _, a := range append(f.Aliases(), f) {
			if other, ok := taken[a]; ok {
				t.Errorf("extension %s belongs to %s and %s", a, other, f)
			}
			taken[a] = f
			if got := format.Parse("x." + strings.ToUpper(string(a))); got != f {
				t.Errorf("extension %s is parsed as %s, want %s", a, got, f)
			}
			if a != f && a.Known() {
				t.Errorf("%s is an alias and a format", a)
			}
		}
	}
	if !slices.IsSorted(all) || len(all) < 50 {
		t.Errorf("Known yields %v", all)
	}
	n := 0
	for range format.Known() {
		if n++; n == 3 {
			break
		}
	}
	if n != 3 {
		t.Error("the loop over Known does not stop")
	}
}

func TestUnknown(t *testing.T) {
	t.Parallel()
	for _, f := range []format.Format{"", "xyz", format.Any, "PDF"} {
		if f.Known() || f.Family() != format.Other || f.MIME() != "application/octet-stream" || len(f.Aliases()) > 0 || f.Title() != strings.ToUpper(string(f)) {
			t.Errorf("%q: known %v, %s, %s, %q", f, f.Known(), f.Family(), f.MIME(), f.Title())
		}
	}
}

// Callers may modify the result.
func TestAliasesAreCopied(t *testing.T) {
	t.Parallel()
	format.JPG.Aliases()[0] = "changed"
	if got := format.JPG.Aliases()[0]; got != "jpeg" {
		t.Errorf("got %q", got)
	}
}

func TestMIME(t *testing.T) {
	t.Parallel()
	for ext, want := range map[string]string{
		"pdf": "application/pdf", "doc": "application/msword", "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
		"xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "PPTX": "application/vnd.openxmlformats-officedocument.presentationml.presentation",
		"odt": "application/vnd.oasis.opendocument.text", "epub": "application/epub+zip", "csv": "text/csv", "md": "text/markdown", "htm": "text/html",
		"log": "text/plain", "jpeg": "image/jpeg", "svg": "image/svg+xml", "heic": "image/heic", "jxl": "image/jxl", "ico": "image/vnd.microsoft.icon",
		"mp3": "audio/mpeg", "m4a": "audio/mp4", "flac": "audio/flac", "mp4": "video/mp4", "mov": "video/quicktime", "mkv": "video/x-matroska", "webm": "video/webm",
		"3gp": "video/3gpp", "m2ts": "video/mp2t", "zip": "application/zip", "tgz": "application/gzip", "7z": "application/x-7z-compressed", "rar": "application/vnd.rar",
		"exe": "application/octet-stream",
	} {
		if got := format.Parse(ext).MIME(); got != want {
			t.Errorf("%s: got %s, want %s", ext, got, want)
		}
	}
}
