package ocrops

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/filewright/filewright/fileops/engine"
)

// Auto is the language that makes the engine detect the script and the language of a
// text. It is the default.
const Auto = "auto"

// A script is a writing system with Tesseract's languages for it.
type script struct {
	name      string // of Tesseract's detection of orientation and script
	languages []string
}

// scripts are the writing systems that the engine detects. The first language of each is
// the one of most texts.
var scripts = []script{
	{"Latin", []string{"eng", "deu", "fra", "spa", "ita", "por", "nld", "pol", "ces", "ron", "hun", "swe", "tur", "vie", "ind"}},
	{"Cyrillic", []string{"rus", "ukr", "bul"}},
	{"Greek", []string{"ell"}},
	{"Arabic", []string{"ara", "fas"}},
	{"Hebrew", []string{"heb"}},
	{"Devanagari", []string{"hin"}},
	{"Bengali", []string{"ben"}},
	{"Tamil", []string{"tam"}},
	{"Telugu", []string{"tel"}},
	{"Thai", []string{"tha"}},
	{"Han", []string{"chi_sim", "chi_tra"}},
	{"Japanese", []string{"jpn"}},
	{"Korean", []string{"kor"}},
}

// frequent are words without diacritics that occur in nearly every paragraph of a
// language in Latin script, and rarely in the others. Tesseract recognizes most of them
// with the model for English, too. Other scripts have so few languages that Tesseract's
// confidence decides.
var frequent = map[string][]string{
	"eng": {"the", "of", "and", "is", "with", "this", "that", "for", "was", "are", "from", "by"},
	"deu": {"und", "der", "die", "das", "nicht", "ist", "mit", "von", "den", "ein", "eine", "auf", "zu"},
	"fra": {"les", "des", "est", "dans", "une", "du", "et", "pour", "qui", "ou", "le", "la", "sur", "par"},
	"spa": {"los", "las", "del", "el", "y", "una", "por", "con", "la", "en", "que", "de", "se"},
	"ita": {"di", "che", "della", "il", "gli", "sono", "per", "nel", "la", "e", "un", "una", "le", "con"},
	"por": {"os", "uma", "nao", "do", "da", "em", "com", "sao", "dos", "que", "o", "e", "na", "no", "para"},
	"nld": {"het", "een", "van", "niet", "zijn", "voor", "en", "op", "de", "in", "dat", "te", "met"},
	"pol": {"sie", "nie", "jest", "na", "ze", "oraz", "przez", "w", "z", "do", "dla", "od"},
	"ces": {"je", "se", "ze", "jsou", "ktere", "podle", "pro", "pri", "na", "v", "kde", "byl", "byly", "byla", "nebo"},
	"ron": {"si", "este", "sunt", "pentru", "din", "care", "cu", "la", "un", "nu", "mai", "pe", "de"},
	"hun": {"az", "es", "hogy", "nem", "egy", "volt", "meg", "is", "a", "vagy", "csak"},
	"swe": {"och", "ar", "som", "att", "inte", "for", "det", "pa", "en", "av", "till", "med", "den"},
	"tur": {"ve", "bir", "bu", "icin", "ile", "olarak", "daha", "de", "da", "olan", "gibi"},
	"vie": {"cua", "va", "la", "khong", "cac", "co", "duoc", "nhung", "mot", "trong", "cho"},
	"ind": {"yang", "dan", "di", "untuk", "dengan", "tidak", "dari", "pada", "ini", "itu", "dalam"},
}

// How a language is detected. Confidence is Tesseract's, weighted by letters; it is
// above certain for nearly all clean text that is read in its own language.
const (
	sureScript   = 5.0  // least confidence in the script of little text that needs no check
	certain      = 0.92 // least confidence in words that needs no comparison
	readable     = 0.82 // below this, little text is searched for in all scripts
	unreadable   = 0.45 // below this, words are dropped: no installed language fits
	fewWords     = 2    // less text is not worth the search
	mostSearched = 80   // words; longer text has enough letters to detect its script
)

// A reader is a picture that can be read several times.
type reader struct {
	file  func() io.Reader
	dpi   float64 // 0 means unknown
	pages int
}

// detect reads a picture in the language of its text. It returns no words if no
// installed language fits. The language is "" if it does not matter.
func (e *Engine) detect(ctx context.Context, r reader) (pages []*hocrPage, language string, err error) {
	best := e.languages[0]
	found, sure, upright, err := e.script(ctx, r)
	if err != nil {
		return nil, "", err
	}
	turn := e.upright && !(upright && r.pages == 1) // looking again takes as long as a fifth of the reading
	read := func(language string) ([]*hocrPage, float64, error) {
		pages, err := e.read(ctx, r.file(), r.dpi, language, turn, r.pages)
		return pages, confidence(pages), err
	}
	if own := e.installed(found); len(own) > 0 {
		best = own[0]
	} else if found != nil && sure >= sureScript {
		return empty(r.pages), "", nil // any other language would yield garbage
	}
	pages, score, err := read(best)
	if err != nil {
		return nil, "", err
	}
	try := func(languages []string, margin float64) error {
		for _, l := range languages {
			if l == best || score >= certain {
				continue
			}
			again, n, err := read(l)
			if err != nil {
				return err
			}
			if n > score-margin {
				pages, score, best = again, n, l
			}
		}
		return nil
	}
	words := countWords(pages)
	if score < readable && words >= fewWords && words <= mostSearched && sure < sureScript {
		if err := try(e.oneOfEach(), 0); err != nil {
			return nil, "", err
		}
	}
	if s := scriptFor(best); s != nil && s.name == "Latin" {
		// The English model reads other languages with confidence, too.
		if l := e.moreFrequent(s, best, pageText(pages)); l != "" {
			score = min(score, certain-0.01)
			err = try([]string{l}, 0.05)
		}
	} else {
		err = try(e.rivals(s), 0)
	}
	if err != nil {
		return nil, "", err
	}
	if score < unreadable {
		return empty(r.pages), "", nil
	}
	return pages, best, nil
}

// empty returns pages without words.
func empty(n int) []*hocrPage {
	pages := make([]*hocrPage, n)
	for i := range pages {
		pages[i] = &hocrPage{}
	}
	return pages
}

// script asks Tesseract for the writing system of the first page. It returns nil if
// there is too little text, and how sure Tesseract is. upright reports whether the text
// certainly is upright.
func (e *Engine) script(ctx context.Context, r reader) (found *script, sure float64, upright bool, err error) {
	if !e.upright || len(e.languages) < 2 {
		return nil, 0, false, nil
	}
	args := []string{"stdin", "stdout", "-l", "osd", "--psm", "0"}
	if r.dpi > 0 {
		args = append(args, "--dpi", strconv.Itoa(clampDPI(r.dpi)))
	}
	if r.pages > 1 {
		args = append(args, "-c", "tessedit_page_number=0")
	}
	var out bytes.Buffer
	err = e.run(ctx, engine.Cmd{
		Args: args, Stdin: r.file(), Stdout: &limitedWriter{w: &out, left: 64 << 10}, Limits: engine.Limits{CPU: e.opts.Timeout},
	}, 4*e.opts.Timeout+time.Minute, errScript)
	var exit *engine.ExitError
	switch {
	case errors.As(err, &exit), errors.Is(err, errScript), errors.Is(err, errOutput):
		return nil, 0, false, nil // too few characters; reading reports everything else
	case err != nil:
		return nil, 0, false, err
	}
	found, sure, upright = parseScript(out.String())
	return found, sure, upright, nil
}

var errScript = errors.New("the detection of the script takes too long")

// parseScript parses Tesseract's description of the first page.
func parseScript(s string) (found *script, sure float64, upright bool) {
	name, rotate := "", ""
	for line := range strings.Lines(s) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "Rotate":
			rotate = cmp.Or(rotate, value)
		case "Script":
			name = cmp.Or(name, value)
		case "Script confidence":
			if n, err := strconv.ParseFloat(value, 64); err == nil && sure == 0 {
				sure = n
			}
		}
	}
	upright = rotate == "0"
	switch name {
	case "":
		return nil, 0, upright
	case "Fraktur":
		name = "Latin"
	case "Hangul":
		name = "Korean"
	case "Hiragana", "Katakana":
		name = "Japanese"
	}
	for i := range scripts {
		if scripts[i].name == name {
			return &scripts[i], sure, upright
		}
	}
	return &script{name: name}, sure, upright
}

// installed returns the languages of a script that this host has.
func (e *Engine) installed(s *script) (names []string) {
	if s == nil {
		return nil
	}
	for _, l := range s.languages {
		if slices.Contains(e.languages, l) {
			names = append(names, l)
		}
	}
	return names
}

// rivals returns the installed languages that a text in a script may be in. Japanese and
// Chinese share most characters, and a short text has few others.
func (e *Engine) rivals(s *script) (names []string) {
	for i := range scripts {
		own := &scripts[i]
		if own == s || s != nil && isEastAsian(own.name) && isEastAsian(s.name) {
			names = append(names, e.installed(own)...)
		}
	}
	return names
}

func isEastAsian(script string) bool { return script == "Han" || script == "Japanese" }

// oneOfEach returns the first installed language of each script.
func (e *Engine) oneOfEach() (names []string) {
	for i := range scripts {
		if own := e.installed(&scripts[i]); len(own) > 0 {
			names = append(names, own[0])
		}
	}
	return names
}

// scriptFor returns the script of a language, or nil.
func scriptFor(language string) *script {
	for i := range scripts {
		if slices.Contains(scripts[i].languages, language) {
			return &scripts[i]
		}
	}
	return nil
}

// moreFrequent returns the installed language of a script whose frequent words are
// clearly more frequent in text than those of the language best, or "".
func (e *Engine) moreFrequent(s *script, best, text string) string {
	const clear = 3 // words
	counts := make(map[string]int)
	for _, w := range strings.FieldsFunc(strings.ToLower(withoutMarks(text)), func(r rune) bool { return !unicode.IsLetter(r) }) {
		counts[w]++
	}
	score := func(language string) (n int) {
		for _, w := range frequent[language] {
			n += counts[w]
		}
		return n
	}
	top, most := "", score(best)+clear-1
	for _, l := range e.installed(s) {
		if n := score(l); n > most {
			top, most = l, n
		}
	}
	return top
}

// withoutMarks removes diacritics from letters.
func withoutMarks(s string) string {
	var b strings.Builder
	for _, r := range norm.NFD.String(s) {
		if !unicode.IsMark(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// confidence returns the mean confidence in the letters of pages, from 0 to 1.
func confidence(pages []*hocrPage) float64 {
	sum, all := 0.0, 0.0
	for _, p := range pages {
		for _, l := range p.lines {
			for _, w := range l.words {
				n := float64(len([]rune(w.Text)))
				sum, all = sum+n*w.Confidence, all+n
			}
		}
	}
	return sum / max(all, 1)
}

func countWords(pages []*hocrPage) (n int) {
	for _, p := range pages {
		for _, l := range p.lines {
			n += len(l.words)
		}
	}
	return n
}

// pageText returns the words of pages, separated by spaces.
func pageText(pages []*hocrPage) string {
	var b strings.Builder
	for _, p := range pages {
		for _, l := range p.lines {
			for _, w := range l.words {
				b.WriteString(w.Text)
				b.WriteByte(' ')
			}
		}
	}
	return b.String()
}

// recommended returns the Debian packages for the languages of the world's most used
// scripts that this host lacks.
func (e *Engine) recommended() (packages []string) {
	for i := range scripts {
		for _, l := range scripts[i].languages {
			if !slices.Contains(e.languages, l) {
				packages = append(packages, "tesseract-ocr-"+strings.ReplaceAll(l, "_", "-"))
			}
		}
	}
	if !e.upright {
		packages = append(packages, "tesseract-ocr-osd")
	}
	return packages
}
