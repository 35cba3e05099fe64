package webops

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// article is a document of a few pages with typical content.
var article = "<!DOCTYPE html><title>An article</title><h1>An article</h1>" +
	strings.Repeat("<h2>A section</h2><p>"+strings.Repeat("Some <b>words</b> and <a href='https://example.com'>links</a> in a row. ", 20)+"</p><ul><li>one<li>two</ul>", 10)

func BenchmarkHTMLToPDF(b *testing.B) {
	for _, name := range []string{"warm", "warm, parallel"} {
		b.Run(name, func(b *testing.B) {
			systest.NoError(b, shared.Warm(b.Context()))
			one := func() {
				err := fileops.Run(b.Context(), shared.Convert(), fileops.Args{"convert_to": "pdf"}, fileops.ToDir(b.TempDir()), fileops.Bytes("a.html", []byte(article)))
				systest.Check(b, err)
			}
			if name == "warm" {
				for b.Loop() {
					one()
				}
				return
			}
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					one()
				}
			})
		})
	}
	// The time without this package.
	b.Run("cold, --print-to-pdf", func(b *testing.B) {
		dir := b.TempDir()
		in := filepath.Join(dir, "a.html")
		systest.NoError(b, os.WriteFile(in, []byte(article), 0o600))
		args := []string{"--headless", "--disable-gpu", "--user-data-dir=" + filepath.Join(dir, "profile"), "--print-to-pdf=" + filepath.Join(dir, "a.pdf"), in}
		if shared.pool.opts.NoSandbox {
			args = append([]string{"--no-sandbox"}, args...)
		}
		for b.Loop() {
			if out, err := exec.CommandContext(b.Context(), shared.prog.Path, args...).CombinedOutput(); err != nil {
				b.Fatalf("%v: %s", err, out)
			}
		}
	})
}
