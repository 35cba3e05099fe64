package officeops_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// scripts are words whose letters need several fonts.
var scripts = map[string]string{
	"Chinese": "漢字", "Japanese": "ひらがな", "Korean": "한국어", "Arabic": "مرحبا", "Hebrew": "שלום", "Hindi": "नमस्ते",
	"Tamil": "வணக்கம்", "Thai": "สวัสดี", "Greek": "λόγος", "Russian": "привет", "emoji": "🚀🎉", "math": "∑≤√",
}

// The letters of every script come from an embedded font. A missing letter would be the
// glyph of no character, without text.
func TestScripts(t *testing.T) {
	t.Parallel()
	var lines []string
	for _, name := range slices.Sorted(func(yield func(string) bool) {
		for k := range scripts {
			if !yield(k) {
				return
			}
		}
	}) {
		lines = append(lines, name+","+scripts[name])
	}
	text := strings.Join(lines, "\n") + "\n"
	for _, in := range []*fileops.File{fileops.Bytes("a.txt", []byte(text)), fileops.Bytes("a.csv", []byte(text))} {
		b, err := convert(t.Context(), office, in, format.PDF)
		systest.NoError(t, err)
		path := save(t, "a.pdf", b)
		fonts, got := tool(t, "pdffonts", path), tool(t, "pdftotext", "-layout", path, "-")
		for _, want := range []string{"CJK", "Arabic", "Hebrew", "Devanagari", "Tamil", "Thai", "Symbola"} {
			if !strings.Contains(fonts, want) && !(strings.Contains("ArabicHebrew", want) && strings.Contains(fonts, "DejaVu")) {
				t.Errorf("%s: no %s font: %s", in.Name(), want, fonts)
			}
		}
		for _, name := range []string{"Chinese", "Japanese", "Korean", "Greek", "Russian", "emoji", "math"} {
			if !strings.Contains(got, scripts[name]) {
				t.Errorf("%s: %s is lost: %s", in.Name(), name, got)
			}
		}
	}
}

// Form feeds end pages, tabs stay wide, long lines are wrapped, and nothing is added to
// the page.
func TestPlainTextLayout(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("word ", 400) + strings.Repeat("x", 500) + "END"
	b, err := convert(t.Context(), office, fileops.Bytes("a.txt", []byte("a\tcolumn\n"+long+"\n\fsecond page\n\fthird page\n")), format.PDF)
	systest.NoError(t, err)
	path := save(t, "a.pdf", b)
	if got := tool(t, "qpdf", "--show-npages", path); strings.TrimSpace(got) != "3" {
		t.Errorf("%s pages", got)
	}
	first := tool(t, "pdftotext", "-layout", "-l", "1", path, "-")
	if n := strings.Count(first, "word"); n != 400 || !strings.Contains(strings.Join(strings.Fields(first), ""), "xEND") || !strings.Contains(first, "a    ") {
		t.Errorf("%d words: %s", n, first)
	}
	if last := strings.TrimSpace(tool(t, "pdftotext", "-f", "3", path, "-")); last != "third page" {
		t.Errorf("last page: %q", last)
	}
}
