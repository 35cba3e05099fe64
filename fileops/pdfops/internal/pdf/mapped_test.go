//go:build unix

package pdf

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/internal/systest"
)

func mapBytes(t *testing.T, b []byte) *Mapping {
	t.Helper()
	path := filepath.Join(t.TempDir(), "in.pdf")
	systest.NoError(t, os.WriteFile(path, b, 0o600))
	m, err := Map(path)
	systest.NoError(t, err)
	t.Cleanup(func() { systest.Check(t, m.Close()) })
	return m
}

// TestMapped compares documents whose streams stay in the file with those that pdfcpu reads into memory.
func TestMapped(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", 1000)
	stream := func(dict, content string) string {
		return fmt.Sprintf("<<%s>>\nstream\n%s\nendstream", dict, content)
	}
	direct := stream(fmt.Sprintf("/Length %d", len(long)), long)
	for name, c := range map[string]struct {
		file  []byte
		inMap int  // streams that stay in the file
		cut   bool // a stream is longer than its Length
	}{
		"direct":          {fileOf("1.7", direct), 1, false},
		"several":         {fileOf("1.7", direct, stream("/Length 3", "abc"), direct), 2, false},
		"indirect":        {fileOf("1.7", stream("/Length LEN", long), fmt.Sprint(len(long))), 1, false},
		"indirect before": {fileOf("1.7", fmt.Sprint(len(long)), stream("/Length 4 0 R", long)), 0, false},
		"indirect wrong":  {fileOf("1.7", stream("/Length LEN", long), "17"), 0, true},
		"wrong":           {fileOf("1.7", stream("/Length 5000", long)), 0, true},
		"missing":         {fileOf("1.7", stream("", long)), 0, false},
		"two lengths":     {fileOf("1.7", stream(fmt.Sprintf("/DecodeParms<</Length 8>>/Length %d", len(long)), long)), 0, false},
		"font":            {fileOf("1.7", stream(fmt.Sprintf("/Length1 77/Length2 88/Length %d/Length3 0", len(long)), long)), 1, false},
		"lines":           {fileOf("1.7", fmt.Sprintf("<</A(x)/Length\n%d >>stream\r\n%s\r\nendstream", len(long), long)), 1, false},
		"comment":         {fileOf("1.7", stream(fmt.Sprintf("%%/Length 3\n/Length %d", len(long)), long)), 0, false},
		"version":         {fileOf("1.9", direct), 1, false},
		// What looks like a stream is the content of a stream.
		"nested":       {fileOf("1.7", stream(fmt.Sprintf("/Length %d", len(direct)+8), "1 0 obj\n"+direct)), 1, false},
		"nested wrong": {fileOf("1.7", stream("/Length 3", "1 0 obj\n"+direct+"\nendobj"), direct), 1, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := mapBytes(t, c.file)
			check := func(err error) {
				t.Helper()
				if errors.Is(err, ErrIncomplete) != c.cut || err != nil && !c.cut {
					t.Fatalf("error %v, a stream is cut: %v", err, c.cut)
				}
			}
			want, err := read(t.Context(), c.file, "")
			systest.NoError(t, err)
			want.markCut(c.file)
			want, err = want.complete(10)
			check(err)
			var text bytes.Buffer
			systest.NoError(t, want.Write(&text, true, nil))
			same := func(got *Document) {
				t.Helper()
				var b bytes.Buffer
				systest.NoError(t, got.Write(&b, true, nil))
				if !bytes.Equal(b.Bytes(), text.Bytes()) {
					t.Errorf("the mapped file is %.400q…, want %.400q…", b.Bytes(), text.Bytes())
				}
			}
			quick, err := ParseMapped(t.Context(), m, 10)
			check(err)
			same(quick)
			got, err := source{m.data, m}.patiently(t.Context(), false)
			systest.NoError(t, err)
			got, err = got.complete(10)
			check(err)
			same(got)
			n := 0
			for _, o := range got.Objects {
				if s, ok := o.(*types.StreamDict); ok && len(s.Raw) >= mappedStream && within(s.Raw, m.data) {
					n++
				}
			}
			if n < c.inMap || c.inMap == 0 && n > 0 {
				t.Errorf("%d streams are in the mapping, want %d", n, c.inMap)
			}
		})
	}
}

// within reports whether part is a slice of whole.
func within(part, whole []byte) bool {
	for at := 0; ; at++ {
		i := bytes.Index(whole[at:], part)
		if i < 0 {
			return false
		}
		if at += i; &whole[at] == &part[0] {
			return true
		}
	}
}

// TestMappedEncrypted checks that the content of an encrypted file is not taken as it is.
func TestMappedEncrypted(t *testing.T) {
	t.Parallel()
	d, err := Parse(t.Context(), fileOf("1.7", "<</Length 5>>\nstream\nhello\nendstream"))
	systest.NoError(t, err)
	var b bytes.Buffer
	systest.NoError(t, d.Write(&b, false, NewEncryption([]byte("a"), []byte("b"), PermitAll)))
	if _, err = ParseMapped(t.Context(), mapBytes(t, b.Bytes()), 10); !errors.Is(err, ErrMapped) {
		t.Errorf("error %v, want %v", err, ErrMapped)
	}
}

// TestPatched reads a view in pieces of all sizes.
func TestPatched(t *testing.T) {
	t.Parallel()
	data := []byte("0123456789abcdefghij")
	want := "0123 1 789abXXXfghij"
	for n := 1; n <= len(data); n++ {
		p := &patched{source: source{data: data}, patches: []patch{{at: 4, text: []byte(" 1 ")}, {at: 12, text: []byte("XXX")}}}
		var got []byte
		for buf := make([]byte, n); ; {
			k, err := p.Read(buf)
			if got = append(got, buf[:k]...); err != nil {
				break
			}
		}
		if string(got) != want {
			t.Errorf("pieces of %d: %q, want %q", n, got, want)
		}
	}
}
