package archiveops_test

import (
	"archive/tar"
	stdzip "archive/zip"
	"bytes"
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zip"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/archiveops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// extract returns the content of all results by their names, and the warnings.
func extract(t testing.TB, l *archiveops.Limits, args fileops.Args, in *fileops.File) (out map[string][]byte, warnings []fileops.Warning, err error) {
	t.Helper()
	out = make(map[string][]byte)
	r := &fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) { warnings = append(warnings, w) }}
	err = r.Run(t.Context(), archiveops.Extract(l), args, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := io.ReadAll(f.Reader())
		if _, twice := out[f.Name()]; twice {
			t.Errorf("two results have the name %q", f.Name())
		}
		out[f.Name()] = b
		return err
	}), in)
	return out, warnings, err
}

var members = map[string][]byte{"a/b.txt": prose(300000), "a/c/b.txt": prose(5000), "Ä 日本.bin": noise(70000), "empty.pdf": {}, "x.pdf": []byte("no PDF")}

func flat(files map[string][]byte) map[string][]byte {
	out := make(map[string][]byte)
	for name, b := range files {
		out[strings.ReplaceAll(name, "/", "_")] = b
	}
	return out
}

func TestExtractConformance(t *testing.T) {
	t.Parallel()
	fileopstest.Run(t, fileopstest.Suite{
		Action:  action(t, "extract"),
		Fixture: func(t testing.TB, f format.Format) *fileops.File { return archiveOf(t, f, members, prose(9000)) },
		Check: func(t *testing.T, in []*fileops.File, _ fileops.Args, out []*fileops.File) {
			got := make(map[string][]byte)
			for _, f := range out {
				got[f.Name()] = mustBytes(t, f)
			}
			want := flat(members)
			switch in[0].Format() {
			case format.GZ, format.BZ2, format.XZ, format.Zst, format.LZ4, format.LZMA, format.LZ:
				want = map[string][]byte{"notes.txt": prose(9000)}
			case format.CAB, format.AR, format.RPM, format.LZH:
				want = flat(specimenFiles(in[0].Format()))
			}
			same(t, got, want)
		},
	})
}

func TestExtractMembers(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"a/b.txt": []byte("1"), "a/c/b.txt": []byte("2"), "B.TXT": []byte("3"), "x,y.md": []byte("4"), "a/d.md": []byte("5")}
	for _, in := range []*fileops.File{zipped(t, tree(t, files)), gnuTar(t, "in.tgz", tree(t, files)), sevenZip(t, tree(t, files))} {
		for globs, want := range map[string]string{
			"b.txt": "B.TXT a_b.txt a_c_b.txt", "*.md": "a_d.md x,y.md", "a/*": "a_b.txt a_d.md", "a/**": "a_b.txt a_c_b.txt a_d.md", "a/": "a_b.txt a_c_b.txt a_d.md",
			"a/**/b.txt, d.*": "a_b.txt a_c_b.txt a_d.md", `x\,y.md`: "x,y.md", "[xz],y*": "", "x[,]y*": "x,y.md", "/A/D.MD": "a_d.md", "./a/c/?.txt": "a_c_b.txt", "**": "B.TXT a_b.txt a_c_b.txt a_d.md x,y.md",
		} {
			out, _, err := extract(t, nil, fileops.Args{"members": globs}, in)
			var names []string
			for name := range out {
				names = append(names, name)
			}
			slices.Sort(names)
			if got := strings.Join(names, " "); want != "" && (err != nil || got != want) {
				t.Errorf("%s: %s gives %q, not %q; %v", in.Name(), globs, got, want, err)
			} else if want == "" && !errors.Is(err, fileops.ErrParameter) {
				t.Errorf("%s: %s gives %q, %v", in.Name(), globs, got, err)
			}
		}
		_, _, err := extract(t, nil, fileops.Args{"members": "*.md,*.doc"}, in)
		if text := fileops.Message(err); fileops.Code(err) != "invalid_parameter" || !strings.Contains(text, "*.doc") || !strings.Contains(text, "a/c/b.txt") {
			t.Errorf("%s: %v", in.Name(), err)
		}
		for _, bad := range []string{"[", `a\`, ",", "a/[b"} {
			if _, _, err := extract(t, nil, fileops.Args{"members": bad}, in); !errors.Is(err, fileops.ErrParameter) {
				t.Errorf("%s: %q: %v", in.Name(), bad, err)
			}
		}
	}
	many := make([]tar.Header, 900)
	for i := range many {
		many[i] = tar.Header{Name: strings.Repeat("long", 20) + fmt.Sprint(i), Typeflag: tar.TypeReg}
	}
	_, _, err := extract(t, nil, fileops.Args{"members": "none"}, fileops.Bytes("a.tar", pack(t, many...)))
	if text := fileops.Message(err); len(text) > 400 || !strings.Contains(text, " more") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

func TestExtractNames(t *testing.T) {
	t.Parallel()
	var deep strings.Builder
	for range 30 {
		deep.WriteString("folder number/")
	}
	b := pack(t, tar.Header{Name: "../../etc/passwd", Typeflag: tar.TypeReg}, tar.Header{Name: `C:\x\y.txt`, Typeflag: tar.TypeReg}, tar.Header{Name: "/x/y.txt", Typeflag: tar.TypeReg},
		tar.Header{Name: "x_y.txt", Typeflag: tar.TypeReg}, tar.Header{Name: "x", Typeflag: tar.TypeDir}, tar.Header{Name: deep.String() + "end.txt", Typeflag: tar.TypeReg})
	out, _, err := extract(t, nil, nil, fileops.Bytes("a.tar", b))
	systest.NoError(t, err)
	long := ""
	for name := range out {
		if strings.HasSuffix(name, "end.txt") {
			long = name
		}
		if len(name) > 255 || strings.ContainsAny(name, `/\:`) {
			t.Errorf("result %q", name)
		}
	}
	same(t, out, map[string][]byte{
		"etc_passwd": []byte("../../etc/passwd"), "x_y.txt": []byte(`C:\x\y.txt`), "x_y (2).txt": []byte("/x/y.txt"), "x_y (3).txt": []byte("x_y.txt"), long: []byte(deep.String() + "end.txt"),
	})

	var z bytes.Buffer
	w := zip.NewWriter(&z)
	for _, name := range []string{"Gr\x81\xe1e.txt", "Stra\xe1e.txt"} { // code page 437
		h := &zip.FileHeader{Name: name, NonUTF8: true}
		_, err := w.CreateHeader(h)
		systest.NoError(t, err)
		h.CreatorVersion = 20 // DOS
	}
	systest.NoError(t, w.Close())
	out, _, err = extract(t, nil, nil, fileops.Bytes("a.zip", z.Bytes()))
	systest.NoError(t, err)
	same(t, out, map[string][]byte{"Grüße.txt": {}, "Straße.txt": {}})

	gz := append([]byte("\x1f\x8b\x08\x08\x00\x00\x00\x00\x00\x03notes.txt\x00"), compressed(t, []byte("hello"))[10:]...)
	out, _, err = extract(t, nil, nil, fileops.Bytes("data.gz", gz))
	systest.NoError(t, err)
	same(t, out, map[string][]byte{"notes.txt": []byte("hello")})
}

func TestExtractLinks(t *testing.T) {
	t.Parallel()
	b := pack(t, tar.Header{Name: "a", Typeflag: tar.TypeReg}, tar.Header{Name: "hard", Linkname: "a", Typeflag: tar.TypeLink},
		tar.Header{Name: "dir/soft", Linkname: "../a", Typeflag: tar.TypeSymlink}, tar.Header{Name: "pipe", Typeflag: tar.TypeFifo})
	in := fileops.Bytes("a.tar", b)
	out, warnings, err := extract(t, nil, nil, in)
	systest.NoError(t, err)
	same(t, out, map[string][]byte{"a": []byte("a"), "hard": []byte("a")})
	if text := fmt.Sprint(warnings); len(warnings) != 2 || !strings.Contains(text, "links_dropped Left out links: dir/soft") || !strings.Contains(text, "content_dropped Left out special entries, such as devices: pipe") {
		t.Error(text)
	}
	out, warnings, err = extract(t, nil, fileops.Args{"members": "hard"}, in) // its file was not chosen
	systest.NoError(t, err)
	same(t, out, map[string][]byte{"hard": []byte("a")})
	if len(warnings) > 0 {
		t.Error(warnings)
	}
	if _, _, err = extract(t, nil, fileops.Args{"members": "soft"}, in); fileops.Code(err) != "unsupported_input" || !strings.Contains(fileops.Message(err), "dir/soft") {
		t.Error(err)
	}
}

func TestExtractMethods(t *testing.T) {
	t.Parallel()
	dir := tree(t, members)
	for _, method := range []string{"Copy", "Deflate", "BZip2", "LZMA"} {
		out, warnings, err := extract(t, nil, nil, zipped(t, dir, "-mm="+method))
		if err != nil || len(warnings) > 0 {
			t.Errorf("%s: %v, %v", method, err, warnings)
		}
		same(t, out, flat(members))
	}
	_, _, err := extract(t, nil, nil, zipped(t, tree(t, map[string][]byte{"a.txt": prose(9000)}), "-mm=Deflate64"))
	if fileops.Code(err) != "unsupported_input" || !strings.Contains(fileops.Message(err), "a.txt") {
		t.Errorf("only an unknown method: %v", err)
	}
	b := bytes.Clone(mustBytes(t, zipped(t, dir)))
	at := bytes.LastIndex(b, []byte("a/c/b.txt"))
	b[at-46+10] = 97 // method in the directory
	out, warnings, err := extract(t, nil, nil, fileops.Bytes("a.zip", b))
	if err != nil || len(out) != len(members)-1 || len(warnings) != 1 || !strings.Contains(warnings[0].Message, "a/c/b.txt") {
		t.Errorf("%d results, %v, %v", len(out), warnings, err)
	}
	at = bytes.Index(b, []byte("a/b.txt"))
	b[at+5000] ^= 1
	if _, _, err := extract(t, nil, nil, fileops.Bytes("a.zip", b)); fileops.Code(err) != "corrupt_input" {
		t.Errorf("damaged: %v", err)
	}
	if out, _, err = extract(t, nil, fileops.Args{"members": "x.pdf"}, fileops.Bytes("a.zip", b)); err != nil || len(out) != 1 {
		t.Errorf("damaged elsewhere: %v", err)
	}
}

func TestExtractPassword(t *testing.T) {
	t.Parallel()
	const password = "correct horse"
	dir := tree(t, members)
	for name, in := range map[string]*fileops.File{
		"AES-256": zipped(t, dir, "-p"+password, "-mem=AES256"), "AES-128": zipped(t, dir, "-p"+password, "-mem=AES128"), "ZipCrypto": zipped(t, dir, "-p"+password, "-mem=ZipCrypto"),
		"LZMA": zipped(t, dir, "-p"+password, "-mem=AES256", "-mm=LZMA"), "7z": sevenZip(t, dir, "-p"+password), "7z, names": sevenZip(t, dir, "-p"+password, "-mhe"),
	} {
		out, _, err := extract(t, nil, fileops.Args{"password": password}, in)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
		same(t, out, flat(members))
		if _, _, err := extract(t, nil, nil, in); !errors.Is(err, fileops.ErrPasswordRequired) {
			t.Errorf("%s without a password: %v", name, err)
		}
		if _, _, err := extract(t, nil, fileops.Args{"password": "wrong"}, in); !errors.Is(err, fileops.ErrWrongPassword) {
			t.Errorf("%s with another password: %v", name, err)
		}
	}
}

func TestExtractLimits(t *testing.T) {
	t.Parallel()
	zeros := make([]byte, 20<<20)
	files := map[string][]byte{"zeros": zeros, "small": []byte("1")}
	in := zipped(t, tree(t, files))
	if _, _, err := extract(t, nil, nil, in); !errors.Is(err, fileops.ErrLimit) {
		t.Errorf("too dense: %v", err)
	}
	if out, _, err := extract(t, nil, fileops.Args{"members": "small"}, in); err != nil || len(out) != 1 {
		t.Errorf("only the dense file was not chosen: %v", err)
	}
	if _, _, err := extract(t, nil, nil, gnuTar(t, "a.tgz", tree(t, files))); !errors.Is(err, fileops.ErrLimit) {
		t.Errorf("too dense: %v", err)
	}
	if _, _, err := extract(t, &archiveops.Limits{Unpacked: 1000}, nil, zipped(t, tree(t, members))); !errors.Is(err, fileops.ErrLimit) {
		t.Errorf("too large: %v", err)
	}
	if _, _, err := extract(t, &archiveops.Limits{Entries: 3}, nil, zipped(t, tree(t, members))); !errors.Is(err, fileops.ErrLimit) {
		t.Errorf("too many: %v", err)
	}
	many := make([]tar.Header, 5001)
	for i := range many {
		many[i] = tar.Header{Name: fmt.Sprint(i), Typeflag: tar.TypeReg}
	}
	if _, _, err := extract(t, nil, nil, fileops.Bytes("a.tar", pack(t, many...))); !errors.Is(err, fileops.ErrLimit) || !strings.Contains(fileops.Message(err), "members") {
		t.Errorf("5001 files: %v", err)
	}
	r := &fileops.Runner{TempDir: t.TempDir(), MaxOutput: 100_000}
	none := fileops.SinkFunc(func(context.Context, *fileops.File) error { return nil })
	if err := r.Run(t.Context(), archiveops.Extract(nil), nil, none, gnuTar(t, "a.tar", tree(t, members))); !errors.Is(err, fileops.ErrLimit) {
		t.Errorf("above the limit of results: %v", err)
	}
	for _, empty := range []*fileops.File{zipped(t, t.TempDir()), fileops.Bytes("a.tar", pack(t, tar.Header{Name: "a/", Typeflag: tar.TypeDir}))} {
		if _, _, err := extract(t, nil, nil, empty); fileops.Code(err) != "unsupported_input" {
			t.Errorf("%s without files: %v", empty.Name(), err)
		}
	}
	// The directory declares less than the content.
	var b bytes.Buffer
	w := stdzip.NewWriter(&b)
	raw, err := w.CreateRaw(&stdzip.FileHeader{Name: "a", CRC32: crc32.ChecksumIEEE([]byte("long")), CompressedSize64: 8, UncompressedSize64: 4})
	systest.NoError(t, err)
	_, err = raw.Write([]byte("longer.."))
	systest.NoError(t, errors.Join(err, w.Close()))
	if _, _, err := extract(t, nil, nil, fileops.Bytes("a.zip", b.Bytes())); fileops.Code(err) != "corrupt_input" {
		t.Errorf("more content than declared: %v", err)
	}
}
