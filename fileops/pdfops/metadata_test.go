package pdfops_test

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/internal/systest"
)

// described is a document whose page has metadata too, and whose metadata is that of set.
func described(t *testing.T, set map[string]any) *fileops.File {
	t.Helper()
	in := pdf("a.pdf", handmade("1.7",
		"<</Type/Catalog/Pages 2 0 R/Metadata 4 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]/Metadata 5 0 R/PieceInfo<</Drawer<</Private(SECRET)>>>>>>",
		stream("/Type/Metadata/Subtype/XML", `<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">`+
			`<rdf:Description rdf:about="" xmlns:pdf="http://ns.adobe.com/pdf/1.3/" xmlns:mine="urn:mine" pdf:Producer="An old program" mine:other="kept"/></rdf:RDF></x:xmpmeta>`),
		stream("/Type/Metadata/Subtype/XML", "<x>SECRET</x>")))
	return run(t, pdfops.Metadata(), fileops.Args{"set": set}, in)
}

// metadataOf returns the information dictionary and the XMP packet as exiftool reads them.
func metadataOf(t *testing.T, f *fileops.File) map[string]any {
	t.Helper()
	var all []map[string]any
	systest.NoError(t, json.Unmarshal([]byte(shell(t, "exiftool", "-json", "-G1", "-struct", save(t, f))), &all))
	return all[0]
}

// The information dictionary and the XMP packet agree, in any script.
func TestMetadata(t *testing.T) {
	t.Parallel()
	f := described(t, map[string]any{"Title": "Übersicht — 概要", "author": []any{"Ann", "Bo"}, "description": "A <subject> & more", "keywords": []any{"one", "two"}, "software": "Writer", "producer": "Us"})
	sound(t, f)
	got := metadataOf(t, f)
	for key, want := range map[string]string{
		"PDF:Title": "Übersicht — 概要", "XMP-dc:Title": "Übersicht — 概要", "PDF:Author": "Ann, Bo", "PDF:Subject": "A <subject> & more", "XMP-dc:Description": "A <subject> & more",
		"XMP-pdf:Keywords": "one, two", "PDF:Creator": "Writer", "XMP-xmp:CreatorTool": "Writer", "PDF:Producer": "Us", "XMP-pdf:Producer": "Us",
	} {
		if got[key] != want {
			t.Errorf("%s is %v, want %q", key, got[key], want)
		}
	}
	if authors, ok := got["XMP-dc:Creator"].([]any); !ok || !slices.Equal(authors, []any{"Ann", "Bo"}) {
		t.Errorf("authors %v", got["XMP-dc:Creator"])
	}
	if b := string(content(t, f)); !strings.Contains(b, `mine:other="kept"`) || strings.Contains(b, "An old program") {
		t.Errorf("the packet is not that of before with changes: %q", b)
	}
	got = metadataOf(t, run(t, pdfops.Metadata(), fileops.Args{"remove": []any{"author", "Software"}, "set": map[string]any{"title": "Other"}}, f))
	for _, key := range []string{"PDF:Author", "XMP-dc:Creator", "PDF:Creator", "XMP-xmp:CreatorTool"} {
		if got[key] != nil {
			t.Errorf("%s is %v, want none", key, got[key])
		}
	}
	if got["PDF:Title"] != "Other" || got["XMP-dc:Title"] != "Other" || got["PDF:Producer"] != "Us" {
		t.Errorf("got %v", got)
	}
}

// All metadata goes, also that of pages and programs, and the page looks as before.
func TestMetadataRemoveAll(t *testing.T) {
	t.Parallel()
	f := described(t, map[string]any{"title": "SECRET"})
	out := run(t, pdfops.Metadata(), fileops.Args{"remove": []any{"all"}, "set": map[string]any{"title": "Public"}}, f)
	sound(t, out)
	got := metadataOf(t, out)
	for key := range got {
		if strings.HasPrefix(key, "XMP-") || strings.HasPrefix(key, "PDF:") && !slices.Contains([]string{"PDF:Title", "PDF:PDFVersion", "PDF:Linearized", "PDF:PageCount"}, key) {
			t.Errorf("%s remains: %v", key, got[key])
		}
	}
	if plain := shell(t, "qpdf", "--qdf", "--object-streams=disable", save(t, out), "-"); got["PDF:Title"] != "Public" || strings.Contains(plain, "SECRET") {
		t.Errorf("%v, file %q", got, plain)
	}
	if a, b := visible(t, save(t, f)), visible(t, save(t, out)); !differing(a, b).Empty() {
		t.Error("the page looks different")
	}
}

func TestMetadataPDFA(t *testing.T) {
	t.Parallel()
	in := pdf("a.pdf", handmade("1.4",
		"<</Type/Catalog/Pages 2 0 R/Metadata 4 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>", "<</Type/Page/Parent 2 0 R/MediaBox[0 0 99 99]>>",
		stream("/Type/Metadata/Subtype/XML", `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description xmlns:pdfaid="http://www.aiim.org/pdfa/ns/id/"><pdfaid:part>1</pdfaid:part></rdf:Description></rdf:RDF>`)))
	if codes := warned(t, pdfops.Metadata(), fileops.Args{"set": map[string]any{"title": "x"}}, in); len(codes) > 0 {
		t.Errorf("warnings %v", codes)
	}
	if codes := warned(t, pdfops.Metadata(), fileops.Args{"remove": []any{"all"}}, in); !slices.Equal(codes, []string{fileops.WarnMetadataDropped}) {
		t.Errorf("warnings %v", codes)
	}
}

func TestMetadataParameters(t *testing.T) {
	t.Parallel()
	in := pdf("a.pdf", simple("a"))
	for _, tt := range []struct {
		args  fileops.Args
		param string
	}{
		{fileops.Args{}, "set"},
		{fileops.Args{"set": map[string]any{"colour": "x"}}, "set"},
		{fileops.Args{"set": map[string]any{"title": 5.0}}, "set"},
		{fileops.Args{"set": map[string]any{"title": []any{"a", "b"}}}, "set"},
		{fileops.Args{"set": map[string]any{"title": " "}}, "set"},
		{fileops.Args{"set": map[string]any{"author": []any{"a", ""}}}, "set"},
		{fileops.Args{"set": map[string]any{"author": []any{}}}, "set"},
		{fileops.Args{"set": map[string]any{"title": "a\x00b"}}, "set"},
		{fileops.Args{"set": map[string]any{"title": strings.Repeat("a", 10_001)}}, "set"},
		{fileops.Args{"remove": []any{"everything"}}, "remove"},
	} {
		var param *fileops.ParamError
		if _, err := try(t.Context(), t, pdfops.Metadata(), tt.args, in); !errors.As(err, &param) || param.Param != tt.param {
			t.Errorf("%v: %v", tt.args, err)
		}
	}
}

// Times, rights and trapping are in the dictionary or the packet as other programs write them, also in a
// file that had no packet. The report of inspect has them.
func TestMoreMetadata(t *testing.T) {
	t.Parallel()
	set := map[string]any{"created": "2006-09-18T16:27:50-04:00", "modified": "2007:01:02 03:04:05", "copyright": "© Ann & Co", "marked": "true", "trapped": "unknown", "pdf_version": "1.7"}
	in := run(t, pdfops.Metadata(), fileops.Args{"set": map[string]any{"title": "Kept"}}, pdf("a.pdf", simple("text")))
	for _, f := range []*fileops.File{run(t, pdfops.Metadata(), fileops.Args{"set": set}, in), described(t, set)} {
		sound(t, f)
		got := metadataOf(t, f)
		for key, want := range map[string]any{
			"PDF:CreateDate": "2006:09:18 16:27:50-04:00", "PDF:ModifyDate": "2007:01:02 03:04:05Z", "XMP-dc:Rights": "© Ann & Co", "XMP-xmpRights:Marked": true,
			"PDF:Trapped": "Unknown", "PDF:PDFVersion": 1.7, "XMP-xmp:CreateDate": "2006:09:18 16:27:50-04:00",
		} {
			if got[key] != want {
				t.Errorf("%s is %v, want %v", key, got[key], want)
			}
		}
	}
	f := run(t, pdfops.Metadata(), fileops.Args{"set": set}, in)
	if got := metadataOf(t, f)["XMP-dc:Title"]; got != "Kept" {
		t.Errorf("the title in the new packet is %v", got)
	}
	var report struct{ Metadata map[string]string }
	systest.NoError(t, json.Unmarshal(content(t, run(t, pdfops.Tools{}.Inspect(), nil, f)), &report))
	if m := report.Metadata; m["copyright"] != "© Ann & Co" || m["marked"] != "True" || m["trapped"] != "Unknown" || m["created"] != "2006-09-18T16:27:50-04:00" {
		t.Errorf("the report has %v", m)
	}
	for name, value := range map[string]string{"created": "yesterday", "marked": "perhaps", "trapped": "x", "pdf_version": "3.0"} {
		var param *fileops.ParamError
		if _, err := try(t.Context(), t, pdfops.Metadata(), fileops.Args{"set": map[string]any{name: value}}, in); !errors.As(err, &param) {
			t.Errorf("%s = %s: %v", name, value, err)
		}
	}
}
