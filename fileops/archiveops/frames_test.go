package archiveops_test

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
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
		"garbage":        {append(frame("one "), "garbage"...), ""},
	} {
		out, _, err := extract(t, nil, nil, fileops.Bytes("a.txt.lz4", c.file))
		if c.want == "" {
			if !errors.Is(err, fileops.ErrCorruptInput) {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || string(out["a.txt"]) != c.want {
			t.Errorf("%s: %q, %v", name, out, err)
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
