package imageops_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// tagged returns pictures of each format with metadata of all kinds.
func tagged(t testing.TB) map[string]*fileops.File {
	t.Helper()
	dir := t.TempDir()
	all := make(map[string]*fileops.File)
	for _, f := range engine(t).Metadata().Spec().Accepts[0].Formats {
		ext := string(f)
		sample := fileopstest.Sample(t, f)
		if f == format.WebP {
			sample = made(t, "in.webp", "vips", "copy", save(t, fileops.Bytes("in.png", encodePNG(t, quarters(80, 60)))), "OUT")
		}
		path := dir + "/in." + ext
		systest.NoError(t, os.WriteFile(path, content(t, sample), 0o600))
		args := []string{"-q", "-overwrite_original", "-EXIF:Artist=Old Artist", "-EXIF:Model=Camera", "-EXIF:GPSLatitude=48.1", "-EXIF:GPSLatitudeRef=N", "-n", "-EXIF:Orientation=6",
			"-XMP-dc:Creator=Old Creator", "-XMP-dc:Title=Old Title", "-XMP-xmp:Rating=4"}
		if f == format.JPG {
			args = append(args, "-IPTC:By-line=Old Byline", "-Comment=Old Comment")
		}
		tool(t, "exiftool", append(args, path)...)
		all[ext] = fileops.Bytes("in."+ext, systest.ReadFile(t, path))
	}
	return all
}

// Fields are set, other metadata and the pixels stay.
func TestMetadataSet(t *testing.T) {
	t.Parallel()
	for ext, in := range tagged(t) {
		out := one(t, engine(t).Metadata(), fileops.Args{
			"set":    map[string]any{"title": "Ä title <&>", "author": []string{"One", "Two"}, "description": "Words", "copyright": "© me", "keywords": "a, b,c", "software": "Soft"},
			"remove": []string{"iptc"},
		}, in)
		v := tags(t, out)
		for name, want := range map[string]string{
			"XMP:Title": "Ä title <&>", "XMP:Creator": "[One Two]", "XMP:Description": "Words", "XMP:Rights": "© me", "XMP:Subject": "[a b c]", "XMP:CreatorTool": "Soft", "XMP:Rating": "4",
			"EXIF:ImageDescription": "Words", "EXIF:Copyright": "© me", "EXIF:Software": "Soft", "EXIF:Artist": "One; Two", "EXIF:Model": "Camera", "EXIF:Orientation": "6", "EXIF:GPSLatitude": "48.1",
		} {
			if got := fmt.Sprint(v[name]); got != want {
				t.Errorf("%s: %s is %q, want %q", ext, name, got, want)
			}
		}
		if ext == "png" && (v["PNG:Title"] != "Ä title <&>" || v["PNG:Author"] != "One, Two") {
			t.Errorf("png: %v, %v", v["PNG:Title"], v["PNG:Author"])
		}
		for _, old := range []string{"Old Artist", "Old Creator", "Old Title", "Old Byline"} {
			if bytes.Contains(content(t, out), []byte(old)) {
				t.Errorf("%s: %s is still in the file", ext, old)
			}
		}
		if d := difference(decoded(t, in), decoded(t, out)); d != 0 {
			t.Errorf("%s: the pixels differ by %.2f", ext, d)
		}
		if w := tags(t, out)["ExifTool:Warning"]; w != nil {
			t.Errorf("%s: %v", ext, w)
		}
		// Again, and fewer.
		less := one(t, engine(t).Metadata(), fileops.Args{"set": map[string]any{"author": "Three"}, "remove": []string{"title", "Copyright"}}, out)
		v = tags(t, less)
		if v["XMP:Creator"] != "Three" || v["EXIF:Artist"] != "Three" || v["XMP:Title"] != nil || v["PNG:Title"] != nil || v["EXIF:Copyright"] != nil || v["XMP:Rights"] != nil || v["XMP:Description"] != "Words" {
			t.Errorf("%s again: %v", ext, v)
		}
	}
}

// Metadata is removed, and the orientation stays.
func TestMetadataRemove(t *testing.T) {
	t.Parallel()
	for ext, in := range tagged(t) {
		out := one(t, engine(t).Metadata(), fileops.Args{"remove": "all"}, in)
		v := tags(t, out)
		for name := range v {
			group, _, _ := strings.Cut(name, ":")
			if slices.Contains([]string{"XMP", "IPTC"}, group) || group == "EXIF" && name != "EXIF:Orientation" || name == "File:Comment" {
				t.Errorf("%s: %s is still there", ext, name)
			}
		}
		if v["EXIF:Orientation"] != 6.0 || difference(decoded(t, in), decoded(t, out)) != 0 {
			t.Errorf("%s: orientation %v, or other pixels", ext, v["EXIF:Orientation"])
		}
		some := tags(t, one(t, engine(t).Metadata(), fileops.Args{"remove": []any{"xmp"}}, in))
		if some["XMP:Title"] != nil || some["EXIF:Model"] != "Camera" {
			t.Errorf("%s without XMP: %v", ext, some)
		}
	}
}

// A picture without metadata gets some.
func TestMetadataNew(t *testing.T) {
	t.Parallel()
	for _, f := range engine(t).Metadata().Spec().Accepts[0].Formats {
		out := one(t, engine(t).Metadata(), fileops.Args{"set": map[string]any{"title": "New", "author": "Me"}}, fileopstest.Sample(t, f))
		v := tags(t, out)
		if v["XMP:Title"] != "New" || v["EXIF:Artist"] != "Me" || v["ExifTool:Warning"] != nil {
			t.Errorf("%s: %v", f, v)
		}
		if d := difference(decoded(t, fileopstest.Sample(t, f)), decoded(t, out)); d != 0 {
			t.Errorf("%s: the pixels differ by %.2f", f, d)
		}
	}
}

func TestMetadataErrors(t *testing.T) {
	t.Parallel()
	in := jpegFile(t, "in.jpg", photo(40, 30), 90)
	for _, args := range []fileops.Args{
		nil, {"set": map[string]any{}}, {"set": map[string]any{"weight": "5"}}, {"set": map[string]any{"title": 5}}, {"set": map[string]any{"title": []string{"a"}}},
		{"set": map[string]any{"title": "a\x00b"}}, {"set": map[string]any{"title": strings.Repeat("x", 20_000)}}, {"remove": "everything"}, {"set": "title"},
	} {
		if _, err := run(t.Context(), engine(t).Metadata(), args, in); !errors.Is(err, fileops.ErrParameter) {
			t.Errorf("%v: %v", args, err)
		}
	}
	half := fileops.Bytes("in.jpg", content(t, in)[:in.Size()/2])
	if _, err := run(t.Context(), engine(t).Metadata(), fileops.Args{"remove": "all"}, half); !errors.Is(err, fileops.ErrCorruptInput) {
		t.Errorf("half a file: %v", err)
	}
}
