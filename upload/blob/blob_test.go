package blob_test

import (
	"bytes"
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"log"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/memblob"
)

const (
	md5Empty = "d41d8cd98f00b204e9800998ecf8427e" // printf '' | md5sum
	md5Hello = "5d41402abc4b2a76b9719d911017c592" // printf hello | md5sum
	md5World = "7d793037a0760186574b0282f2f435e7" // printf world | md5sum
)

func TestETag(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name  string
		parts []blob.Part
		want  string
		err   error
	}{
		{"one", []blob.Part{{1, md5Hello}}, md5Hello, nil},
		{"one, not the first", []blob.Part{{7, md5Hello}}, md5Hello, nil},
		{"empty", []blob.Part{{1, md5Empty}}, md5Empty, nil},
		// (printf hello | md5sum; printf world | md5sum) | cut -c1-32 | xxd -r -p | md5sum
		{"two", []blob.Part{{1, md5Hello}, {2, md5World}}, "065947336a2f2a95ba8899f3675c3be6-2", nil},
		{"lenient", []blob.Part{{1, `"` + strings.ToUpper(md5Hello) + `"`}}, md5Hello, nil},
		{"none", nil, "", blob.ErrMissingPart},
		{"zero", []blob.Part{{0, md5Hello}}, "", blob.ErrPartOrder},
		{"negative", []blob.Part{{-1, md5Hello}}, "", blob.ErrPartOrder},
		{"descending", []blob.Part{{2, md5Hello}, {1, md5World}}, "", blob.ErrPartOrder},
		{"twice", []blob.Part{{1, md5Hello}, {1, md5Hello}}, "", blob.ErrPartOrder},
		{"no ETag", []blob.Part{{1, ""}}, "", blob.ErrPartETag},
		{"no hex", []blob.Part{{1, strings.Repeat("x", 32)}}, "", blob.ErrPartETag},
		{"of several parts", []blob.Part{{1, md5Hello + "-2"}}, "", blob.ErrPartETag},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := blob.ETag(tt.parts)
			if got != tt.want || !errors.Is(err, tt.err) {
				t.Errorf("ETag = %q, %v, want %q, %v", got, err, tt.want, tt.err)
			}
			if err != nil && !errors.Is(err, blob.ErrPart) {
				t.Errorf("%v does not match ErrPart", err)
			}
		})
	}
}

func TestSlot(t *testing.T) {
	t.Parallel()
	for _, size := range []int64{0, 1, 2, 3, 10, 99, 100, 101, 5 << 40, math.MaxInt64} {
		for _, parts := range []int{1, 2, 3, 7, 100, 10_000} {
			a := blob.Assembly{Size: size, Parts: parts}
			var end int64
			for n := 1; n <= parts; n++ {
				off, length := a.Slot(n)
				if off != end || length < 0 {
					t.Fatalf("slot %d of %d in %d bytes is %d+%d, want it to begin at %d", n, parts, size, off, length, end)
				}
				end += length
			}
			if end != size {
				t.Errorf("%d slots have %d bytes, want %d", parts, end, size)
			}
		}
	}
}

func TestCopy(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for _, tt := range []struct {
		name string
		r    io.Reader
		n    int64
		want string
		err  error
	}{
		{"all", strings.NewReader("abcdefghij"), 10, "abcdefghij", nil},
		{"less", strings.NewReader("abcdefghij"), 7, "abcdefg", nil},
		{"short", strings.NewReader("abcde"), 7, "abcde", nil},
		{"none", iotest.ErrReader(broken), 0, "", nil},
		{"data with EOF", iotest.DataErrReader(strings.NewReader("abcdefgh")), 8, "abcdefgh", nil},
		{"error", io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(broken)), 7, "abc", broken},
		{"cut off", io.MultiReader(strings.NewReader("abc"), iotest.ErrReader(io.ErrUnexpectedEOF)), 7, "abc", io.ErrUnexpectedEOF},
		{"nothing for ever", nothing{}, 7, "", io.ErrNoProgress},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			var w bytes.Buffer
			n, err := blob.Copy(t.Context(), &w, tt.r, tt.n, make([]byte, 4))
			if w.String() != tt.want || n != int64(len(tt.want)) || !errors.Is(err, tt.err) {
				t.Errorf("Copy = %d, %v with %q, want %q, %v", n, err, &w, tt.want, tt.err)
			}
		})
	}
}

type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, nil }

func FuzzETag(f *testing.F) {
	f.Add(1, md5Hello, 2, md5World)
	f.Add(2, md5Hello, 1, "")
	f.Add(1, `"`+md5Hello, 1, `W/"x"`)
	f.Fuzz(func(t *testing.T, n1 int, e1 string, n2 int, e2 string) {
		got, err := blob.ETag([]blob.Part{{n1, e1}, {n2, e2}})
		if err != nil {
			if !errors.Is(err, blob.ErrPart) || got != "" {
				t.Fatalf("ETag = %q, %v", got, err)
			}
			return
		}
		b1, err1 := hex.DecodeString(strings.Trim(e1, "\" \t"))
		b2, err2 := hex.DecodeString(strings.Trim(e2, "\" \t"))
		if n1 < 1 || n2 <= n1 || err1 != nil || err2 != nil || len(b1) != 16 || len(b2) != 16 {
			t.Fatalf("%d %q, %d %q are accepted", n1, e1, n2, e2)
		}
		if want := fmt.Sprintf("%x-2", md5.Sum(append(b1, b2...))); got != want {
			t.Fatalf("ETag = %s, want %s", got, want)
		}
	})
}

func ExampleAssembly() {
	ctx := context.Background()
	store := memblob.New()
	a := blob.Assembly{Store: store, ID: "upload-1", Size: 10, Parts: 2}
	if err := a.Begin(ctx); err != nil {
		log.Fatal(err)
	}
	// Parts may arrive in any order.
	second, err := a.WritePart(ctx, 2, strings.NewReader("world"), 5)
	if err != nil {
		log.Fatal(err)
	}
	first, err := a.WritePart(ctx, 1, strings.NewReader("hello"), 5)
	if err != nil {
		log.Fatal(err)
	}
	if err := a.Commit(ctx, "greeting", []blob.AssembledPart{first, second}); err != nil {
		log.Fatal(err)
	}
	o, err := store.Open(ctx, "greeting")
	if err != nil {
		log.Fatal(err)
	}
	defer o.Close()
	data, err := io.ReadAll(blob.NewReader(o))
	fmt.Println(string(data), err)
	// Output: helloworld <nil>
}

func ExampleETag() {
	fmt.Println(blob.ETag([]blob.Part{
		{Number: 1, ETag: `"5d41402abc4b2a76b9719d911017c592"`},
		{Number: 2, ETag: `"7d793037a0760186574b0282f2f435e7"`},
	}))
	// Output: 065947336a2f2a95ba8899f3675c3be6-2 <nil>
}
