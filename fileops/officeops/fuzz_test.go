package officeops

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/hostile"
)

// FuzzCheck runs the checks before an engine on damaged documents.
func FuzzCheck(f *testing.F) {
	for _, k := range []format.Format{format.DOCX, format.FODT, format.FODS, format.RTF, format.EPUB} {
		b, _ := fileopstest.Sample(f, k).Bytes()
		f.Add(string(k), b)
	}
	f.Add("ods", []byte(hostile.Zip("mimetype", "application/vnd.oasis.opendocument.spreadsheet", "content.xml", `<a:table-row a:number-rows-repeated="9"><a:table-cell office:value="1"/>`)))
	f.Add("doc", []byte("\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"))
	l := Limits{Unpacked: 8 << 20, Cells: 1000}.orDefault()
	f.Fuzz(func(t *testing.T, ext string, data []byte) {
		err := l.check(context.Background(), fileops.Bytes("a."+ext, data))
		var known *fileops.Failure
		if err != nil && !errors.As(err, &known) && !errors.Is(err, errMaybeProtected) {
			t.Error(err)
		}
	})
}

// FuzzCells compares the count of cells with a simpler count for simple documents.
func FuzzCells(f *testing.F) {
	f.Add([]byte(`<t:table-row t:number-rows-repeated="3"><t:table-cell t:number-columns-repeated="2" v:value="1"/></t:table-row>`))
	f.Add([]byte(`<!-- <x:table-cell> --><![CDATA[<x:table-cell>]]><x:table-cell a=">" b='/'></x:table-cell>`))
	f.Add([]byte(`<table-cell number-columns-repeated="&#49;0" value=""/>`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c := &cellCounter{most: 1 << 30}
		err := c.check(context.Background(), bytes.NewReader(data))
		if err != nil && !errors.Is(err, fileops.ErrLimit) {
			t.Error(err)
		}
		if c.cells < 0 || err == nil && c.cells > c.most {
			t.Errorf("%d cells, %v", c.cells, err)
		}
	})
}

// Rules for non-empty cells and their repeat counts.
func TestCells(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int64{
		``: 0, `text`: 0, `<a:table-cell/>`: 0, `<a:table-cell a:number-columns-repeated="16384"/>`: 0, `<a:table-cell a:style-name="x"/>`: 0,
		`<a:table-cell><p>x</p></a:table-cell>`:    1,
		`<a:table-cell o:value="5"/>`:              1,
		`<table-cell value="5"/><x table-cell="">`: 1,
		`<a:table-row a:number-rows-repeated="4"><a:table-cell o:value="5" a:number-columns-repeated='3'/></a:table-row><a:table-row><a:table-cell t:formula="=1"/>`: 13,
		`<!-- <a:table-cell o:value="5"/> --><a:table-cell o:value="5"/>`:                                                                                            1,
		`<!-----><a:table-cell o:value="5"/>`:                                                  1,
		`<![CDATA[<a:table-cell o:value="5"/>]]><a:table-cell o:value="5"/>`:                   1,
		`<a:table-cell x="a>b" o:value="5"/>`:                                                  1,
		`<a:table-cell x="number-columns-repeated=1" o:value="1" number-columns-repeated="7">`: 7,
		`<a:table-cell ` + strings.Repeat(" ", 100) + `o:value="5"/>`:                          1,
		strings.Repeat("x", 100_000) + `<a:table-cell o:value="5"/>`:                           1,
		`<a:table-cell o:value="5" number-columns-repeated="&#50;"/>`:                          -1,
		`<a:table-cell o:value="5" number-columns-repeated="99999999999999999999"/>`:           -1,
	} {
		c := &cellCounter{most: 1000}
		err := c.check(t.Context(), strings.NewReader(in))
		if want < 0 {
			if !errors.Is(err, fileops.ErrLimit) {
				t.Errorf("%q: %v, %d cells", in, err, c.cells)
			}
			continue
		}
		if err != nil || c.cells != want {
			t.Errorf("%q: %d cells, %v; want %d", in, c.cells, err, want)
		}
	}
}
