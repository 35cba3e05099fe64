package officeops_test

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/officeops"
	"github.com/filewright/filewright/internal/systest"
)

// curious returns documents that show their path: in fields, headers, functions and
// links. The workbooks store values like Excel does.
func curious(t testing.TB) map[string][]byte {
	talk, err := io.ReadAll(fileopstest.Sample(t, format.FODP).Reader())
	systest.NoError(t, err)
	const (
		types = `<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"><Default Extension="rels" ContentType="application/vnd.openxmlformats-package.relationships+xml"/><Default Extension="xml" ContentType="application/xml"/>%s</Types>`
		rels  = `<Relationships xmlns="http://schemas.openxmlformats.org/package/2006/relationships">%s</Relationships>`
		rel   = `<Relationship Id="%s" Type="http://schemas.openxmlformats.org/officeDocument/2006/relationships/%s" Target="%s"/>`
		main  = `xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"`
		text  = `<c r="%s" t="str"><f%s>%s</f><v>%s</v></c>`
	)
	cell := func(ref, formula, value string) string { return fmt.Sprintf(text, ref, "", formula, value) }
	xlsx := zipOf(
		"[Content_Types].xml", head+fmt.Sprintf(types, `<Override PartName="/xl/workbook.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.sheet.main+xml"/>`+
			`<Override PartName="/xl/worksheets/sheet1.xml" ContentType="application/vnd.openxmlformats-officedocument.spreadsheetml.worksheet+xml"/>`),
		"_rels/.rels", head+fmt.Sprintf(rels, fmt.Sprintf(rel, "rId1", "officeDocument", "xl/workbook.xml")),
		"xl/_rels/workbook.xml.rels", head+fmt.Sprintf(rels, fmt.Sprintf(rel, "rId1", "worksheet", "worksheets/sheet1.xml")),
		"xl/worksheets/_rels/sheet1.xml.rels", head+fmt.Sprintf(rels, strings.Replace(fmt.Sprintf(rel, "rId1", "hyperlink", "beside.xlsx"), "/>", ` TargetMode="External"/>`, 1)),
		"xl/workbook.xml", head+`<workbook `+main+`><sheets><sheet name="Data" sheetId="1" r:id="rId1"/></sheets><definedNames><definedName name="Here">CELL("filename")</definedName><definedName name="There">Here</definedName></definedNames></workbook>`,
		"xl/worksheets/sheet1.xml", head+`<worksheet `+main+`><cols><col min="1" max="8" width="40" customWidth="1"/></cols><sheetData><row r="1">`+
			cell("A1", `CELL("filename",A1)`, `C:\Books\[Budget.xlsx]Data`)+cell("B1", `INFO("system")`, "pcdos")+cell("C1", "There", `D:\Named`)+cell("D1", "MID(A1,4,5)", "Books")+
			`</row><row r="2">`+cell("A2", `_xlfn.WEBSERVICE(&quot;http://127.0.0.1:1/x&quot;)`, "fetched")+
			fmt.Sprintf(text, "B2", ` t="shared" ref="B2:B3" si="7"`, `cell( "FileName" ,A1)`, "shared first")+cell("C2", `CELL("address",B7)`, "stale")+
			`<c r="D2"><f>1+1</f><v>2</v></c>`+
			`</row><row r="3"><c r="A3" t="inlineStr"><is><t>a link</t></is></c><c r="B3" t="str"><f t="shared" si="7"/><v>shared second</v></c><c r="C3"><f>CELL("row",A9)</f><v>9</v></c><c r="D3" t="str"><f>CELL("filename")</f></c></row>`+
			`</sheetData><hyperlinks><hyperlink ref="A3" r:id="rId1"/></hyperlinks><headerFooter><oddHeader>&amp;L&amp;Z&amp;F</oddHeader></headerFooter></worksheet>`,
	)
	const ns = `xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0" ` +
		`xmlns:draw="urn:oasis:names:tc:opendocument:xmlns:drawing:1.0" xmlns:svg="urn:oasis:names:tc:opendocument:xmlns:svg-compatible:1.0" xmlns:xlink="http://www.w3.org/1999/xlink" xmlns:of="urn:oasis:names:tc:opendocument:xmlns:of:1.2" office:version="1.2"`
	odf := func(kind, body string) []byte {
		return []byte(head[:len(head)-1] + `<office:document ` + ns + ` office:mimetype="application/vnd.oasis.opendocument.` + kind + `"><office:body>` + body + `</office:body></office:document>`)
	}
	value := func(formula, value string) string {
		return `<table:table-cell table:formula='of:=` + formula + `' office:value-type="string" office:string-value="` + value + `"><text:p>` + value + `</text:p></table:table-cell>`
	}
	cells := `<office:spreadsheet><table:table table:name="Data"><table:table-row>` + value(`CELL("filename")`, "/home/ann/budget.ods") + value(`INFO(&quot;system&quot;)`, "pcdos") + value("THERE", "/named") + value("MID([.A1];2;4)", "home") +
		`</table:table-row></table:table><table:named-expressions><table:named-expression table:name="There" table:expression='CELL("filename")' table:base-cell-address="$Data.$A$1"/></table:named-expressions></office:spreadsheet>`
	fields := `<text:p>%s <text:file-name text:display="full">old</text:file-name> <text:file-name text:display="path">old</text:file-name> <text:file-name text:display="name">old</text:file-name> ` +
		`<text:template-name text:display="full">old</text:template-name> <text:a xlink:href="beside.odt">link</text:a></text:p>`
	word := zipOf(
		"[Content_Types].xml", head+fmt.Sprintf(types, `<Override PartName="/word/document.xml" ContentType="application/vnd.openxmlformats-officedocument.wordprocessingml.document.main+xml"/>`),
		"_rels/.rels", head+fmt.Sprintf(rels, fmt.Sprintf(rel, "rId1", "officeDocument", "word/document.xml")),
		"word/_rels/document.xml.rels", head+fmt.Sprintf(rels, strings.Replace(fmt.Sprintf(rel, "rId1", "hyperlink", "beside.docx"), "/>", ` TargetMode="External"/>`, 1)),
		"word/document.xml", head+`<w:document xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main" xmlns:r="http://schemas.openxmlformats.org/officeDocument/2006/relationships"><w:body>`+
			`<w:p><w:r><w:t xml:space="preserve">says </w:t></w:r><w:fldSimple w:instr=" FILENAME \p "><w:r><w:t>old</w:t></w:r></w:fldSimple><w:r><w:t xml:space="preserve"> </w:t></w:r><w:fldSimple w:instr=" FILENAME "><w:r><w:t>old</w:t></w:r></w:fldSimple>`+
			`<w:fldSimple w:instr=" TEMPLATE \p "><w:r><w:t>old</w:t></w:r></w:fldSimple><w:hyperlink r:id="rId1"><w:r><w:t>link</w:t></w:r></w:hyperlink></w:p></w:body></w:document>`,
	)
	flatText := odf("text", `<office:text>`+fmt.Sprintf(fields, "says")+`</office:text>`)
	return map[string][]byte{
		"Budget.xlsx": xlsx,
		"Budget.fods": odf("spreadsheet", cells),
		"Budget.ods": zipOf("mimetype", "application/vnd.oasis.opendocument.spreadsheet", "META-INF/manifest.xml",
			`<manifest:manifest xmlns:manifest="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"><manifest:file-entry manifest:full-path="/" manifest:media-type="application/vnd.oasis.opendocument.spreadsheet"/><manifest:file-entry manifest:full-path="content.xml" manifest:media-type="text/xml"/></manifest:manifest>`,
			"content.xml", head+`<office:document-content `+ns+`><office:body>`+cells+`</office:body></office:document-content>`),
		"Letter.fodt": flatText,
		"Letter.docx": word,
		"Letter.rtf":  []byte(`{\rtf1\ansi says {\field{\*\fldinst FILENAME \\p}{\fldrslt old}} {\field{\*\fldinst HYPERLINK "beside.rtf"}{\fldrslt link}}\par}`),
		"Letter.html": []byte(`<!DOCTYPE html><p>says <a href="beside.html">link</a> <img src="beside.png" alt="picture"></p>`),
		"Letter.md":   []byte("says [link](beside.md) ![picture](beside.png)\n"),
		"Letter.txt":  []byte("says nothing\n"),
		"Budget.csv":  []byte("says,\"=CELL(\"\"filename\"\")\"\n"),
		"Talk.fodp":   bytes.Replace(talk, []byte("</text:p>"), []byte("</text:p>"+strings.Replace(fmt.Sprintf(fields, "says"), `<text:template-name text:display="full">old</text:template-name>`, "", 1)), 1),
	}
}

// contents returns the text of a result, including everything packed in it.
func contents(t testing.TB, to format.Format, b []byte) string {
	t.Helper()
	all := string(b)
	if z, err := zip.NewReader(bytes.NewReader(b), int64(len(b))); err == nil {
		for _, e := range z.File {
			r, err := e.Open()
			systest.NoError(t, err)
			part, err := io.ReadAll(r)
			r.Close()
			systest.NoError(t, err)
			all += e.Name + "\n" + string(part)
		}
	}
	if to == format.PDF {
		path := save(t, "result.pdf", b)
		all += tool(t, "qpdf", "--qdf", "--object-streams=disable", path, "-") + tool(t, "pdftotext", "-layout", path, "-") + tool(t, "pdfinfo", path)
	}
	return all + strings.ReplaceAll(all, "\x00", "") // the old formats use two bytes for each character
}

// No result contains the path of the document on this host: neither in fields, headers,
// values and links, nor in metadata.
func TestResultsHaveNoPaths(t *testing.T) {
	t.Parallel()
	const canary = "wherewework"
	for _, python := range []string{"", engine.None} {
		t.Run("python="+python, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), canary)
			systest.NoError(t, os.Mkdir(dir, 0o700))
			e, err := officeops.New(t.Context(), officeops.Options{Python: python, Workers: 2, TempDir: dir, Sandbox: engine.NewSandbox(), Log: slog.New(slog.DiscardHandler)})
			systest.NoError(t, err)
			defer e.Close()
			files := curious(t)
			if python == "" { // the old formats store formulas and fields unchanged
				for name, to := range map[string]format.Format{"Budget.xlsx": format.XLS, "Letter.docx": format.DOC, "Talk.fodp": format.PPT} {
					b, err := runIn(t.Context(), dir, e.Convert(), fileops.Bytes(name, files[name]), to)
					if err != nil {
						t.Fatalf("%s to %s: %v", name, to, err)
					}
					files[format.Base(name)+"."+string(to)] = b
				}
			}
			var runs sync.WaitGroup
			turns := make(chan bool, 2)
			read, written := make(map[string]bool), make(map[format.Format]bool)
			for _, name := range slices.Sorted(maps.Keys(files)) {
				in := fileops.Bytes(name, files[name])
				for _, to := range targets(e, in.Format()) {
					own := python == ""
					if !own && in.Format() != format.XLSX && in.Format() != format.DOCX { // each starts a LibreOffice
						continue
					}
					if testing.Short() && read[name] && (!own || written[to]) {
						continue
					}
					read[name], written[to] = true, true
					runs.Go(func() {
						turns <- true
						defer func() { <-turns }()
						b, err := runIn(t.Context(), dir, e.Convert(), in, to)
						if err != nil {
							t.Errorf("%s to %s: %v", name, to, err)
							return
						}
						for _, bad := range []string{canary, os.TempDir()} {
							if all := contents(t, to, b); strings.Contains(all, bad) {
								i := strings.Index(all, bad)
								t.Errorf("%s to %s: the result has a path: %q", name, to, all[max(0, i-80):min(len(all), i+80)])
							}
						}
					})
				}
			}
			runs.Wait()
		})
	}
}

// runIn runs an action with its scratch space below dir.
func runIn(ctx context.Context, dir string, a fileops.Action, in *fileops.File, to format.Format) (out []byte, err error) {
	reg, err := fileops.NewRegistry(a)
	if err != nil {
		return nil, err
	}
	_, params, err := reg.Resolve("convert", []format.Format{in.Format()}, fileops.Args{"convert_to": string(to)})
	if err != nil {
		return nil, err
	}
	r := fileops.Runner{TempDir: dir}
	err = r.Do(ctx, a, params, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		var err error
		out, err = io.ReadAll(f.Reader())
		return err
	}), in)
	return out, err
}

// targets returns the formats that a format can be converted to.
func targets(e *officeops.Engine, from format.Format) (out []format.Format) {
	for _, a := range e.Convert().Spec().Accepts {
		if a.Formats[0] == from {
			for _, to := range a.Params[0].Enum {
				out = append(out, format.Format(to))
			}
		}
	}
	return out
}

// Values that depend on the host keep their stored values, and so do values computed
// from them. Other formulas are recomputed, and stay formulas in workbooks.
func TestEnvironmentFunctions(t *testing.T) {
	t.Parallel()
	files := curious(t)
	for name, want := range map[string]string{
		"Budget.xlsx": "C:\\Books\\[Budget.xlsx]Data,pcdos,D:\\Named,Books\nfetched,shared first,$B$7,2\na link,shared second,9,'file:///Budget.xlsx'#$Data\n",
		"Budget.ods":  "/home/ann/budget.ods,pcdos,/named,home\n",
		"Budget.fods": "/home/ann/budget.ods,pcdos,/named,home\n",
	} {
		got, err := convert(t.Context(), office, fileops.Bytes(name, files[name]), format.CSV)
		if err != nil || strings.ReplaceAll(string(got), "\r", "") != want {
			t.Errorf("%s to csv: %v\n%s\nwant\n%s", name, err, got, want)
		}
	}
	b, err := convert(t.Context(), office, fileops.Bytes("Budget.xlsx", files["Budget.xlsx"]), format.ODS)
	systest.NoError(t, err)
	for _, want := range []string{"of:=CELL(&quot;filename&quot;", "of:=INFO(&quot;system&quot;)", "of:=There"} {
		if !strings.Contains(contents(t, format.ODS, b), want) {
			t.Errorf("xlsx to ods: the formula %s is missing", want)
		}
	}
	b, err = convert(t.Context(), office, fileops.Bytes("Letter.docx", files["Letter.docx"]), format.TXT)
	if want := "says /Letter.docx Letter.docxlink"; err != nil || strings.TrimSpace(string(b)) != want {
		t.Errorf("docx to txt: %q, %v; want %q", b, err, want)
	}
}
