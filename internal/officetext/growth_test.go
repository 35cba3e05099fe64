package officetext_test

import (
	"bytes"
	"testing"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/officetext"
	"github.com/filewright/filewright/internal/systest"
)

func FuzzGrowth(f *testing.F) {
	record := biff(0xfd, le16(0)+le16(0)+le16(0)+le32(0))
	head := biff(0x809, le16(0x600)+le16(5)+string(make([]byte, 12)))
	systest.FuzzGrowth(f, func(t testing.TB, kind string, b []byte) {
		switch kind {
		case "xls":
			b = ole(t, "Workbook", string(b)+string(make([]byte, 4096)))
		case "ppt":
			b = ole(t, "PowerPoint Document", string(b)+string(make([]byte, 4096)))
		case "xlsx":
			b = xlsx(t, "", string(b))
		}
		officetext.Certain(t.Context(), bytes.NewReader(b), int64(len(b)), format.Format(kind), false)
		text, _ := officetext.Whole(t.Context(), bytes.NewReader(b), int64(len(b)), format.Format(kind))
		officetext.KeptCells(text, text)
	},
		systest.Growing{Kind: "xls", Head: head, Unit: record}, systest.Growing{Kind: "xls", Head: head, Unit: biff(0x85, le32(0)+"\x00\x00")},
		systest.Growing{Kind: "xls", Head: head + biff(0xfc, le32(1)+le32(1)+le16(60000)+"\x01"), Unit: biff(0x3c, "\x01ab")},
		systest.Growing{Kind: "ppt", Unit: "\x0f\x00\xf0\x0f\x00\x00\x01\x00"}, systest.Growing{Kind: "ppt", Unit: "\x00\x00\xa8\x0f\x01\x00\x00\x00a"},
		systest.Growing{Kind: "rtf", Head: `{\rtf1`, Unit: `{\*\x`}, systest.Growing{Kind: "rtf", Head: `{\rtf1`, Unit: `\u1\'`}, systest.Growing{Kind: "rtf", Head: `{\rtf1`, Unit: `\bin1 `},
		systest.Growing{Kind: "fods", Unit: `<table:table-row table:number-rows-repeated="9"><table:table-cell table:number-columns-repeated="9"><text:p>a</text:p></table:table-cell></table:table-row>`},
		systest.Growing{Kind: "fods", Unit: `<`}, systest.Growing{Kind: "fods", Unit: `<!--`}, systest.Growing{Kind: "fods", Head: `<a `, Unit: `b="c" `, Tail: ">"},
		systest.Growing{Kind: "xlsx", Unit: `<mergeCell ref="A1:B2"/>`}, systest.Growing{Kind: "xlsx", Unit: `<col hidden="1"/><c r="A1" t="s"><v>0</v></c>`},
		systest.Growing{Kind: "html", Unit: `<script>`}, systest.Growing{Kind: "html", Unit: `<!--`}, systest.Growing{Kind: "html", Unit: `&`},
		systest.Growing{Kind: "md", Unit: `[a](`}, systest.Growing{Kind: "md", Unit: "<"}, systest.Growing{Kind: "csv", Unit: `",`})
}
