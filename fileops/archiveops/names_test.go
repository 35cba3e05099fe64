package archiveops_test

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/filewright/filewright/fileops/archiveops"
)

func TestEntryNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("ä", 200)
	for _, tt := range []struct {
		name     string
		in, want []string
	}{
		{"fine", []string{"a.txt", "b.txt", "Äpfel 日本.pdf", ".profile"}, []string{"a.txt", "b.txt", "Äpfel 日本.pdf", ".profile"}},
		{"the same", []string{"a.txt", "a.txt", "a.txt"}, []string{"a.txt", "a (2).txt", "a (3).txt"}},
		{"but for case", []string{"a.txt", "A.txt", "ß", "SS"}, []string{"a.txt", "A (2).txt", "ß", "SS"}},
		{"taken number", []string{"a.txt", "a (2).txt", "a.txt"}, []string{"a.txt", "a (2).txt", "a (3).txt"}},
		{"two extensions", []string{"a.tar.gz", "a.tar.gz"}, []string{"a.tar.gz", "a (2).tar.gz"}},
		{"no extension", []string{"Makefile", "Makefile"}, []string{"Makefile", "Makefile (2)"}},
		{"composed", []string{"e\u0301.txt", "\u00e9.txt"}, []string{"\u00e9.txt", "\u00e9 (2).txt"}},
		{"paths", []string{"../../etc/passwd", `C:\Windows\a.dll`, "/", "..", "a/.."}, []string{"passwd", "a.dll", "file", "file (2)", "file (3)"}},
		{"devices", []string{"con", "NUL.txt", "com1", "LPT9.tar.gz", "COM¹", "console", "com10"}, []string{"_con", "_NUL.txt", "_com1", "_LPT9.tar.gz", "_COM¹", "console", "com10"}},
		{"forbidden", []string{"a:b*c?.txt", "a\x00b\nc", "a\u202egpj.exe"}, []string{"a_b_c_.txt", "a_b_c", "a_gpj.exe"}},
		{"dots and spaces", []string{" a . ", "...", " "}, []string{"a", "file", "file (2)"}},
		{"not UTF-8", []string{"a\xff\xfeb"}, []string{"a__b"}},
		{"long extension", []string{"a." + long, "a." + long}, []string{"a." + strings.Repeat("ä", 119), "a." + strings.Repeat("ä", 117) + " (2)"}},
		{"long", []string{long + ".txt", long + ".txt"}, []string{strings.Repeat("ä", 118) + ".txt", strings.Repeat("ä", 116) + " (2).txt"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := archiveops.EntryNames(tt.in); !slices.Equal(got, tt.want) {
				t.Errorf("got  %q\nwant %q", got, tt.want)
			}
		})
	}
}

func FuzzEntryNames(f *testing.F) {
	f.Add("a.txt", "A.txt", "a (2).txt")
	f.Add("../x", `..\x`, "con.tar.gz")
	f.Add(strings.Repeat("x", 300), strings.Repeat("X", 300), "\u202e")
	f.Add("a."+strings.Repeat("x", 300), "a."+strings.Repeat("X", 300), "a.")
	f.Add("e\u0301", "\u00e9", strings.Repeat("\u0301", 200))
	f.Fuzz(func(t *testing.T, a, b, c string) {
		in := []string{a, b, c, a}
		got := archiveops.EntryNames(in)
		seen := make(map[string]bool)
		for _, name := range got {
			switch {
			case name == "" || len(name) > 255 || !utf8.ValidString(name) || !norm.NFC.IsNormalString(name):
				t.Errorf("%q from %q is empty, long or not normal", name, in)
			case name == "." || name == ".." || strings.ContainsAny(name, "/\\:*?\"<>|\x00\n\r\u202e"):
				t.Errorf("%q from %q is not safe", name, in)
			case strings.TrimRight(name, ". ") != name || strings.HasPrefix(name, " "):
				t.Errorf("%q from %q starts or ends with a space or dot", name, in)
			}
			key := strings.ToLower(strings.ToUpper(name))
			if seen[key] {
				t.Errorf("%q occurs twice in %q", name, got)
			}
			seen[key] = true
		}
		if again := archiveops.EntryNames(got); !slices.Equal(again, got) {
			t.Errorf("%q is changed again to %q", got, again)
		}
	})
}
