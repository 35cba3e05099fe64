package pdfops_test

import (
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

// perform runs an action and returns its only result.
func perform(t *testing.T, a fileops.Action, args fileops.Args, in *fileops.File) (*fileops.File, error) {
	t.Helper()
	dir := t.TempDir()
	if err := fileops.Run(t.Context(), a, args, fileops.ToDir(dir), in); err != nil {
		return nil, err
	}
	name := in.Name()
	if a.Spec().Name == "inspect" {
		name = strings.TrimSuffix(name, ".pdf") + ".json"
	}
	return fileops.Bytes(name, systest.ReadFile(t, dir+"/"+name)), nil
}

// outlineOf returns the bookmarks that inspect reports, in the form of the parameter outline.
func outlineOf(t *testing.T, f *fileops.File) string {
	t.Helper()
	r, err := perform(t, pdfops.Tools{}.Inspect(), nil, f)
	systest.NoError(t, err)
	b, err := r.ReadAll(1 << 20)
	systest.NoError(t, err)
	var report struct {
		PDF struct {
			Bookmarks []struct {
				Title       string
				Page, Level int
			}
		}
	}
	systest.NoError(t, json.Unmarshal(b, &report))
	out := ""
	for _, one := range report.PDF.Bookmarks {
		out += strings.Repeat("  ", one.Level) + string(rune('0'+one.Page)) + " " + one.Title + "\n"
	}
	return out
}

// Bookmarks that are set are those that inspect reports, and qpdf finds no fault.
func TestBookmarks(t *testing.T) {
	t.Parallel()
	f := specimen.Of(t, format.PDF)
	for _, outline := range []string{
		"1 One\n", "1 Größe 漢字\n  1 Below\n    2 Far below\n  2 Again\n2 Two\n", "2 Last\n1 First\n", "1 \n", "",
	} {
		out, err := perform(t, pdfops.Bookmarks(), fileops.Args{"outline": outline}, f)
		if err != nil {
			t.Errorf("%q: %v", outline, err)
			continue
		}
		if got := outlineOf(t, out); got != outline {
			t.Errorf("%q: %q", outline, got)
		}
		path := t.TempDir() + "/out.pdf"
		b, err := out.ReadAll(1 << 20)
		systest.NoError(t, err)
		systest.NoError(t, os.WriteFile(path, b, 0o600))
		systest.Run(t, "qpdf", "--check", path)
		f = out // the next run replaces them
	}
	for _, outline := range []string{"One\n", "0 Zero\n", "  1 Indented\n", "1 One\n    1 Two levels\n", "9 Far\n", " 1 Odd\n", "1 \xff\n", strings.Repeat("1 x\n", 10_001)} {
		if _, err := perform(t, pdfops.Bookmarks(), fileops.Args{"outline": outline}, f); !errors.Is(err, fileops.ErrParameter) {
			t.Errorf("%.20q: error is %v", outline, err)
		}
	}
}

// Attachments have their names, contents and relationships.
func TestAttach(t *testing.T) {
	t.Parallel()
	f := specimen.Of(t, format.PDF)
	for _, c := range []struct {
		name, content string
		args          fileops.Args
		count         string
	}{
		{"a.xml", "<a/>", fileops.Args{"relationship": "alternative"}, "1"},
		{"Größe 漢字.txt", strings.Repeat("text ", 1000), nil, "2"},
		{"a.xml", "<b/>", fileops.Args{"relationship": "data", "media_type": "application/xml"}, "2"}, // replaces the first
		{"b.bin", "\x00\x01", fileops.Args{"name": "a renamed.bin"}, "3"},
	} {
		args := fileops.Args{"file_key": fileops.Bytes(c.name, []byte(c.content))}
		for name, v := range c.args {
			args[name] = v
		}
		out, err := perform(t, pdfops.Attach(), args, f)
		systest.NoError(t, err)
		f = out
		b, err := out.ReadAll(1 << 20)
		systest.NoError(t, err)
		dir := t.TempDir()
		systest.NoError(t, os.WriteFile(dir+"/out.pdf", b, 0o600))
		systest.Run(t, "qpdf", "--check", dir+"/out.pdf")
		list := systest.Run(t, "pdfdetach", "-enc", "UTF-8", "-list", dir+"/out.pdf")
		name := c.name
		if v, ok := c.args["name"].(string); ok {
			name = v
		}
		if !strings.HasPrefix(list, c.count+" embedded") || !strings.Contains(list, name) {
			t.Errorf("%s: %s", c.name, list)
		}
		before, _, _ := strings.Cut(list, ": "+name)
		number := before[strings.LastIndexByte(before, '\n')+1:]
		systest.Run(t, "pdfdetach", "-save", number, "-o", dir+"/out", dir+"/out.pdf")
		if got := string(systest.ReadFile(t, dir+"/out")); got != c.content {
			t.Errorf("%s: %.50q", c.name, got)
		}
		objects := systest.Run(t, "qpdf", "--qdf", "--object-streams=disable", dir+"/out.pdf", "-")
		if rel, ok := c.args["relationship"].(string); ok && !strings.Contains(objects, "/AFRelationship /"+strings.ToUpper(rel[:1])+rel[1:]) {
			t.Errorf("%s: no relationship %s", c.name, rel)
		}
	}
}
