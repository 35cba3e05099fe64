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
	maxExt  = 20  // bytes with the dot; longer ones are no extensions
)

// CleanName makes a base name of whatever a client calls a file. It drops
// directories in the notation of Unix and of Windows, and characters that are
// invisible and can deceive: control characters, line separators and those that
// change the direction of writing. A name that is a device on Windows, such as
// "con.pdf", gets an underscore in front. The result has at most 255 bytes, with
// the extension preserved, and is never empty: if nothing is left it is "file".
// Cleaning it again does not change it.
func CleanName(name string) string {
	if i := strings.LastIndexAny(name, `/\`); i >= 0 {
		name = name[i+1:]
	}
	name = strings.Map(func(r rune) rune {
		if r == utf8.RuneError { // also for bytes that are not UTF-8
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

// trimName removes what Windows does not allow at the end of a name, and spaces
// at its beginning. It leaves nothing of "." and "..".
func trimName(s string) string {
	s = strings.TrimLeftFunc(s, unicode.IsSpace)
	return strings.TrimRightFunc(s, func(r rune) bool { return r == '.' || unicode.IsSpace(r) })
}

// reserved reports whether Windows takes a name for that of a device, which is
// decided by what stands before the first dot.
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
	return ok && utf8.RuneCountInString(port) == 1 && strings.Contains("0123456789¹²³", port)
}

func deceptive(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) ||
		r == '\u2028' || r == '\u2029' || r == '\ufeff'
}

// cleanType returns a MIME type in its normal form. Clients send all kinds of
// things, and none of it is to be trusted, so that there is no error.
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
