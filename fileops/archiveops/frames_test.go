package archiveops_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/pierrec/lz4/v4"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/archiveops"
	"github.com/filewright/filewright/internal/systest"
)

// A file of LZ4 may have several frames, and frames to skip.
func TestLZ4Frames(t *testing.T) {
	t.Parallel()
	frame := func(content string) []byte {
		var b bytes.Buffer
		w := lz4.NewWriter(&b)
		_, err := io.WriteString(w, content)
		systest.NoError(t, errors.Join(err, w.Close()))
		return b.Bytes()
	}
	skip := []byte{0x5A, 0x2A, 0x4D, 0x18, 3, 0, 0, 0, 'x', 'y', 'z'}
	for name, c := range map[string]struct {
		file []byte
		want string // "" for a damaged file
	}{
		"two":            {append(frame("one "), frame("two")...), "one two"},
		"skipped":        {bytes.Join([][]byte{frame("one "), skip, frame("two"), skip}, nil), "one two"},
		"cut in a frame": {append(frame("one "), frame("two")[:9]...), ""},
		"cut in a skip":  {append(frame("one "), skip[:6]...), ""},
		"other data":     {append(frame("one "), "other data"...), "one "},
		"cut in a magic": {append(frame("one "), frame("two")[:3]...), ""},
	} {
		out, warnings, err := extract(t, nil, nil, fileops.Bytes("a.txt.lz4", c.file))
		if c.want == "" {
			if !errors.Is(err, fileops.ErrCorruptInput) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || string(out["a.txt"]) != c.want {
			t.Errorf("%s: %q, %v", name, out, err)
		}
		if other := strings.HasPrefix(name, "other"); other != (len(warnings) == 1) {
			t.Errorf("%s: warnings %v", name, warnings)
		}
	}
}

// A file of lzip may have several members. Its checksum and sizes are verified.
func TestLzipMembers(t *testing.T) {
	t.Parallel()
	member := func(content string) []byte { return mustBytes(t, filtered(t, "a.lz", []byte(content))) }
	long := member(string(prose(200_000)))
	changed := func(b []byte, at int) []byte {
		b = bytes.Clone(b)
		b[(at+len(b))%len(b)] ^= 1
		return b
	}
	two := append(member("one "), member("two")...)
	for name, c := range map[string]struct {
		file []byte
		want string // "" for a damaged file
	}{
		"one":             {long, string(prose(200_000))},
		"two":             {two, "one two"},
		"empty and two":   {append(member(""), two...), "one two"},
		"other data":      {append(member("one "), "other data"...), "one "},
		"other byte":      {append(member("one "), 0), "one "},
		"checksum":        {changed(two, -20), ""},
		"size":            {changed(two, -12), ""},
		"size of member":  {changed(two, -8), ""},
		"content":         {changed(long, len(long)/2), ""},
		"cut in trailer":  {two[:len(two)-1], ""},
		"cut in content":  {long[:len(long)/2], ""},
		"cut in a header": {append(member("one "), "LZI"...), ""},
		"version":         {append(member("one "), "LZIP\x02\x0c"...), ""},
		"dictionary":      {append(member("one "), slices.Replace(bytes.Clone(long), 5, 6, 22)...), "one " + string(prose(200_000))}, // 4 MiB
	} {
		out, warnings, err := extract(t, nil, nil, fileops.Bytes("a.txt.lz", c.file))
		if c.want == "" {
			if !errors.Is(err, fileops.ErrCorruptInput) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || string(out["a.txt"]) != c.want {
			t.Errorf("%s: %d files, %v", name, len(out), err)
		}
		if other := strings.HasPrefix(name, "other"); other != (len(warnings) == 1) {
			t.Errorf("%s: warnings %v", name, warnings)
		}
	}
	huge := bytes.Clone(long)
	huge[5] = 29 // 512 MiB
	if _, _, err := extract(t, nil, nil, fileops.Bytes("a.txt.lz", huge)); !errors.Is(err, fileops.ErrLimit) {
		t.Errorf("huge dictionary: %v", err)
	}
	// The extension tlz stands for lzip and for LZMA.
	tarred := pack(t, tar.Header{Name: "a.txt", Typeflag: tar.TypeReg})
	for _, name := range []string{"a.lz", "a.lzma"} {
		for _, as := range []string{"b.tlz", "b.tar" + strings.TrimPrefix(name, "a")} {
			out, _, err := extract(t, nil, nil, fileops.Bytes(as, mustBytes(t, filtered(t, name, tarred))))
			if err != nil || string(out["a.txt"]) != "a.txt" {
				t.Errorf("%s as %s: %q, %v", name, as, out, err)
			}
		}
	}
}

// Data after the end of compressed data is left out with a warning. A tar archive without an
// end mark is read with a warning.
func TestTrailingData(t *testing.T) {
	t.Parallel()
	tarred := pack(t, tar.Header{Name: "a.txt", Typeflag: tar.TypeReg})
	for _, tail := range []string{"x", "other data", "\x00\x00\x00x"} {
		for _, ext := range []string{"gz", "bz2", "lz4", "lzma", "lz"} {
			if (ext == "bz2" || ext == "lz4") && len(tail) == 1 {
				continue // another stream could start like this
			}
			var b []byte
			if ext == "gz" {
				b = compressed(t, tarred)
			} else {
				b = mustBytes(t, filtered(t, "a."+ext, tarred))
			}
			for _, name := range []string{"a.tar." + ext, "a." + ext} {
				out, warnings, err := extract(t, nil, nil, fileops.Bytes(name, append(bytes.Clone(b), tail...)))
				if err != nil || string(out["a.txt"]) != "a.txt" || len(warnings) != 1 || warnings[0].Code != fileops.WarnContentDropped {
					t.Errorf("%s with %q: %q, %v, %v", name, tail, out, warnings, err)
				}
			}
		}
	}
	for _, name := range []string{"a.tar", "a.tar.gz"} {
		b := tarred[:1024]
		if name != "a.tar" {
			b = compressed(t, b)
		}
		out, warnings, err := extract(t, nil, nil, fileops.Bytes(name, b))
		if err != nil || string(out["a.txt"]) != "a.txt" || len(warnings) != 1 || warnings[0].Code != fileops.WarnContentDropped {
			t.Errorf("%s without an end mark: %q, %v, %v", name, out, warnings, err)
		}
	}
}

// inspect counts more entries than other actions accept, because it unpacks nothing.
func TestInspectManyEntries(t *testing.T) {
	t.Parallel()
	const entries = 12_000
	var z, tarred bytes.Buffer
	zw, tw := zip.NewWriter(&z), tar.NewWriter(&tarred)
	for i := range entries {
		name := fmt.Sprintf("%d.txt", i)
		_, err := zw.Create(name)
		systest.NoError(t, errors.Join(err, tw.WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600})))
	}
	systest.NoError(t, errors.Join(zw.Close(), tw.Close()))
	for _, in := range []*fileops.File{fileops.Bytes("a.zip", z.Bytes()), fileops.Bytes("a.tar", tarred.Bytes())} {
		b, err := mustRun(t, archiveops.Inspect(nil), nil, in).ReadAll(1 << 20)
		systest.NoError(t, err)
		var r struct{ Archive struct{ Files int } }
		if err := json.Unmarshal(b, &r); err != nil || r.Archive.Files != entries {
			t.Errorf("%s: %s, %v", in.Name(), b, err)
		}
		if _, _, err := extract(t, nil, nil, in); !errors.Is(err, fileops.ErrLimit) {
			t.Errorf("extract of %s: %v", in.Name(), err)
		}
	}
}
