package archiveops

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"

	"github.com/filewright/filewright/fileops/format"
)

// maxName is the length in bytes that a name has at most. File systems allow 255
// bytes or UTF-16 units; some is left for what people add.
const maxName = 240

// EntryNames returns for each name one that can be unpacked everywhere: without
// folders, characters or device names that a system forbids, in Unicode
// normalisation form C, and different from all others even where case does not
// count ("a.txt", "a (2).txt"). Names that are fine already are not changed.
func EntryNames(names []string) []string {
	out := make([]string, len(names))
	var n namer
	for i, name := range names {
		out[i] = n.unique(safeName(name))
	}
	return out
}

// A namer hands out names that differ from each other.
type namer struct {
	taken map[string]bool
	next  map[string]int // number to try next, by the first choice
}

// unique returns name or, if that is taken, name with a number.
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

// fold returns what is the same for names that some file system takes for the
// same.
func fold(name string) string {
	return norm.NFC.String(strings.ToLower(strings.ToUpper(norm.NFC.String(name))))
}

// numbered puts a number in front of the extension.
func numbered(name string, n int) string {
	base, ext := split(name)
	suffix := fmt.Sprintf(" (%d)", n)
	return clip(base, maxName-len(suffix)-len(ext)) + suffix + ext
}

// split cuts off the extension. What is very long is none.
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
			return '_' // they make a name look like another
		}
		return r
	}, name)
	name = norm.NFC.String(name)
	name = strings.TrimRight(strings.TrimLeft(name, " "), ". ") // Windows drops them
	if name == "" {
		name = "file"
	}
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

// clip cuts s to at most n bytes, between characters and not before a mark that
// belongs to the one before it.
func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && (!utf8.RuneStart(s[n]) || !norm.NFC.PropertiesString(s[n:]).BoundaryBefore()) {
		n--
	}
	return strings.TrimRight(s[:n], " ")
}

// reserved tells whether Windows takes a name for a device, which it does
// whatever the extension ("Naming Files, Paths, and Namespaces" in its
// documentation).
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
