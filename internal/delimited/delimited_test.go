package delimited_test

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/delimited"
	"github.com/filewright/filewright/internal/systest"
)

func read(t *testing.T, in io.Reader, known byte) [][]string {
	t.Helper()
	comma, rest, err := delimited.Sniff(in, known)
	systest.NoError(t, err)
	r := delimited.NewReader(rest, rune(comma))
	var rows [][]string
	for {
		err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		systest.NoError(t, err)
		var row []string
		for i := range r.Len() {
			row = append(row, string(r.Cell(i)))
		}
		rows = append(rows, row)
	}
	if r.Rows() != len(rows) || r.Cell(r.Len()) != nil {
		t.Errorf("%d rows, want %d; cell beyond the last: %q", r.Rows(), len(rows), r.Cell(r.Len()))
	}
	return rows
}

func TestReader(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in string
		known    byte
		want     [][]string
	}{
		{"commas", "a,b\n1,2\n", 0, [][]string{{"a", "b"}, {"1", "2"}}},
		{"semicolons", "a;b\r\n1,5;2\r\n2,5;3", 0, [][]string{{"a", "b"}, {"1,5", "2"}, {"2,5", "3"}}},
		{"bars", "a|b\r1|2\r", 0, [][]string{{"a", "b"}, {"1", "2"}}},
		{"tabs", "a,b\tc\n", '\t', [][]string{{"a,b", "c"}}},
		{"named", "sep=;\na;b\n", 0, [][]string{{"a", "b"}}},
		{"quotes", "\"a\nb\",\"say \"\"x\"\"\",c\"d\n", 0, [][]string{{"a\nb", `say "x"`, `c"d`}}},
		{"empty lines and cells", "\n\na,,\n\n,b,\n", 0, [][]string{{"a", "", ""}, {"", "b", ""}}},
		{"one column", "a\nb\n", 0, [][]string{{"a"}, {"b"}}},
		{"known", "a,b;c\n", ';', [][]string{{"a,b", "c"}}},
		{"named otherwise", "sep=|\na|b;c\n", ';', [][]string{{"a", "b;c"}}},
		{"nothing", "", 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			for _, in := range []io.Reader{strings.NewReader(tt.in), iotest.OneByteReader(strings.NewReader(tt.in))} {
				if got := read(t, in, tt.known); !slices.EqualFunc(got, tt.want, slices.Equal) {
					t.Errorf("got %q", got)
				}
			}
		})
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in   io.Reader
		kind error
	}{
		"columns":    {strings.NewReader(strings.Repeat(",", delimited.MaxColumns)), fileops.ErrLimit},
		"cell":       {io.LimitReader(endless('x'), delimited.MaxCell+1<<20), fileops.ErrLimit},
		"quote open": {strings.NewReader("a,\"b\nc\n"), fileops.ErrCorruptInput},
	} {
		r := delimited.NewReader(tt.in, ',')
		if err := r.Next(); !errors.Is(err, tt.kind) {
			t.Errorf("%s: %v, want %v", name, err, tt.kind)
		}
	}
}

// A separator may have several bytes, and the stream may be split anywhere.
func TestWideSeparator(t *testing.T) {
	t.Parallel()
	in := "a¦b§\n\"c¦d\"¦Âx\n" + strings.Repeat("¦", 3) + "\"open\ncell"
	for _, text := range []io.Reader{strings.NewReader(in), iotest.OneByteReader(strings.NewReader(in)), iotest.HalfReader(strings.NewReader(in)), iotest.DataErrReader(strings.NewReader(in))} {
		r := delimited.NewReader(text, '¦')
		r.LazyQuotes = true
		var got []string
		for r.Next() == nil {
			for i := range r.Len() {
				got = append(got, string(r.Cell(i)))
			}
		}
		if want := []string{"a", "b§", "c¦d", "Âx", "", "", "", "open\ncell"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

type endless byte

func (c endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = byte(c)
	}
	return len(p), nil
}

func FuzzReader(f *testing.F) {
	f.Add("a;b\n\"1\n2\";3")
	f.Add("sep=|\r\na|b")
	f.Fuzz(func(t *testing.T, in string) {
		comma, rest, err := delimited.Sniff(strings.NewReader(in), 0)
		systest.NoError(t, err)
		r := delimited.NewReader(rest, rune(comma))
		n := 0
		for r.Next() == nil {
			for i := range r.Len() {
				n += len(r.Cell(i))
			}
		}
		if n > len(in) {
			t.Errorf("%d bytes in the cells of %d bytes", n, len(in))
		}
	})
}

func ExampleReader() {
	comma, text, err := delimited.Sniff(strings.NewReader("name;size\n\"a;b\";1,5\n"), 0)
	if err != nil {
		panic(err)
	}
	for r := delimited.NewReader(text, rune(comma)); r.Next() == nil; {
		fmt.Printf("%s | %s\n", r.Cell(0), r.Cell(1))
	}
	// Output:
	// name | size
	// a;b | 1,5
}
