package s3blob_test

import (
	"errors"
	"fmt"
	"io/fs"
	"log"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/s3blob"
)

func TestParseURL(t *testing.T) {
	t.Parallel()
	for raw, want := range map[string]s3blob.Config{
		"s3://files":        {Bucket: "files"},
		"s3://files/":       {Bucket: "files"},
		"s3://files/a/b/":   {Bucket: "files", Prefix: "a/b"},
		"s3://my.files/ä b": {Bucket: "my.files", Prefix: "ä b"},
		"s3://files?region=eu-central-1&endpoint=http://127.0.0.1:9000&path_style=true": {
			Bucket: "files", Region: "eu-central-1", Endpoint: "http://127.0.0.1:9000", Addressing: s3blob.PathStyle},
		"s3://files/x?endpoint=minio:9000&public_endpoint=https%3A%2F%2Ffiles.example.com&path_style=0&private=1": {
			Bucket: "files", Prefix: "x", Endpoint: "minio:9000", PublicEndpoint: "https://files.example.com", Addressing: s3blob.VirtualHosted, Private: true},
	} {
		if got, err := s3blob.ParseURL(raw); err != nil || got != want {
			t.Errorf("ParseURL(%q) = %+v, %v, want %+v", raw, got, err, want)
		}
	}
	for raw, want := range map[string]string{
		"":                                       "s3://",
		"/data":                                  "s3://",
		"https://files":                          "s3://",
		"s3:files":                               "no bucket",
		"s3:///files":                            "no bucket",
		"s3://key:hunter2@files":                 "credentials",
		"s3://key:hunter2%zz@files":              "not a URL",
		"s3://files#hunter2":                     "#",
		"s3://files/a//b":                        "prefix",
		"s3://files/../b":                        "prefix",
		"s3://files?regoin=x":                    `unknown parameter "regoin"`,
		"s3://files?region=x&region=y":           "more than once",
		"s3://files?path_style=maybe":            "true or false",
		"s3://files?endpoint=ftp://hunter2":      "http",
		"s3://files?endpoint=http://a:hunter2@b": "credentials",
		"s3://files?endpoint=http://b/hunter2":   "nothing after it",
		"s3://files?endpoint=%zzhunter2":         "malformed",
		"s3://files?secret=hunter2":              "unknown parameter",
	} {
		_, err := s3blob.ParseURL(raw)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("ParseURL(%q) = %v, want %q in it", raw, err, want)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("the error shows a secret: %v", err)
		}
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	keys := credentials.NewStaticV4("a", "b", "")
	for name, c := range map[string]s3blob.Config{
		"no bucket":       {Credentials: keys},
		"bad bucket":      {Bucket: "files", Credentials: nil},
		"absolute prefix": {Bucket: "files", Credentials: keys, Prefix: "/a"},
		"negative memory": {Bucket: "files", Credentials: keys, Memory: -1},
		"bad endpoint":    {Bucket: "files", Credentials: keys, Endpoint: "ftp://x"},
	} {
		if s, err := s3blob.New(c); err == nil {
			s.Close()
			t.Errorf("%s: no error", name)
		}
	}
}

// Names sort like keys, no name is a directory of another, and each maps back to its
// key.
func TestNames(t *testing.T) {
	t.Parallel()
	keys := []string{
		"a", "a-", "a-x", "a.", "a.2D", "a.txt", "a/b", "a/b-", "a/b/c", "a0", "ab", "-", "--", "...", " ", "!", "a\x01", "a\nb", "a+b", "é", "e\u0301", "\U0001F600",
	}
	rnd := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		var b strings.Builder
		for range 1 + rnd.IntN(4) {
			b.WriteString([]string{"a", "-", ".", "/", "0", "~", " ", "\x01", "é"}[rnd.IntN(9)])
		}
		if k := b.String(); fs.ValidPath(k) && k != "." {
			keys = append(keys, k)
		}
	}
	slices.Sort(keys)
	keys = slices.Compact(keys)
	names := make([]string, len(keys))
	for i, k := range keys {
		names[i] = s3blob.Escape(k) + "-"
		if back, ok := s3blob.Unescape(s3blob.Escape(k)); !ok || back != k {
			t.Errorf("%q becomes %q, and that %q", k, names[i], back)
		}
	}
	if !slices.IsSorted(names) {
		t.Error("the names are in another order than the keys")
	}
	dirs := make(map[string]bool)
	for _, n := range names {
		for i := range len(n) {
			if n[i] == '/' {
				dirs[n[:i]] = true
			}
		}
	}
	for i, n := range names {
		if dirs[n] || i > 0 && n == names[i-1] {
			t.Errorf("%q is the name of a directory or of another object", n)
		}
	}
	for _, bad := range []string{"a-b", "a.", "a.2", "a.2d", "a.41", "a.G0", "\x01", "."} {
		if k, ok := s3blob.Unescape(bad); ok {
			t.Errorf("%q is the name of %q", bad, k)
		}
	}
}

func FuzzNames(f *testing.F) {
	f.Add("a/b", "a-b")
	f.Add("a.2E", "é\x00")
	f.Fuzz(func(t *testing.T, a, b string) {
		ea, eb := s3blob.Escape(a)+"-", s3blob.Escape(b)+"-"
		if strings.Compare(ea, eb) != strings.Compare(a, b) {
			t.Fatalf("%q and %q are in another order than their keys %q and %q", ea, eb, a, b)
		}
		if back, ok := s3blob.Unescape(s3blob.Escape(a)); !ok || back != a {
			t.Fatalf("%q becomes %q", a, back)
		}
		if k, ok := s3blob.Unescape(a); ok && s3blob.Escape(k) != a {
			t.Fatalf("%q is accepted as the name of %q", a, k)
		}
	})
}

// However objects are divided: the pieces are those objects in order, and S3
// accepts them.
func TestPlan(t *testing.T) {
	t.Parallel()
	const mib = 1 << 20
	check := func(sizes []int64) {
		t.Helper()
		var total int64
		for _, n := range sizes {
			total += n
		}
		pieces, copied, segments := s3blob.Plan(sizes)
		if len(pieces) > s3blob.MaxParts {
			t.Errorf("%d pieces", len(pieces))
		}
		read := int64(0)
		for i, n := range pieces {
			if n > s3blob.MaxPart || n < s3blob.MinPart && i < len(pieces)-1 || n == 0 {
				t.Errorf("%v: piece %d of %d has %d bytes", sizes, i+1, len(pieces), n)
			}
			if !copied[i] {
				read += n
			}
		}
		// Joined again.
		at := make([]int64, len(sizes))
		last := int64(0)
		for _, s := range segments {
			if s[0] < last || s[1] != at[s[0]] {
				t.Fatalf("%v: segments are out of order", sizes)
			}
			last, at[s[0]] = s[0], s[1]+s[2]
		}
		if !slices.Equal(at, sizes) {
			t.Errorf("%v: pieces have %v", sizes, at)
		}
	}
	check([]int64{20 * mib})
	check([]int64{3 * mib, 20 * mib, 3 * mib})
	check([]int64{5 << 30, 1, 5 << 30, 0, 513 * mib})
	check([]int64{5<<30 + 1})
	for _, more := range []int64{-230*mib + 1, -525*mib - 1, -1, 0} { // the largest objects of S3
		check([]int64{5<<40 + more})
		check([]int64{1, 5<<40 + more - 1})
	}
	check(slices.Repeat([]int64{5*mib - 1}, 10_000))
	check(slices.Repeat([]int64{5 << 30}, 1000))
	rnd := rand.New(rand.NewPCG(3, 4))
	for range 300 {
		sizes := make([]int64, 1+rnd.IntN(30))
		for i := range sizes {
			sizes[i] = rnd.Int64N(1 << (1 + rnd.IntN(31)))
		}
		check(sizes)
	}
	// Large sources are not read, except for the bytes that a small neighbour lacks.
	pieces, copied, _ := s3blob.Plan([]int64{64 * mib, 64 * mib})
	if !slices.Equal(pieces, []int64{64 * mib, 64 * mib}) || !slices.Equal(copied, []bool{true, true}) {
		t.Errorf("pieces %v, copied %v", pieces, copied)
	}
}

func TestLongKeys(t *testing.T) {
	t.Parallel()
	s := open(t, config())
	for _, key := range []string{strings.Repeat("k/", 511) + "kk", strings.Repeat(".", 400)} {
		if err := s.Put(t.Context(), key, strings.NewReader(""), 0); !errors.Is(err, fs.ErrInvalid) {
			t.Errorf("Put to a key of %d bytes = %v", len(key), err)
		}
	}
}

func ExampleParseURL() {
	c, err := s3blob.ParseURL("s3://files/filewright?endpoint=http://127.0.0.1:9000&region=us-east-1&path_style=true")
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(c.Bucket, c.Prefix, c.Endpoint, c.Region, c.Addressing == s3blob.PathStyle)
	// Output: files filewright http://127.0.0.1:9000 us-east-1 true
}

func ExampleNew() {
	c, err := s3blob.ParseURL("s3://files?region=eu-central-1")
	if err != nil {
		log.Fatal(err)
	}
	c.Credentials = credentials.NewStaticV4("access key", "secret key", "")
	store, err := s3blob.New(c) // does not contact the server; Check does
	if err != nil {
		log.Fatal(err)
	}
	defer store.Close()
	var blobs blob.Store = store // for httpapi.Config.Blobs or upload.NewManager
	_, direct := blobs.(blob.DirectUploader)
	fmt.Println("clients can upload directly:", direct)
	// Output: clients can upload directly: true
}
