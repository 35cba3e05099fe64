// Package blobtest tests whether a backend fulfils the contract of blob.Store and of
// the optional roles of package blob that it has.
package blobtest

import (
	"bytes"
	"context"
	"crypto/md5"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload/blob"
)

// Run tests a backend. open returns an empty store for one test and registers its
// cleanup with t.Cleanup.
func Run(t *testing.T, open func(t *testing.T) blob.Store) {
	for _, tt := range []struct {
		name string
		f    func(t *testing.T, s blob.Store)
	}{
		{"PutOpen", testPutOpen},
		{"Replace", testReplace},
		{"ShortReader", testShortReader},
		{"LongReader", testLongReader},
		{"FailingReader", testFailingReader},
		{"NegativeSize", testNegativeSize},
		{"MissingKey", testMissingKey},
		{"InvalidKeys", testInvalidKeys},
		{"KeysAreNames", testKeysAreNames},
		{"Delete", testDelete},
		{"DeleteAll", testDeleteAll},
		{"List", testList},
		{"ListStops", testListStops},
		{"Context", testContext},
		{"ReadAt", testReadAt},
		{"ReaderOutlivesDelete", testReaderOutlivesDelete},
		{"AtomicReplace", testAtomicReplace},
		{"Concurrent", testConcurrent},
		{"Compose", testCompose},
		{"Move", testMove},
		{"PutFile", testPutFile},
		{"Sweep", testSweep},
		{"Assembly", testAssembly},
		{"AssemblyRandom", testAssemblyRandom},
		{"AssemblyReplace", testAssemblyReplace},
		{"AssemblyAbort", testAssemblyAbort},
		{"Stager", testStager},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			tt.f(t, open(t))
		})
	}
}

// RunAway tests that a backend distinguishes a missing key from an unreachable store.
// open returns a store with any content, and a function that makes the store
// unreachable.
func RunAway(t *testing.T, open func(t *testing.T) (s blob.Store, leave func())) {
	s, leave := open(t)
	put(t, s, "a/there", []byte("x"))
	wantMissing(t, s, "a/missing")
	if _, err := blob.Stat(t.Context(), s, "a/missing"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Stat of a missing key = %v", err)
	}
	if i, err := blob.Stat(t.Context(), s, "a/there"); err != nil || i.Key != "a/there" || i.Size != 1 || i.ModTime.IsZero() {
		t.Errorf("Stat = %+v, %v", i, err)
	}
	leave()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	away := func(what string, err error) {
		if err == nil || errors.Is(err, fs.ErrNotExist) || !errors.Is(err, blob.ErrUnavailable) {
			t.Errorf("%s of a store that is away = %v", what, err)
		}
	}
	var wg sync.WaitGroup // a store may retry for a while
	for _, key := range []string{"a/there", "a/missing"} {
		wg.Go(func() {
			_, err := s.Open(ctx, key)
			away("Open", err)
		})
		wg.Go(func() {
			_, err := blob.Stat(ctx, s, key)
			away("Stat", err)
		})
	}
	wg.Go(func() {
		var last error
		for _, err := range s.List(ctx, "a/") {
			last = err
		}
		away("List", last)
	})
	wg.Wait()
}

func put(t *testing.T, s blob.Store, key string, data []byte) {
	t.Helper()
	if err := s.Put(t.Context(), key, bytes.NewReader(data), int64(len(data))); err != nil {
		t.Fatalf("Put(%q) = %v", key, err)
	}
}

// get reads an object in every possible way.
func get(t *testing.T, s blob.Store, key string) []byte {
	t.Helper()
	o, err := s.Open(t.Context(), key)
	if err != nil {
		t.Fatalf("Open(%q) = %v", key, err)
	}
	defer func() {
		if err := o.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
	}()
	data, err := io.ReadAll(blob.NewReader(o))
	if err != nil {
		t.Fatalf("reading %q: %v", key, err)
	}
	if i := o.Info(); i.Key != key || i.Size != int64(len(data)) || i.ModTime.IsZero() {
		t.Errorf("Info of %q = %+v, want size %d", key, i, len(data))
	}
	if o, ok := o.(blob.MemoryObject); ok && !bytes.Equal(o.Bytes(), data) {
		t.Errorf("Bytes of %q differ from what is read", key)
	}
	if o, ok := o.(blob.LocalObject); ok {
		if local, err := os.ReadFile(o.LocalPath()); err != nil || !bytes.Equal(local, data) {
			t.Errorf("file of %q differs from what is read: %v", key, err)
		}
	}
	return data
}

func want(t *testing.T, s blob.Store, key string, data []byte) {
	t.Helper()
	if got := get(t, s, key); !bytes.Equal(got, data) {
		t.Fatalf("%q has %d bytes with MD5 %x, want %d with %x", key, len(got), md5.Sum(got), len(data), md5.Sum(data))
	}
}

func wantMissing(t *testing.T, s blob.Store, key string) {
	t.Helper()
	if o, err := s.Open(t.Context(), key); !errors.Is(err, fs.ErrNotExist) {
		if err == nil {
			o.Close()
		}
		t.Fatalf("Open(%q) = %v, want fs.ErrNotExist", key, err)
	}
}

func wantErr(t *testing.T, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Errorf("%s = %v, want %v", what, err, target)
	}
}

func keys(t *testing.T, s blob.Store, prefix string) []string {
	t.Helper()
	var keys []string
	for i, err := range s.List(t.Context(), prefix) {
		if err != nil {
			t.Fatalf("List(%q): %v", prefix, err)
		}
		keys = append(keys, i.Key)
	}
	return keys
}

// noise returns n pseudorandom bytes for a seed.
func noise(seed uint64, n int) []byte {
	b := make([]byte, n)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8), byte(seed >> 16)}).Read(b) // never fails
	return b
}

func testPutOpen(t *testing.T, s blob.Store) {
	for _, n := range []int{0, 1, 4095, 4096, 1<<20 + 7} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			data := noise(uint64(n), n)
			key := fmt.Sprint("size/", n)
			before := time.Now()
			// One byte at a time at first, as from a slow network.
			r := io.MultiReader(iotest.OneByteReader(bytes.NewReader(data[:n/100])), iotest.DataErrReader(bytes.NewReader(data[n/100:])))
			systest.NoError(t, s.Put(t.Context(), key, r, int64(n)))
			want(t, s, key, data)
			i, err := blob.Stat(t.Context(), s, key)
			if err != nil || i.Size != int64(n) || i.ModTime.Before(before.Add(-2*time.Second)) || i.ModTime.After(time.Now().Add(2*time.Second)) {
				t.Errorf("Stat = %+v, %v", i, err)
			}
		})
	}
}

func testReplace(t *testing.T, s blob.Store) {
	put(t, s, "k", []byte("a longer value"))
	put(t, s, "k", []byte("short"))
	want(t, s, "k", []byte("short"))
	put(t, s, "k", nil)
	want(t, s, "k", nil)
}

func testShortReader(t *testing.T, s blob.Store) {
	wantErr(t, "short Put", s.Put(t.Context(), "new", strings.NewReader("abc"), 4), io.ErrUnexpectedEOF)
	wantMissing(t, s, "new")
	put(t, s, "old", []byte("before"))
	wantErr(t, "short Put", s.Put(t.Context(), "old", strings.NewReader("abc"), 4), io.ErrUnexpectedEOF)
	want(t, s, "old", []byte("before"))
	wantErr(t, "empty Put", s.Put(t.Context(), "new", strings.NewReader(""), 1), io.ErrUnexpectedEOF)
	if got := keys(t, s, ""); !slices.Equal(got, []string{"old"}) {
		t.Errorf("List = %q", got)
	}
}

func testLongReader(t *testing.T, s blob.Store) {
	for _, n := range []int64{0, 1, 5} {
		r := strings.NewReader("abcdefgh")
		systest.NoError(t, s.Put(t.Context(), "k", r, n))
		want(t, s, "k", []byte("abcdefgh")[:n])
		if r.Len() != int(8-n) {
			t.Errorf("Put of %d bytes read %d", n, 8-r.Len())
		}
	}
}

func testFailingReader(t *testing.T, s blob.Store) {
	broken := errors.New("broken pipe")
	put(t, s, "old", []byte("before"))
	for _, size := range []int{10, 300_000} { // small objects may be held before they are sent
		for _, key := range []string{"new", "old"} {
			r := io.MultiReader(bytes.NewReader(noise(1, size*2/3)), iotest.ErrReader(broken))
			wantErr(t, "Put", s.Put(t.Context(), key, r, int64(size)), broken)
		}
	}
	wantMissing(t, s, "new")
	want(t, s, "old", []byte("before"))
}

func testNegativeSize(t *testing.T, s blob.Store) {
	if err := s.Put(t.Context(), "k", strings.NewReader("abc"), -1); err == nil {
		t.Error("Put of -1 bytes succeeds")
	}
	wantMissing(t, s, "k")
}

func testMissingKey(t *testing.T, s blob.Store) {
	wantMissing(t, s, "k")
	wantMissing(t, s, "no/such/key")
	put(t, s, "a/b/c", []byte("x"))
	for _, key := range []string{"a", "a/b", "a/b/c/d", "a/b/cc"} {
		wantMissing(t, s, key)
		if err := s.Delete(t.Context(), key); err != nil {
			t.Errorf("Delete(%q) = %v", key, err)
		}
	}
	for _, data := range [][]byte{nil, []byte("abc")} {
		put(t, s, "stat", data)
		if i, err := blob.Stat(t.Context(), s, "stat"); err != nil || i.Key != "stat" || i.Size != int64(len(data)) {
			t.Errorf("Stat of %d bytes = %+v, %v", len(data), i, err)
		}
	}
	want(t, s, "a/b/c", []byte("x"))
}

func testInvalidKeys(t *testing.T, s blob.Store) {
	for _, key := range []string{
		"", ".", "..", "/", "/abs", "a/", "a//b", "../up", "a/../b", "a/./b", "./a", "nul\x00byte", "a/\xff", "\xc0\xaf",
		strings.Repeat("k/", blob.MaxKey/2) + "k",
	} {
		name := fmt.Sprintf("%.20q", key)
		wantErr(t, "Put("+name+")", s.Put(t.Context(), key, strings.NewReader("x"), 1), fs.ErrInvalid)
		wantErr(t, "Delete("+name+")", s.Delete(t.Context(), key), fs.ErrInvalid)
		_, err := s.Open(t.Context(), key)
		wantErr(t, "Open("+name+")", err, fs.ErrInvalid)
	}
	if got := keys(t, s, ""); got != nil {
		t.Errorf("List = %q", got)
	}
}

// Every valid key must work and name a separate object.
func testKeysAreNames(t *testing.T, s blob.Store) {
	all := []string{
		"a", "a/b", "a/b/c", "A", "a b", "a%2Fb", "a+b", "a=b", "=a/b", "-a/-b", "-", "=", "...", ".hidden", "..a/b..",
		"täst/ключ/键", "a\\b", "a:b", "a*?\"<>|", "line\nbreak", "tab\t", "~", "e\u0301", "é", strings.Repeat("long", 50),
		strings.Repeat("d/", 50) + "deep", "-rf", "con", "nul", "a.tmp", "\U0001F600",
	}
	for _, k := range all {
		put(t, s, k, []byte("data of "+k))
	}
	for _, k := range all {
		want(t, s, k, []byte("data of "+k))
	}
	slices.Sort(all)
	if got := keys(t, s, ""); !slices.Equal(got, all) {
		t.Errorf("List = %q\nwant   %q", got, all)
	}
	for i, k := range all {
		systest.NoError(t, s.Delete(t.Context(), k))
		if got := keys(t, s, ""); !slices.Equal(got, all[i+1:]) {
			t.Fatalf("List after Delete(%q) = %q\nwant %q", k, got, all[i+1:])
		}
	}
}

func testDelete(t *testing.T, s blob.Store) {
	put(t, s, "d/k", []byte("x"))
	put(t, s, "d/other", []byte("y"))
	for range 2 {
		systest.NoError(t, s.Delete(t.Context(), "d/k"))
		wantMissing(t, s, "d/k")
	}
	want(t, s, "d/other", []byte("y"))
	put(t, s, "d/k", []byte("again"))
	want(t, s, "d/k", []byte("again"))
}

func testDeleteAll(t *testing.T, s blob.Store) {
	var some []string
	for i := range 12 {
		key := fmt.Sprintf("d/%02d", i)
		put(t, s, key, nil)
		if i%4 != 0 {
			some = append(some, key)
		}
	}
	for range 2 { // the second time there is nothing to delete
		failed := blob.DeleteAll(t.Context(), s, append(some, "none", "../x"))
		if err := failed["../x"]; len(failed) != 1 || !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("DeleteAll = %v, want an error for the invalid key only", failed)
		}
		if got := keys(t, s, ""); !slices.Equal(got, []string{"d/00", "d/04", "d/08"}) {
			t.Errorf("after DeleteAll there are %q", got)
		}
	}
	if failed := blob.DeleteAll(t.Context(), s, nil); len(failed) > 0 {
		t.Errorf("DeleteAll of nothing = %v", failed)
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	failed := blob.DeleteAll(cancelled, s, []string{"d/00", "d/04"})
	for _, key := range []string{"d/00", "d/04"} {
		wantErr(t, "DeleteAll", failed[key], context.Canceled)
		want(t, s, key, nil)
	}
}

func testList(t *testing.T, s blob.Store) {
	if got := keys(t, s, ""); got != nil {
		t.Errorf("List of an empty store = %q", got)
	}
	all := []string{
		"a", "a-", "a-x", "a/b", "a/b/c", "a/bb", "a/b-", "a0", "ab", "ab-c", "ab/d", "abc", "b/1", "b/10", "b/2", "é", "éa", "é/x",
	}
	for i := range 60 {
		all = append(all, fmt.Sprintf("many/%02x%d", i*37%256, i))
	}
	for _, i := range rand.New(rand.NewPCG(1, 2)).Perm(len(all)) {
		put(t, s, all[i], noise(1, i))
	}
	size := make(map[string]int)
	for i, k := range all {
		size[k] = i
	}
	slices.Sort(all)
	for _, prefix := range []string{"", "a", "a/", "a/b", "ab", "ab/", "b/1", "b/10", "b/2/", "many/", "many/0", "z", "é", "a-x", "a-xy", "/"} {
		var wanted []string
		for _, k := range all {
			if strings.HasPrefix(k, prefix) {
				wanted = append(wanted, k)
			}
		}
		if got := keys(t, s, prefix); !slices.Equal(got, wanted) {
			t.Errorf("List(%q) = %q\nwant %q", prefix, got, wanted)
		}
	}
	for i, err := range s.List(t.Context(), "") {
		if err != nil || i.Size != int64(size[i.Key]) || i.ModTime.IsZero() {
			t.Errorf("List has %+v, %v", i, err)
		}
	}
}

func testListStops(t *testing.T, s blob.Store) {
	for i := range 10 {
		put(t, s, fmt.Sprint("x/", i), nil)
	}
	n := 0
	for range s.List(t.Context(), "") {
		if n++; n == 3 {
			break
		}
	}
	// The objects may be deleted while they are listed.
	n = 0
	for i, err := range s.List(t.Context(), "x/") {
		systest.NoError(t, err)
		systest.NoError(t, s.Delete(t.Context(), i.Key))
		n++
	}
	if got := keys(t, s, ""); n != 10 || got != nil {
		t.Errorf("deleted %d, left %q", n, got)
	}
}

func testContext(t *testing.T, s blob.Store) {
	put(t, s, "k", []byte("value"))
	ctx, cancel := context.WithCancel(t.Context())
	o, err := s.Open(ctx, "k")
	systest.NoError(t, err)
	defer o.Close()

	// Cancelled in the middle of Put.
	r := &funcReader{func(b []byte, n int) (int, error) {
		if n == 2 {
			cancel()
		}
		return copy(b, "some bytes"), nil
	}, 0}
	wantErr(t, "Put", s.Put(ctx, "new", r, 100<<20), context.Canceled)
	if r.n > 1000 {
		t.Errorf("Put went on reading %d times", r.n)
	}
	wantMissing(t, s, "new")

	_, err = o.ReadAt(make([]byte, 1), 0)
	wantErr(t, "ReadAt", err, context.Canceled)
	wantErr(t, "Put", s.Put(ctx, "k", strings.NewReader("other"), 5), context.Canceled)
	wantErr(t, "Delete", s.Delete(ctx, "k"), context.Canceled)
	_, err = s.Open(ctx, "k")
	wantErr(t, "Open", err, context.Canceled)
	var last error
	for _, err := range s.List(ctx, "") {
		last = err
	}
	wantErr(t, "List", last, context.Canceled)
	want(t, s, "k", []byte("value"))
}

type funcReader struct {
	f func(b []byte, n int) (int, error)
	n int
}

func (r *funcReader) Read(b []byte) (int, error) {
	r.n++
	return r.f(b, r.n)
}

func testReadAt(t *testing.T, s blob.Store) {
	data := noise(7, 100_000)
	put(t, s, "k", data)
	o, err := s.Open(t.Context(), "k")
	systest.NoError(t, err)
	defer o.Close()
	systest.Check(t, iotest.TestReader(blob.NewReader(o), data))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			b := make([]byte, 1000)
			for off := i * 11; off < len(data)-len(b); off += 997 {
				if n, err := o.ReadAt(b, int64(off)); n != len(b) || err != nil || !bytes.Equal(b, data[off:off+n]) {
					t.Errorf("ReadAt(%d) = %d, %v", off, n, err)
					return
				}
			}
		})
	}
	wg.Wait()
	b := make([]byte, 10)
	if n, err := o.ReadAt(b, int64(len(data)-3)); n != 3 || err != io.EOF {
		t.Errorf("ReadAt over the end = %d, %v, want 3, EOF", n, err)
	}
	if n, err := o.ReadAt(b, int64(len(data))); n != 0 || err != io.EOF {
		t.Errorf("ReadAt at the end = %d, %v, want 0, EOF", n, err)
	}
	if _, err := o.ReadAt(b, -1); err == nil {
		t.Error("ReadAt(-1) succeeds")
	}
}

func testReaderOutlivesDelete(t *testing.T, s blob.Store) {
	for _, early := range []bool{true, false} { // whether the path is requested before the change
		put(t, s, "k", []byte("old value"))
		o, err := s.Open(t.Context(), "k")
		systest.NoError(t, err)
		local, hasPath := o.(blob.LocalObject)
		path := ""
		if hasPath && early {
			path = local.LocalPath()
		}
		put(t, s, "k", []byte("new"))
		systest.NoError(t, s.Delete(t.Context(), "k"))
		got, err := io.ReadAll(blob.NewReader(o))
		if err != nil || string(got) != "old value" {
			t.Errorf("a reader sees %q, %v after Put and Delete", got, err)
		}
		if hasPath {
			if p := local.LocalPath(); early && p != path {
				t.Errorf("path changes from %s to %s", path, p)
			}
			if got, err := os.ReadFile(local.LocalPath()); err != nil || string(got) != "old value" {
				t.Errorf("the path leads to %q, %v after Put and Delete", got, err)
			}
			if link, err := os.Lstat(local.LocalPath()); early && (err != nil || !link.Mode().IsRegular()) {
				t.Errorf("the path is no regular file: %v, %v", link, err)
			}
		}
		systest.Check(t, o.Close())
		if hasPath && early { // the other kind of path may be reused at once
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("after Close the path still exists: %v", err)
			}
		}
	}
}

func testAtomicReplace(t *testing.T, s blob.Store) {
	version := func(v int) []byte { return bytes.Repeat([]byte{byte('a' + v)}, 20_000+v*1000) }
	put(t, s, "dir/k", version(0))
	stop := make(chan struct{})
	var readers sync.WaitGroup
	for range 3 {
		readers.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				o, err := s.Open(t.Context(), "dir/k")
				if err != nil {
					t.Errorf("Open during Put = %v", err)
					return
				}
				b, err := io.ReadAll(blob.NewReader(o))
				o.Close()
				if err != nil || len(b) == 0 || !bytes.Equal(b, version(int(b[0]-'a'))) {
					t.Errorf("a reader sees a mixture: %d bytes, %v", len(b), err)
					return
				}
			}
		})
	}
	var writers sync.WaitGroup
	for w := range 2 {
		writers.Go(func() {
			for i := range 20 {
				v := version((i*2 + w) % 26)
				systest.Check(t, s.Put(t.Context(), "dir/k", iotest.HalfReader(bytes.NewReader(v)), int64(len(v))))
			}
		})
	}
	writers.Wait()
	close(stop)
	readers.Wait()
}

func testConcurrent(t *testing.T, s blob.Store) {
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			for i := range 15 {
				// Some keys are shared, and directories of a backend come and go.
				shared := fmt.Sprintf("s/%d/k", i%3)
				own := fmt.Sprintf("w%d/x/%d", w, i)
				for _, k := range []string{shared, own} {
					systest.Check(t, s.Put(t.Context(), k, strings.NewReader(k), int64(len(k))))
				}
				systest.Check(t, s.Delete(t.Context(), shared))
				o, err := s.Open(t.Context(), own)
				if err != nil {
					t.Error(err)
					continue
				}
				o.Close()
				for _, err := range s.List(t.Context(), "") {
					systest.Check(t, err)
				}
			}
		})
	}
	wg.Wait()
	if n := len(keys(t, s, "w")); n != 8*15 {
		t.Errorf("%d objects are left, want %d", n, 8*15)
	}
}

func testCompose(t *testing.T, s blob.Store) {
	var all []byte
	var from []string
	for i, n := range []int{5, 0, 100_000, 4096, 8192, 1} {
		k := fmt.Sprint("parts/u/", i+1)
		put(t, s, k, noise(uint64(i), n))
		from = append(from, k)
		all = append(all, noise(uint64(i), n)...)
	}
	put(t, s, "whole", []byte("before"))
	err := blob.Compose(t.Context(), s, "whole", append(slices.Clone(from), "parts/u/99"))
	wantErr(t, "Compose with a missing object", err, fs.ErrNotExist)
	want(t, s, "whole", []byte("before"))
	if got := keys(t, s, "parts/"); !slices.Equal(got, from) {
		t.Fatalf("after a failed Compose there are %q", got)
	}
	systest.NoError(t, blob.Compose(t.Context(), s, "whole", from))
	want(t, s, "whole", all)
	if got := keys(t, s, ""); !slices.Equal(got, []string{"whole"}) {
		t.Errorf("after Compose there are %q", got)
	}
	systest.NoError(t, blob.Compose(t.Context(), s, "none", nil))
	want(t, s, "none", nil)
	wantErr(t, "Compose to an invalid key", blob.Compose(t.Context(), s, "../x", []string{"whole"}), fs.ErrInvalid)
}

func testMove(t *testing.T, s blob.Store) {
	ctx := t.Context()
	put(t, s, "a/other", []byte("other"))
	for i, n := range []int{0, 100, 9 << 20} {
		from, to := fmt.Sprint("a/", i), fmt.Sprintf("b/c/%d/d", i%2) // the last one replaces the first
		put(t, s, from, noise(uint64(n), n))
		if err := blob.Move(ctx, s, from, to); err != nil {
			t.Fatalf("Move = %v", err)
		}
		wantMissing(t, s, from)
		want(t, s, to, noise(uint64(n), n))
	}
	if got := keys(t, s, ""); !slices.Equal(got, []string{"a/other", "b/c/0/d", "b/c/1/d"}) {
		t.Errorf("after moves there are %q", got)
	}
	wantErr(t, "Move of no object", blob.Move(ctx, s, "a/none", "b/c/0/d"), fs.ErrNotExist)
	wantErr(t, "Move to an invalid key", blob.Move(ctx, s, "a/other", "../x"), fs.ErrInvalid)
	want(t, s, "b/c/1/d", noise(100, 100))
	want(t, s, "a/other", []byte("other"))
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	wantErr(t, "Move", blob.Move(cancelled, s, "a/other", "b/x"), context.Canceled)
	want(t, s, "a/other", []byte("other"))
}

func testPutFile(t *testing.T, s blob.Store) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	write := func(data []byte) {
		t.Helper()
		systest.NoError(t, os.WriteFile(path, data, 0o644))
		old := time.Now().Add(-1000 * time.Hour)
		systest.NoError(t, os.Chtimes(path, old, old))
	}
	for i, n := range []int{10, 0, 3 << 20} {
		write(noise(uint64(i), n))
		systest.NoError(t, blob.PutFile(t.Context(), s, "files/k", path))
		want(t, s, "files/k", noise(uint64(i), n))
		if i, err := blob.Stat(t.Context(), s, "files/k"); err != nil || time.Since(i.ModTime) > time.Hour {
			t.Errorf("the object has the time of the file: %v, %v", i.ModTime, err)
		}
	}
	wantErr(t, "PutFile of no file", blob.PutFile(t.Context(), s, "files/k", filepath.Join(dir, "none")), fs.ErrNotExist)
	wantErr(t, "PutFile of a directory", blob.PutFile(t.Context(), s, "files/k", dir), fs.ErrInvalid)

	// An untrusted engine may have left these in place of its result.
	write([]byte("target"))
	link := filepath.Join(dir, "link")
	systest.NoError(t, os.Symlink(path, link))
	wantErr(t, "PutFile of a symbolic link", blob.PutFile(t.Context(), s, "files/k", link), fs.ErrInvalid)
	want(t, s, "files/k", noise(2, 3<<20))

	// The stored object must not share its content with a second name of the file.
	other := filepath.Join(dir, "other")
	systest.NoError(t, os.Link(path, other))
	systest.NoError(t, blob.PutFile(t.Context(), s, "files/k", path))
	systest.NoError(t, os.WriteFile(other, []byte("changed"), 0o644))
	want(t, s, "files/k", []byte("target"))

	// The same holds for the file of an open object.
	o, err := s.Open(t.Context(), "files/k")
	systest.NoError(t, err)
	defer o.Close()
	if l, ok := o.(blob.LocalObject); ok {
		systest.NoError(t, blob.PutFile(t.Context(), s, "files/copy", l.LocalPath()))
		want(t, s, "files/copy", []byte("target"))
		want(t, s, "files/k", []byte("target"))
	}
}

func testSweep(t *testing.T, s blob.Store) {
	put(t, s, "k", []byte("x"))
	a := blob.Assembly{Store: s, ID: "u", Size: 4, Parts: 2}
	systest.NoError(t, a.Begin(t.Context()))
	p1, err := a.WritePart(t.Context(), 1, strings.NewReader("ab"), 2)
	systest.NoError(t, err)
	o, err := s.Open(t.Context(), "k")
	systest.NoError(t, err)
	defer o.Close()
	l, hasPath := o.(blob.LocalObject)
	if hasPath {
		l.LocalPath()
	}
	// No temporary data in use is that old.
	if n, err := blob.Sweep(t.Context(), s, time.Now().Add(-time.Hour)); n != 0 || err != nil {
		t.Errorf("Sweep = %d, %v", n, err)
	}
	if hasPath {
		if _, err := os.Stat(l.LocalPath()); err != nil {
			t.Error(err)
		}
	}
	// Objects and staging areas are not temporary, however old they are.
	if _, err := blob.Sweep(t.Context(), s, time.Now().Add(time.Hour)); err != nil {
		t.Error(err)
	}
	want(t, s, "k", []byte("x"))
	p2, err := a.WritePart(t.Context(), 2, strings.NewReader("cd"), 2)
	systest.NoError(t, err)
	systest.NoError(t, a.Commit(t.Context(), "u", []blob.AssembledPart{p1, p2}))
	want(t, s, "u", []byte("abcd"))
}

func testAssembly(t *testing.T, s blob.Store) {
	for _, tt := range []struct {
		name  string
		size  int64
		sizes []int
	}{
		{"one", 10, []int{10}},
		{"empty", 0, []int{0}},
		{"empty parts", 0, []int{0, 0, 0}},
		{"equal", 12, []int{4, 4, 4}},
		{"shorter last", 10, []int{4, 4, 2}},
		{"trailing empty parts", 3, []int{1, 1, 1, 0, 0}},
		{"rounded up", 10, []int{3, 3, 3, 1, 0, 0}},
		{"all in the first", 10, []int{10, 0, 0}},
		{"all in the last", 10, []int{0, 0, 10}},
		{"gap filled in place", 10, []int{4, 2, 4}},
		{"moved down", 10, []int{3, 4, 3}},
		{"moved up", 10, []int{6, 4}},
		{"larger first", 10, []int{7, 2, 1}},
		{"pages", 40960, []int{8192, 16384, 16384}},
	} {
		t.Run(tt.name, func(t *testing.T) { assemble(t, s, tt.size, tt.sizes) })
	}
}

func testAssemblyRandom(t *testing.T, s blob.Store) {
	for i := range 40 {
		rnd := rand.New(rand.NewPCG(1, uint64(i)))
		parts := 1 + rnd.IntN(8)
		left := rnd.IntN(40_000)
		size := left
		sizes := make([]int, parts)
		for i := range sizes {
			sizes[i] = left
			if i < parts-1 {
				sizes[i] = rnd.IntN(left + 1)
			}
			left -= sizes[i]
		}
		t.Run(fmt.Sprintf("%d of %d", i, size), func(t *testing.T) { assemble(t, s, int64(size), sizes) })
	}
}

// assemble builds an object from parts of the given sizes, in random order and
// concurrently, and sends each part twice.
func assemble(t *testing.T, s blob.Store, size int64, sizes []int) {
	id := strings.ToLower(strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()))
	id = id[max(0, len(id)-100):]
	a := &blob.Assembly{Store: s, ID: id, Size: size, Parts: len(sizes)}
	for range 2 {
		systest.NoError(t, a.Begin(t.Context()))
	}
	whole := noise(uint64(size), int(size))
	parts := make([]blob.AssembledPart, len(sizes))
	var wg sync.WaitGroup
	off := 0
	for i, n := range sizes {
		data := whole[off : off+n]
		off += n
		wg.Go(func() {
			first := max(0, int64(n)-int64(i%2)*3) // sometimes of another size
			p, err := a.WritePart(t.Context(), i+1, bytes.NewReader(noise(99, int(first))), first)
			if err != nil {
				t.Errorf("part %d: %v", i+1, err)
				return
			}
			r := bytes.NewReader(append(slices.Clone(data), "more"...))
			unknown := int64(n)
			if _, slot := a.Slot(i + 1); slot == int64(n) && i%3 == 0 {
				unknown = -1
			}
			old := p
			if p, err = a.ReplacePart(t.Context(), old, r, unknown); err != nil || p.Number != i+1 || p.Size != int64(n) || r.Len() != 4 {
				t.Errorf("part %d = %+v, %v, %d bytes unread; want %d bytes", i+1, p, err, r.Len(), n)
			}
			systest.Check(t, a.DropPart(t.Context(), old))
			parts[i] = p
		})
	}
	wg.Wait()
	if t.Failed() {
		t.FailNow()
	}
	wantMissing(t, s, "files/"+id)
	systest.NoError(t, a.Commit(t.Context(), "files/"+id, parts))
	want(t, s, "files/"+id, whole)
	noLeftovers(t, s, id)
}

func noLeftovers(t *testing.T, s blob.Store, id string) {
	t.Helper()
	if got := keys(t, s, blob.PartsPrefix+id+"/"); got != nil {
		t.Errorf("parts are left: %q", got)
	}
	if s, ok := blob.As[blob.Stager](s); ok {
		for i, err := range s.ListStaged(t.Context()) {
			if err != nil || i.Key == id {
				t.Errorf("staging area is left: %+v, %v", i, err)
			}
		}
	}
}

// A part that is sent again, successfully or not, does not change the earlier one.
func testAssemblyReplace(t *testing.T, s blob.Store) {
	ctx := t.Context()
	broken := errors.New("broken pipe")
	for _, sizes := range [][2]int{{3000, 3000}, {4000, 2000}} { // within its slot, and larger than its slot
		for _, final := range []string{"first", "second", "third"} {
			id := fmt.Sprint(final, sizes[0])
			a := &blob.Assembly{Store: s, ID: id, Size: 6000, Parts: 2}
			systest.NoError(t, a.Begin(ctx))
			var kept [2]blob.AssembledPart
			for i, n := range sizes {
				var err error
				if kept[i], err = a.WritePart(ctx, i+1, bytes.NewReader(noise(1, n)), int64(n)); err != nil {
					t.Fatal(err)
				}
			}
			commit, data := kept[0], noise(1, sizes[0])
			old := kept[0]
			for seed, attempt := range []string{"second", "third"} {
				fresh := noise(uint64(seed+5), sizes[0])
				_, err := a.ReplacePart(ctx, old, io.MultiReader(bytes.NewReader(fresh[:2000]), iotest.ErrReader(broken)), int64(len(fresh)))
				wantErr(t, "ReplacePart by a broken reader", err, broken)
				_, err = a.ReplacePart(ctx, old, bytes.NewReader(fresh[:2000]), int64(len(fresh)))
				wantErr(t, "ReplacePart by a short reader", err, io.ErrUnexpectedEOF)
				p, err := a.ReplacePart(ctx, old, bytes.NewReader(fresh), int64(len(fresh)))
				systest.NoError(t, err)
				if final != "first" {
					systest.NoError(t, a.DropPart(ctx, old))
					old, commit, data = p, p, fresh
				} else if err := a.DropPart(ctx, p); err != nil {
					t.Fatal(err)
				}
				if attempt == final {
					break
				}
			}
			systest.NoError(t, a.Commit(ctx, "files/"+id, []blob.AssembledPart{commit, kept[1]}))
			want(t, s, "files/"+id, append(data, noise(1, sizes[1])...))
			noLeftovers(t, s, id)
		}
	}
}

func testAssemblyAbort(t *testing.T, s blob.Store) {
	a := &blob.Assembly{Store: s, ID: "u1", Size: 10, Parts: 2}
	other := &blob.Assembly{Store: s, ID: "u10", Size: 2, Parts: 2}
	for _, a := range []*blob.Assembly{a, other} {
		systest.NoError(t, a.Begin(t.Context()))
	}
	if _, err := a.WritePart(t.Context(), 1, strings.NewReader("12345678"), 8); err != nil {
		t.Fatal(err)
	}
	if _, err := a.WritePart(t.Context(), 2, strings.NewReader("12345"), 5); err != nil {
		t.Fatal(err)
	}
	p1, err := other.WritePart(t.Context(), 1, strings.NewReader("ab"), 2)
	systest.NoError(t, err)
	p2, err := other.WritePart(t.Context(), 2, strings.NewReader(""), 0)
	systest.NoError(t, err)
	for range 2 {
		systest.NoError(t, a.Abort(t.Context()))
		noLeftovers(t, s, "u1")
	}
	systest.NoError(t, other.Commit(t.Context(), "k", []blob.AssembledPart{p1, p2}))
	want(t, s, "k", []byte("ab"))
}

func testStager(t *testing.T, store blob.Store) {
	s, ok := blob.As[blob.Stager](store)
	if !ok {
		return // an Assembly works without a Stager
	}
	ctx := t.Context()
	for _, id := range []string{"", ".", "..", "a/b", "../x", "nul\x00"} {
		wantErr(t, "Stage", s.Stage(ctx, id, 1), fs.ErrInvalid)
		wantErr(t, "AbortStaged", s.AbortStaged(ctx, id), fs.ErrInvalid)
		wantErr(t, "CommitStaged", s.CommitStaged(ctx, id, "k", nil), fs.ErrInvalid)
		_, err := s.WriteStaged(ctx, id, 0, strings.NewReader("x"), 1)
		wantErr(t, "WriteStaged", err, fs.ErrInvalid)
	}
	_, err := s.WriteStaged(ctx, "a", 0, strings.NewReader("x"), 1)
	wantErr(t, "WriteStaged without an area", err, fs.ErrNotExist)
	wantErr(t, "CommitStaged without an area", s.CommitStaged(ctx, "a", "k", nil), fs.ErrNotExist)

	systest.NoError(t, s.Stage(ctx, "a", 10))
	for _, r := range [][2]int64{{-1, 1}, {0, 11}, {10, 1}, {11, 0}, {9, 2}, {1 << 62, 1 << 62}, {0, -1}} {
		read := strings.NewReader("0123456789012")
		_, err := s.WriteStaged(ctx, "a", r[0], read, r[1])
		wantErr(t, fmt.Sprint("WriteStaged ", r), err, fs.ErrInvalid)
		if read.Len() != 13 {
			t.Error("WriteStaged out of the area reads")
		}
	}
	write := func(id string, off int64, data string, n int64) {
		t.Helper()
		wantN := min(n, int64(len(data)))
		if k, err := s.WriteStaged(ctx, id, off, iotest.HalfReader(strings.NewReader(data)), n); k != wantN || err != nil {
			t.Fatalf("WriteStaged = %d, %v, want %d", k, err, wantN)
		}
	}
	write("a", 4, "456789", 6)
	write("a", 0, "01", 4) // ends early
	write("a", 2, "23xx", 2)
	broken := errors.New("broken")
	_, err = s.WriteStaged(ctx, "a", 0, iotest.ErrReader(broken), 1)
	wantErr(t, "WriteStaged of a broken reader", err, broken)

	// Staging again keeps the content.
	systest.NoError(t, s.Stage(ctx, "a", 10))
	n := 0
	for i, err := range s.ListStaged(ctx) {
		if err != nil || i.Key != "a" || i.Size != 10 || time.Since(i.ModTime) > time.Hour {
			t.Errorf("ListStaged has %+v, %v", i, err)
		}
		n++
	}
	if n != 1 || keys(t, store, "") != nil {
		t.Errorf("%d areas, objects %q", n, keys(t, store, ""))
	}

	// A commit that fails changes nothing.
	put(t, store, "side", []byte("SIDE"))
	for name, pieces := range map[string][]blob.Piece{
		"missing object":     {{Off: 0, Size: 2}, {Key: "none", Size: 2}},
		"other size":         {{Off: 0, Size: 2}, {Key: "side", Size: 3}},
		"missing, displaced": {{Off: 5, Size: 2}, {Key: "side", Size: 4}, {Key: "none", Size: 2}},
		"beyond the area":    {{Off: 8, Size: 4}},
	} {
		if err := s.CommitStaged(ctx, "a", "k", pieces); err == nil {
			t.Errorf("CommitStaged with %s succeeds", name)
		}
		wantMissing(t, store, "k")
		want(t, store, "side", []byte("SIDE"))
	}
	wantErr(t, "CommitStaged to an invalid key", s.CommitStaged(ctx, "a", "../k", []blob.Piece{{Size: 10}}), fs.ErrInvalid)

	// Pieces in another order than in the area, with an object among them.
	pieces := []blob.Piece{{Off: 8, Size: 2}, {Key: "side", Size: 4}, {Off: 0, Size: 4}}
	systest.NoError(t, s.CommitStaged(ctx, "a", "k", pieces))
	want(t, store, "k", []byte("89SIDE0123"))
	wantMissing(t, store, "side")
	noLeftovers(t, store, "a")

	// A part of an area; and replacing an object.
	systest.NoError(t, s.Stage(ctx, "b", 1<<20))
	write("b", 0, "prefix", 6)
	systest.NoError(t, s.CommitStaged(ctx, "b", "k", []blob.Piece{{Size: 6}}))
	want(t, store, "k", []byte("prefix"))

	systest.NoError(t, s.Stage(ctx, "c", 5))
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	wantErr(t, "CommitStaged", s.CommitStaged(cancelled, "c", "k", []blob.Piece{{Size: 5}}), context.Canceled)
	wantErr(t, "Stage", s.Stage(cancelled, "d", 5), context.Canceled)
	_, err = s.WriteStaged(cancelled, "c", 0, strings.NewReader("x"), 1)
	wantErr(t, "WriteStaged", err, context.Canceled)
	for range 2 {
		systest.NoError(t, s.AbortStaged(ctx, "c"))
	}
	wantErr(t, "CommitStaged after AbortStaged", s.CommitStaged(ctx, "c", "k", nil), fs.ErrNotExist)
	want(t, store, "k", []byte("prefix"))
}
