package officeops

import (
	"bytes"
	"io"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/charset"
	"github.com/filewright/filewright/internal/hostile"
	"github.com/filewright/filewright/internal/systest"
)

func FuzzGrowth(f *testing.F) {
	l := Limits{}.orDefault()
	systest.FuzzGrowth(f, func(t testing.TB, kind string, b []byte) {
		ctx := t.Context()
		switch kind {
		case "html":
			_ = cleaner{tables: true, pageSize: true, lost: &pageLosses{}}.clean(ctx, io.Discard, bytes.NewReader(b))
		case "txt":
			_ = textToHTML(io.Discard, bytes.NewReader(b), "x")
		case "csv":
			if text, err := charset.NewText(bytes.NewReader(b), int64(len(b))); err == nil {
				_, _ = inspect(ctx, text, format.CSV, 0)
			}
		case "word/document.xml", "content.xml":
			name := "a.odt"
			if kind == "word/document.xml" {
				name = "a.docx"
			}
			p := readParts(fileops.Bytes(name, []byte(hostile.Zip(kind, string(b), "word/styles.xml", string(b), "word/theme/theme1.xml", string(b), "styles.xml", string(b)))))
			p.hasText()
			p.text()
			p.fonts()
			p.comments()
		default:
			_ = l.check(ctx, fileops.Bytes("a."+kind, b))
		}
	},
		systest.Growing{Kind: "rtf", Head: `{\rtf1`, Unit: `{\bin`}, systest.Growing{Kind: "fodt", Head: "<a>", Unit: `<!-- -->`}, systest.Growing{Kind: "fods", Head: "<a>", Unit: `<table-cell number-columns-repeated="1"/>`},
		systest.Growing{Kind: "html", Unit: `<div style="url(">`}, systest.Growing{Kind: "html", Unit: `<svg>`}, systest.Growing{Kind: "html", Unit: `<style>@import`}, systest.Growing{Kind: "html", Unit: `<table>`}, systest.Growing{Kind: "html", Head: "<a ", Unit: `b=c `},
		systest.Growing{Kind: "txt", Unit: "a "}, systest.Growing{Kind: "txt", Unit: "\n"}, systest.Growing{Kind: "txt", Unit: "\t"}, systest.Growing{Kind: "csv", Unit: `",`}, systest.Growing{Kind: "csv", Unit: "\"\n"},
		systest.Growing{Kind: "word/document.xml", Unit: `<w:p `}, systest.Growing{Kind: "word/document.xml", Unit: `<mc:Fallback>`}, systest.Growing{Kind: "word/document.xml", Unit: `<w:style `}, systest.Growing{Kind: "word/document.xml", Unit: `<a:majorFont>`},
		systest.Growing{Kind: "word/document.xml", Unit: `<w:style w:styleId="a"><w:basedOn w:val="a"/></w:style>`}, systest.Growing{Kind: "word/document.xml", Unit: `<w:p ><w:pStyle w:val="a"/><w:t>x</w:t></w:p>`},
		systest.Growing{Kind: "content.xml", Unit: `<text:p >`}, systest.Growing{Kind: "content.xml", Unit: `<office:annotation>`}, systest.Growing{Kind: "content.xml", Unit: `<style:style `}, systest.Growing{Kind: "content.xml", Unit: `<style:font-face `})
}
