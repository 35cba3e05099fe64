package plainpdf_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/filewright/filewright/internal/plainpdf"
	"github.com/filewright/filewright/internal/tinypdf"
)

func TestValue(t *testing.T) {
	t.Parallel()
	for text, rest := range map[string]string{
		"12 13": " 13", "1 0 R]": "]", "-1.5/": "/", "/Name(x)": "(x)", "(a(b)\\)c)d": "d", "<3e>>": ">", "<</A[1 2]/B<<>>>>x": "x",
		"[(])[]%]\n]x": "x", "true false": " false",
	} {
		s := plainpdf.Scanner{B: []byte(text)}
		if !s.Value() || string(s.B[s.At:]) != rest {
			t.Errorf("%s: %q is left, want %q", text, s.B[s.At:], rest)
		}
	}
	for _, text := range []string{"", "  ", "(", "(a\\", "(\\", "<3e", "[1", "<</A", "<</A 1", "]", ")", ">>", "% comment"} {
		s := plainpdf.Scanner{B: []byte(text)}
		if s.Value() || s.At > len(text) {
			t.Errorf("%s: a value, or %d of %d bytes read", text, s.At, len(text))
		}
	}
}

func TestDict(t *testing.T) {
	t.Parallel()
	s := plainpdf.Scanner{B: []byte("<</A 1/B (x)>>")}
	d, ok := s.Dict()
	d.Set("A", []byte("2"))
	if !ok || string(d.Get("A")) != "2" || d.Get("C") != nil || string(d.Text()) != "<</A 2/B (x)>>" {
		t.Errorf("%q, %v", d.Text(), ok)
	}
}

func ExampleReadTable() {
	b := tinypdf.File("1.4", "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[]/Count 0>>")
	t, err := plainpdf.ReadTable(bytes.NewReader(b), int64(len(b)))
	s := plainpdf.Scanner{B: b, At: int(t.Objects[2])}
	fmt.Println(len(t.Objects), string(t.Trailer.Get("Root")), err)
	fmt.Println(s.Integer())
	// Output:
	// 3 1 0 R <nil>
	// 2 true
}

func FuzzReadTable(f *testing.F) {
	f.Add(tinypdf.File("1.4", "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[]/Count 0>>"))
	f.Fuzz(func(t *testing.T, b []byte) {
		table, err := plainpdf.ReadTable(bytes.NewReader(b), int64(len(b)))
		if err != nil {
			if !errors.Is(err, plainpdf.ErrUnknown) {
				t.Error(err)
			}
			return
		}
		for _, at := range table.Objects {
			s := plainpdf.Scanner{B: b, At: int(at)}
			for s.Value() {
			}
			if s.At > len(b) {
				t.Fatal("read beyond the end")
			}
		}
	})
}
