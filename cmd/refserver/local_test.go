package main

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/internal/systest"
)

// Commands of actions write where they are told to, and replace nothing.
func TestLocalCommands(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	sample := func(name string) string {
		path, err := filepath.Abs(filepath.Join("..", "..", "examples", "files", name))
		systest.NoError(t, err)
		return path
	}
	systest.NoError(t, os.WriteFile(in("a.csv"), []byte("x,y\n1,2\n"), 0o600))
	systest.NoError(t, os.WriteFile(in("pw"), []byte("s3cret\n"), 0o600))
	systest.NoError(t, os.Mkdir(in("parts"), 0o700))
	for _, tt := range []struct {
		args []string
		code int
		out  string // standard output; "*" any
		err  string // part of standard error
	}{
		{[]string{"compress", sample("photo.jpg"), in("small.jpg")}, 0, in("small.jpg") + "\n", ""},
		{[]string{"compress", sample("photo.jpg"), in("small.jpg")}, 1, "", "--force"},
		{[]string{"compress", sample("photo.jpg"), in("small.png")}, 1, "", "jpg file"},
		{[]string{"merge", sample("one.pdf"), sample("two.pdf"), in("both.pdf")}, 0, in("both.pdf") + "\n", ""},
		{[]string{"merge", sample("one.pdf"), in("both.pdf")}, 1, "", "--force"},
		{[]string{"split", in("both.pdf"), in("parts"), "--param", "every=1"}, 0, in("parts/both-001.pdf") + "\n" + in("parts/both-002.pdf") + "\n", ""},
		{[]string{"split", in("both.pdf"), in("part.pdf"), "--param", "every=1"}, 0, in("part-001.pdf") + "\n" + in("part-002.pdf") + "\n", ""},
		{[]string{"split", in("both.pdf"), "-", "--param", "every=1"}, 1, "", "2 results"},
		{[]string{"lock", sample("one.pdf"), in("locked.pdf"), "--param", "password=@" + in("pw")}, 0, in("locked.pdf") + "\n", ""},
		{[]string{"unlock", in("locked.pdf"), in("open.pdf"), "--param", "password=wrong"}, 1, "", "password"},
		{[]string{"unlock", in("locked.pdf"), in("open.pdf"), "--param", "password=@" + in("pw")}, 0, in("open.pdf") + "\n", ""},
		{[]string{"watermark", sample("one.pdf"), in("marked.pdf"), "--file", "image_key=" + sample("photo.jpg")}, 0, in("marked.pdf") + "\n", ""},
		{[]string{"watermark", sample("one.pdf"), in("unmarked.pdf"), "--param", "image_key=" + sample("photo.jpg")}, 2, "", "pass the file"},
		{[]string{"watermark", sample("one.pdf"), in("unmarked.pdf"), "--file", "image_key=" + in("none.jpg")}, 1, "", "none.jpg"},
		{[]string{"inspect", sample("photo.jpg")}, 0, "*", ""},
		{[]string{"thumbnail", sample("photo.jpg"), in("thumb.png"), "--param", "width=20"}, 0, in("thumb.png") + "\n", ""},
		{[]string{"thumbnail", sample("photo.jpg"), in("parts")}, 2, "", "--to"},
		{[]string{"thumbnail", sample("photo.jpg"), in("parts"), "--to", "webp"}, 0, in("parts/photo.webp") + "\n", ""},
		{[]string{"convert", "-", "-", "--from", "csv", "--to", "json"}, 0, "*", ""},
		{[]string{"convert", "-", in("b.json")}, 2, "", "--from"},
		{[]string{"convert", in("a.csv"), "-"}, 2, "", "--to"},
		{[]string{"zip", "-", "-", in("a.zip"), "--from", "csv"}, 2, "", "only one"},
		{[]string{"zip", "-", in("a.csv"), in("a.zip"), "--from", "csv"}, 0, in("a.zip") + "\n", ""},
		{[]string{"lock", sample("one.pdf")}, 2, "", "arguments"},
		{[]string{"compres", "a", "b"}, 2, "", "did you mean compress"},
	} {
		var out, errs bytes.Buffer
		args := slices.Clone(tt.args)
		if args[0] != "compres" {
			args = append(args, withoutEngines()...)
		}
		code := runWith(t.Context(), args, strings.NewReader("x\n5\n"), &out, &errs, noEnv)
		if code != tt.code || !strings.Contains(errs.String(), tt.err) || out.String() != tt.out && tt.out != "*" {
			t.Errorf("%v: exit code %d, output %q, errors %q; want %d, %q, %q", tt.args, code, out.String(), errs.String(), tt.code, tt.out, tt.err)
		}
		switch tt.args[0] {
		case "inspect":
			if !strings.Contains(out.String(), `"width": 960`) {
				t.Errorf("inspect: %s", out.String())
			}
		case "convert":
			if code == 0 && !strings.Contains(out.String(), "5") {
				t.Errorf("piped: %q", out.String())
			}
		}
	}
	z, err := zip.OpenReader(in("a.zip"))
	systest.NoError(t, err)
	defer z.Close()
	if len(z.File) != 2 || z.File[0].Name != "stdin.csv" {
		t.Errorf("archive of %v", z.File)
	}
	if left, _ := filepath.Glob(in(".refserver-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// Each action of the standard engines has a command.
func TestCommandsOfActions(t *testing.T) {
	t.Parallel()
	set := standard.Probe(t.Context(), &standard.Options{CacheDir: systest.CodeCache()})
	t.Cleanup(func() { set.Close() })
	reg, err := fileops.NewRegistry(set.Actions()...)
	systest.NoError(t, err)
	for _, name := range reg.Names() {
		if !slices.ContainsFunc(deeds, func(d deed) bool { return d.action == name }) {
			t.Errorf("%s has no command", name)
		}
	}
	for _, d := range deeds {
		joint := false
		for a := range reg.Actions() {
			joint = joint || a.Spec().Name == d.action && a.Spec().Joint
		}
		if joint != d.joint {
			t.Errorf("%s: joint is %v", d.action, joint)
		}
		var out bytes.Buffer
		if code := run(context.Background(), []string{d.action, "--help"}, &out, &out, noEnv); code != 0 || !strings.Contains(out.String(), fmt.Sprintf("refserver %s [flags] %s", d.action, d.use)) {
			t.Errorf("%s --help: %d %s", d.action, code, out.String())
		}
	}
}
