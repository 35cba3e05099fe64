package documentops

import (
	"archive/zip"
	"bytes"
	"context"
	"io"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

func short(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	t.Cleanup(cancel)
	return ctx
}

func FuzzEncryptionInfo(f *testing.F) {
	_, info, err := newAgile(f.Context(), "x")
	systest.NoError(f, err)
	f.Add(bytes.Replace(info(), []byte(`spinCount="100000"`), []byte(`spinCount="10"`), 1))
	f.Add(append([]byte{4, 0, 2, 0, 0x24, 0, 0, 0, 32, 0, 0, 0, 0x24, 0, 0, 0, 0, 0, 0, 0, 0x0e, 0x66, 0, 0, 4, 0x80, 0, 0, 128, 0, 0, 0}, make([]byte, 120)...))
	f.Fuzz(func(t *testing.T, b []byte) {
		if d, err := parseEncryption(short(t), b, "password"); d != nil && err == nil {
			_ = d.decrypt(short(t), bytes.NewReader(make([]byte, 100)), io.Discard)
		}
	})
}

func FuzzTags(f *testing.F) {
	f.Add([]byte(`<?xml version="1.0"?><a:b c:d="e&amp;f" g='>'><!-- < --><h/></a:b>`))
	f.Add([]byte(`<Relationship Id="1" Target="../x"></Relationship>`))
	f.Fuzz(func(t *testing.T, b []byte) {
		at := 0
		for tg, err := range tags(b) {
			if err != nil {
				return
			}
			if tg.start < at || tg.end <= tg.start || tg.end > len(b) {
				t.Fatalf("tag from %d to %d after %d", tg.start, tg.end, at)
			}
			at = tg.end
			_ = tg.name()
			last := tg.start
			for a := range tg.attrs() {
				if a.start < last || a.end > tg.end {
					t.Fatalf("attribute from %d to %d", a.start, a.end)
				}
				last = a.end
			}
			_ = endOf(tg)
		}
		d := &drawing{images: map[string]*entry{"rId1": {}}, needs: needs{}, scale: [][2]float64{{1, 1}}}
		_ = d.read(b)
	})
}

// FuzzCompress runs the compression on packages with damaged parts.
func FuzzCompress(f *testing.F) {
	f.Add([]byte(`<Relationships><Relationship Id="a" Type="x/officeDocument" Target="word/document.xml"/></Relationships>`), []byte(`<Types><Default Extension="xml" ContentType="a/b"/></Types>`), []byte(`<w:document><a:blip r:embed="a"/></w:document>`))
	f.Fuzz(func(t *testing.T, rels, types, doc []byte) {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for name, data := range map[string][]byte{"_rels/.rels": rels, contentTypes: types, "word/document.xml": doc, "word/_rels/document.xml.rels": rels, "word/media/a.png": doc} {
			w, err := z.Create(name)
			if err == nil {
				_, err = w.Write(data)
			}
			systest.NoError(t, err)
		}
		systest.NoError(t, z.Close())
		err := fileops.Run(short(t), Compress(nil, nil), nil, fileops.SinkFunc(func(context.Context, *fileops.File) error { return nil }), fileops.Bytes("a.docx", b.Bytes()))
		if fileops.Code(err) == "internal_error" && err != nil {
			t.Error(err)
		}
	})
}
