package compress

import (
	"strings"
	"testing"
)

const packet = `<?xpacket begin="" id="W5M0MpCehiHzreSzNTczkc9d"?><x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xmpMM="http://ns.adobe.com/xap/1.0/mm/" xmlns:pdfaid="http://www.aiim.org/pdfa/ns/id/">
<dc:title><rdf:Alt><rdf:li xml:lang="x-default">Title &amp; more</rdf:li></rdf:Alt></dc:title>
<xmpMM:History><rdf:Seq><rdf:li>saved</rdf:li></rdf:Seq></xmpMM:History>
<pdfaid:part>2</pdfaid:part></rdf:Description></rdf:RDF></x:xmpmeta>` + "                                        " + `<?xpacket end="w"?>`

func TestThinXMP(t *testing.T) {
	t.Parallel()
	got := string(thinXMP([]byte(packet), true))
	for _, s := range []string{"Title &amp; more", "<pdfaid:part>2</pdfaid:part>", "<?xpacket end"} {
		if !strings.Contains(got, s) {
			t.Errorf("%q is gone: %s", s, got)
		}
	}
	if strings.Contains(got, "History") || strings.Contains(got, "   ") {
		t.Errorf("it is still there: %s", got)
	}
	if got := string(thinXMP([]byte(packet), false)); !strings.Contains(got, "History") || strings.Contains(got, "   ") {
		t.Errorf("at the first level: %s", got)
	}
	if got := thinXMP([]byte("<a><b></a>"), true); string(got) != "<a><b></a>" {
		t.Errorf("what is no XMP becomes %s", got)
	}
}

func FuzzThinXMP(f *testing.F) {
	f.Add([]byte(packet))
	f.Fuzz(func(_ *testing.T, b []byte) { thinXMP(b, true) })
}
