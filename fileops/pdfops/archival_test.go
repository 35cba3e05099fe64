package pdfops_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/fileops/pdfread"
	"github.com/filewright/filewright/internal/systest"
)

func findGhostscript(t testing.TB) *engine.Program {
	t.Helper()
	p, err := engine.NewSandbox().Find(t.Context(), []string{"--version"}, "gs")
	systest.NoError(t, err)
	return p
}

// eyes returns pdfium, which is closed at the end of the test.
func eyes(t testing.TB) *pdfread.Engine {
	t.Helper()
	e, err := pdfread.New(t.Context(), pdfread.Options{CacheDir: systest.CodeCache()})
	systest.NoError(t, err)
	t.Cleanup(func() { e.Close() })
	systest.NoError(t, e.Warm(t.Context())) // drawing has a time limit, so pdfium starts before
	return e
}

// painted is a document of one page whose content is objects from 5 on.
func painted(catalog, page, content string, objects ...string) []byte {
	return handmade("1.7", append([]string{
		"<</Type/Catalog/Pages 2 0 R" + catalog + ">>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 200]/Contents 4 0 R" + page + ">>", stream("", content),
	}, objects...)...)
}

// archived runs the conversion to PDF/A and checks the result with other programs.
func archived(t *testing.T, tools pdfops.Tools, level string, in *fileops.File) (*fileops.File, []string) {
	t.Helper()
	var codes []string
	args := fileops.Args{"convert_to": "pdf", "pdfa": level}
	f := run(t, tools.ConvertArchival(), args, in)
	codes = warned(t, tools.ConvertArchival(), args, in)
	sound(t, f)
	path := save(t, f)
	var all []map[string]any
	systest.NoError(t, json.Unmarshal([]byte(shell(t, "exiftool", "-json", "-G1", path)), &all))
	if part, _ := all[0]["XMP-pdfaid:Part"].(float64); int(part) != int(level[0]-'0') || all[0]["XMP-pdfaid:Conformance"] != "B" {
		t.Errorf("the file claims part %v, conformance %v", all[0]["XMP-pdfaid:Part"], all[0]["XMP-pdfaid:Conformance"])
	}
	for line := range strings.Lines(shell(t, "pdffonts", path)) {
		if f := strings.Fields(line); len(f) > 5 && f[len(f)-1] != "ID" && !strings.HasPrefix(line, "-") && f[len(f)-5] != "yes" {
			t.Errorf("a font is not embedded: %s", line)
		}
	}
	text := shell(t, "qpdf", "--qdf", "--object-streams=disable", path, "-")
	for _, want := range []string{"/S /GTS_PDFA1", "/DestOutputProfile"} {
		if !strings.Contains(text, want) {
			t.Errorf("the file has no %s", want)
		}
	}
	for _, bad := range []string{"/JavaScript", "/AA ", "/Encrypt"} {
		if strings.Contains(text, bad) {
			t.Errorf("the file has %s", bad)
		}
	}
	if level == "1b" && (strings.Contains(text, "/S /Transparency") || strings.Contains(text, "/SMask")) {
		t.Error("the file is transparent")
	}
	return f, codes
}

// A file that lacks only metadata keeps its pages and tags, also without Ghostscript.
func TestArchiveInPlace(t *testing.T) {
	t.Parallel()
	in := painted("/OpenAction<</S/JavaScript/JS(app.alert\\(1\\))>>/Names<</JavaScript<</Names[(a)<</S/JavaScript/JS(1)>>]>>>>",
		"/Annots[5 0 R 6 0 R]", "1 0 0 rg 20 20 100 100 re f",
		"<</Type/Annot/Subtype/Link/Rect[20 20 60 60]/A<</S/URI/URI(https://example.com/)>>>>",
		"<</Type/Annot/Subtype/Text/F 2/Rect[80 80 90 90]/Contents(hidden)>>")
	titled := run(t, pdfops.Metadata(), fileops.Args{"set": map[string]any{"title": "Übersicht & mehr", "author": "Ann"}}, pdf("a.pdf", in))
	tools := pdfops.Tools{Renderer: eyes(t)}
	for _, level := range []string{"1b", "2b", "3b"} {
		f, codes := archived(t, tools, level, titled)
		if !slices.Equal(codes, []string{fileops.WarnContentDropped, fileops.WarnScriptNotRun}) {
			t.Errorf("%s: warnings %q", level, codes)
		}
		got := metadataOf(t, f)
		if got["XMP-dc:Title"] != "Übersicht & mehr" || got["PDF:Title"] != "Übersicht & mehr" || got["PDF:Author"] != "Ann" {
			t.Errorf("%s: title %v, %v, author %v", level, got["XMP-dc:Title"], got["PDF:Title"], got["PDF:Author"])
		}
		if s := summarize(t, f); s.Links != 1 || s.Pages != 1 {
			t.Errorf("%s: %+v", level, s)
		}
		if _, codes := archived(t, pdfops.Tools{}, level, f); len(codes) > 0 {
			t.Errorf("%s: the second conversion warns: %q", level, codes)
		}
	}
}

// The profile of the output intent is one that other programs read.
func TestArchiveProfile(t *testing.T) {
	t.Parallel()
	f, _ := archived(t, pdfops.Tools{}, "2b", pdf("a.pdf", painted("", "", "0 0 9 9 re f")))
	path := save(t, f)
	var v struct{ Qpdf []map[string]json.RawMessage }
	systest.NoError(t, json.Unmarshal([]byte(shell(t, "qpdf", "--json=2", path)), &v))
	for name, o := range v.Qpdf[1] {
		if !strings.Contains(string(o), `"/N": 3`) {
			continue
		}
		icc := filepath.Join(t.TempDir(), "profile.icc")
		number := strings.Fields(strings.TrimPrefix(name, "obj:"))[0]
		systest.NoError(t, os.WriteFile(icc, []byte(shell(t, "qpdf", "--show-object="+number, "--filtered-stream-data", path)), 0o600))
		said := shell(t, "exiftool", "-s", icc)
		for _, want := range []string{"sRGB IEC61966-2.1", "2.1.0", "RGB", "Display Device Profile"} {
			if !strings.Contains(said, want) {
				t.Errorf("the profile has no %q: %s", want, said)
			}
		}
		return
	}
	t.Error("the file has no profile")
}

// Ghostscript writes pages again whose fonts, colours or transparency PDF/A forbids.
func TestArchiveRedrawn(t *testing.T) {
	t.Parallel()
	tools := pdfops.Tools{Ghostscript: findGhostscript(t), Renderer: eyes(t)}
	see := painted("", "/Resources<</ExtGState<</G<</Type/ExtGState/ca .5>>>>>>", "/G gs 0 0 1 rg 20 20 100 100 re f 1 0 0 rg 60 60 100 100 re f")
	for name, tt := range map[string]struct {
		in    []byte
		level string
		code  string
	}{
		"font":         {simple("Archived text"), "2b", ""},
		"tags":         {rich("archived"), "1b", fileops.WarnContentDropped},
		"cmyk":         {painted("", "", "0.2 0.9 0.1 0 k 20 20 100 100 re f"), "3b", ""},
		"transparency": {see, "1b", ""},
	} {
		if testing.Short() && name == "cmyk" {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := pdf("a.pdf", tt.in)
			message := fails(t, fileops.ErrUnsupportedInput, pdfops.Tools{}.ConvertArchival(), fileops.Args{"convert_to": "pdf", "pdfa": tt.level}, in)
			if !strings.Contains(message, "Ghostscript") {
				t.Errorf("message %q", message)
			}
			f, codes := archived(t, tools, tt.level, in)
			if tt.code != "" && !slices.Contains(codes, tt.code) {
				t.Errorf("warnings %q", codes)
			}
			before, after := shell(t, "pdftotext", save(t, in), "-"), shell(t, "pdftotext", save(t, f), "-")
			if strings.Join(strings.Fields(before), "") != strings.Join(strings.Fields(after), "") {
				t.Errorf("text %q, before %q", after, before)
			}
			if a, b := summarize(t, f), summarize(t, in); a.Pages != b.Pages || a.Links != b.Links {
				t.Errorf("%+v, before %+v", a, b)
			}
		})
	}
}

// The second part allows transparency, so the file stays as it is.
func TestArchiveKeepsTransparency(t *testing.T) {
	t.Parallel()
	in := painted("", "/Resources<</ExtGState<</G<</Type/ExtGState/ca .5>>>>>>", "/G gs 0 0 1 rg 20 20 100 100 re f")
	f, _ := archived(t, pdfops.Tools{}, "2b", pdf("a.pdf", in))
	if text := shell(t, "qpdf", "--qdf", "--object-streams=disable", save(t, f), "-"); !strings.Contains(text, "/ca 0.5") {
		t.Error("the file is no longer transparent")
	}
}

// accessible is a tagged document with a title and a language.
func accessible(lang, content string) []byte {
	return painted("/MarkInfo<</Marked true>>/StructTreeRoot 5 0 R"+lang, "/StructParents 0", content,
		"<</Type/StructTreeRoot/K 6 0 R/ParentTree<</Nums[0[6 0 R]]>>>>", "<</Type/StructElem/S/P/P 5 0 R/Pg 3 0 R/K 0>>")
}

// Only a file whose tags pass the checks claims to conform to PDF/UA.
func TestAccessible(t *testing.T) {
	t.Parallel()
	const tagged = "/P<</MCID 0>>BDC 0 0 9 9 re f EMC /Artifact BMC 20 20 9 9 re f EMC"
	title := func(b []byte) *fileops.File {
		return run(t, pdfops.Metadata(), fileops.Args{"set": map[string]any{"title": "A title"}}, pdf("a.pdf", b))
	}
	args := fileops.Args{"convert_to": "pdf", "pdfua": true}
	f := run(t, pdfops.ConvertArchival(), args, title(accessible("/Lang(en)", tagged)))
	sound(t, f)
	if said := shell(t, "pdfinfo", "-meta", save(t, f)); !strings.Contains(said, "<pdfuaid:part>1</pdfuaid:part>") {
		t.Errorf("no claim: %s", said)
	}
	named := run(t, pdfops.ConvertArchival(), args, pdf("Report 7.pdf", accessible("/Lang(en)", tagged)))
	if title := metadataOf(t, named)["XMP-dc:Title"]; title != "Report 7" {
		t.Errorf("title %v", title)
	}
	both := run(t, pdfops.ConvertArchival(), fileops.Args{"convert_to": "pdf", "pdfua": true, "pdfa": "2b"}, f)
	if said := shell(t, "pdfinfo", "-meta", save(t, both)); !strings.Contains(said, "<pdfuaid:part>1<") || !strings.Contains(said, "<pdfaid:part>2<") || !strings.Contains(said, "pdfaSchema:namespaceURI") {
		t.Errorf("no claims: %s", said)
	}
	for want, in := range map[string]*fileops.File{
		"no tags":              pdf("a.pdf", painted("/Lang(en)", "", tagged)),
		"no language":          title(accessible("", tagged)),
		"content without tags": title(accessible("/Lang(en)", tagged+" 0 0 9 9 re f")),
	} {
		if message := fails(t, fileops.ErrUnsupportedInput, pdfops.ConvertArchival(), args, in); !strings.Contains(message, want) {
			t.Errorf("message %q, want %q", message, want)
		}
	}
}

// The result has the pages that are named, in their order.
func TestArchivePages(t *testing.T) {
	t.Parallel()
	page := func(w string) *fileops.File { return pdf("a.pdf", painted("", "", "0 0 "+w+" 9 re f")) }
	in := run(t, pdfops.Merge(), fileops.Args{"convert_to": "pdf"}, page("9"), page("20"), page("30"))
	f := run(t, pdfops.ConvertArchival(), fileops.Args{"convert_to": "pdf", "pdfa": "2b", "pages": "3,1"}, in)
	sound(t, f)
	said := shell(t, "pdfinfo", "-meta", save(t, f))
	if n := summarize(t, f).Pages; n != 2 || !strings.Contains(said, "<pdfaid:part>2<") {
		t.Errorf("%d pages: %s", n, said)
	}
	message := fails(t, fileops.ErrParameter, pdfops.ConvertArchival(), fileops.Args{"convert_to": "pdf", "pdfa": "2b", "pages": "4"}, in)
	if !strings.Contains(message, "the document has 3 pages") {
		t.Error(message)
	}
}

// An attachment stays in PDF/A-3 only, and its relationship is written.
func TestArchiveAttachments(t *testing.T) {
	t.Parallel()
	in := pdf("a.pdf", painted("/Names<</EmbeddedFiles<</Names[(a.txt)5 0 R]>>>>", "", "0 0 9 9 re f",
		"<</Type/Filespec/F(a.txt)/UF(a.txt)/EF<</F 6 0 R>>>>", stream("/Type/EmbeddedFile", "text")))
	for level, want := range map[string]int{"2b": 0, "3b": 1} {
		f, codes := archived(t, pdfops.Tools{}, level, in)
		if got := summarize(t, f).Attachments; got != want || slices.Contains(codes, fileops.WarnContentDropped) != (want == 0) {
			t.Errorf("%s: %d attachments, warnings %q", level, got, codes)
		}
	}
}

const encapsulated = "%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 10 20 210 120\n/Helvetica findfont 24 scalefont setfont 20 60 moveto (Encapsulated) show showpage\n"

func TestFromPostScript(t *testing.T) {
	t.Parallel()
	if (pdfops.Tools{}).FromPostScript() != nil {
		t.Error("there is an action without Ghostscript")
	}
	a := pdfops.Tools{Ghostscript: findGhostscript(t)}.FromPostScript()
	args := fileops.Args{"convert_to": "pdf"}
	f := run(t, a, args, fileops.Bytes("a.eps", []byte(encapsulated)))
	sound(t, f)
	if f.Name() != "a.pdf" || f.Format() != format.PDF {
		t.Errorf("the result is %s", f.Name())
	}
	if text := shell(t, "pdftotext", save(t, f), "-"); !strings.Contains(text, "Encapsulated") {
		t.Errorf("text %q", text)
	}
	if info := shell(t, "pdfinfo", save(t, f)); !strings.Contains(info, "200 x 100 pts") {
		t.Errorf("the page is not the bounding box: %s", info)
	}
	// A program that reads a file, and one without a page.
	secret := filepath.Join(t.TempDir(), "secret")
	systest.NoError(t, os.WriteFile(secret, []byte("SECRET"), 0o600))
	for name, program := range map[string]string{
		"reads":  "%!PS\n(" + secret + ") (r) file 100 string readstring pop /Helvetica findfont 20 scalefont setfont 20 20 moveto show showpage\n",
		"writes": "%!PS\n(" + secret + "2) (w) file (x) writestring showpage\n",
		"runs":   "%!PS\n(%pipe%touch " + secret + "2) (w) file showpage\n",
		"error":  "%!PS\nthis_is_no_operator showpage\n",
	} {
		t.Run(name, func(t *testing.T) {
			fails(t, fileops.ErrCorruptInput, a, args, fileops.Bytes(name+".ps", []byte(program)))
		})
	}
	if _, err := os.Stat(secret + "2"); err == nil {
		t.Error("a program wrote a file")
	}
}
