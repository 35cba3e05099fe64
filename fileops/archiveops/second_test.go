package archiveops_test

import (
	"bytes"
	"context"
	"os/exec"
	"slices"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/archiveops"
	"github.com/filewright/filewright/internal/systest"
)

// Archives that the readers of this package reject, and bsdtar does not, are read by bsdtar,
// with a warning. Cut ones are still damaged.
func TestSecondReader(t *testing.T) {
	t.Parallel()
	program, err := exec.LookPath("unzip")
	systest.NoError(t, err)
	code := systest.ReadFile(t, program)
	// BCJ2 over Deflate, in which only 7-Zip and libarchive follow the streams.
	bcj2 := sevenZip(t, tree(t, map[string][]byte{"code": code}), "-m0=bcj2", "-m1=deflate", "-m2=deflate", "-m3=deflate", "-mb0:1", "-mb0s1:2", "-mb0s2:3")
	const record = "31 mtime=1748089464.951928467a\n"
	block := func(s string) []byte { return append([]byte(s), make([]byte, 512-len(s))...) }
	odd := slices.Concat(header("PaxHeader", "", "", 'x', len(record)), block(record), header("code", "", "", '0', 5), block("hello"), make([]byte, 1024))
	for _, c := range []struct {
		in   *fileops.File
		want []byte
		cut  int // bytes of a damaged file
	}{
		{fileops.Bytes("in.tar", odd), []byte("hello"), 1538},
		{fileops.Bytes("in.tar.gz", compressed(t, odd)), []byte("hello"), len(compressed(t, odd)) - 1},
		{bcj2, code, len(code) / 4},
	} {
		for _, name := range []string{"extract", "convert", "inspect"} {
			a := action(t, name)
			args := fileops.Args{}
			if name == "convert" {
				args["convert_to"] = "zip"
			}
			for _, in := range []*fileops.File{c.in, fileops.Bytes(c.in.Name(), mustBytes(t, c.in)[:c.cut])} {
				var results []*fileops.File
				var warnings []fileops.Warning
				r := &fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) { warnings = append(warnings, w) }}
				err := r.Run(t.Context(), a, args, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
					b, err := f.ReadAll(1 << 30)
					results = append(results, fileops.Bytes(f.Name(), bytes.Clone(b)))
					return err
				}), in)
				if in != c.in {
					if fileops.Code(err) != "corrupt_input" || len(results) > 0 {
						t.Errorf("%s of a part of %s: %d results, %v", name, in.Name(), len(results), err)
					}
					continue
				}
				if err != nil || len(results) != 1 {
					t.Errorf("%s of %s: %d results, %v", name, in.Name(), len(results), err)
					continue
				}
				// The directory of a 7z archive is intact.
				if odd := in != bcj2 || name != "inspect"; odd != (len(warnings) == 1 && warnings[0].Code == fileops.WarnContentDropped) {
					t.Errorf("%s of %s: warnings %v", name, in.Name(), warnings)
				}
				switch got := mustBytes(t, results[0]); name {
				case "extract":
					if !bytes.Equal(got, c.want) {
						t.Errorf("extract of %s: %d bytes, want %d", in.Name(), len(got), len(c.want))
					}
				case "convert":
					same(t, unpacked(t, results[0]), map[string][]byte{"code": c.want})
				}
			}
		}
		// Without bsdtar nothing else can read them.
		if _, err := run(t.Context(), archiveops.Convert(nil), toZIP(), c.in); fileops.Code(err) != "corrupt_input" {
			t.Errorf("%s without bsdtar: %v", c.in.Name(), err)
		}
	}
}
