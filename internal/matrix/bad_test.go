package matrix_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/matrix"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

// kind groups similar cells of which only one runs: by action, engine and format, or with -short by
// the family of the format.
func kind(c matrix.Cell) string {
	from := string(c.From)
	if testing.Short() {
		from = fmt.Sprint(c.From.Family())
	}
	return c.Action + "/" + from + "/" + c.Spec.Engine
}

// TestBadInputs gives damaged and mislabelled files of every format to every action and engine that
// accepts the format.
func TestBadInputs(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, c := range cells {
		k := kind(c)
		if c.From == format.Any || seen[k] {
			continue
		}
		seen[k] = true
		t.Run(fmt.Sprintf("%s/%s/%s", c.Action, c.From, c.Value), func(t *testing.T) {
			t.Parallel()
			good, _ := input(t, c.Action, c.From).Bytes()
			random := make([]byte, 8192)
			rng := rand.New(rand.NewPCG(1, 2))
			for i := range random {
				random[i] = byte(rng.Uint32())
			}
			other := format.PNG
			if c.From == other {
				other = format.GIF
			}
			mislabelled, _ := specimen.Of(t, other).Bytes()
			noise := []string{"corrupt_input"}
			switch c.From {
			case format.MP3, format.AAC, format.MPEG, format.TS: // decoders skip unknown bytes at the start, and find no stream
				noise = append(noise, "unsupported_input")
			}
			for _, b := range []struct {
				name  string
				bytes []byte
				codes []string
				pass  bool // success is accepted too
			}{
				{"empty", nil, []string{"corrupt_input", "unsupported_input"}, isText(c.From)},
				{"random", random, noise, false},
				{"half", good[:len(good)/2], []string{"corrupt_input", "unsupported_input"}, readableInPart(c)},
				{"mislabelled", mislabelled, []string{"format_mismatch"}, false},
			} {
				refused(t, c, b.name, b.bytes, b.codes, b.pass)
			}
		})
	}
}

// refused runs c on content and checks the error code.
func refused(t *testing.T, c matrix.Cell, name string, content []byte, codes []string, pass bool) {
	t.Helper()
	in := []*fileops.File{fileops.Bytes("bad."+string(c.From), content)}
	if c.Spec.Joint {
		in = append(in, specimen.Of(t, c.From))
	}
	out, err := perform(t, c.Action, plain(c), in...)
	if err == nil && pass {
		for _, p := range out {
			decodes(t, p)
		}
		return
	}
	blames(t, name, err, codes...)
}

// blames checks the code of an error, and that its message is written for people.
func blames(t *testing.T, name string, err error, codes ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("%s: accepted, want %v", name, codes)
		return
	}
	if code := fileops.Code(err); !slices.Contains(codes, code) {
		t.Errorf("%s: code %s, want %v: %v", name, code, codes, err)
	}
	msg := fileops.Message(err)
	low := strings.ToLower(msg)
	for _, bad := range []string{"/", "\\", "\n", "goroutine", "panic", ".go", "0x", "runtime", "exit status", "fileops", "errno", "traceback", "nil ", strings.ToLower(password)} {
		if strings.Contains(low, bad) {
			t.Errorf("%s: the message is not for people: %q", name, msg)
		}
	}
	if len(msg) < 10 || len(msg) > 300 {
		t.Errorf("%s: message %q", name, msg)
	}
}

// decodes checks that a result is a valid file, with any content.
func decodes(t *testing.T, path string) {
	t.Helper()
	f := format.Parse(path)
	switch f.Family() {
	case format.Image:
		decode(t, path)
		return
	case format.Audio, format.Video:
		tool(t, "ffmpeg", "-nostdin", "-v", "error", "-i", path, "-f", "null", "-")
		return
	}
	switch f.Plain() {
	case format.PDF:
		tool(t, "qpdf", "--check", path)
	case format.XLSB, format.VSDX, format.Pages, format.Numbers, format.Key:
		tool(t, "unzip", "-tq", path)
	case format.ODG, format.DOCX, format.ODT, format.EPUB, format.XLSX, format.ODS, format.PPTX, format.ODP:
		py.ask(t, "office", path)
	case format.ZIP:
		tool(t, "unzip", "-tq", path)
	case format.SevenZip, format.TAR, format.TarGZ, format.TarBZ2, format.TarXZ, format.TarZst:
		tool(t, "bsdtar", "-tf", path)
	case format.DOC, format.XLS, format.PPT: // LibreOffice has just written it
	default:
		if s := read(t, path); !utf8.ValidString(s) {
			t.Errorf("%s is not text: %.100q", filepath.Base(path), s)
		}
	}
}

func isText(f format.Format) bool {
	return format.Check(f, bytes.NewReader(nil), 0) == nil
}

// readableInPart reports whether the first half of a file may be useful: text, streams that can be
// read while they arrive, and the headers of pictures, which are all that inspect reads.
func readableInPart(c matrix.Cell) bool {
	if c.Action == "inspect" && c.From.Family() == format.Image {
		return true
	}
	switch c.From {
	case format.EML, format.SRT, format.VTT, format.ASS, format.RTF, format.MP3, format.AAC, format.OGG, format.Opus, format.WAV, format.AIFF, format.FLAC, format.AMR, format.WMA,
		format.AVI, format.MKV, format.WebM, format.WMV, format.FLV, format.MPEG, format.TS, format.TarGZ, format.GZ, format.TAR,
		format.ISO: // much of it is padding
		return true
	}
	return isText(c.From)
}

// TestMislabelled covers the pairs that people really mix up, and some that only an attacker uses.
func TestMislabelled(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		content format.Format
		name    format.Format
		to      string
	}{
		{format.PNG, format.DOCX, "pdf"}, {format.MP4, format.PDF, "png"}, {format.ZIP, format.DOCX, "pdf"}, {format.ZIP, format.EPUB, "txt"},
		{format.ZIP, format.XLSX, "csv"}, {format.TXT, format.PNG, "jpg"}, {format.HTML, format.PDF, "txt"}, {format.HTML, format.DOC, "pdf"},
		{format.DOCX, format.XLSX, "csv"}, {format.XLSX, format.DOCX, "txt"}, {format.PDF, format.TXT, "pdf"}, {format.RTF, format.TXT, "pdf"},
		{format.MP4, format.MP3, "wav"}, {format.WAV, format.MP3, "wav"}, {format.MP3, format.WAV, "mp3"}, {format.SVG, format.PNG, "jpg"},
		{format.PDF, format.JPG, "png"}, {format.PS, format.PDF, "png"}, {format.RAR, format.TAR, "zip"}, {format.SevenZip, format.TarGZ, "zip"},
		{format.XLS, format.DOC, "pdf"}, {format.JPG, format.HEIC, "png"}, {format.MKV, format.MP4, "avi"}, {format.ODT, format.ODS, "csv"},
	} {
		t.Run(fmt.Sprintf("%s named %s", tt.content, tt.name), func(t *testing.T) {
			t.Parallel()
			f := specimen.Of(t, tt.content).Named("a." + string(tt.name))
			_, err := perform(t, "convert", fileops.Args{"convert_to": tt.to}, f)
			blames(t, tt.to, err, "format_mismatch")
		})
	}
}

// TestLocked gives password-protected files to every action without a password.
func TestLocked(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, c := range cells {
		k := kind(c)
		switch c.From.Plain() {
		case format.PDF, format.DOCX, format.XLSX, format.PPTX, format.DOC, format.XLS, format.PPT, format.ODT, format.ODS, format.ODP, format.ZIP, format.SevenZip, format.RAR:
		default:
			continue
		}
		if seen[k] {
			continue
		}
		seen[k] = true
		t.Run(fmt.Sprintf("%s/%s/%s", c.Action, c.From, c.Value), func(t *testing.T) {
			t.Parallel()
			f := specimen.Locked(t, c.From, password)
			args := plain(c)
			switch c.Action {
			case "unlock", "reset_password":
				_, err := perform(t, c.Action, args, specimen.Of(t, c.From))
				blames(t, "not locked", err, "not_encrypted")
				for _, name := range []string{"password", "old_password"} {
					if _, ok := args[name]; ok {
						args[name] = "wrong-password-1"
					}
				}
				_, err = perform(t, c.Action, args, f)
				blames(t, "wrong password", err, "wrong_password")
				if strings.Contains(err.Error(), "wrong-password-1") {
					t.Errorf("the password is in the error: %v", err)
				}
			default:
				in := []*fileops.File{f}
				if c.Spec.Joint {
					in = append(in, specimen.Of(t, c.From))
				}
				out, err := perform(t, c.Action, args, in...)
				if err == nil && c.Action == "compress" && c.From == format.ZIP { // compress copies encrypted entries unchanged
					want := contentOf(c.From)
					want.password = password
					judgeZIP(t, out[0], want)
					return
				}
				if err == nil && c.Action == "inspect" { // says that it is locked
					if report := systest.ReadFile(t, out[0]); !bytes.Contains(report, []byte(`"encrypted": true`)) {
						t.Errorf("the report does not say that the file is encrypted: %s", report)
					}
					return
				}
				blames(t, "locked", err, "password_required")
			}
		})
	}
}

// TestPasswordUnused gives a password for files that open without one, and for one that needs it, to
// every action and engine that takes one.
func TestPasswordUnused(t *testing.T) {
	t.Parallel()
	seen := make(map[string]bool)
	for _, c := range cells {
		opens := func(p fileops.Param) bool { return p.Name == "password" && p.Scope == fileops.ScopeInput }
		if k := kind(c); c.Action == "unlock" || seen[k] || !slices.ContainsFunc(c.Schema, opens) {
			continue
		} else {
			seen[k] = true
		}
		t.Run(fmt.Sprintf("%s/%s/%s", c.Action, c.From, c.Value), func(t *testing.T) {
			t.Parallel()
			check := func(want bool, in ...*fileops.File) {
				t.Helper()
				_, warnings, err := warned(t, c.Action, with(plain(c), "password", password), in...)
				if err != nil {
					t.Fatal(err)
				}
				got := slices.ContainsFunc(warnings, func(w fileops.Warning) bool { return w.Code == fileops.WarnPasswordUnused })
				if got != want {
					t.Errorf("password_unused: %v, want %v; all warnings: %v", got, want, warnings)
				}
			}
			in := []*fileops.File{input(t, c.Action, c.From)}
			if c.Spec.Joint {
				in = append(in, in[0])
			}
			check(true, in...)
			if c.Action == "merge" && takesPassword(c.From) { // one locked file is enough
				check(false, in[0], specimen.Locked(t, c.From, password))
			} else if c.From == format.PDF && c.Action != "fill_form" || c.Action == "convert" || c.Action == "extract" {
				check(false, specimen.Locked(t, c.From, password))
			}
		})
	}
}

// TestNothingInside covers valid files without content.
func TestNothingInside(t *testing.T) {
	t.Parallel()
	emptyZIP := append([]byte("PK\x05\x06"), make([]byte, 18)...)
	noPages := []byte("%PDF-1.4\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Kids[]/Count 0>>\nendobj\nxref\n0 3\n0000000000 65535 f \n0000000009 00000 n \n0000000054 00000 n \ntrailer\n<</Size 3/Root 1 0 R>>\nstartxref\n103\n%%EOF\n")
	for _, tt := range []struct {
		name, action string
		args         fileops.Args
		content      []byte
		codes        []string
	}{
		{"no pages.pdf", "convert", fileops.Args{"convert_to": "png"}, noPages, []string{"corrupt_input", "unsupported_input"}},
		{"no pages.pdf", "convert", fileops.Args{"convert_to": "txt"}, noPages, []string{"corrupt_input", "unsupported_input"}},
		{"no sound.wav", "convert", fileops.Args{"convert_to": "mp3"}, noSound(t), []string{"corrupt_input", "unsupported_input"}},
		{"empty.docx", "convert", fileops.Args{"convert_to": "pdf"}, emptyZIP, []string{"corrupt_input", "format_mismatch"}},
		{"noise.txt", "convert", fileops.Args{"convert_to": "pdf"}, []byte("\x00\x01\x02\xff\xfe\x00\x9d\x81 text of no encoding \x00\x03\x8d"), []string{"corrupt_input", "unsupported_input"}},
		{"noise.csv", "convert", fileops.Args{"convert_to": "json"}, []byte("a,b\n\x00\x01\xff,\x81\x00\x8d\n"), []string{"corrupt_input", "unsupported_input"}},
		{"not.json", "convert", fileops.Args{"convert_to": "csv"}, []byte(`[{"a":1},{"a":`), []string{"corrupt_input"}},
	} {
		t.Run(fmt.Sprintf("%s %v", tt.name, tt.args["convert_to"]), func(t *testing.T) {
			t.Parallel()
			_, err := perform(t, tt.action, tt.args, fileops.Bytes(tt.name, tt.content))
			blames(t, tt.name, err, tt.codes...)
		})
	}
}

// noSound returns the header of a WAV file without data.
func noSound(t *testing.T) []byte {
	b, _ := specimen.Of(t, format.WAV).Bytes()
	head := slices.Clone(b[:bytes.Index(b, []byte("data"))+8])
	copy(head[len(head)-4:], make([]byte, 4))
	return head
}

// TestEncodings covers text in other encodings than UTF-8. It is detected and decoded.
func TestEncodings(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"latin1":  "Fran\xe7ais: \xc4pfel und \xd6l, d\xe9j\xe0 vu.\n",
		"utf16le": "\xff\xfeF\x00r\x00a\x00n\x00\xe7\x00a\x00i\x00s\x00:\x00 \x00\xc4\x00p\x00f\x00e\x00l\x00\n\x00",
		"bom":     "\xef\xbb\xbfFrançais: Äpfel\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := perform(t, "convert", fileops.Args{"convert_to": "pdf"}, fileops.Bytes("a.txt", []byte(text)))
			systest.NoError(t, err)
			hasText(t, tool(t, "pdftotext", out[0], "-"), content{words: []string{"Français: Äpfel"}})
		})
	}
}

// TestUprightAndClear converts a photograph from a rotated camera, and a picture with a transparent
// part, to every image format.
func TestUprightAndClear(t *testing.T) {
	t.Parallel()
	for _, c := range cells {
		if c.Action != "convert" || c.From != format.JPG && c.From != format.PNG || c.Target().Family() != format.Image {
			continue
		}
		t.Run(string(c.From)+"/"+c.Value, func(t *testing.T) {
			t.Parallel()
			f, want := specimen.Turned(t), content{w: 160, h: 120, still: true}
			if c.From == format.PNG {
				f, want.clear = specimen.Translucent(t), true
			}
			args := plain(c)
			if c.Target() == format.JPG {
				args["quality"] = 90 // the pixels are encoded again, so they can be turned
			}
			out, err := perform(t, "convert", args, f)
			systest.NoError(t, err)
			judgePicture(t, out, want)
			if b, err := os.ReadFile(out[0]); err != nil || c.From == format.JPG && bytes.Contains(b, []byte("Exif\x00\x00MM\x00*\x00\x00\x00\x08\x00\x01\x01\x12\x00\x03\x00\x00\x00\x01\x00\x06")) {
				t.Errorf("it would be turned twice (%v)", err)
			}
		})
	}
}
