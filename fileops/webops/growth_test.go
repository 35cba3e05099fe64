package webops

import (
	"bytes"
	"io"
	"testing"

	"github.com/yuin/goldmark"

	"github.com/filewright/filewright/internal/systest"
)

func FuzzGrowth(f *testing.F) {
	systest.FuzzGrowth(f, func(_ testing.TB, kind string, b []byte) {
		switch kind {
		case "md": // only what is added to goldmark, whose limits are a brake
			_ = goldmark.New(goldmark.WithExtensions(&formulas{})).Convert(b, io.Discard)
		case "svg":
			_, _ = svgSize(b)
		default:
			heavy(prepare(b))
			frontMatter.FindSubmatchIndex(b)
			refresh.ReplaceAll(b, nil)
			bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n"))
		}
	},
		systest.Growing{Kind: "html", Unit: "<p/>"}, systest.Growing{Kind: "html", Head: `<?xml version="1.0"?>`, Unit: "<a/>"}, systest.Growing{Kind: "html", Unit: "<svg>"}, systest.Growing{Kind: "html", Unit: "<meta http-equiv=refresh"},
		systest.Growing{Kind: "html", Unit: "<!--"}, systest.Growing{Kind: "html", Head: "---\n", Unit: "---"}, systest.Growing{Kind: "html", Unit: "<textarea>"},
		systest.Growing{Kind: "svg", Unit: "<!DOCTYPE"}, systest.Growing{Kind: "svg", Head: "<svg ", Unit: "a='b' "}, systest.Growing{Kind: "svg", Unit: "<?xml"},
		systest.Growing{Kind: "md", Unit: "$a\n\n"}, systest.Growing{Kind: "md", Unit: "$$\n"}, systest.Growing{Kind: "md", Unit: "$$\na\n\n"}, systest.Growing{Kind: "md", Unit: "$`x\n"}, systest.Growing{Kind: "md", Unit: "```math\n"}, systest.Growing{Kind: "md", Unit: "a $$x\n"})
}
