package archiveops_test

import (
	"archive/tar"
	"bytes"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/archiveops"
	"github.com/filewright/filewright/internal/systest"
)

func FuzzGrowth(f *testing.F) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	systest.NoError(f, w.WriteHeader(&tar.Header{Name: "a/b.txt", Mode: 0o600}))
	systest.NoError(f, w.Flush())
	entry := b.String()
	b.Reset()
	systest.NoError(f, w.WriteHeader(&tar.Header{Name: "l", Typeflag: tar.TypeSymlink, Linkname: "a/b.txt", Mode: 0o600}))
	systest.FuzzGrowth(f, func(t testing.TB, kind string, b []byte) {
		_, _ = run(t.Context(), archiveops.Convert(nil), toZIP(), fileops.Bytes("a."+kind, b))
		_, _, _ = extract(t, nil, nil, fileops.Bytes("a."+kind, b))
		if kind == "zip" {
			_, _ = run(t.Context(), archiveops.Compress(nil), nil, fileops.Bytes("a.zip", b))
		}
	},
		systest.Growing{Kind: "tar", Unit: entry, Tail: string(make([]byte, 1024))}, systest.Growing{Kind: "tar", Head: entry, Unit: b.String(), Tail: string(make([]byte, 1024))}, systest.Growing{Kind: "tar", Unit: "\x00"},
		systest.Growing{Kind: "zip", Unit: "PK\x01\x02"}, systest.Growing{Kind: "zip", Head: "PK\x03\x04", Unit: "PK\x05\x06\x00\x00\x00\x00\x01\x00\x01\x00"}, systest.Growing{Kind: "zip", Unit: "PK\x05\x06"},
		systest.Growing{Kind: "7z", Head: "7z\xbc\xaf\x27\x1c\x00\x04", Unit: "\x01"}, systest.Growing{Kind: "rar", Head: "Rar!\x1a\x07\x01\x00", Unit: "\x00\x00\x00\x00\x03\x03\x00"}, systest.Growing{Kind: "gz", Unit: "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\x03\x00\x00\x00\x00\x00\x00\x00\x00\x00"})
}
