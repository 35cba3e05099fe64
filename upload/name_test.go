package upload_test

import (
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"github.com/filewright/filewright/upload"
)

func TestCleanName(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, in, want string }{
		{"plain", "report.pdf", "report.pdf"},
		{"letters of the world", "Übersicht 名前 ملف.docx", "Übersicht 名前 ملف.docx"},
		{"joined emoji", "👩\u200d🚀.png", "👩\u200d🚀.png"},
		{"directories", "/etc/../passwd", "passwd"},
		{"Windows directories", `C:\Users\a\b.txt`, "b.txt"},
		{"mixed", `a/b\c.txt`, "c.txt"},
		{"only a directory", "a/b/", "file"},
		{"empty", "", "file"},
		{"dot", ".", "file"},
		{"dots", "..", "file"},
		{"more dots", "a/....", "file"},
		{"spaces", "  a b .txt . ", "a b .txt"},
		{"hidden", ".profile", ".profile"},
		{"header injection", "a\r\nSet-Cookie: x.txt", "aSet-Cookie: x.txt"},
		{"NUL", "a.php\x00.png", "a.php.png"},
		{"escape and DEL", "a\x1b[31m\x7f.txt", "a[31m.txt"},
		{"C1", "a\u0085b.txt", "ab.txt"},
		{"right to left override", "ann\u202ecod.exe", "anncod.exe"},
		{"isolates", "a\u2066b\u2069\u200e\u200f\u061c.txt", "ab.txt"},
		{"separators", "a\u2028b\u2029c.txt", "abc.txt"},
		{"byte order mark", "\ufeffa.txt", "a.txt"},
		{"not UTF-8", "a\xff\xfe.txt", "a__.txt"},
		{"only control", "\x01\x02", "file"},
		{"device", "con.pdf", "_con.pdf"},
		{"device alone", "NUL", "_NUL"},
		{"device, several extensions", "aux.tar.gz", "_aux.tar.gz"},
		{"device, spaces", "Prn .txt", "_Prn .txt"},
		{"port", "COM1.docx", "_COM1.docx"},
		{"port, superscript", "lpt³.docx", "_lpt³.docx"},
		{"almost a device", "console.pdf", "console.pdf"},
		{"almost a port", "com12.pdf", "com12.pdf"},
		{"device that is hidden", "/c/\u202econ\x00.pdf", "_con.pdf"},
		{"device, long", "con." + strings.Repeat("x", 300), "_con." + strings.Repeat("x", 250)},
		{"long", strings.Repeat("x", 300) + ".pdf", strings.Repeat("x", 251) + ".pdf"},
		{"long, wide", strings.Repeat("ж", 200) + ".pdf", strings.Repeat("ж", 125) + ".pdf"},
		{"long extension", "a." + strings.Repeat("x", 300), "a." + strings.Repeat("x", 253)},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := upload.CleanName(tt.in); got != tt.want {
				t.Errorf("CleanName(%q) = %q, want %q", tt.in, got, tt.want)
			}
		})
	}
}

func FuzzCleanName(f *testing.F) {
	for _, s := range []string{"", "a.pdf", "../x", "a\r\nb", strings.Repeat("ж.", 200), "\xff", " . ", "con", "com1.x", "LPT².", "nul" + strings.Repeat(" ", 260) + ".x", "a" + strings.Repeat(" ", 260) + "b.c", "\u202e"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got := upload.CleanName(s)
		if got == "" || got == "." || got == ".." || len(got) > 255 || !utf8.ValidString(got) || strings.ContainsAny(got, `/\`) {
			t.Fatalf("CleanName(%q) = %q", s, got)
		}
		for _, r := range got {
			if unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) {
				t.Fatalf("CleanName(%q) = %q has %U", s, got, r)
			}
		}
		if again := upload.CleanName(got); again != got {
			t.Fatalf("CleanName(%q) = %q, and again %q", s, got, again)
		}
	})
}
