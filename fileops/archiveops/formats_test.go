package archiveops_test

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/archiveops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

// action returns an action of an engine with bsdtar.
func action(t testing.TB, name string, limits ...archiveops.Limits) fileops.Action {
	t.Helper()
	o := archiveops.Options{Sandbox: engine.NewSandbox()}
	for _, l := range limits {
		o.Limits = l
	}
	e, err := archiveops.New(t.Context(), o)
	systest.NoError(t, err)
	for _, d := range e.Dependencies() {
		systest.NoError(t, d.Err)
	}
	for _, a := range e.Actions() {
		if a.Spec().Name == name {
			return a
		}
	}
	t.Fatalf("no action %s", name)
	return nil
}

// bsdtarOf packs a folder with bsdtar.
func bsdtarOf(t testing.TB, name, dir string) *fileops.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	kind := map[string]string{".iso": "iso9660", ".cpio": "newc"}[filepath.Ext(name)]
	tool(t, "bsdtar", "-C", dir, "-cf", path, "--format", kind, ".")
	return fileops.Bytes(name, systest.ReadFile(t, path))
}

// debOf builds a Debian package that installs the files of a folder.
func debOf(t testing.TB, dir string, args ...string) *fileops.File {
	t.Helper()
	root := t.TempDir()
	systest.NoError(t, os.CopyFS(root, os.DirFS(dir)))
	systest.NoError(t, os.Mkdir(filepath.Join(root, "DEBIAN"), 0o755))
	control := "Package: test\nVersion: 1\nArchitecture: all\nMaintainer: nobody <nobody@example.com>\nDescription: test\n"
	systest.NoError(t, os.WriteFile(filepath.Join(root, "DEBIAN", "control"), []byte(control), 0o600))
	path := filepath.Join(t.TempDir(), "in.deb")
	tool(t, "dpkg-deb", append(args, "--build", root, path)...)
	return fileops.Bytes("in.deb", systest.ReadFile(t, path))
}

// specimenFiles returns the files of a specimen.
func specimenFiles(f format.Format) map[string][]byte {
	files := make(map[string][]byte)
	for _, e := range specimen.ArchiveEntries() {
		name := e[0]
		if f == format.AR {
			name = strings.ReplaceAll(name, "/", "_")
		}
		files[name] = []byte(e[1])
	}
	return files
}

// unpackedTo unpacks a result with another program and returns the folder.
func unpackedTo(t testing.TB, f *fileops.File) string {
	t.Helper()
	dir := t.TempDir()
	if f.Format() == format.SevenZip {
		path := save(t, f)
		tool(t, "7z", "t", path)
		tool(t, "bsdtar", "-C", dir, "-xpf", path) // 7-Zip refuses links that begin with ".."
		return dir
	}
	tool(t, "tar", "-C", dir, "-xf", save(t, f))
	return dir
}

// untarred returns the files of a tar or 7z archive.
func untarred(t testing.TB, f *fileops.File) map[string][]byte {
	t.Helper()
	dir := unpackedTo(t, f)
	files := make(map[string][]byte)
	systest.NoError(t, fs.WalkDir(os.DirFS(dir), ".", func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type().IsRegular() {
			files[p] = systest.ReadFile(t, filepath.Join(dir, p))
		}
		return err
	}))
	return files
}

// Archives keep names, times, permissions and links when they become another archive.
func TestConvertKeeps(t *testing.T) {
	t.Parallel()
	then := time.Date(2011, 12, 13, 14, 15, 16, 0, time.UTC)
	dir := tree(t, map[string][]byte{"sub/run.sh": []byte("#!/bin/sh\n"), "Äpfel.txt": prose(70_000), "read-only": {}})
	path := func(name string) string { return filepath.Join(dir, name) }
	for name, mode := range map[string]fs.FileMode{"sub/run.sh": 0o750, "Äpfel.txt": 0o640, "read-only": 0o400} {
		systest.NoError(t, os.Chmod(path(name), mode))
	}
	systest.NoError(t, os.Symlink("../Äpfel.txt", path("sub/up")))
	systest.NoError(t, os.Symlink("sub", path("folder")))
	systest.NoError(t, os.Mkdir(path("empty"), 0o700))
	systest.NoError(t, os.Chtimes(path("Äpfel.txt"), then, then))
	zip := filepath.Join(t.TempDir(), "in.zip")
	tool(t, "bash", "-c", "cd \"$0\" && zip -q -r -y \"$1\" .", dir, zip)
	targets := []string{"tar", "tar.gz", "tar.zst", "tar.xz", "tar.bz2", "7z"}
	for _, in := range []*fileops.File{gnuTar(t, "in.tgz", dir), sevenZip(t, dir, "-snl"), fileops.Bytes("in.zip", systest.ReadFile(t, zip)), bsdtarOf(t, "in.cpio", dir), bsdtarOf(t, "in.iso", dir)} {
		for _, to := range targets {
			if in.Format() != format.TAR && to == "tar.zst" && testing.Short() || in.Format() == format.Parse("a."+to) {
				continue
			}
			t.Run(string(in.Format())+" to "+to, func(t *testing.T) {
				t.Parallel()
				out := mustRun(t, action(t, "convert"), fileops.Args{"convert_to": to}, in)
				got := unpackedTo(t, out)
				for name, mode := range map[string]fs.FileMode{"sub/run.sh": 0o750, "Äpfel.txt": 0o640, "read-only": 0o600, "empty": 0o700 | fs.ModeDir, "sub": 0o700 | fs.ModeDir} {
					st, err := os.Lstat(filepath.Join(got, name))
					if err != nil {
						t.Error(err)
						continue
					}
					if in.Format() == format.ISO { // bsdtar writes them as it likes
						mode = mode&^0o777 | st.Mode()&0o777
					}
					if st.Mode() != mode {
						t.Errorf("%s has %v, want %v", name, st.Mode(), mode)
					}
				}
				for name, target := range map[string]string{"sub/up": "../Äpfel.txt", "folder": "sub"} {
					if s, err := os.Readlink(filepath.Join(got, name)); s != target {
						t.Errorf("%s leads to %q, %v", name, s, err)
					}
				}
				st, err := os.Stat(filepath.Join(got, "Äpfel.txt"))
				if err != nil || !st.ModTime().Equal(then) {
					t.Errorf("time %v, %v", st.ModTime(), err)
				}
				same(t, untarred(t, out), map[string][]byte{"sub/run.sh": []byte("#!/bin/sh\n"), "Äpfel.txt": prose(70_000), "read-only": {}})
			})
		}
	}
}

// Links that lead out of the archive are left out, in whatever way they do that.
func TestConvertUnsafeLinks(t *testing.T) {
	t.Parallel()
	link := func(name, target string) tar.Header {
		return tar.Header{Name: name, Linkname: target, Typeflag: tar.TypeSymlink, Mode: 0o777}
	}
	file := func(name string) tar.Header { return tar.Header{Name: name, Typeflag: tar.TypeReg, Mode: 0o644} }
	for _, tt := range []struct {
		name    string
		entries []tar.Header
		want    map[string]string // links of the result
		files   []string
	}{
		{"absolute", []tar.Header{file("a"), link("l", "/etc/passwd")}, nil, []string{"a"}},
		{"up", []tar.Header{file("a"), link("l", "../a"), link("x/l", "../../a"), link("x/m", "../a")}, map[string]string{"x/m": "../a"}, []string{"a"}},
		{"up behind a link", []tar.Header{file("a"), link("x/y/z", "../.."), link("p", "x/y/z/.."), link("q", "./x/../../b")}, map[string]string{"x/y/z": "../.."}, []string{"a"}},
		{"through a link", []tar.Header{link("d", "."), file("d/a"), link("d/l", "../b")}, map[string]string{"d": ".", "d (2)/l": "../b"}, []string{"d (2)/a"}},
		{"backslashes", []tar.Header{file("a"), link("l", `..\..\a`)}, nil, []string{"a"}},
		{"renamed", []tar.Header{file("a?b"), link("l", "a?b"), link("m", "nul")}, nil, []string{"a_b"}},
		{"to itself", []tar.Header{file("a"), link("l", "l"), link("m", "")}, map[string]string{"l": "l"}, []string{"a"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			in := fileops.Bytes("in.tar.gz", compressed(t, pack(t, tt.entries...)))
			out, warnings := warned(t, action(t, "convert"), fileops.Args{"convert_to": "tar"}, in)
			dir := unpackedTo(t, out)
			links, n := make(map[string]string), 0
			var files []string
			systest.NoError(t, filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
				rel, _ := filepath.Rel(dir, p)
				switch {
				case d.Type()&fs.ModeSymlink != 0:
					links[rel], err = os.Readlink(p)
				case d.Type().IsRegular():
					files = append(files, rel)
				}
				return err
			}))
			if fmt.Sprint(links) != fmt.Sprint(tt.want) && len(links)+len(tt.want) > 0 || !slices.Equal(files, tt.files) {
				t.Errorf("links %v, files %q", links, files)
			}
			for _, h := range tt.entries {
				if h.Typeflag == tar.TypeSymlink {
					n++
				}
			}
			dropped := slices.ContainsFunc(warnings, func(w fileops.Warning) bool { return w.Code == fileops.WarnLinksDropped })
			if want := n > len(tt.want); dropped != want {
				t.Errorf("warnings %v", warnings)
			}
		})
	}
}

// warned also returns the warnings.
func warned(t testing.TB, a fileops.Action, args fileops.Args, in *fileops.File) (out *fileops.File, warnings []fileops.Warning) {
	t.Helper()
	p, err := a.Spec().Accepts[0].Params.Parse(args)
	for _, acc := range a.Spec().Accepts {
		if slices.Contains(acc.Formats, in.Format()) {
			p, err = acc.Params.Parse(args)
		}
	}
	systest.NoError(t, err)
	r := &fileops.Runner{Warn: func(w fileops.Warning) { warnings = append(warnings, w) }}
	err = r.Do(t.Context(), a, p, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := f.ReadAll(1 << 30)
		out = fileops.Bytes(f.Name(), bytes.Clone(b))
		return err
	}), in)
	systest.NoError(t, err)
	return out, warnings
}

// Archives that bsdtar reads have the limits of others, and damaged ones fail.
func TestBSDTarLimits(t *testing.T) {
	t.Parallel()
	zeros := bsdtarOf(t, "in.cpio", tree(t, map[string][]byte{"z": make([]byte, 30<<20)}))
	for name, l := range map[string]archiveops.Limits{"unpacked": {Unpacked: 1 << 20}, "entries": {Entries: 1}} {
		if _, err := run(t.Context(), action(t, "convert", l), toZIP(), zeros); fileops.Code(err) != "limit_exceeded" {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The payload of a package is compressed.
	zipped := mustBytes(t, filtered(t, "z.xz", mustBytes(t, zeros)))
	head, _ := specimen.Of(t, format.RPM).Bytes()
	bomb := fileops.Bytes("in.rpm", slices.Concat(head[:128], zipped))
	if _, err := run(t.Context(), action(t, "extract"), nil, bomb); fileops.Code(err) != "limit_exceeded" || !strings.Contains(fileops.Message(err), "times its size") {
		t.Errorf("dense: %v", err)
	}
	for _, f := range []format.Format{format.ISO, format.CAB, format.CPIO, format.RPM, format.LZH, format.DEB, format.LZ4, format.LZMA, format.LZ, format.TarLZMA, format.TarLZ} {
		b, _ := specimen.Of(t, f).Bytes()
		if f == format.ISO {
			b = b[:bytes.Index(b, []byte(specimen.Text))+100] // padding follows the files
		}
		if _, err := run(t.Context(), action(t, "convert"), toZIP(), fileops.Bytes("in."+string(f), b[:len(b)-len(b)/20-2])); fileops.Code(err) != "corrupt_input" {
			t.Errorf("truncated %s: %v", f, err)
		}
	}
}

// Every compression of the data of a Debian package is read.
func TestDebianPackages(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"usr/share/doc/a/b.txt": prose(9000)}
	for _, method := range []string{"none", "gzip", "xz", "zstd"} {
		in := debOf(t, tree(t, files), "-Z"+method)
		same(t, unpacked(t, mustRun(t, archiveops.Convert(nil), toZIP(), in)), files)
	}
	if _, err := run(t.Context(), archiveops.Convert(nil), toZIP(), fileops.Bytes("a.deb", []byte("!<arch>\ndebian-binary   0           0     0     100644  4         `\n2.0\n"))); fileops.Code(err) != "corrupt_input" {
		t.Errorf("without files: %v", err)
	}
}
