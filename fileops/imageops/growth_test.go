package imageops_test

import (
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/imageops"
	"github.com/filewright/filewright/internal/systest"
)

func FuzzGrowth(f *testing.F) {
	e, err := imageops.New(f.Context(), imageops.Options{MaxPixels: 1 << 20})
	systest.NoError(f, err)
	systest.FuzzGrowth(f, func(t testing.TB, kind string, b []byte) {
		if kind == "svg" || kind == "png" || kind == "gif" {
			_, _ = run(t.Context(), e.Compress(), nil, fileops.Bytes("a."+kind, b))
			return
		}
		_, _ = run(t.Context(), e.Convert(), fileops.Args{"convert_to": "jpg"}, fileops.Bytes("a."+kind, b))
	},
		systest.Growing{Kind: "svg", Head: "<svg>", Unit: "<g>"}, systest.Growing{Kind: "svg", Head: "<svg>", Unit: `<path d="m1 2"/>`, Tail: "</svg>"}, systest.Growing{Kind: "svg", Head: `<svg><path d="`, Unit: "m1.5-2", Tail: `"/></svg>`},
		systest.Growing{Kind: "svg", Head: "<svg ", Unit: "a='b' ", Tail: "/>"}, systest.Growing{Kind: "svg", Head: "<svg><style>", Unit: ".a{}", Tail: "</style></svg>"}, systest.Growing{Kind: "svg", Head: "<svg>", Unit: "<!-- -->", Tail: "</svg>"},
		systest.Growing{Kind: "tiff", Head: "II*\x00\x08\x00\x00\x00", Unit: "\x00\x00\x0e\x00\x00\x00"}, systest.Growing{Kind: "tiff", Head: "II*\x00\x08\x00\x00\x00\xff\xff", Unit: "\x12\x01\x03\x00\x01\x00\x00\x00\x01\x00\x00\x00"},
		systest.Growing{Kind: "psd", Head: "8BPS\x00\x01\x00\x00\x00\x00\x00\x00\x00\x03\x00\x00\x00\x01\x00\x00\x00\x01\x00\x08\x00\x03\x00\x00\x00\x00\x7f\xff\xff\xff", Unit: "8BIM\x04\x04\x00\x00\x00\x00\x00\x00"},
		systest.Growing{Kind: "gif", Head: "GIF89a\x01\x00\x01\x00\x00\x00\x00", Unit: "!\xfe\x00"}, systest.Growing{Kind: "gif", Head: "GIF89a\x01\x00\x01\x00\x80\x00\x00\x00\x00\x00\xff\xff\xff", Unit: ",\x00\x00\x00\x00\x01\x00\x01\x00\x00\x02\x02D\x01\x00"},
		systest.Growing{Kind: "png", Head: "\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x02\x00\x00\x00\x90wS\xde", Unit: "\x00\x00\x00\x00tEXt\xae\xa5\xff\x0e"})
}
