package officeops

import (
	"archive/zip"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// The HTML parser never receives a tag whose attributes would fill the memory, wherever
// the tag hides. It receives everything else.
func TestAttributesAreCounted(t *testing.T) {
	t.Parallel()
	many := func(attribute string) string { return strings.Repeat(attribute, maxAttributes+1) }
	for name, tt := range map[string]struct {
		page string
		many bool
	}{
		"bare":                       {"<p " + many("a ") + ">", true},
		"slashes":                    {"<p/" + many("a/") + ">", true},
		"with values":                {"<p " + many("a=b\t") + ">", true},
		"without space":              {"<p " + many("a='b'") + ">", true},
		"with > in quotes":           {"<p " + many(`a="<>"`) + ">", true},
		"space around =":             {"<p " + many(`a = ">" `) + ">", true},
		"two = before quotes":        {"<p " + many(`a=="x `) + ">", true},
		"after an open quote":        {`<script>x<a b="</script><p ` + many("a ") + ">", true},
		"after the end of a comment": {`<!-- <a b=' --><p ` + many("a ") + ">", true},
		"in the name of a tag":       {`<p=" ` + many("a ") + ">", true},
		"a name with =":              {"<p " + many(`=a="b" `) + ">", true},
		"never closed":               {"<p " + many("a "), true},
		"in an end tag":              {"</p " + many("a ") + ">", false},
		"many tags":                  {many(`<p class="a b c">x</p>`), false},
		"text":                       {"<p>" + many("a = b < c "), false},
		"a picture":                  {`<img src="data:image/png;base64,` + many("AAAA/+==") + `">`, false},
		"a list in a value":          {`<p title="` + many("a ") + `">`, false},
		"a script":                   {"<script>" + many(`for (let i = 0; i < n; i++) { s += "<b>" + '</b>' }`) + "</script>", false},
	} {
		n, err := io.Copy(io.Discard, &attributeCounter{r: strings.NewReader(tt.page)})
		if errors.Is(err, fileops.ErrLimit) != tt.many || err == nil && n != int64(len(tt.page)) {
			t.Errorf("%s: %d of %d bytes, error %v", name, n, len(tt.page), err)
		}
	}
}

// The check of flat XML refuses texts and tags that are too large for the parser's
// memory.
func TestTokensAreLimited(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		text string
		want error
	}{
		"attributes":        {"<a" + strings.Repeat(` a=">"`, 200_000) + "/>", fileops.ErrLimit},
		"a long value":      {`<a a="` + strings.Repeat("x", maxXMLTag) + `"/>`, fileops.ErrLimit},
		"a long end":        {"<a></" + strings.Repeat("a", maxXMLTag+10) + ">", fileops.ErrLimit},
		"a picture":         {"<a>" + strings.Repeat("AAAA", 1<<20) + "</a>", nil},
		"a long comment":    {"<a><!-- it's <b c='\" " + strings.Repeat("x", 2*maxXMLTag) + " --></a>", nil},
		"more than a text":  {"<a>" + strings.Repeat("x", maxXMLText) + "</a>", fileops.ErrLimit},
		"many tags":         {"<a>" + strings.Repeat(`<b c="d">e</b>`, 200_000) + "</a>", nil},
		"< in a value":      {`<a a="<` + strings.Repeat("x", 100) + `"/>`, fileops.ErrCorruptInput},
		"CDATA with quotes": {"<a><![CDATA[ ' < \" " + strings.Repeat("x", 2*maxXMLTag) + "]]></a>", nil},
	} {
		if err := checkXML(t.Context(), strings.NewReader(tt.text)); !errors.Is(err, tt.want) {
			t.Errorf("%s: got %v, want %v", name, err, tt.want)
		}
	}
}

// A ZIP directory is not read into memory if it is too long.
func TestDirectoryIsLimited(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := range 200_000 {
		if _, err := z.CreateRaw(&zip.FileHeader{Name: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	systest.NoError(t, z.Close())
	err := Limits{Entries: 10_000, Unpacked: 1 << 30, Ratio: 200}.check(t.Context(), fileops.Bytes("a.docx", b.Bytes()))
	if !errors.Is(err, fileops.ErrLimit) {
		t.Errorf("got %v", err)
	}
}
