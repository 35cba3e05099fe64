package imageops_test

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	programs "github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/imageops"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

// rawEngine returns an engine that develops raw photos in a sandbox.
func rawEngine(t testing.TB, o imageops.Options) *imageops.Engine {
	t.Helper()
	o.Sandbox = programs.NewSandbox()
	e, err := imageops.New(t.Context(), o)
	systest.NoError(t, err)
	for _, d := range e.Dependencies() {
		if d.Name == "libraw" {
			systest.NoError(t, d.Err)
		}
	}
	return e
}

// A raw photo is developed with the right colours, upright, by every action.
func TestRaw(t *testing.T) {
	t.Parallel()
	e := rawEngine(t, imageops.Options{})
	in := specimen.Of(t, format.RAW).Named("photo.DNG")
	for _, to := range []string{"png", "tiff", "bmp"} {
		p := save(t, one(t, e.Convert(), fileops.Args{"convert_to": to}, in))
		if s := tool(t, "vipsheader", "-f", "width", p) + tool(t, "vipsheader", "-f", "height", p); strings.Join(strings.Fields(s), " ") != "160 120" {
			t.Errorf("%s: size %q", to, s)
		}
		for i, want := range specimen.PatchColors() {
			got := strings.Fields(tool(t, "vips", "getpoint", p, fmt.Sprint(40+i%2*80), fmt.Sprint(30+i/2*60)))
			for c, w := range []uint8{want.R, want.G, want.B} {
				var g int
				if _, err := fmt.Sscan(got[c], &g); err != nil || max(g-int(w), int(w)-g) > 30 {
					t.Errorf("%s: patch %d is %v, want %v", to, i+1, got, want)
				}
			}
		}
	}
	thumb := one(t, e.Thumbnail(), fileops.Args{"width": 64, "height": 64}, in)
	if s := tool(t, "vipsheader", "-f", "width", save(t, thumb)); strings.TrimSpace(s) != "64" {
		t.Errorf("thumbnail of %s", s)
	}

	// The photo is turned if the camera was.
	b := bytes.Clone(content(t, in))
	at := bytes.Index(b, []byte{0x12, 0x01, 3, 0, 1, 0, 0, 0}) // the tag Orientation
	b[at+8] = 6
	turned := one(t, e.Convert(), fileops.Args{"convert_to": "png"}, fileops.Bytes("a.cr2", b))
	if s := tool(t, "vipsheader", "-f", "width", save(t, turned)); strings.TrimSpace(s) != "120" {
		t.Errorf("turned photo has width %s", s)
	}

	var r map[string]any
	systest.NoError(t, json.Unmarshal(content(t, one(t, e.Inspect(), nil, in)), &r))
	meta, _ := r["metadata"].(map[string]any)
	picture, _ := r["picture"].(map[string]any)
	if meta["camera"] != "Filewright Specimen 1" || meta["iso"] != "200" || picture["width"] != 160.0 || picture["height"] != 120.0 {
		t.Errorf("inspect: %v", r)
	}
}

func TestRawFails(t *testing.T) {
	t.Parallel()
	e := rawEngine(t, imageops.Options{})
	b := content(t, specimen.Of(t, format.RAW))
	huge := bytes.Clone(b)
	for _, tag := range []byte{0, 1} { // ImageWidth, ImageLength
		at := bytes.Index(huge, []byte{tag, 1, 4, 0, 1, 0, 0, 0})
		binary.LittleEndian.PutUint32(huge[at+8:], 20_000)
	}
	plain := content(t, one(t, e.Convert(), fileops.Args{"convert_to": "tiff"}, specimen.Of(t, format.PNG)))
	model := []byte("Specimen 1")
	scan := bytes.ReplaceAll(b, model, append([]byte("COOLSCAN"), model[8:]...))
	for name, tt := range map[string]struct {
		b    []byte
		code string
	}{
		"scan of film": {scan, "unsupported_input"},
		"truncated":    {b[:len(b)*2/3], "corrupt_input"}, "header only": {b[:600], "corrupt_input"},
		"too large": {huge, "limit_exceeded"}, "no photo": {plain, "unsupported_input"},
	} {
		for _, action := range []fileops.Action{e.Convert(), e.Thumbnail()} {
			args := fileops.Args{"convert_to": "jpg"}
			if _, err := run(t.Context(), action, args, fileops.Bytes("a.nef", tt.b)); fileops.Code(err) != tt.code {
				t.Errorf("%s, %s: %v (%s)", name, action.Spec().Name, err, fileops.Code(err))
			}
		}
	}
	// Without LibRaw there are no raw photos.
	for _, path := range []string{programs.None, filepath.Join(t.TempDir(), "simple_dcraw")} {
		if path != programs.None {
			systest.WriteScript(t, path, "#!/bin/sh\necho 0.21.0\n") // the programs beside it are missing
		}
		without, err := imageops.New(t.Context(), imageops.Options{LibRaw: path})
		systest.NoError(t, err)
		for _, f := range without.Reads() {
			if f == format.RAW {
				t.Errorf("%s: raw photos are listed", filepath.Base(path))
			}
		}
	}
	if _, err := os.Stat("developed.tiff"); err == nil {
		t.Error("a picture is left in the working directory")
	}
}
