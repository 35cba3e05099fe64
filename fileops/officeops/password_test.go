package officeops_test

import (
	"bytes"
	"context"
	"crypto/rc4"
	"crypto/sha1"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/compound"
	"github.com/filewright/filewright/internal/systest"
)

// locked returns a fixture that another LibreOffice has encrypted.
func locked(t testing.TB, f format.Format, filter, password string) *fileops.File {
	t.Helper()
	in := fixture(t, f)
	out := filepath.Join(t.TempDir(), "locked."+string(f))
	line, err := json.Marshal(map[string]string{
		"in": save(t, "plain."+string(f), bytesOf(t, in)), "out": out, "filter": filter, "newPassword": password,
	})
	systest.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", "../documentops/testdata/office.py", "soffice", t.TempDir())
	cmd.Stdin, cmd.Stderr = strings.NewReader(string(line)+"\n"), os.Stderr
	answer, err := cmd.Output()
	if err != nil || !strings.Contains(string(answer), "true") {
		t.Fatalf("%v: %s", err, answer)
	}
	b := systest.ReadFile(t, out)
	return fileops.Bytes("locked."+string(f), b)
}

// lockedPPT returns a presentation that is encrypted as PowerPoint does ([MS-PPT] 2.3.7,
// [MS-OFFCRYPTO] 2.3.5.1).
func lockedPPT(t testing.TB, password string) *fileops.File {
	t.Helper()
	in := fixture(t, format.PPT)
	c, err := compound.Open(in.Reader(), in.Size(), 0)
	systest.NoError(t, err)
	content := func(name string) []byte {
		r, ok, err := c.Stream(name)
		if err != nil || !ok {
			t.Fatal(name, ok, err)
		}
		b, err := io.ReadAll(r)
		systest.NoError(t, err)
		return b
	}
	le := binary.LittleEndian
	user, doc := content("current user"), content("powerpoint document")
	salt := bytes.Repeat([]byte{7}, 16)
	secret := bytes.Clone(salt)
	for _, u := range utf16.Encode([]rune(password)) {
		secret = le.AppendUint16(secret, u)
	}
	h := sha1.Sum(secret)
	key := func(id uint32) *rc4.Cipher {
		k := sha1.Sum(le.AppendUint32(bytes.Clone(h[:]), id))
		c, err := rc4.NewCipher(k[:16])
		systest.NoError(t, err)
		return c
	}
	edit := le.Uint32(user[16:])
	dir := le.Uint32(doc[edit+8+12:])
	list := bytes.Clone(doc[dir+8:][:le.Uint32(doc[dir+4:])])
	last := uint32(0)
	for rest := list; len(rest) > 0; {
		first, n := le.Uint32(rest)&0xfffff, le.Uint32(rest)>>20
		for i := range n {
			at := le.Uint32(rest[4+4*i:])
			size := le.Uint32(doc[at+4:])
			key(first+i).XORKeyStream(doc[at:at+8+size], doc[at:at+8+size])
			last = max(last, first+i)
		}
		rest = rest[4+4*n:]
	}
	verifier := bytes.Repeat([]byte{9}, 16)
	sum := sha1.Sum(verifier)
	k := key(0)
	k.XORKeyStream(verifier, verifier)
	k.XORKeyStream(sum[:], sum[:])
	numbers := func(all ...uint32) (b []byte) {
		for _, n := range all {
			b = le.AppendUint32(b, n)
		}
		return b
	}
	record := func(kind, version int, parts ...[]byte) []byte {
		b := bytes.Join(parts, nil)
		return append(append(le.AppendUint16(le.AppendUint16(nil, uint16(version)), uint16(kind)), numbers(uint32(len(b)))...), b...)
	}
	session := uint32(len(doc))
	doc = append(doc, record(0x2f14, 0xf, numbers(2|2<<16, 4, 34, 4, 0, 0x6801, 0x8004, 128, 1, 0, 0), []byte{0, 0},
		numbers(16), salt, verifier, numbers(20), sum[:])...)
	newDir := uint32(len(doc))
	doc = append(doc, record(0x1772, 0, list, numbers((last+1)|1<<20, session))...)
	newEdit := uint32(len(doc))
	d := bytes.Clone(doc[edit+8 : edit+8+28])
	le.PutUint32(d[8:], 0)
	le.PutUint32(d[12:], newDir)
	doc = append(doc, record(0xff5, 0, d, numbers(last+1))...)
	le.PutUint32(user[12:], 0xf3d1c4df)
	le.PutUint32(user[16:], newEdit)
	var nodes []*compound.Node
	for name, b := range map[string][]byte{"Current User": user, "PowerPoint Document": doc} {
		nodes = append(nodes, &compound.Node{Name: name, Size: int64(len(b)), Content: func(w io.Writer) error { _, err := w.Write(b); return err }})
	}
	var b bytes.Buffer
	systest.NoError(t, compound.Write(&b, nodes))
	return fileops.Bytes("locked.ppt", b.Bytes())
}

// only runs an action and returns its result and the codes of its warnings.
func only(t testing.TB, a fileops.Action, args fileops.Args, in ...*fileops.File) (out *fileops.File, codes []string, err error) {
	t.Helper()
	r := fileops.Runner{Warn: func(w fileops.Warning) { codes = append(codes, w.Code) }}
	err = r.Run(t.Context(), a, args, fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := io.ReadAll(f.Reader())
		out = fileops.Bytes(f.Name(), b)
		return err
	}), in...)
	return out, codes, err
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	for f, filter := range map[format.Format]string{
		format.DOCX: "MS Word 2007 XML", format.XLSX: "Calc MS Excel 2007 XML", format.DOC: "MS Word 97", format.XLS: "MS Excel 97",
		format.ODT: "writer8", format.ODS: "calc8", format.ODP: "impress8", format.PPT: "",
	} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			var in *fileops.File
			if f == format.PPT { // LibreOffice does not write encrypted ones
				in = lockedPPT(t, "sesame")
			} else {
				in = locked(t, f, filter, "sesame")
			}
			with := func(password string) fileops.Args {
				args := fileops.Args{"convert_to": "pdf"}
				if password != "" {
					args["password"] = password
				}
				return args
			}
			if _, _, err := only(t, office.Convert(), with(""), in); !errors.Is(err, fileops.ErrPasswordRequired) {
				t.Errorf("no password: %v", err)
			}
			if _, _, err := only(t, office.Convert(), with("no"), in); !errors.Is(err, fileops.ErrWrongPassword) {
				t.Errorf("wrong password: %v", err)
			}
			pdf, codes, err := only(t, office.Convert(), with("sesame"), in)
			systest.NoError(t, err)
			want := latin
			if f == format.ODP || f == format.PPT {
				want = "The quick brown fox"
			}
			if text := textOf(t, format.PDF, bytesOf(t, pdf)); !strings.Contains(text, want) {
				t.Errorf("the text is missing: %s", text)
			}
			if sheet := f == format.XLSX || f == format.XLS; slices.Contains(codes, fileops.WarnFormulasRecalculated) != sheet {
				t.Errorf("warnings %v", codes)
			}
			if f == format.DOCX || f == format.XLSX {
				return
			}
			open, _, err := only(t, office.Unlock(), fileops.Args{"password": "sesame"}, in)
			systest.NoError(t, err)
			if _, _, err = only(t, office.Convert(), with(""), open); err != nil {
				t.Errorf("after unlock: %v", err)
			}
			if _, _, err := only(t, office.Unlock(), fileops.Args{"password": "sesame"}, open); !errors.Is(err, fileops.ErrNotEncrypted) {
				t.Errorf("unlock twice: %v", err)
			}
		})
	}
	t.Run("merge and pandoc", func(t *testing.T) {
		t.Parallel()
		in := locked(t, format.DOCX, "MS Word 2007 XML", "sesame")
		out, _, err := only(t, office.Merge(), fileops.Args{"password": "sesame"}, fixture(t, format.DOCX), in)
		systest.NoError(t, err)
		if n := strings.Count(textOf(t, format.DOCX, bytesOf(t, out)), latin); n < 2 {
			t.Errorf("the merged document has the text %d times", n)
		}
		md, _, err := only(t, office.Convert(), fileops.Args{"convert_to": "md", "password": "sesame"}, in)
		if err != nil || !strings.Contains(string(bytesOf(t, md)), latin) {
			t.Errorf("md: %v", err)
		}
	})
}

// Dates in results that are data do not depend on the country.
func TestDatesInData(t *testing.T) {
	t.Parallel()
	const sheet = `<?xml version="1.0" encoding="UTF-8"?>
<office:document xmlns:office="urn:oasis:names:tc:opendocument:xmlns:office:1.0" xmlns:table="urn:oasis:names:tc:opendocument:xmlns:table:1.0"
 xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0" xmlns:style="urn:oasis:names:tc:opendocument:xmlns:style:1.0"
 xmlns:number="urn:oasis:names:tc:opendocument:xmlns:datastyle:1.0" office:version="1.3" office:mimetype="application/vnd.oasis.opendocument.spreadsheet">
<office:automatic-styles>
<number:date-style style:name="N1"><number:day number:style="long"/><number:text>.</number:text><number:month number:style="long"/><number:text>.</number:text><number:year number:style="long"/></number:date-style>
<number:date-style style:name="N2"><number:month/><number:text>/</number:text><number:day/><number:text>/</number:text><number:year/><number:text> </number:text><number:hours/><number:text>:</number:text><number:minutes number:style="long"/></number:date-style>
<style:style style:name="d" style:family="table-cell" style:data-style-name="N1"/>
<style:style style:name="t" style:family="table-cell" style:data-style-name="N2"/>
</office:automatic-styles>
<office:body><office:spreadsheet><table:table table:name="A"><table:table-row>
<table:table-cell table:style-name="d" office:value-type="date" office:date-value="2024-05-01"><text:p>01.05.2024</text:p></table:table-cell>
<table:table-cell table:style-name="t" office:value-type="date" office:date-value="2024-05-01T13:45:00"><text:p>5/1/24 13:45</text:p></table:table-cell>
<table:table-cell office:value-type="float" office:value="12.5"><text:p>12.5</text:p></table:table-cell>
</table:table-row></table:table></office:spreadsheet></office:body></office:document>`
	in := fileops.Bytes("dates.fods", []byte(sheet))
	for _, f := range []format.Format{format.FODS, format.XLSX} {
		src := in
		if f != format.FODS {
			b, err := convert(t.Context(), office, in, f)
			systest.NoError(t, err)
			src = fileops.Bytes("dates."+string(f), b)
		}
		b, err := convert(t.Context(), office, src, format.CSV)
		systest.NoError(t, err)
		if got, want := strings.TrimSpace(string(b)), "2024-05-01,2024-05-01T13:45:00,12.5"; got != want {
			t.Errorf("%s: got %q, want %q", f, got, want)
		}
	}
}

// 12E5 is an article number, and no 1200000.
func TestExponentsStayText(t *testing.T) {
	t.Parallel()
	book, err := convert(t.Context(), office, fileops.Bytes("in.csv", []byte("code,n\n12E5,1.5e3\n7A1,2\n")), format.XLSX)
	systest.NoError(t, err)
	b, err := convert(t.Context(), office, fileops.Bytes("in.xlsx", book), format.CSV)
	systest.NoError(t, err)
	if !strings.Contains(string(b), "12E5,") || strings.Contains(string(b), "1200000") {
		t.Errorf("got %s", b)
	}
}
