package upload

import (
	"mime"
	"path"
	"strings"
	"unicode"
	"unicode/utf8"
)

const (
	maxName = 255 // bytes, the limit of most file systems
	maxExt  = 20  // bytes including the dot; longer suffixes are not extensions
)

// CleanName turns any client-supplied file name into a base name. It drops directories
// in Unix and Windows notation, and invisible characters that can deceive: control
// characters, line separators and those that change the writing direction. A name that
// is a device on Windows, such as "con.pdf", gets an underscore in front. The result
// has at most 255 bytes, with the extension preserved, and is never empty: if nothing
// is left, it is "file". CleanName is idempotent.
func CleanName(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		if r == utf8.RuneError { // includes bytes that are not UTF-8
			return '_'
		}
		if deceptive(r) {
			return -1
		}
		return r
	}, name)
	name = trimName(name)
	if reserved(name) {
		name = "_" + name
	}
	if len(name) > maxName {
		ext := path.Ext(name)
		if len(ext) > maxExt {
			ext = ""
		}
		base := name[:maxName-len(ext)]
		for !utf8.ValidString(base) { // at most three times
			base = base[:len(base)-1]
		}
		name = trimName(base) + ext
	}
	if name == "" {
		return "file"
	}
	return name
}

// trimName removes what Windows does not allow at the end of a name, and leading
// spaces. It turns "." and ".." into "".
func trimName(s string) string {
	s = strings.TrimLeftFunc(s, unicode.IsSpace)
	return strings.TrimRightFunc(s, func(r rune) bool { return r == '.' || unicode.IsSpace(r) })
}

// reserved reports whether a name is a device on Windows, which depends only on the
// part before the first dot.
func reserved(name string) bool {
	base, _, _ := strings.Cut(name, ".")
	base = strings.ToUpper(strings.TrimRight(base, " "))
	switch base {
	case "CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$":
		return true
	}
	port, ok := strings.CutPrefix(base, "COM")
	if !ok {
		port, ok = strings.CutPrefix(base, "LPT")
	}
	return ok && utf8.RuneCountInString(port) == 1 && strings.Trim(port, "0123456789¹²³") == ""
}

func deceptive(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) ||
		r == '\u2028' || r == '\u2029' || r == '\ufeff'
}

// cleanType returns a MIME type in normal form. An invalid type becomes
// application/octet-stream, without an error, because clients send all kinds of values.
func cleanType(s string) string {
	const unknown = "application/octet-stream"
	if len(s) > 255 {
		return unknown
	}
	t, params, err := mime.ParseMediaType(s)
	if err != nil || !strings.Contains(t, "/") {
		return unknown
	}
	if t = mime.FormatMediaType(t, params); t == "" {
		return unknown
	}
	return t
}
