package fileops_test

import (
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

func TestFile(t *testing.T) {
	t.Parallel()
	mem := fileops.Bytes("some/dir/report.PDF", []byte("hello"))
	if mem.Name() != "report.PDF" || mem.Size() != 5 || mem.Format() != format.PDF {
		t.Errorf("got %s, %d, %s", mem.Name(), mem.Size(), mem.Format())
	}
	if b, ok := mem.Bytes(); !ok || string(b) != "hello" {
		t.Errorf("got %q, %v", b, ok)
	}
	if p, ok := mem.Path(); ok || p != "" {
		t.Errorf("got %q, %v", p, ok)
	}
	path := writeFile(t, "x.txt", "from disk")
	disk := fileops.Path(path)
	if disk.Name() != "x.txt" || disk.Format() != format.TXT {
		t.Errorf("got %s, %s", disk.Name(), disk.Format())
	}
	if p, ok := disk.Path(); !ok || p != path {
		t.Errorf("got %q, %v", p, ok)
	}
	if b, ok := disk.Bytes(); ok || b != nil {
		t.Errorf("got %q, %v", b, ok)
	}
	named := disk.Named("other/dir/y.csv")
	if named.Name() != "y.csv" || named.Format() != format.CSV || disk.Name() != "x.txt" {
		t.Errorf("got %s, and %s", named.Name(), disk.Name())
	}
	if p, ok := named.Path(); !ok || p != path {
		t.Errorf("got %q, %v", p, ok)
	}
	empty := fileops.Bytes("e", nil)
	if b, ok := empty.Bytes(); !ok || len(b) != 0 || empty.Size() != 0 {
		t.Errorf("got %q, %v", b, ok)
	}
}

func TestFileReaders(t *testing.T) {
	t.Parallel()
	const content = "0123456789"
	_, err := runJob(t, func(job *fileops.Job) error {
		for _, f := range job.Inputs {
			if f.Size() != int64(len(content)) {
				t.Errorf("%s has %d bytes", f.Name(), f.Size())
			}
			a, b := f.Reader(), f.Reader()
			if _, err := a.Seek(5, io.SeekStart); err != nil {
				return err
			}
			x, err1 := io.ReadAll(a)
			y, err2 := io.ReadAll(b)
			if string(x) != "56789" || string(y) != content || err1 != nil || err2 != nil {
				t.Errorf("%s: readers are not independent: %q, %q", f.Name(), x, y)
			}
			buf := make([]byte, 20)
			if n, err := f.Reader().ReadAt(buf, 8); n != 2 || err != io.EOF {
				t.Errorf("%s: ReadAt gives %d, %v", f.Name(), n, err)
			}
			if got, err := f.ReadAll(10); err != nil || string(got) != content {
				t.Errorf("%s: %q, %v", f.Name(), got, err)
			}
			if got, err := f.ReadAll(9); !errors.Is(err, fileops.ErrLimit) || got != nil || !strings.Contains(fileops.Message(err), "10 bytes") {
				t.Errorf("%s: %q, %v", f.Name(), got, err)
			}
		}
		return job.WriteBytes("r.txt", []byte("x"))
	}, fileops.Bytes("mem.txt", []byte(content)), fileops.Path(writeFile(t, "disk.txt", content)))
	systest.Check(t, err)
}

func TestNames(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in          string
		to          format.Format
		page, total int
		want        string
	}{
		{"report.pdf", format.PNG, 1, 1, "report.png"},
		{"report.pdf", format.PNG, 1, 0, "report.png"},
		{"report.pdf", format.PNG, 1, 2, "report-001.png"},
		{"report.pdf", format.PNG, 12, 999, "report-012.png"},
		{"report.pdf", format.PNG, 12, 1000, "report-0012.png"},
		{"report.pdf", format.PNG, 12345, 12345, "report-12345.png"},
		{"a.tar.gz", format.ZIP, 1, 1, "a.zip"},
		{"noext", format.PDF, 2, 3, "noext-002.pdf"},
		{".profile", format.TXT, 1, 1, ".profile.txt"},
		{"Überblick 2026.v2.docx", format.PDF, 1, 1, "Überblick 2026.v2.pdf"},
		{"/some/dir/x.doc", format.TarGZ, 1, 1, "x.tar.gz"},
	} {
		f := fileops.Bytes(tt.in, nil)
		if got := fileops.PageName(f, tt.to, tt.page, tt.total); got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.in, got, tt.want)
		}
		if got := fileops.ResultName(f, tt.to); tt.total <= 1 && got != tt.want {
			t.Errorf("%s: got %s, want %s", tt.in, got, tt.want)
		}
	}
}
