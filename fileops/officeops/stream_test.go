package officeops

import (
	"bytes"
	"context"
	"errors"
	"html"
	"io"
	"runtime"
	"strings"
	"testing"
	"unicode"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/charset"
	"github.com/filewright/filewright/internal/systest"
)

func textOfBytes(t testing.TB, b []byte) *charset.Text {
	t.Helper()
	text, err := charset.NewText(bytes.NewReader(b), int64(len(b)))
	systest.NoError(t, err)
	return text
}

// allocated returns the total number of bytes that do allocates.
func allocated(do func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	do()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// A row that no sheet can hold is refused while it is read: a text that consists of
// separators would otherwise take a hundred times its size in memory.
func TestRowsAreBounded(t *testing.T) {
	commas := bytes.Repeat([]byte(","), 33<<20)
	for name, in := range map[string][]byte{
		"separators":  commas,
		"second row":  append([]byte("a,b\n1,2\n"), commas...),
		"one cell":    bytes.Repeat([]byte("x"), 40<<20),
		"quoted cell": append([]byte("a,\""), bytes.Repeat([]byte("x\n"), 20<<20)...),
	} {
		text := textOfBytes(t, in)
		var err error
		n := allocated(func() { _, err = inspect(t.Context(), text, format.CSV, 0) })
		if !errors.Is(err, fileops.ErrLimit) {
			t.Errorf("%s: %v, want ErrLimit", name, err)
		}
		if n > 300<<20 { // most of it is garbage at once
			t.Errorf("%s: %d MiB allocated for %d", name, n>>20, len(in)>>20)
		}
	}
}

// Values are unchanged with another separator.
func TestRewrite(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, in, want string
		from           format.Format
		known, comma   rune
	}{
		{"found", "a;b\n1;\"x;y\"\n", "a\tb\n1\tx;y\n", format.CSV, 0, '\t'},
		{"tsv", "a\tb,c\n", "a,\"b,c\"\n", format.TSV, 0, ','},
		{"known", "a,b;c\n", "\"a,b\",c\n", format.CSV, ';', ','},
		{"wide", "a¦b,c\n", "a,\"b,c\"\n", format.CSV, '¦', ','},
		{"named", "sep=|\r\na|b\r\n", "a,b\n", format.CSV, 0, ','},
		{"named otherwise", "sep=|\r\na|b;c\r\n", "a,b;c\n", format.CSV, '¦', ','},
		{"no end of a quote", "a,\"b\nc,d", "a;\"b\nc,d\"\n", format.CSV, ',', ';'},
	} {
		tab, err := inspect(t.Context(), textOfBytes(t, []byte(tt.in)), tt.from, tt.known)
		if err != nil {
			t.Errorf("%s: %v", tt.name, err)
			continue
		}
		var b strings.Builder
		if err := tab.rewrite(t.Context(), &b, tt.comma); err != nil || b.String() != tt.want {
			t.Errorf("%s: %q, %v; want %q", tt.name, b.String(), err, tt.want)
		}
	}
}

// paragraphs is a simple textToHTML for a text in memory.
func paragraphs(text string) string {
	var b strings.Builder
	inside := false
	for line := range strings.SplitSeq(strings.NewReplacer("\r\n", "\n", "\r", "\n", "\f", "\n\n").Replace(text), "\n") {
		line = strings.TrimRightFunc(line, unicode.IsSpace)
		if line == "" {
			if inside {
				b.WriteString("</p>\n")
			}
			inside = false
			continue
		}
		if inside {
			b.WriteString("<br>")
		} else {
			b.WriteString("<p>")
		}
		inside = true
		rest := strings.TrimLeft(line, " \t")
		for _, c := range line[:len(line)-len(rest)] {
			b.WriteString(strings.Repeat("&#160;", map[rune]int{' ': 1, '\t': 4}[c]))
		}
		b.WriteString(html.EscapeString(rest))
	}
	if inside {
		b.WriteString("</p>\n")
	}
	return b.String()
}

func FuzzTextToHTML(f *testing.F) {
	for _, s := range []string{"", "a", "a\nb\r\n\r\nc\rd\fe", "  \t<x> & \"y\" \n \n z \n", "a\v\tb \n\n\n", " \tindent"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if text = strings.ToValidUTF8(text, ""); len(text) > 2000 {
			return // a longer run of white space is cut
		}
		var b strings.Builder
		systest.NoError(t, textToHTML(&b, strings.NewReader(text), "T"))
		_, body, _ := strings.Cut(b.String(), "<body>\n")
		if got, want := strings.TrimSuffix(body, "</body></html>\n"), paragraphs(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	})
}

// A long line is not held in memory.
func TestLongLine(t *testing.T) {
	line := bytes.Repeat([]byte("x "), 20<<20)
	var err error
	n := allocated(func() {
		text, terr := charset.NewText(bytes.NewReader(line), int64(len(line)))
		if terr != nil {
			err = terr
			return
		}
		err = textToHTML(io.Discard, fileops.ContextReader(context.Background(), text.Reader()), "T")
	})
	if err != nil || n > 8<<20 {
		t.Errorf("%v; %d MiB allocated", err, n>>20)
	}
}
