// Package inputs creates the input files of the benchmarks: from the repository's samples, from
// seeded random numbers and with the tools of the tests. So every machine measures the same work.
package inputs

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
)

// A Set creates each file once, in Dir. Its methods are safe for concurrent use and return absolute
// paths.
type Set struct {
	Dir string // an existing directory, absolute

	mu   sync.Mutex
	made map[string]bool
}

// file returns the path of name. If the file does not exist, create makes it, with dir as the
// working directory.
func (s *Set) file(name string, create func(dir string) error) (string, error) {
	path := filepath.Join(s.Dir, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.made[name] {
		return path, nil
	}
	if err := create(s.Dir); err != nil {
		return "", fmt.Errorf("make %s: %w", name, err)
	}
	if s.made == nil {
		s.made = make(map[string]bool)
	}
	s.made[name] = true
	return path, nil
}

// tool runs a program in dir.
func tool(ctx context.Context, dir string, argv ...string) error {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%v: %w\n%s", argv, err, out)
	}
	return nil
}

// Words returns n paragraphs whose word frequencies resemble those of a language (Zipf's law), with
// a heading before every sixth paragraph.
func Words(seed uint64, n int) string {
	rng := rand.New(rand.NewPCG(seed, 2))
	w := newWriter(rng)
	var s bytes.Buffer
	for p := range n {
		if p%6 == 0 {
			fmt.Fprintf(&s, "# Chapter %d\n\n", p/6+1)
		}
		w.sentences(&s, 90)
		s.WriteString("\n\n")
	}
	return s.String()
}

// Markdown returns a text of 5400 words.
func (s *Set) Markdown() (string, error) {
	return s.file("text.md", func(dir string) error {
		return os.WriteFile(filepath.Join(dir, "text.md"), []byte(Words(1, 60)), 0o600)
	})
}

// DOCX returns a document of ten pages with pictures, of some hundred kilobytes.
func (s *Set) DOCX(ctx context.Context) (string, error) {
	photo, err := s.Photo(ctx, 1000, 750)
	if err != nil {
		return "", err
	}
	return s.file("report.docx", func(dir string) error {
		text := Words(1, 54)
		text = strings.Replace(text, "# Chapter 3", "![A picture]("+photo+")\n\n# Chapter 3", 1)
		text = strings.Replace(text, "# Chapter 7", "![The same picture]("+photo+")\n\n# Chapter 7", 1)
		if err := os.WriteFile(filepath.Join(dir, "report.md"), []byte(text), 0o600); err != nil {
			return err
		}
		return tool(ctx, dir, "pandoc", "-o", "report.docx", "report.md")
	})
}

// PPTX returns a presentation of twelve slides.
func (s *Set) PPTX(ctx context.Context) (string, error) {
	return s.file("slides.pptx", func(dir string) error {
		var md bytes.Buffer
		w := newWriter(rand.New(rand.NewPCG(3, 3)))
		for i := range 12 {
			fmt.Fprintf(&md, "# Slide %d\n\n", i+1)
			for range 5 {
				md.WriteString("- ")
				w.sentences(&md, 9)
				md.WriteString("\n")
			}
			md.WriteString("\n")
		}
		if err := os.WriteFile(filepath.Join(dir, "slides.md"), md.Bytes(), 0o600); err != nil {
			return err
		}
		return tool(ctx, dir, "pandoc", "-o", "slides.pptx", "slides.md")
	})
}

// CSV returns a table of 400 rows.
func (s *Set) CSV() (string, error) {
	return s.file("table.csv", func(dir string) error {
		var b bytes.Buffer
		b.WriteString("number,name,amount,share,day\n")
		rng := rand.New(rand.NewPCG(4, 4))
		w := newWriter(rng)
		for i := range 400 {
			fmt.Fprintf(&b, "%d,%s,%.2f,%.3f,2025-%02d-%02d\n", i+1, w.word(), rng.Float64()*1e4, rng.Float64(), 1+rng.IntN(12), 1+rng.IntN(28))
		}
		return os.WriteFile(filepath.Join(dir, "table.csv"), b.Bytes(), 0o600)
	})
}

// soffice converts files with its own LibreOffice process.
func soffice(ctx context.Context, dir, to string, files ...string) error {
	return tool(ctx, dir, append([]string{"soffice", "-env:UserInstallation=file://" + filepath.Join(dir, "profile"),
		"--headless", "--norestore", "--convert-to", to}, files...)...)
}

// XLSX returns the table of CSV as a workbook.
func (s *Set) XLSX(ctx context.Context) (string, error) {
	csv, err := s.CSV()
	if err != nil {
		return "", err
	}
	return s.file("table.xlsx", func(dir string) error { return soffice(ctx, dir, "xlsx", csv) })
}

// PDF returns a text of ten pages, two of them with a picture.
func (s *Set) PDF(ctx context.Context) (string, error) {
	docx, err := s.DOCX(ctx)
	if err != nil {
		return "", err
	}
	return s.file("ten.pdf", func(dir string) error {
		if err := soffice(ctx, dir, "pdf", docx); err != nil {
			return err
		}
		return tool(ctx, dir, "qpdf", "report.pdf", "--pages", ".", "1-10", "--", "ten.pdf")
	})
}

// Book returns a text of 350 pages: ten pages, 35 times.
func (s *Set) Book(ctx context.Context) (string, error) {
	ten, err := s.PDF(ctx)
	if err != nil {
		return "", err
	}
	return s.file("book.pdf", func(dir string) error {
		args := []string{"qpdf", "--empty", "--pages"}
		for range 35 {
			args = append(args, ten, "1-10")
		}
		return tool(ctx, dir, append(args, "--", "book.pdf")...)
	})
}

// LockedBook returns the text of [Set.Book] with the password "secret".
func (s *Set) LockedBook(ctx context.Context) (string, error) {
	book, err := s.Book(ctx)
	if err != nil {
		return "", err
	}
	return s.file("locked.pdf", func(dir string) error {
		return tool(ctx, dir, "qpdf", "--encrypt", "secret", "secret", "256", "--", book, "locked.pdf")
	})
}

// HTML returns a web page of text with a table of 400 rows.
func (s *Set) HTML(ctx context.Context) (string, error) {
	csv, err := s.CSV()
	if err != nil {
		return "", err
	}
	rows, err := os.ReadFile(csv)
	if err != nil {
		return "", err
	}
	return s.file("page.html", func(dir string) error {
		if err := os.WriteFile(filepath.Join(dir, "page.md"), []byte(Words(1, 20)), 0o600); err != nil {
			return err
		}
		if err := tool(ctx, dir, "pandoc", "-s", "--metadata", "title=Page", "-o", "page.html", "page.md"); err != nil {
			return err
		}
		page, err := os.ReadFile(filepath.Join(dir, "page.html"))
		if err != nil {
			return err
		}
		var table strings.Builder
		table.WriteString("<table>\n")
		for line := range strings.Lines(string(rows)) {
			table.WriteString("<tr><td>" + strings.ReplaceAll(strings.TrimSpace(line), ",", "</td><td>") + "</td></tr>\n")
		}
		table.WriteString("</table>\n</body>")
		return os.WriteFile(filepath.Join(dir, "page.html"), []byte(strings.Replace(string(page), "</body>", table.String(), 1)), 0o600)
	})
}

// PDFs returns n different documents of one to three pages.
func (s *Set) PDFs(ctx context.Context, n int) ([]string, error) {
	var names, paths []string
	for i := range n {
		names = append(names, fmt.Sprintf("part-%03d", i))
		paths = append(paths, filepath.Join(s.Dir, "parts", names[i]+".pdf"))
	}
	_, err := s.file(fmt.Sprintf("parts-%d", n), func(dir string) error {
		dir = filepath.Join(dir, "parts")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		var texts []string
		for i, name := range names {
			texts = append(texts, name+".txt")
			if err := os.WriteFile(filepath.Join(dir, texts[i]), []byte(Words(uint64(100+i), 4+i%14)), 0o600); err != nil {
				return err
			}
		}
		return soffice(ctx, dir, "pdf", texts...)
	})
	return paths, err
}

// Photo returns a JPEG with the statistics of a photograph: soft shapes of all sizes, some edges,
// and the noise of a sensor.
func (s *Set) Photo(ctx context.Context, width, height int) (string, error) {
	name := fmt.Sprintf("photo-%dx%d.jpg", width, height)
	return s.file(name, func(dir string) error {
		tmp, err := os.MkdirTemp(dir, "photo-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(tmp)
		w, h := fmt.Sprint(width), fmt.Sprint(height)
		var bands []string
		for band := range 3 { // each is a sum of octaves
			sum := ""
			for i, cell := range []int{512, 128, 32, 8} {
				p := fmt.Sprintf("p%d%d.v", band, i)
				steps := [][]string{
					// Mostly brightness, with little variation in colour.
					{"vips", "perlin", p, w, h, "--cell-size", fmt.Sprint(cell), "--seed", fmt.Sprint(10*i + min(band, 1-min(i, 1))*band + 1)},
					{"vips", "linear", p, "l" + p, fmt.Sprint([]int{80, 45, 22, 9}[i]), fmt.Sprint([]int{120, 0, 0, 0}[i])},
				}
				next := "l" + p
				if sum != "" {
					next = "s" + p
					steps = append(steps, []string{"vips", "add", sum, "l" + p, next})
				}
				for _, argv := range steps {
					if err := tool(ctx, tmp, argv...); err != nil {
						return err
					}
				}
				sum = next
			}
			noise, noisy := fmt.Sprintf("n%d.v", band), fmt.Sprintf("b%d.v", band)
			if err := tool(ctx, tmp, "vips", "gaussnoise", noise, w, h, "--sigma", "3", "--seed", fmt.Sprint(band)); err != nil {
				return err
			}
			if err := tool(ctx, tmp, "vips", "add", sum, noise, noisy); err != nil {
				return err
			}
			bands = append(bands, noisy)
		}
		for _, argv := range [][]string{
			{"vips", "bandjoin", strings.Join(bands, " "), "rgb.v"},
			{"vips", "cast", "rgb.v", "uchar.v", "uchar"},
			{"vips", "copy", "uchar.v", "srgb.v", "--interpretation", "srgb"},
			{"vips", "jpegsave", "srgb.v", filepath.Join(dir, name), "--Q", "90"},
		} {
			if err := tool(ctx, tmp, argv...); err != nil {
				return err
			}
		}
		return nil
	})
}

// Clip returns a video of 60 seconds with sound.
func (s *Set) Clip(ctx context.Context) (string, error) {
	return s.file("clip.mp4", func(dir string) error {
		return tool(ctx, dir, "ffmpeg", "-nostdin", "-v", "error", "-y",
			"-f", "lavfi", "-i", "testsrc2=size=640x360:rate=25:duration=60",
			"-f", "lavfi", "-i", "aevalsrc=0.3*sin(2*PI*(220+40*sin(t))*t)+0.1*(random(0)-0.5):s=44100:d=60",
			"-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-c:a", "aac", "-b:a", "128k", "clip.mp4")
	})
}

// Scan returns a PDF of two pages that look scanned at 300 dpi.
func (s *Set) Scan(ctx context.Context) (string, error) {
	pdf, err := s.PDF(ctx)
	if err != nil {
		return "", err
	}
	return s.file("scan.pdf", func(dir string) error {
		if err := tool(ctx, dir, "pdftoppm", "-r", "300", "-l", "2", "-jpeg", pdf, "scan"); err != nil {
			return err
		}
		pages, err := filepath.Glob(filepath.Join(dir, "scan-*.jpg"))
		if err != nil {
			return err
		}
		return WriteScan(filepath.Join(dir, "scan.pdf"), pages)
	})
}
