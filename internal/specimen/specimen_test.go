package specimen_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/specimen"
	"github.com/filewright/filewright/internal/systest"
)

var update = flag.Bool("update", false, "make LibreOffice write the folder office anew")

// LibreOffice still makes the kept files from the documents that they were made from: those have not
// changed since.
func TestOfficeFiles(t *testing.T) {
	t.Parallel()
	sums := filepath.Join("office", "sources.txt")
	var now strings.Builder
	for _, name := range []string{"sample.doc", "sample.xls", "sample.ppt", "specimen.doc", "specimen.xls", "specimen.ppt", "specimen.pdf"} {
		make := specimen.Of
		if strings.HasPrefix(name, "sample") {
			make = specimen.Sample
		}
		to := format.Parse(name)
		from := map[format.Format]format.Format{format.DOC: format.DOCX, format.XLS: format.XLSX, format.PPT: format.PPTX, format.PDF: format.DOCX}[to]
		b, _ := make(t, from).Bytes()
		z, err := zip.NewReader(bytes.NewReader(b), int64(len(b)))
		systest.NoError(t, err)
		sum := sha256.New()
		for _, e := range z.File {
			fmt.Fprintln(sum, e.Name, e.CRC32)
		}
		fmt.Fprintf(&now, "%x  %s of %s\n", sum.Sum(nil), from, name)
		if !*update {
			continue
		}
		dir := t.TempDir()
		source := filepath.Join(dir, strings.TrimSuffix(name, string(to))+string(from))
		systest.NoError(t, os.WriteFile(source, b, 0o600))
		systest.Run(t, "soffice", "-env:UserInstallation=file://"+dir+"/profile", "--headless", "--norestore", "--convert-to", string(to), "--outdir", dir, source)
		systest.Run(t, "gzip", "-9", "-n", filepath.Join(dir, name))
		systest.NoError(t, os.WriteFile(filepath.Join("office", name+".gz"), systest.ReadFile(t, filepath.Join(dir, name+".gz")), 0o644))
	}
	if *update {
		systest.NoError(t, os.WriteFile(sums, []byte(now.String()), 0o644))
	}
	if then := string(systest.ReadFile(t, sums)); then != now.String() {
		t.Errorf("run go test -run TestOfficeFiles -update, because a document has changed:\n%s\nand now\n%s", then, now.String())
	}
}

// Every sample and specimen has the requested format.
func TestSample(t *testing.T) {
	t.Parallel()
	for f := range format.Known() {
		for name, make := range map[string]func(testing.TB, format.Format) *fileops.File{"sample": specimen.Sample, "specimen": specimen.Of} {
			t.Run(name+"/"+string(f), func(t *testing.T) {
				t.Parallel()
				s := make(t, f)
				systest.Check(t, format.Check(f, s.Reader(), s.Size()))
				got := format.Sniff(s.Reader(), s.Size())
				switch f {
				case format.MD, format.CSV, format.TSV, format.JSON, format.JSONL, format.RST, format.Org, format.TeX:
					if got != format.TXT {
						t.Errorf("sniffed as %q, want txt", got)
					}
				case format.DOT, format.XLT, format.PPS, format.POT: // only the name reveals that it is a template or a show
					if got != f.Plain() {
						t.Errorf("sniffed as %q, want %q", got, f.Plain())
					}
				case format.AZW3: // it differs from MOBI only by a version
					if got != format.MOBI {
						t.Errorf("sniffed as %q", got)
					}
				case format.M4V, format.ThGP, format.M4A: // by brand, which the encoder chooses
					if got != f && got != format.MP4 {
						t.Errorf("sniffed as %q", got)
					}
				case format.TarGZ, format.TarBZ2, format.TarXZ, format.TarZst, format.TarLZ4, format.TarLZMA, format.TarLZ: // the content does not reveal the tar archive inside
					if string(f) != "tar."+string(got) {
						t.Errorf("sniffed as %q", got)
					}
				default:
					if got != f {
						t.Errorf("sniffed as %q", got)
					}
				}
			})
		}
	}
}

// Every picture format exists with letters instead of patches.
func TestLettered(t *testing.T) {
	t.Parallel()
	for f := range format.Known() {
		if f.Family() != format.Image {
			continue
		}
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			s := specimen.Lettered(t, f)
			if got := format.Sniff(s.Reader(), s.Size()); got != f {
				t.Errorf("sniffed as %q", got)
			}
			letters, _ := s.Bytes()
			patches, _ := specimen.Of(t, f).Bytes()
			if bytes.Equal(letters, patches) {
				t.Error("it is the specimen")
			}
		})
	}
}

// A locked file does not open and, if the format supports it, is reported as
// encrypted.
func TestLocked(t *testing.T) {
	t.Parallel()
	for _, f := range []format.Format{format.PDF, format.DOCX, format.XLSX, format.PPTX, format.DOC, format.XLS, format.ODT, format.ODS, format.ODP, format.ZIP, format.SevenZip, format.RAR} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			s := specimen.Locked(t, f, "sesame")
			err := format.Check(f, s.Reader(), s.Size())
			switch f {
			case format.DOCX, format.XLSX, format.PPTX:
				if !errors.Is(err, format.ErrEncrypted) {
					t.Errorf("check: %v", err)
				}
			default:
				systest.Check(t, err)
			}
			b, _ := s.Bytes()
			var wide []byte
			for _, c := range []byte(specimen.Text) {
				wide = append(wide, c, 0)
			}
			if bytes.Contains(b, []byte(specimen.Text)) || bytes.Contains(b, wide) || bytes.Contains(b, []byte("sesame")) {
				t.Error("text or password are readable")
			}
		})
	}
}
