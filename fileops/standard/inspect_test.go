package standard_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

// inspected returns the report about a file.
func inspected(t *testing.T, in *fileops.File, args fileops.Args) map[string]any {
	t.Helper()
	out := mustRun(t, "inspect", args, in)
	b, _ := out[0].Bytes()
	var r map[string]any
	systest.NoError(t, json.Unmarshal(b, &r))
	return r
}

// Encrypted files are described as such, without a password.
func TestInspectEncrypted(t *testing.T) {
	t.Parallel()
	const password = "sesame"
	for _, f := range []format.Format{format.PDF, format.DOCX, format.XLSX, format.PPTX, format.ODT, format.DOC, format.XLS, format.PPT, format.ZIP, format.SevenZip, format.RAR} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			r := inspected(t, specimen.Locked(t, f, password), nil)
			if r["encrypted"] != true || r["format"] != string(f) {
				t.Errorf("%v", r)
			}
			if r = inspected(t, specimen.Of(t, f), nil); r["encrypted"] != false {
				t.Errorf("not encrypted: %v", r)
			}
		})
	}
	r := inspected(t, specimen.Locked(t, format.PDF, password), fileops.Args{"password": password})
	if pdf, _ := r["pdf"].(map[string]any); r["encrypted"] != true || pdf["pages"] != 2.0 {
		t.Errorf("with its password: %v", r)
	}
	if _, err := run(t, "inspect", fileops.Args{"password": "wrong"}, specimen.Locked(t, format.PDF, password)); fileops.Code(err) != "wrong_password" {
		t.Errorf("another password: %v", err)
	}
	_, err := run(t, "inspect", nil, fileops.Bytes("a.zip", []byte("PK\x03\x04 damaged")))
	if fileops.Code(err) != "corrupt_input" {
		t.Errorf("damaged: %v", err)
	}
}

func TestInspectText(t *testing.T) {
	t.Parallel()
	const german = "Alle Menschen sind frei und gleich an Würde und Rechten geboren, und sie sollen einander im Geist der Brüderlichkeit begegnen, weil es so ist."
	for _, tt := range []struct{ name, content, want string }{
		{"a.txt", "one\ntwo\r\nthree", "map[characters:14 encoding:utf-8 lines:3]"},
		{"a.txt", "", "map[characters:0 encoding:utf-8 lines:0]"},
		{"a.txt", "Gr\xfc\xdfe aus K\xf6ln\n", "map[characters:15 encoding:windows-1252 lines:1]"},
		{"a.txt", "\xff\xfea\x00\n\x00", "map[characters:2 encoding:utf-16le lines:1]"},
		{"a.csv", "a;b;c\n1;\"2\n3\";4\n5;6\n", "map[characters:20 columns:3 delimiter:; encoding:utf-8 lines:4 rows:3]"},
		{"a.tsv", "a\tb\n1\t2\n", "map[characters:8 columns:2 delimiter:\t encoding:utf-8 lines:2 rows:2]"},
		{"a.md", "# Zeit\n\n" + german, fmt.Sprintf("map[characters:%d encoding:utf-8 language:de lines:3]", 8+len([]rune(german)))},
		{"a.html", "<title>Zeit</title><style>and the of to in is</style><script>if (the && of) { and(to, in, is) }</script><p>" + german,
			fmt.Sprintf("map[characters:%d encoding:utf-8 language:de lines:1]", 107+len([]rune(german)))},
		{"a.csv", german, fmt.Sprintf("map[characters:%d columns:3 delimiter:, encoding:utf-8 lines:1 rows:1]", len([]rune(german)))},
		{"a.json", "{}\n", "map[characters:3 encoding:utf-8 lines:1]"},
	} {
		r := inspected(t, fileops.Bytes(tt.name, []byte(tt.content)), nil)
		if got := fmt.Sprint(r["text"]); got != tt.want {
			t.Errorf("%s %q: %s, want %s", tt.name, tt.content, got, tt.want)
		}
	}
}

// A report has the limits that the other actions on the format declare.
func TestInspectLimits(t *testing.T) {
	t.Parallel()
	declared := make(map[string]float64) // the smallest limit of each action on PDF
	for _, a := range set.Actions() {
		spec := a.Spec()
		for _, acc := range spec.Accepts {
			if n := declared[spec.Name]; slices.Contains(acc.Formats, format.PDF) && spec.MaxBytes > 0 && (n == 0 || float64(spec.MaxBytes) < n) {
				declared[spec.Name] = float64(spec.MaxBytes)
			}
		}
	}
	got := inspected(t, specimen.Of(t, format.PDF), nil)["limits"].(map[string]any)
	if len(got) != len(declared) || declared["compress"] == 0 {
		t.Errorf("limits %v, want %v", got, declared)
	}
	for name, n := range declared {
		if limit, _ := got[name].(map[string]any); limit["max_bytes"] != n {
			t.Errorf("%s: %v, want %v", name, got[name], n)
		}
	}
}

func TestInspectPDF(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	xref := "xref\n0 6\n0000000000 65535 f \n"
	for i, o := range []string{
		"<</Type/Catalog/Pages 2 0 R/Version/1.6/Lang(de-DE)/MarkInfo<</Marked true>>/Names<</EmbeddedFiles<</Names[(a)<</F(a)>>]>>>>/AcroForm<</Fields[<</FT/Tx/T(x)>>]>>/OpenAction<</S/JavaScript/JS(x)>>>>",
		"<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 300]/CropBox[0 0 200 300]/Rotate 90/UserUnit 2/Resources<</Font<</F 4 0 R>>>>>>",
		"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>", "<</Title(\xfe\xff\x00\xc4)/Producer(x)/CreationDate(D:20240229)>>",
	} {
		xref += fmt.Sprintf("%010d 00000 n \n", b.Len())
		fmt.Fprintf(&b, "%d 0 obj%s endobj\n", i+1, o)
	}
	fmt.Fprintf(&b, "%strailer<</Size 6/Root 1 0 R/Info 5 0 R>>\nstartxref\n%d\n%%%%EOF\n", xref, b.Len())
	r := inspected(t, fileops.Bytes("a.pdf", b.Bytes()), nil)
	const pdf = "map[attachments:1 fonts:[map[embedded:false name:Helvetica type:Type1]] form_fields:1 language:de-DE page_height:400 page_width:600 pages:1 scripts:true signed:false tagged:true version:1.6]"
	if got := fmt.Sprint(r["pdf"]); got != pdf {
		t.Errorf("got  %s\nwant %s", got, pdf)
	}
	if got := fmt.Sprint(r["metadata"]); got != "map[created:2024-02-29T00:00:00Z producer:x title:Ä]" {
		t.Error(got)
	}
}

// Documents are described by what their package says.
func TestInspectDocuments(t *testing.T) {
	t.Parallel()
	xlsx := inspected(t, specimen.Of(t, format.XLSX), nil)["document"].(map[string]any)
	ods := inspected(t, specimen.Of(t, format.ODS), nil)["document"].(map[string]any)
	if fmt.Sprint(xlsx["sheets"]) != fmt.Sprint(ods["sheets"]) || len(ods["sheets"].([]any)) == 0 {
		t.Errorf("sheets %v and %v", xlsx["sheets"], ods["sheets"])
	}
	for _, f := range []format.Format{format.PPTX, format.ODP} {
		if d := inspected(t, specimen.Of(t, f), nil)["document"].(map[string]any); d["slides"] != 2.0 || d["pictures"] == 0.0 {
			t.Errorf("%s: %v", f, d)
		}
	}
	if d := inspected(t, specimen.Of(t, format.EPUB), nil)["document"].(map[string]any); d["chapters"] == nil {
		t.Errorf("epub: %v", d)
	}
}
