package archiveops_test

import (
	"archive/tar"
	stdzip "archive/zip"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/archiveops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

func toZIP() fileops.Args { return fileops.Args{"convert_to": "zip"} }

// tree writes files into a new folder.
func tree(t testing.TB, files map[string][]byte) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, b := range files {
		path := filepath.Join(dir, name)
		systest.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		systest.NoError(t, os.WriteFile(path, b, 0o600))
	}
	return dir
}

// gnuTar packs a folder with GNU tar into a file with the given name.
func gnuTar(t testing.TB, name, dir string, args ...string) *fileops.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if strings.HasSuffix(name, "gz") {
		args = append(args, "-z")
	}
	tool(t, "tar", append(append([]string{"-C", dir, "-cf", path}, args...), ".")...)
	b := systest.ReadFile(t, path)
	return fileops.Bytes(name, b)
}

// pack builds an archive from headers. Each regular file has its name as
// content.
func pack(t testing.TB, headers ...tar.Header) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, h := range headers {
		if h.Typeflag == tar.TypeReg {
			h.Size = int64(len(h.Name))
		}
		err := w.WriteHeader(&h)
		if err == nil && h.Typeflag == tar.TypeReg {
			_, err = io.WriteString(w, h.Name)
		}
		systest.NoError(t, err)
	}
	systest.NoError(t, w.Close())
	return b.Bytes()
}

func compressed(t testing.TB, b []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	_, err := w.Write(b)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func same(t testing.TB, got, want map[string][]byte) {
	t.Helper()
	if g, w := slices.Sorted(maps.Keys(got)), slices.Sorted(maps.Keys(want)); !slices.Equal(g, w) {
		t.Errorf("got  %.300q\nwant %.300q", g, w)
	}
	for name, w := range want {
		if g := got[name]; !bytes.Equal(g, w) {
			t.Errorf("%.100s: %d bytes, want %d", name, len(g), len(w))
		}
	}
}

// archiveOf returns an archive with the given files, or a compressed file with the text.
func archiveOf(t testing.TB, f format.Format, files map[string][]byte, text []byte) *fileops.File {
	t.Helper()
	switch f {
	case format.GZ:
		return fileops.Bytes("notes.txt.gz", compressed(t, text))
	case format.BZ2, format.XZ, format.Zst, format.LZ4, format.LZMA, format.LZ:
		return filtered(t, "notes.txt."+string(f), text)
	case format.ZIP:
		return zipped(t, tree(t, files))
	case format.ISO, format.CPIO:
		return bsdtarOf(t, "in."+string(f), tree(t, files))
	case format.DEB:
		return debOf(t, tree(t, files))
	case format.CAB, format.AR, format.RPM, format.LZH:
		return specimen.Of(t, f)
	case format.TarBZ2, format.TarXZ, format.TarZst, format.TarLZ4, format.TarLZMA, format.TarLZ:
		return filtered(t, "in."+string(f), mustBytes(t, gnuTar(t, "in.tar", tree(t, files))))
	case format.SevenZip:
		return sevenZip(t, tree(t, files))
	case format.RAR:
		return fileops.Bytes("in.rar", rar(files))
	}
	return gnuTar(t, "in."+string(f), tree(t, files))
}

func TestConvertConformance(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"a/b.txt": prose(100000), "c.bin": noise(50000)}
	fileopstest.Run(t, fileopstest.Suite{
		Action:  action(t, "convert"),
		Fixture: func(t testing.TB, f format.Format) *fileops.File { return archiveOf(t, f, files, files["a/b.txt"]) },
		Check: func(t *testing.T, in []*fileops.File, _ fileops.Args, out []*fileops.File) {
			want := files
			switch in[0].Format() {
			case format.GZ, format.BZ2, format.XZ, format.Zst, format.LZ4, format.LZMA, format.LZ:
				want = map[string][]byte{"notes.txt": files["a/b.txt"]}
			case format.CAB, format.AR, format.RPM, format.LZH:
				want = specimenFiles(in[0].Format())
			}
			if out[0].Format() == format.ZIP {
				same(t, unpacked(t, out[0]), want)
				return
			}
			same(t, untarred(t, out[0]), want)
		},
	})
}

func TestConvertTar(t *testing.T) {
	t.Parallel()
	basic := map[string][]byte{
		"empty": {}, "prose.txt": prose(3<<20 + 7), "noise.bin": noise(2<<20 + 1), "exact": prose(2 << 20),
		"sub/Äpfel 日本.txt": prose(3000), "sub/deep/er/run.sh": []byte("#!/bin/sh\n"),
	}
	split := map[string][]byte{ // too long for the first tar format, but not for ustar
		strings.Repeat("long folder name/", 12) + "a.txt": []byte("long"),
		strings.Repeat("n", 98):                           []byte("100 bytes with ./"),
	}
	long := map[string][]byte{strings.Repeat("z", 140) + ".txt": prose(100)}
	for _, tt := range []struct {
		name  string
		args  []string
		files []map[string][]byte
	}{
		{"gnu.tar", []string{"--format=gnu"}, []map[string][]byte{basic, split, long}},
		{"oldgnu.tar.gz", []string{"--format=oldgnu"}, []map[string][]byte{basic, split, long}},
		{"pax.tar", []string{"--format=pax"}, []map[string][]byte{basic, split, long}},
		{"pax.tar.gz", []string{"--format=pax"}, []map[string][]byte{basic, split, long}},
		{"pax.tgz", []string{"--format=pax"}, []map[string][]byte{basic, split, long}},
		{"pax.gz", []string{"--format=pax"}, []map[string][]byte{basic, split, long}},
		{"ustar.tar", []string{"--format=ustar"}, []map[string][]byte{basic, split}},
		{"ustar.gz", []string{"--format=ustar"}, []map[string][]byte{basic, split}},
		{"v7.gz", []string{"--format=v7"}, []map[string][]byte{basic}},
		{"absolute.tar", []string{"-P", "--transform=s,^\\.,/,"}, []map[string][]byte{basic}},
		{"smallest.tar", []string{"--sort=name", "-b1"}, []map[string][]byte{basic, split, long}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			want := make(map[string][]byte)
			for _, files := range tt.files {
				maps.Copy(want, files)
			}
			dir := tree(t, want)
			then := time.Date(2011, 12, 13, 14, 15, 16, 0, time.UTC)
			err := errors.Join(os.Mkdir(filepath.Join(dir, "nothing in it"), 0o700),
				os.Chmod(filepath.Join(dir, "sub/deep/er/run.sh"), 0o755),
				os.Chtimes(filepath.Join(dir, "prose.txt"), then, then))
			systest.NoError(t, err)
			out := mustRun(t, archiveops.Convert(nil), toZIP(), gnuTar(t, tt.name, dir, tt.args...))
			if want := format.Base(tt.name) + ".zip"; out.Name() != want {
				t.Errorf("result %s, want %s", out.Name(), want)
			}
			same(t, unpacked(t, out), want)
			_, entries := inspect(t, out)
			var folder, exec, dated bool
			for _, e := range entries {
				switch e.Name {
				case "nothing in it/":
					folder = e.External>>16&0o170000 == 0o040000
				case "sub/deep/er/run.sh":
					exec = e.External>>16&0o777 == 0o755
				case "prose.txt":
					dated = fmt.Sprint(e.Time) == "[2011 12 13 14 15 16]" && e.External>>16&0o777 == 0o644
				}
			}
			if !folder || !exec || !dated {
				t.Errorf("folder %v, permissions %v, time %v", folder, exec, dated)
			}
			tool(t, "7z", "t", save(t, out))
		})
	}
}

func TestConvertSparse(t *testing.T) {
	t.Parallel()
	want := slices.Concat(prose(1<<16), make([]byte, 5<<20), prose(1<<16))
	for _, args := range [][]string{{"--format=gnu"}, {"--format=pax", "--sparse-version=0.0"}, {"--format=pax", "--sparse-version=0.1"}, {"--format=pax", "--sparse-version=1.0"}} {
		dir := tree(t, map[string][]byte{"holes": want})
		tool(t, "fallocate", "-d", filepath.Join(dir, "holes"))
		in := gnuTar(t, "in.tar", dir, append(args, "-S")...)
		if in.Size() > 1<<20 {
			t.Fatalf("%v: not sparse, %d bytes", args, in.Size())
		}
		same(t, unpacked(t, mustRun(t, archiveops.Convert(nil), toZIP(), in)), map[string][]byte{"holes": want})
		l := archiveops.Limits{Unpacked: 1 << 20}
		if _, err := run(t.Context(), archiveops.Convert(&l), toZIP(), in); !errors.Is(err, fileops.ErrLimit) {
			t.Errorf("%v: holes do not count: %v", args, err)
		}
	}
}

func TestConvertGzip(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string][]byte{"a": prose(1<<20 + 3), "b": prose(70000)})
	a, b := filepath.Join(dir, "a"), filepath.Join(dir, "b")
	then := time.Date(2011, 12, 13, 14, 15, 16, 0, time.UTC)
	systest.NoError(t, os.Chtimes(a, then, then))
	members := []byte(tool(t, "gzip", "-c", a, b))
	tarred := mustBytes(t, gnuTar(t, "in.tar", dir))
	half := len(tarred) / 2 / 512 * 512
	for _, tt := range []struct {
		name string
		in   []byte
		want map[string][]byte
	}{
		{"report.txt.gz", compressed(t, prose(5000)), map[string][]byte{"report.txt": prose(5000)}},
		{"none.gz", compressed(t, nil), map[string][]byte{"none": nil}},
		{"members.gz", members, map[string][]byte{"members": slices.Concat(prose(1<<20+3), prose(70000))}},
		{"padded.gz", append(slices.Clone(members), make([]byte, 1000)...), map[string][]byte{"padded": slices.Concat(prose(1<<20+3), prose(70000))}},
		{"con.gz", compressed(t, []byte("x")), map[string][]byte{"_con": []byte("x")}},
		{"zeros.gz", compressed(t, make([]byte, 10240)), map[string][]byte{"zeros": make([]byte, 10240)}},
		{"split.tar.gz", append(compressed(t, tarred[:half]), compressed(t, tarred[half:])...), map[string][]byte{"a": prose(1<<20 + 3), "b": prose(70000)}},
		{"odd.gz", append(compressed(t, tarred[:100]), compressed(t, tarred[100:])...), map[string][]byte{"a": prose(1<<20 + 3), "b": prose(70000)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out := mustRun(t, archiveops.Convert(nil), toZIP(), fileops.Bytes(tt.name, tt.in))
			same(t, unpacked(t, out), tt.want)
			_, entries := inspect(t, out)
			if time := fmt.Sprint(entries[0].Time); tt.name == "members.gz" && time != "[2011 12 13 14 15 16]" {
				t.Errorf("time %s", time)
			}
		})
	}
}

func mustBytes(t testing.TB, f *fileops.File) []byte {
	t.Helper()
	b, ok := f.Bytes()
	if !ok {
		t.Fatal("not in memory")
	}
	return b
}

func TestConvertManyEntries(t *testing.T) {
	t.Parallel()
	want := make(map[string][]byte)
	n := 5000
	if testing.Short() {
		n = 500
	}
	for i := range n {
		want[fmt.Sprintf("%d/%d.txt", i%7, i)] = fmt.Append(nil, i)
	}
	dir := tree(t, want)
	for _, name := range []string{"many.tar", "many.tar.gz"} {
		same(t, unpacked(t, mustRun(t, archiveops.Convert(nil), toZIP(), gnuTar(t, name, dir))), want)
	}
}

func TestConvertPaths(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat("d/", 600)
	for _, tt := range []struct{ name, in, want string }{
		{"fine", "a/b.txt c.txt", "a/b.txt c.txt"},
		{"traversal", "../../etc/passwd a/../../b ../ ..", "etc/passwd a/b"},
		{"absolute", "/etc/passwd //server/share", "etc/passwd server/share"},
		{"drives", `C:\Windows\a.dll d:/x C:y c:`, "Windows/a.dll x C_y file"},
		{"backslashes", `..\..\b.txt a\b`, "b.txt a/b"},
		{"control", "a\nb/c\x01d a\u202egpj.exe", "a_b/c_d a_gpj.exe"},
		{"devices", "nul/con.txt", "_nul/_con.txt"},
		{"dots", "./a/./b//c. x/...", "a/b/c x/file"},
		{"twice", "a.txt A.txt a.txt b/a.txt B/a.txt", "a.txt A (2).txt a (3).txt b/a.txt b/a (2).txt"},
		{"file and folder", "a a/b a/c A", "a a (2)/b a (2)/c A (3)"},
		{"folder and file", "a/b a a/c", "a/b a (2) a/c"},
		{"folders", "a/ a/ ./ A/ b/c/", "a/ b/c/"},
		{"deep", deep + "f", deep[:2*32] + "f"},
		{"long", strings.Repeat(strings.Repeat("x", 200)+"/", 20) + "f", strings.Repeat(strings.Repeat("x", 200)+"/", 4) + "f"},
		{"not UTF-8", "a\xff/b\xfe", "a_/b_"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var headers []tar.Header
			for name := range strings.FieldsFuncSeq(tt.in, func(r rune) bool { return r == ' ' }) {
				h := tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o600}
				if strings.HasSuffix(name, "/") || name == ".." {
					h.Typeflag = tar.TypeDir
				}
				headers = append(headers, h)
			}
			out := mustRun(t, archiveops.Convert(nil), toZIP(), fileops.Bytes("in.tar", pack(t, headers...)))
			var got []string
			_, entries := inspect(t, out)
			for _, e := range entries {
				got = append(got, e.Name)
			}
			if got := strings.Join(got, " "); got != tt.want {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func TestConvertLinks(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string][]byte{"a/1.txt": prose(1<<20 + 9), "b.txt": []byte("b")})
	tool(t, "sh", "-c", "cd "+dir+" && ln a/1.txt a/2.txt && ln a/1.txt 3.txt && ln -s b.txt soft && ln -s / a/root && mkfifo pipe")
	want := map[string][]byte{"a/1.txt": prose(1<<20 + 9), "a/2.txt": prose(1<<20 + 9), "3.txt": prose(1<<20 + 9), "b.txt": []byte("b")}
	for _, name := range []string{"in.tar", "in.tar.gz"} {
		in := gnuTar(t, name, dir, "--sort=name")
		var log bytes.Buffer
		var codes []string
		r := fileops.Runner{
			Log: slog.New(slog.NewTextHandler(&log, nil)), TempDir: t.TempDir(),
			Warn: func(w fileops.Warning) { codes = append(codes, w.Code) },
		}
		to := t.TempDir()
		systest.NoError(t, r.Run(t.Context(), archiveops.Convert(nil), toZIP(), fileops.ToDir(to), in))
		b := systest.ReadFile(t, filepath.Join(to, "in.zip"))
		same(t, unpacked(t, fileops.Bytes("in.zip", b)), want)
		if !slices.Equal(codes, []string{fileops.WarnLinksDropped, fileops.WarnContentDropped}) {
			t.Errorf("%s: warnings %v", name, codes)
		}
		if n := strings.Count(log.String(), "archive entries left out"); n != 1 || !strings.Contains(log.String(), "links=2 other=1") {
			t.Errorf("%s: log %q", name, log.String())
		}
	}
	file := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg} }
	link := func(name, to string) tar.Header {
		return tar.Header{Name: name, Linkname: to, Typeflag: tar.TypeLink}
	}
	for _, tt := range []struct {
		name string
		in   []tar.Header
		want map[string][]byte
	}{
		{"chain", []tar.Header{file("a"), link("b", "a"), link("c", "./b")}, map[string][]byte{"a": []byte("a"), "b": []byte("a"), "c": []byte("a")}},
		{"before its file", []tar.Header{link("b", "a"), file("a"), link("c", "a")}, map[string][]byte{"a": []byte("a"), "c": []byte("a")}},
		{"outside", []tar.Header{file("a"), link("b", "/etc/passwd"), link("c", "../../etc/passwd")}, map[string][]byte{"a": []byte("a")}},
		{"itself", []tar.Header{file("a"), link("b", "b")}, map[string][]byte{"a": []byte("a")}},
		{"the latest", []tar.Header{file("a"), file("./a"), link("b", "a")}, map[string][]byte{"a": []byte("a"), "a (2)": []byte("./a"), "b": []byte("./a")}},
		{"devices", []tar.Header{file("a"), {Name: "null", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 3}, {Name: "sda", Typeflag: tar.TypeBlock}}, map[string][]byte{"a": []byte("a")}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			same(t, unpacked(t, mustRun(t, archiveops.Convert(nil), toZIP(), fileops.Bytes("in.tar", pack(t, tt.in...)))), tt.want)
		})
	}
}

func TestConvertDamage(t *testing.T) {
	t.Parallel()
	dir := tree(t, map[string][]byte{"a.txt": prose(5000), "b.bin": noise(3000), "zeros": make([]byte, 2048)})
	whole := mustBytes(t, gnuTar(t, "in.tar", dir, "-b1", "--sort=name"))
	packed := mustBytes(t, gnuTar(t, "in.tar.gz", dir))
	refused := func(name string, b []byte) {
		t.Helper()
		if out, err := run(t.Context(), archiveops.Convert(nil), toZIP(), fileops.Bytes(name, b)); !errors.Is(err, fileops.ErrCorruptInput) || out != nil {
			t.Errorf("%s of %d bytes: %v", name, len(b), err)
		}
	}
	// With -b1 the archive ends with its end mark, of which one block is enough. An archive
	// that is cut between two files may be complete, so its files are read with a warning.
	between := make(map[int]bool)
	for at := 0; at < len(whole)-1024; {
		size, err := strconv.ParseInt(string(bytes.Trim(whole[at+124:at+136], " \x00")), 8, 64)
		systest.NoError(t, err)
		at += 512 + (int(size)+511)/512*512
		between[at] = at > 512 // the first entry is the folder itself
	}
	for n := 512; n <= len(whole)-1024; n += 256 {
		if !between[n] {
			refused("in.tar", whole[:n])
			continue
		}
		out, warnings := warned(t, archiveops.Convert(nil), toZIP(), fileops.Bytes("in.tar", whole[:n]))
		if got := unpacked(t, out); len(got) == 0 || len(warnings) != 1 {
			t.Errorf("cut after %d bytes: %d files, warnings %v", n, len(got), warnings)
		}
	}
	for n := 10; n < len(packed); n += 97 {
		refused("in.tar.gz", packed[:n])
		refused("in.gz", packed[:n])
	}
	refused("in.gz", packed[:len(packed)-1])
	refused("in.tar.gz", compressed(t, prose(5000)))
	for _, at := range []int{len(packed) / 2, len(packed) - 7} {
		b := slices.Clone(packed)
		b[at] ^= 0x55
		refused("in.tar.gz", b)
	}
	b := slices.Clone(whole)
	b[0] ^= 1 // the header's checksum is wrong
	refused("in.tar", b)
	for name, b := range map[string][]byte{
		"in.tar.gz": compressed(t, make([]byte, 10240)), "in.tar": pack(t, tar.Header{Name: "s", Linkname: "t", Typeflag: tar.TypeSymlink}, tar.Header{Name: "./", Typeflag: tar.TypeDir}),
	} {
		if _, err := run(t.Context(), archiveops.Convert(nil), toZIP(), fileops.Bytes(name, b)); !errors.Is(err, fileops.ErrUnsupportedInput) {
			t.Errorf("%s without files: %v", name, err)
		}
	}
}

func TestConvertLimits(t *testing.T) {
	t.Parallel()
	// 1 GiB of zeros in many members.
	zeros := bytes.Repeat(compressed(t, make([]byte, 1<<20)), 1<<10)
	single := fileops.Bytes("bomb.gz", zeros)
	bomb := fileops.Bytes("bomb.tar.gz", slices.Concat(compressed(t, header("zeros", "", "", '0', 1<<30)), zeros, compressed(t, make([]byte, 1024))))
	three := fileops.Bytes("in.tar", pack(t, tar.Header{Name: "aaa", Typeflag: tar.TypeReg}, tar.Header{Name: "s", Linkname: "t", Typeflag: tar.TypeSymlink}, tar.Header{Name: "bbb", Typeflag: tar.TypeReg}))
	linked := fileops.Bytes("in.tar", pack(t, tar.Header{Name: "aaa", Typeflag: tar.TypeReg}, tar.Header{Name: "b", Linkname: "aaa", Typeflag: tar.TypeLink}))
	// A log of 12 MiB, whose lines differ in a number, compresses more than 200 times.
	var log bytes.Buffer
	for i := 0; log.Len() < 12<<20; i++ {
		fmt.Fprintf(&log, "2024-05-01T12:00:00Z INFO  server: request finished path=/api/v1/status method=GET code=200 user=anonymous agent=probe worker=%04d\n", i/4000)
	}
	dense := compressed(t, log.Bytes())
	if ratio := log.Len() / len(dense); ratio < 200 || ratio > 450 {
		t.Fatalf("the log compresses %d times", ratio)
	}
	for _, tt := range []struct {
		name string
		l    archiveops.Limits
		in   *fileops.File
		ok   bool
	}{
		{"log", archiveops.Limits{}, fileops.Bytes("server.log.gz", dense), true},
		{"ratio of a tar", archiveops.Limits{}, bomb, false},
		{"ratio of a file", archiveops.Limits{}, single, false},
		{"size of a tar", archiveops.Limits{Unpacked: 100 << 20, Ratio: 1 << 40}, bomb, false},
		{"size of a file", archiveops.Limits{Unpacked: 100 << 20, Ratio: 1 << 40}, single, false},
		{"entries", archiveops.Limits{Entries: 2}, three, false},
		{"enough entries", archiveops.Limits{Entries: 3}, three, true},
		{"size", archiveops.Limits{Unpacked: 5}, three, false},
		{"enough size", archiveops.Limits{Unpacked: 6}, three, true},
		{"links", archiveops.Limits{Unpacked: 5}, linked, false},
		{"enough for links", archiveops.Limits{Unpacked: 6}, linked, true},
		{"small and dense", archiveops.Limits{Ratio: 2}, fileops.Bytes("a.gz", compressed(t, make([]byte, 10<<20))), true},
		{"dense", archiveops.Limits{Ratio: 2}, fileops.Bytes("a.gz", compressed(t, make([]byte, 10<<20+1))), false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			out, err := run(t.Context(), archiveops.Convert(&tt.l), toZIP(), tt.in)
			if tt.ok && err != nil || !tt.ok && (!errors.Is(err, fileops.ErrLimit) || out != nil) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestConvertIsCancelled(t *testing.T) {
	t.Parallel()
	why := errors.New("enough")
	for _, from := range []float64{0, 0.3} {
		ctx, cancel := context.WithCancelCause(t.Context())
		r := fileops.Runner{TempDir: t.TempDir(), Progress: func(done float64) {
			if done > from {
				cancel(why)
			}
		}}
		in := fileops.Bytes("in.txt.gz", compressed(t, prose(20<<20)))
		if err := r.Run(ctx, archiveops.Convert(nil), toZIP(), fileops.ToDir(t.TempDir()), in); !errors.Is(err, why) {
			t.Errorf("from %v: got %v", from, err)
		}
		if left, err := fs.ReadDir(os.DirFS(r.TempDir), "."); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
}

// header returns the header block of an entry, with a valid checksum for any
// fields.
func header(name, prefix, link string, kind byte, size int) []byte {
	b := make([]byte, 512)
	copy(b[:100], name)
	copy(b[100:], "0000644\x000000000\x000000000\x00")
	copy(b[124:], fmt.Sprintf("%011o\x0000000000000\x00        ", size))
	b[156] = kind
	copy(b[157:257], link)
	copy(b[257:], "ustar\x0000")
	copy(b[345:500], prefix)
	sum := 0
	for _, c := range b {
		sum += int(c)
	}
	copy(b[148:], fmt.Sprintf("%06o\x00 ", sum))
	return b
}

func FuzzConvertNames(f *testing.F) {
	f.Add("a/b.txt", "", "A/B.TXT", "", byte('0'), "")
	f.Add("../../etc/passwd", "/", `C:\x`, "..", byte('1'), "a")
	f.Add("a", "", "a/", "", byte('5'), "path=a/../b\n")
	f.Add("con", "nul", "\u202e", "e\u0301", byte('S'), "linkpath=../x\nsize=9999999999999\n")
	f.Add("a", "", "a/b", "", byte('L'), "GNU.sparse.major=1\nGNU.sparse.minor=0\nGNU.sparse.name=..\n")
	f.Fuzz(func(t *testing.T, name, prefix, name2, prefix2 string, kind byte, records string) {
		var b bytes.Buffer
		b.Write(header(name, prefix, name2, '0', 5))
		b.Write(append([]byte("hello"), make([]byte, 507)...))
		if records != "" {
			var pax bytes.Buffer
			for line := range strings.Lines(records) {
				n := len(line) + 2
				n += len(fmt.Sprint(n)) - 1
				fmt.Fprintf(&pax, "%d %s", n, line)
			}
			b.Write(header("pax", "", "", 'x', pax.Len()))
			b.Write(append(pax.Bytes(), make([]byte, (512-pax.Len()%512)%512)...))
		}
		b.Write(header(name2, prefix2, name, kind, 0))
		b.Write(make([]byte, 1024))
		l := archiveops.Limits{Unpacked: 1 << 20}
		out, err := run(t.Context(), archiveops.Convert(&l), toZIP(), fileops.Bytes("in.tar", b.Bytes()))
		if err != nil {
			if fileops.Code(err) == "internal_error" || fileops.Code(err) == "engine_failed" {
				t.Errorf("%v", err)
			}
			return
		}
		zr, err := stdzip.NewReader(out.Reader(), out.Size())
		systest.NoError(t, err)
		seen := make(map[string]bool)
		for _, e := range zr.File {
			path := strings.TrimSuffix(e.Name, "/")
			if !fs.ValidPath(path) || path == "." || strings.ContainsAny(path, "\\:*?\"<>|\x00\n\r\u202e") || len(path) > 1300 {
				t.Errorf("%q is not safe", e.Name)
			}
			for part := range strings.SplitSeq(path, "/") {
				if got := archiveops.EntryNames([]string{part}); got[0] != part {
					t.Errorf("%q in %q should be %q", part, e.Name, got[0])
				}
			}
			key := strings.ToLower(strings.ToUpper(path))
			if seen[key] {
				t.Errorf("%q occurs twice", e.Name)
			}
			seen[key] = true
		}
	})
}

func BenchmarkConvert(b *testing.B) {
	in := gnuTar(b, "in.tar.gz", tree(b, map[string][]byte{"prose.txt": prose(20 << 20), "noise.bin": noise(10 << 20)}))
	b.SetBytes(30 << 20)
	for b.Loop() {
		if _, err := run(b.Context(), archiveops.Convert(nil), toZIP(), in); err != nil {
			b.Fatal(err)
		}
	}
}
