package pdf

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/internal/systest"
)

// fileOf returns a PDF file with a page and other objects from number 4 on, in a classic
// cross-reference table. In an object, LEN becomes the number of the object after it.
func fileOf(version string, objects ...string) []byte {
	all := append([]string{
		"<</Type/Catalog/Pages 2 0 R/Extra[4 0 R 5 0 R 6 0 R 7 0 R]>>", "<</Type/Pages/Count 1/Kids[3 0 R]>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 10 10]>>",
	}, objects...)
	var b bytes.Buffer
	fmt.Fprintf(&b, "%%PDF-%s\n", version)
	var table strings.Builder
	for i, o := range all {
		fmt.Fprintf(&table, "%010d 00000 n \n", b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, strings.ReplaceAll(o, "LEN", fmt.Sprintf("%d 0 R", i+2)))
	}
	at := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n%strailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(all)+1, table.String(), len(all)+1, at)
	return b.Bytes()
}

var errPDFCPU = errors.New("pdfcpu fails")

// compare returns how d differs from what pdfcpu reads of data.
func compare(t *testing.T, d *Document, data []byte) error {
	t.Helper()
	want, err := read(t.Context(), data, "")
	if err != nil {
		return fmt.Errorf("%w: %w", errPDFCPU, err)
	}
	return difference(d, want)
}

// difference returns how d differs from a document that pdfcpu read.
func difference(d, want *Document) error {
	switch {
	case d.Root != want.Root || d.Info != want.Info || d.Version != want.Version || !bytes.Equal(d.ID, want.ID):
		return fmt.Errorf("root %d, info %d, version %s, ID %x, want %d, %d, %s, %x", d.Root, d.Info, d.Version, d.ID, want.Root, want.Info, want.Version, want.ID)
	case len(want.skipped) > 0:
		return fmt.Errorf("%w: objects %v are skipped", errPDFCPU, want.skipped)
	}
	for nr, o := range want.Objects { // pdfcpu keeps the table of an older version of the file
		if s, ok := o.(*types.StreamDict); ok && s.Dict["Type"] == types.Name("XRef") {
			delete(want.Objects, nr)
			want.Last = slices.Max(slices.Collect(maps.Keys(want.Objects)))
		}
	}
	if d.Last != want.Last {
		return fmt.Errorf("last object %d, want %d", d.Last, want.Last)
	}
	for _, nr := range slices.Sorted(maps.Keys(want.Objects)) {
		a, b := d.Objects[nr], want.Objects[nr]
		if s, ok := a.(*types.StreamDict); ok {
			other, ok := b.(*types.StreamDict)
			if !ok || !reflect.DeepEqual(s.Dict, other.Dict) || !bytes.Equal(s.Raw, other.Raw) || !reflect.DeepEqual(s.FilterPipeline, other.FilterPipeline) || s.StreamOffset != other.StreamOffset {
				return fmt.Errorf("stream %d: %v %v at %d, %d bytes; want %v", nr, s.Dict, s.FilterPipeline, s.StreamOffset, len(s.Raw), b)
			}
			continue
		}
		if !reflect.DeepEqual(a, b) {
			return fmt.Errorf("object %d: %#v, want %#v", nr, a, b)
		}
	}
	if d.Signed() != want.Signed() {
		return fmt.Errorf("signed %v, want %v", d.Signed(), want.Signed())
	}
	if len(d.Objects) != len(want.Objects) {
		return fmt.Errorf("%d objects, want %d", len(d.Objects), len(want.Objects))
	}
	return nil
}

// syntax are objects with everything that files may contain.
func syntax() []string {
	return []string{
		`<</A/Name/A#20a/N#61me/B(text \(\) (nested) \\ \
next)/C<48656c6C6f>/D[1 -2 +3 4.5 -.5 6. 0 0003]/E<</F null/G true/H false>>%comment
/I[null%(
 true/N(s)<00>[[]]<<>>]/J 2 0 R/K[3 0 R 2 0 R 1 0]>>`,
		"<</Length 5>>stream\nhello\nendstream",
		"<</Length LEN/Filter/FlateDecode/DecodeParms<</Predictor 1>>>>\nstream\r\n12345\r\nendstream",
		"5", "null", "[ ]", "/Name", "(text)", "-7", "1.25", "true",
		"<</Filter[/ASCIIHexDecode/FlateDecode]/DecodeParms[null<</Predictor 1>>]/Length 2>>stream\n3>endstream",
	}
}

// The quick reader reads the same as pdfcpu.
func TestQuick(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{"everything": fileOf("1.7", syntax()...), "another version": fileOf("2.0", syntax()...),
		"signed": fileOf("1.7", "<</ByteRange[0 1 2 3]/Contents<00>>>"), "signed, escaped": fileOf("1.7", "<</Byte#52ange[0 1 2 3]/Contents<00>>>")}
	samples := map[string]string{"one": "../../../../examples/files/one.pdf", "two": "../../../../examples/files/two.pdf", "syntax": filepath.Join(t.TempDir(), "syntax.pdf")}
	systest.NoError(t, os.WriteFile(samples["syntax"], files["everything"], 0o600))
	for name, path := range samples {
		path, err := filepath.Abs(path)
		systest.NoError(t, err)
		for variant, options := range map[string][]string{
			"plain":      {"--object-streams=disable"},
			"packed":     {"--object-streams=generate"},
			"linearized": {"--linearize"},
			"both":       {"--linearize", "--object-streams=generate"},
			"unpacked":   {"--stream-data=uncompress"},
		} {
			out := filepath.Join(t.TempDir(), "out.pdf")
			systest.Run(t, "qpdf", slices.Concat(options, []string{"--warning-exit-0", path, out})...)
			files[name+", "+variant] = systest.ReadFile(t, out)
		}
	}
	// An update replaces an object and frees another.
	old := files["everything"]
	update := fmt.Sprintf("9 0 obj\n(new)\nendobj\nxref\n9 1\n%010d 00000 n \n10 1\n0000000000 00001 f \ntrailer\n<</Size 20/Root 1 0 R/Prev %d>>\nstartxref\n%d\n%%%%EOF\n",
		len(old), bytes.LastIndex(old, []byte("xref\n0 ")), len(old)+len("9 0 obj\n(new)\nendobj\n"))
	files["updated"] = slices.Concat(old, []byte(update))
	for name, b := range files {
		d := source{data: b}.quick(t.Context(), nil)
		if d == nil {
			t.Errorf("%s: not read", name)
		} else if err := compare(t, d, b); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The quick reader decrypts like pdfcpu.
func TestQuickEncrypted(t *testing.T) {
	t.Parallel()
	in := filepath.Join(t.TempDir(), "in.pdf")
	systest.NoError(t, os.WriteFile(in, fileOf("1.7", syntax()...), 0o600))
	for name, options := range map[string][]string{
		"plain":      {"--object-streams=disable"},
		"packed":     {"--object-streams=generate"},
		"linearized": {"--linearize", "--object-streams=generate"},
		"no user":    {},
		"AES-128":    {},
		"metadata":   {},
	} {
		password, strength, more := "a", "256", []string{}
		switch name {
		case "no user":
			password = ""
		case "AES-128":
			strength, more = "128", []string{"--use-aes=y"}
		case "metadata":
			more = []string{"--cleartext-metadata"}
		}
		out := filepath.Join(t.TempDir(), "out.pdf")
		systest.Run(t, "qpdf", slices.Concat(options, []string{"--encrypt", password, "b", strength}, more, []string{"--", in, out})...)
		b := systest.ReadFile(t, out)
		sec, err := FindSecurity(t.Context(), b)
		systest.NoError(t, err)
		if sec.plain() != (strength == "256" && name != "metadata") {
			t.Errorf("%s: plain encryption %v", name, sec.plain())
			continue
		}
		if !sec.plain() {
			continue
		}
		secret, ok := sec.Open([]byte(password))
		if !ok {
			t.Fatalf("%s: not opened", name)
		}
		want, err := sec.patiently(t.Context(), b, secret)
		systest.NoError(t, err)
		d := source{data: b}.quick(t.Context(), secret)
		if d == nil {
			t.Errorf("%s: not read", name)
		} else if err := difference(d, want); err != nil || !d.Encrypted {
			t.Errorf("%s: %v, encrypted %v", name, err, d.Encrypted)
		}
		secret[0]++
		if d := (source{data: b}).quick(t.Context(), secret); d != nil {
			t.Errorf("%s: read with another key", name)
		}
	}
}

// pdfcpu reads what is unusual.
func TestNotQuick(t *testing.T) {
	t.Parallel()
	good := fileOf("1.7", syntax()...)
	replace := func(old, with string) []byte {
		t.Helper()
		if !bytes.Contains(good, []byte(old)) {
			t.Fatalf("no %q", old)
		}
		return bytes.Replace(good, []byte(old), []byte(with), 1)
	}
	for name, b := range map[string][]byte{
		"empty":                        nil,
		"text before it":               append([]byte("x\n"), good...),
		"cut":                          good[:len(good)/2],
		"no end":                       replace("%%EOF", "%%E"),
		"an unknown version":           replace("PDF-1.7", "PDF-1.9"),
		"encrypted":                    replace("/Root 1 0 R", "/Encrypt 9 0 R/Root 1 0 R"),
		"hybrid":                       replace("/Root 1 0 R", "/XRefStm 9/Root 1 0 R"),
		"no catalog":                   replace("/Root 1 0 R", "/Root 2 0 R"),
		"too small a table":            replace("/Size 16", "/Size 9"),
		"a circle of tables":           replace("/Root 1 0 R", fmt.Sprintf("/Prev %d/Root 1 0 R", bytes.LastIndex(good, []byte("xref\n0 ")))),
		"a wrong number":               replace("\n9 0 obj", "\n8 0 obj"),
		"a wrong length":               replace("/Length 5", "/Length 4"),
		"a length of itself":           replace("/Length 7 0 R", "/Length 6 0 R"),
		"an external file":             replace("/Length 5", "/F(x)/Length 5"),
		"another filter":               replace("/Filter/FlateDecode", "/Filter/Crypt"),
		"a short name of a filter":     replace("/Filter/FlateDecode", "/Filter/Fl"),
		"a comment in a reference":     replace("2 0 R 1", "2 0%x\nR 1"),
		"a key twice":                  replace("/C<48", "/A<48"),
		"a key without a value":        replace("/A/Name/A", "/A/Name/A/A"),
		"white space in a hexadecimal": replace("<48656c", "<4865 6c"),
		"an odd hexadecimal":           replace("<48656c", "<4865c"),
		"a name with a byte too many":  replace("/Name", "/N#4"),
		"a name in another encoding":   replace("/Name", "/N\xe4me"),
		"a strange number":             replace("+3", "+-3"),
		"a long number":                replace("+3", "12345678901234567890"),
		"deep arrays":                  replace("[[]]", strings.Repeat("[", 99)+strings.Repeat("]", 99)),
		"an unfinished string":         replace("(text)", "(text\\)"),
		"an unknown word":              replace("\nnull\n", "\nnil\n"),
		"something after an object":    replace("\nnull\n", "\nnull 5\n"),
	} {
		if d := (source{data: b}).quick(t.Context(), nil); d != nil {
			t.Errorf("%s: read", name)
		}
	}
}

// Objects that contain each other would take time and memory that grow with the square of their number.
func TestQuickOverlap(t *testing.T) {
	t.Parallel()
	const n = 2000
	head := "%PDF-1.7\n1 0 obj\n<</Type/Catalog/Pages 2 0 R>>\nendobj\n2 0 obj\n<</Type/Pages/Count 0/Kids[]>>\nendobj\n"
	end := func(body string, at []int) []byte {
		table := fmt.Sprintf("xref\n0 3\n0000000000 65535 f \n%010d 00000 n \n%010d 00000 n \n3 %d\n", strings.Index(head, "1 0 obj"), strings.Index(head, "2 0 obj"), len(at))
		for _, o := range at {
			table += fmt.Sprintf("%010d 00000 n \n", o)
		}
		return fmt.Appendf(nil, "%s%s\ntrailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", body, table, len(at)+3, len(body))
	}
	// Each object is a string with all further objects.
	body, at := head, []int(nil)
	for i := range n {
		at = append(at, len(body))
		body += fmt.Sprintf("%d 0 obj(", i+3)
	}
	nested := end(body+strings.Repeat(")endobj ", n), at)
	// All objects of a stream are at the same place.
	text := "[" + strings.Repeat("0 ", n) + "]"
	index := ""
	for i := range n {
		index += fmt.Sprintf("%d 0 ", i+4)
	}
	stream := fmt.Sprintf("3 0 obj\n<</Type/ObjStm/N %d/First %d/Length %d>>stream\n%s\nendstream\nendobj\n", n, len(index), len(index)+len(text), index+text)
	rows := string([]byte{0, 0, 0, 0, 0, 1, 0, byte(strings.Index(head, "1 0 obj")), 0, 0, 1, 0, byte(strings.Index(head, "2 0 obj")), 0, 0, 1, 0, byte(len(head)), 0, 0})
	for i := range n {
		rows += string([]byte{2, 0, 3, byte(i >> 8), byte(i)})
	}
	packed := head + stream
	packed += fmt.Sprintf("9999 0 obj\n<</Type/XRef/W[1 2 2]/Size %d/Root 1 0 R/Length %d>>stream\n%s\nendstream\nendobj\nstartxref\n%d\n%%%%EOF\n", n+4, len(rows), rows, len(packed))
	for name, b := range map[string][]byte{"in strings": nested, "in a stream": []byte(packed)} {
		if d := (source{data: b}).quick(t.Context(), nil); d != nil {
			t.Errorf("%s: read, %d objects", name, len(d.Objects))
		}
	}
	if d := (source{data: end(head, nil)}).quick(t.Context(), nil); d == nil {
		t.Error("the same without them is not read")
	}
}

// Whatever the quick reader reads, pdfcpu reads the same, or nothing.
func FuzzQuick(f *testing.F) {
	f.Add(fileOf("1.7", syntax()...))
	f.Add(fileOf("1.4", "<</Length 5>>stream\nhello\nendstream"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if bytes.Contains(b, []byte("/Encrypt")) || len(b) > 1<<16 {
			return
		}
		d := source{data: b}.quick(t.Context(), nil)
		if d == nil || (source{data: b}).hasHugeNumber() {
			return
		}
		if err := compare(t, d, b); err != nil && !errors.Is(err, errPDFCPU) {
			t.Error(err)
		}
	})
}
