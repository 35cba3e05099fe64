package archiveops_test

import (
	stdzip "archive/zip"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/archiveops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

func run(ctx context.Context, a fileops.Action, args fileops.Args, in ...*fileops.File) (*fileops.File, error) {
	var out *fileops.File
	err := fileops.Run(ctx, a, args, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := io.ReadAll(f.Reader())
		out = fileops.Bytes(f.Name(), b)
		return err
	}), in...)
	return out, err
}

func mustRun(t testing.TB, a fileops.Action, args fileops.Args, in ...*fileops.File) *fileops.File {
	t.Helper()
	out, err := run(t.Context(), a, args, in...)
	systest.NoError(t, err)
	return out
}

// tool runs a program and returns its standard output. The test fails if the program fails.
var tool = systest.Run

func save(t testing.TB, f *fileops.File) string {
	t.Helper()
	b, _ := f.Bytes()
	path := filepath.Join(t.TempDir(), f.Name())
	systest.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

// listed is an entry as listed by Python's zipfile.
type listed struct {
	Name     string
	Method   int
	Size     int64
	Packed   int64
	Comment  string
	Flags    int
	External int64
	Time     []int
}

const python = `
import json, sys, zipfile
z = zipfile.ZipFile(sys.argv[1])
bad = z.testzip() if len(sys.argv) < 3 else None
assert bad is None, bad
print(json.dumps({"comment": z.comment.decode(), "entries": [dict(Name=i.filename, Method=i.compress_type, Size=i.file_size, Packed=i.compress_size,
  Comment=i.comment.decode(), Flags=i.flag_bits, External=i.external_attr, Time=i.date_time) for i in z.infolist()]}))
`

// inspect tests an archive with Info-ZIP and Python and returns its entries.
func inspect(t testing.TB, f *fileops.File, more ...string) (comment string, entries []listed) {
	t.Helper()
	path := save(t, f)
	if len(more) == 0 {
		tool(t, "unzip", "-tqq", path)
	}
	var got struct {
		Comment string
		Entries []listed
	}
	systest.NoError(t, json.Unmarshal([]byte(tool(t, "/usr/bin/python3", append([]string{"-c", python, path}, more...)...)), &got))
	return got.Comment, got.Entries
}

// unpacked returns the content of an archive, unpacked by Info-ZIP.
func unpacked(t testing.TB, f *fileops.File) map[string][]byte {
	t.Helper()
	dir := t.TempDir()
	tool(t, "unzip", "-qq", "-d", dir, save(t, f))
	out := make(map[string][]byte)
	err := fs.WalkDir(os.DirFS(dir), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		out[path], err = os.ReadFile(filepath.Join(dir, path))
		return err
	})
	systest.NoError(t, err)
	return out
}

func noise(n int) []byte {
	b := make([]byte, n)
	rng := rand.New(rand.NewPCG(3, 4))
	for i := range b {
		b[i] = byte(rng.Uint32())
	}
	return b
}

// prose returns text with the uneven word frequencies of a natural language.
func prose(n int) []byte {
	rng := rand.New(rand.NewPCG(5, 6))
	words := make([]string, 3000)
	for i := range words {
		for range 2 + rng.IntN(8) {
			words[i] += string(rune('a' + rng.IntN(26)))
		}
	}
	var b bytes.Buffer
	for b.Len() < n {
		b.WriteString(words[min(len(words)-1, int(rng.ExpFloat64()*400))])
		b.WriteByte(' ')
	}
	return b.Bytes()[:n]
}

func TestConformance(t *testing.T) {
	t.Parallel()
	t.Run("zip", func(t *testing.T) {
		t.Parallel()
		fileopstest.Run(t, fileopstest.Suite{Action: archiveops.Zip(), Check: func(t *testing.T, in []*fileops.File, _ fileops.Args, out []*fileops.File) {
			if _, entries := inspect(t, out[0]); len(entries) != len(in) || out[0].Name() != "files.zip" {
				t.Errorf("%s has %d entries of %d files", out[0].Name(), len(entries), len(in))
			}
		}})
	})
	t.Run("compress", func(t *testing.T) {
		t.Parallel()
		fileopstest.Run(t, fileopstest.Suite{Action: archiveops.Compress(nil)})
	})
}

func TestZipContent(t *testing.T) {
	t.Parallel()
	const mb = 1 << 20
	files := map[string][]byte{
		"empty.txt":      {},
		"one.txt":        []byte("x"),
		"noise.bin":      noise(3*mb + 17),
		"prose.txt":      prose(2*mb + 1),
		"exact.txt":      prose(2 * mb),
		"block.txt":      prose(mb),
		"small noise":    noise(1000),
		"zeros":          make([]byte, 4*mb),
		"mixed.bin":      slices.Concat(noise(mb/2), prose(mb)),
		"Äpfel & 日本.txt": prose(3000),
	}
	var in []*fileops.File
	for name, b := range files {
		in = append(in, fileops.Bytes(name, b))
	}
	onDisk := filepath.Join(t.TempDir(), "on disk.txt")
	files["on disk.txt"] = prose(mb + 2)
	systest.NoError(t, os.WriteFile(onDisk, files["on disk.txt"], 0o600))
	then := time.Date(2011, 12, 13, 14, 15, 16, 0, time.UTC)
	systest.NoError(t, os.Chtimes(onDisk, then, then))
	in = append(in, fileops.Path(onDisk))
	for _, level := range []string{"store", "fast", "default", "best"} {
		t.Run(level, func(t *testing.T) {
			t.Parallel()
			out := mustRun(t, archiveops.Zip(), fileops.Args{"level": level}, in...)
			got := unpacked(t, out)
			if len(got) != len(files) {
				t.Errorf("%d files of %d", len(got), len(files))
			}
			for name, want := range files {
				if !bytes.Equal(got[name], want) {
					t.Errorf("%s: %d bytes, want %d", name, len(got[name]), len(want))
				}
			}
			_, entries := inspect(t, out)
			for i, e := range entries {
				if e.Name != in[i].Name() {
					t.Errorf("entry %d is %s, not %s", i, e.Name, in[i].Name())
				}
				stored := level == "store" || strings.Contains(e.Name, "noise") || e.Size <= 1
				if stored != (e.Method == 0) {
					t.Errorf("%s has method %d", e.Name, e.Method)
				}
				if e.Packed > e.Size {
					t.Errorf("%s grew from %d to %d bytes", e.Name, e.Size, e.Packed)
				}
				if stored && e.Flags&8 != 0 {
					t.Errorf("%s is stored with a data descriptor", e.Name)
				}
				if e.External>>16&0o777 != 0o644 {
					t.Errorf("%s has permissions %o", e.Name, e.External>>16)
				}
				if e.Name == "on disk.txt" && fmt.Sprint(e.Time) != "[2011 12 13 14 15 16]" {
					t.Errorf("time %v", e.Time)
				}
			}
		})
	}
}

func TestLevelsDiffer(t *testing.T) {
	t.Parallel()
	in := fileops.Bytes("a.txt", prose(3<<19))
	last := int64(1 << 40)
	for _, level := range []string{"store", "fast", "default", "best"} {
		out := mustRun(t, archiveops.Zip(), fileops.Args{"level": level}, in)
		if out.Size() >= last {
			t.Errorf("%s: %d bytes after %d", level, out.Size(), last)
		}
		last = out.Size()
	}
}

func TestNamesAreUnique(t *testing.T) {
	t.Parallel()
	in := []*fileops.File{fileops.Bytes("a.txt", []byte("1")), fileops.Bytes("A.TXT", []byte("2")), fileops.Bytes("a.txt", []byte("3"))}
	_, entries := inspect(t, mustRun(t, archiveops.Zip(), nil, in...))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name)
	}
	if want := []string{"a.txt", "A (2).TXT", "a (3).txt"}; !slices.Equal(names, want) {
		t.Errorf("got %q, want %q", names, want)
	}
}

func TestManyEntriesNeedZIP64(t *testing.T) {
	t.Parallel()
	var in []*fileops.File
	for i := range 66000 {
		in = append(in, fileops.Bytes(fmt.Sprintf("%d.txt", i), []byte("x")))
	}
	out := mustRun(t, archiveops.Zip(), nil, in...)
	if _, entries := inspect(t, out); len(entries) != len(in) || entries[65999].Name != "65999.txt" {
		t.Errorf("%d entries", len(entries))
	}
}

// TestStreamable reads entries front to back, like programs that get an archive
// through a pipe. Python does this, because bsdtar is not available everywhere.
func TestStreamable(t *testing.T) {
	t.Parallel()
	out := mustRun(t, archiveops.Zip(), nil, fileops.Bytes("a.txt", prose(5000)), fileops.Bytes("b.bin", noise(2<<20)))
	b, _ := out.Bytes()
	for _, name := range []string{"a.txt", "b.bin"} {
		i := bytes.Index(b, []byte(name))
		if i < 30 {
			t.Fatalf("no local header of %s", name)
		}
		h := b[i-30 : i]
		size := int(h[18]) | int(h[19])<<8 | int(h[20])<<16 | int(h[21])<<24
		extra := int(h[28]) | int(h[29])<<8
		next := i + len(name) + extra + size
		if next+4 > len(b) || string(b[next:next+2]) != "PK" {
			t.Errorf("%s: no entry starts where its header says that it ends", name)
		}
	}
}

func TestFileThatShrinks(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.bin")
	systest.NoError(t, os.WriteFile(path, noise(8<<20), 0o600))
	shrink := fileops.Func(archiveops.Zip().Spec(), func(ctx context.Context, job *fileops.Job) error {
		if err := os.Truncate(path, 100); err != nil {
			return err
		}
		return archiveops.Zip().Do(ctx, job)
	})
	if _, err := run(t.Context(), shrink, nil, fileops.Path(path)); !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("got %v", err)
	}
}

func TestCancelWhileCompressing(t *testing.T) {
	t.Parallel()
	for name, a := range map[string]fileops.Action{"zip": archiveops.Zip(), "compress": archiveops.Compress(nil)} {
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("enough")
		r := fileops.Runner{Progress: func(float64) { cancel(why) }}
		in := []*fileops.File{fileops.Bytes("in.zip", archive(t, 20))}
		if name == "zip" {
			big := fileops.Bytes("a.txt", prose(1<<20))
			in = slices.Repeat([]*fileops.File{big}, 40)
		}
		if err := r.Run(ctx, a, nil, fileops.ToDir(t.TempDir()), in...); !errors.Is(err, why) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// archive returns an archive of n files, compressed at a fast level.
func archive(t testing.TB, n int) []byte {
	t.Helper()
	dir := t.TempDir()
	for i := range n {
		systest.NoError(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%d.txt", i)), prose(100000+i), 0o600))
	}
	path := filepath.Join(dir, "in.zip")
	tool(t, "zip", "-q1jr", path, dir)
	b := systest.ReadFile(t, path)
	return b
}

func TestCompressKeepsEverything(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, b := range map[string][]byte{
		"sub/prose.txt": prose(300000), "sub/stored.txt": prose(50000), "run.sh": []byte("#!/bin/sh\n" + string(prose(5000))),
		"noise.bin": noise(20000), "Ünïcödé 日本.txt": prose(30000), "empty": nil,
	} {
		path := filepath.Join(dir, "src", name)
		systest.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		systest.NoError(t, os.WriteFile(path, b, 0o600))
	}
	systest.NoError(t, os.Chmod(filepath.Join(dir, "src/run.sh"), 0o755))
	then := time.Date(2001, 2, 3, 4, 5, 6, 0, time.UTC)
	systest.NoError(t, os.Chtimes(filepath.Join(dir, "src/sub/prose.txt"), then, then))
	path := filepath.Join(dir, "in.zip")
	sh := "cd " + dir + "/src && zip -q1r ../in.zip . -x sub/stored.txt && zip -q0 ../in.zip sub/stored.txt && " +
		"cp sub/prose.txt locked.txt && zip -q1 -P secret ../in.zip locked.txt && printf 'the comment\n' | zip -qz ../in.zip"
	tool(t, "sh", "-c", sh)
	in := fileops.Path(path)
	out := mustRun(t, archiveops.Compress(nil), nil, in)
	before := systest.ReadFile(t, path)
	if out.Name() != "in.zip" || out.Size() >= int64(len(before)) {
		t.Errorf("%s has %d bytes, the input %d", out.Name(), out.Size(), len(before))
	}
	wantComment, want := inspect(t, fileops.Bytes("in.zip", before), "encrypted")
	comment, got := inspect(t, out, "encrypted")
	if comment != wantComment || comment == "" {
		t.Errorf("comment %q, want %q", comment, wantComment)
	}
	if len(got) != len(want) {
		t.Fatalf("%d entries, want %d", len(got), len(want))
	}
	for i, w := range want {
		g := got[i]
		if g.Name != w.Name || g.Size != w.Size || g.External != w.External || fmt.Sprint(g.Time) != fmt.Sprint(w.Time) || g.Packed > w.Packed {
			t.Errorf("got %+v, want %+v", g, w)
		}
		if w.Name == "sub/stored.txt" && (w.Method != 0 || g.Method != 8) {
			t.Errorf("%s: method %d, was %d", w.Name, g.Method, w.Method)
		}
	}
	result := save(t, out)
	tool(t, "unzip", "-tqq", "-P", "secret", result)
	if text := tool(t, "unzip", "-p", "-P", "secret", result, "locked.txt"); text != string(prose(300000)) {
		t.Error("the encrypted entry has changed")
	}
	if text := tool(t, "unzip", "-p", result, "sub/prose.txt"); text != string(prose(300000)) {
		t.Error("an entry has changed")
	}
}

func TestCompressLargeEntry(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := slices.Concat(noise(5<<20), prose(1<<20))
	systest.NoError(t, os.WriteFile(filepath.Join(dir, "a.bin"), data, 0o600))
	path := filepath.Join(dir, "in.zip")
	tool(t, "zip", "-qj0", path, filepath.Join(dir, "a.bin"))
	out := mustRun(t, archiveops.Compress(nil), nil, fileops.Path(path))
	if got := unpacked(t, out)["a.bin"]; !bytes.Equal(got, data) {
		t.Errorf("%d bytes, want %d", len(got), len(data))
	}
}

func TestCompressKeepsWhatIsSmall(t *testing.T) {
	t.Parallel()
	in := mustRun(t, archiveops.Zip(), fileops.Args{"level": "best"}, fileops.Bytes("a.txt", prose(500000)))
	want, _ := in.Bytes()
	got, _ := mustRun(t, archiveops.Compress(nil), nil, in).Bytes()
	if !bytes.Equal(got, want) {
		t.Error("an archive without anything to gain was changed")
	}
}

func TestCompressRefuses(t *testing.T) {
	t.Parallel()
	build := func(entries ...[]byte) []byte {
		var b bytes.Buffer
		w := stdzip.NewWriter(&b)
		for i, e := range entries {
			f, err := w.Create(fmt.Sprint(i))
			if err == nil {
				_, err = f.Write(e)
			}
			systest.NoError(t, err)
		}
		systest.NoError(t, w.Close())
		return b.Bytes()
	}
	flipped := archive(t, 1)
	flipped[5000] ^= 0xff
	// Two directory entries for the same data.
	twice := build(noise(1000), noise(1000))
	dir := bytes.Index(twice, []byte("PK\x01\x02"))
	second := bytes.LastIndex(twice, []byte("PK\x01\x02"))
	copy(twice[second+42:second+46], twice[dir+42:dir+46])
	packed := twice[dir+20 : dir+24]
	packed[2] = 1 // claims 65536 bytes more
	for _, tt := range []struct {
		name string
		l    archiveops.Limits
		in   []byte
		want error
	}{
		{"entries", archiveops.Limits{Entries: 2}, build(nil, nil, nil), fileops.ErrLimit},
		{"size", archiveops.Limits{Unpacked: 1000}, build(prose(600), prose(600)), fileops.ErrLimit},
		{"checksum", archiveops.Limits{}, flipped, fileops.ErrCorruptInput},
		{"overlap", archiveops.Limits{}, twice, fileops.ErrCorruptInput},
		{"truncated", archiveops.Limits{}, archive(t, 1)[:5000], fileops.ErrCorruptInput},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if _, err := run(t.Context(), archiveops.Compress(&tt.l), nil, fileops.Bytes("in.zip", tt.in)); !errors.Is(err, tt.want) {
				t.Errorf("got %v, want %v", err, tt.want)
			}
		})
	}
	t.Run("ratio", func(t *testing.T) {
		t.Parallel()
		bomb := build(make([]byte, 20<<20), prose(100000))
		// The suspicious entry is not unpacked, so its size does not count.
		out := mustRun(t, archiveops.Compress(&archiveops.Limits{Unpacked: 1 << 20}), nil, fileops.Bytes("in.zip", bomb))
		if _, entries := inspect(t, out); entries[0].Size != 20<<20 {
			t.Errorf("%+v", entries[0])
		}
	})
}

func TestSpecs(t *testing.T) {
	t.Parallel()
	reg, err := fileops.NewRegistry(archiveops.Zip(), archiveops.Compress(nil))
	systest.NoError(t, err)
	if _, _, err := reg.Resolve("zip", []format.Format{"xyz", "", format.PNG}, nil); err != nil {
		t.Errorf("zip of any files: %v", err)
	}
	if _, _, err := reg.Resolve("compress", []format.Format{format.SevenZip}, nil); !errors.Is(err, errors.ErrUnsupported) {
		t.Errorf("compress of 7z: %v", err)
	}
}

func BenchmarkZip(b *testing.B) {
	var in []*fileops.File
	var size int64
	for i := range 10 {
		for name, data := range map[string][]byte{"prose": prose(3 << 20), "noise": noise(2 << 20)} {
			in = append(in, fileops.Bytes(fmt.Sprintf("%s%d", name, i), data))
			size += int64(len(data))
		}
	}
	for _, level := range []string{"fast", "default", "best"} {
		b.Run(level, func(b *testing.B) {
			b.SetBytes(size)
			for b.Loop() {
				if _, err := run(b.Context(), archiveops.Zip(), fileops.Args{"level": level}, in...); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkCompress(b *testing.B) {
	in := fileops.Bytes("in.zip", archive(b, 20))
	b.SetBytes(in.Size())
	for b.Loop() {
		if _, err := run(b.Context(), archiveops.Compress(nil), nil, in); err != nil {
			b.Fatal(err)
		}
	}
}
