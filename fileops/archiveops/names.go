package archiveops

import (
	"cmp"
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/filewright/filewright/fileops/format"
)

// maxName is the longest entry name in bytes. File systems allow 255 bytes or
// UTF-16 units. The difference leaves room for suffixes that users add.
const maxName = 240

// EntryNames turns names into names that every system can unpack. The results have
// no folders, forbidden characters or device names. They are in Unicode
// normalization form C, and differ in more than case ("a.txt", "A (2).txt"). Valid
// names stay unchanged.
func EntryNames(names []string) []string {
	out := make([]string, len(names))
	var n namer
	for i, name := range names {
		out[i] = n.unique(safeName(name))
	}
	return out
}

// A namer makes entry names unique.
type namer struct {
	taken map[string]bool
	next  map[string]int // next number to try for a folded name
}

// unique returns name, or name with a number if it is taken.
func (u *namer) unique(name string) string {
	first := fold(name)
	if u.taken == nil {
		u.taken, u.next = make(map[string]bool), make(map[string]int)
	}
	for candidate := name; ; {
		if key := fold(candidate); !u.taken[key] {
			u.taken[key] = true
			return candidate
		}
		n := max(2, u.next[first])
		u.next[first] = n + 1
		candidate = numbered(name, n)
	}
}

// fold returns a key. Names with the same key are equal on some file system.
func fold(name string) string {
	return norm.NFC.String(strings.ToLower(strings.ToUpper(norm.NFC.String(name))))
}

// numbered inserts a number before the extension.
func numbered(name string, n int) string {
	base, ext := split(name)
	suffix := fmt.Sprintf(" (%d)", n)
	return clip(base, maxName-len(suffix)-len(ext)) + suffix + ext
}

// split separates the extension from a name. A very long suffix is not an extension.
func split(name string) (base, ext string) {
	base = format.Base(name)
	if ext = name[len(base):]; len(ext) > 40 {
		return name, ""
	}
	return base, ext
}

func safeName(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		switch {
		case r == utf8.RuneError, unicode.IsControl(r), strings.ContainsRune(`<>:"|?*`, r):
			return '_'
		case unicode.Is(unicode.Bidi_Control, r), r == '\u2028', r == '\u2029', r == '\ufeff':
			return '_' // invisible or reordering characters make a name look like another
		}
		return r
	}, name)
	name = norm.NFC.String(name)
	name = strings.TrimRight(strings.TrimLeft(name, " "), ". ") // Windows removes trailing dots and spaces
	name = cmp.Or(name, "file")
	if reserved(name) {
		name = "_" + name
	}
	if len(name) > maxName {
		base, ext := split(name)
		name = clip(base, maxName-len(ext)) + ext
		name = strings.TrimRight(name, ". ")
	}
	return name
}

// clip cuts s to at most n bytes, at a character boundary. It never separates a
// combining mark from its base.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && (!utf8.RuneStart(s[n]) || !norm.NFC.PropertiesString(s[n:]).BoundaryBefore()) {
		n--
	}
	return strings.TrimRight(s[:n], " ")
}

// reserved reports whether a name is a Windows device name. A device name with an
// extension is reserved too (Windows documentation, "Naming Files, Paths, and
// Namespaces").
func reserved(name string) bool {
	base, _, _ := strings.Cut(name, ".")
	switch base = strings.ToUpper(strings.TrimRight(base, " ")); base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	port, ok := strings.CutPrefix(base, "COM")
	if !ok {
		port, ok = strings.CutPrefix(base, "LPT")
	}
	return ok && utf8.RuneCountInString(port) == 1 && strings.ContainsAny(port, "0123456789¹²³")
}
