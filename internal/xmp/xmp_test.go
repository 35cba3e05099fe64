package xmp_test

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/internal/xmp"
)

var edits = []xmp.Property{
	{Space: xmp.DublinCore, Name: "title", List: "Alt", Values: []string{"A <new> title"}},
	{Space: xmp.DublinCore, Name: "creator", List: "Seq", Values: []string{"Ann", "Bo"}},
	{Space: xmp.PDF, Name: "Producer"},
}

const head = `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:dc="` + xmp.DublinCore + `" xmlns:pdf="` + xmp.PDF + `">`

func Example() {
	packet := head + `<rdf:Description rdf:about="" pdf:Producer="a program" pdf:Trapped="False"><dc:title>old</dc:title></rdf:Description></rdf:RDF>`
	changed := string(xmp.Edit([]byte(packet), edits))
	fmt.Println(strings.Contains(changed, "A &lt;new&gt; title"), strings.Contains(changed, "old"))
	fmt.Println(strings.Contains(changed, "a program"), strings.Contains(changed, `pdf:Trapped="False"`))
	// Output:
	// true false
	// false true
}

// A packet that is damaged or missing is replaced.
func TestDamaged(t *testing.T) {
	t.Parallel()
	for _, packet := range []string{"", "<a>", "no XML", head, "\x00\xff", "<x/>"} {
		got := string(xmp.Edit([]byte(packet), edits))
		if !strings.HasPrefix(got, "<?xpacket begin=") || strings.Count(got, "<rdf:li>") != 2 || strings.Contains(got, "pdf:") {
			t.Errorf("%q became %q", packet, got)
		}
	}
	if got := xmp.Edit(nil, edits[2:]); bytes.Contains(got, []byte("rdf:Description")) {
		t.Errorf("a removal adds %q", got)
	}
}

// Descriptions of schemas are in one list, each once.
func TestDescribe(t *testing.T) {
	t.Parallel()
	schemas := []xmp.Schema{
		{Name: "one", Space: xmp.PDFUA, Prefix: "pdfuaid", Properties: []xmp.SchemaProperty{{Name: "part", Type: "Integer", Category: "internal", Doc: "a < b"}}},
		{Name: "two", Space: xmp.FacturX, Prefix: "fx"},
	}
	packet := xmp.Edit(nil, edits)
	if got := xmp.Describe(packet); !bytes.Equal(got, packet) {
		t.Errorf("no schema changes the packet: %s", got)
	}
	at := xmp.Describe(packet, schemas...)
	step := xmp.Describe(xmp.Describe(xmp.Describe(packet, schemas[0]), schemas...), schemas[1])
	for _, got := range [][]byte{at, step} {
		for text, want := range map[string]int{"<rdf:Bag>": 1, ">" + xmp.PDFUA + "<": 1, ">" + xmp.FacturX + "<": 1, "a &lt; b": 1} {
			if n := bytes.Count(got, []byte(text)); n != want {
				t.Errorf("%d of %s, want %d: %s", n, text, want, got)
			}
		}
		if v := xmp.Value(got, "http://www.aiim.org/pdfa/ns/schema#", "prefix"); v != "pdfuaid" {
			t.Errorf("prefix %q", v)
		}
	}
	if got := xmp.Describe([]byte("no packet"), schemas...); string(got) != "no packet" {
		t.Errorf("%s", got)
	}
}

// Each result is XML and can be changed again.
func FuzzEdit(f *testing.F) {
	f.Add([]byte(head + `<rdf:Description rdf:about='x' dc:title='a'><dc:creator>b</dc:creator></rdf:Description></rdf:RDF>`))
	f.Add([]byte("<rdf:RDF>"))
	f.Fuzz(func(t *testing.T, packet []byte) {
		once := xmp.Edit(packet, edits)
		twice := xmp.Edit(once, edits)
		d := xml.NewDecoder(bytes.NewReader(twice))
		for {
			if _, err := d.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%q became %q: %v", packet, twice, err)
			}
		}
		if !bytes.Contains(once, []byte("A &lt;new&gt; title")) {
			t.Errorf("%q became %q", packet, once)
		}
	})
}

func FuzzEditGrowth(f *testing.F) {
	systest.FuzzGrowth(f, func(_ testing.TB, _ string, b []byte) { xmp.Edit(b, edits) },
		systest.Growing{Head: head, Unit: "<dc:title/>", Tail: "</rdf:RDF>"},
		systest.Growing{Head: head, Unit: "<rdf:Description dc:title='a'/>", Tail: "</rdf:RDF>"},
		systest.Growing{Head: head + "<rdf:Description ", Unit: "dc:title='a' ", Tail: "/></rdf:RDF>"})
}
