//go:build linux

package main

import (
	"archive/zip"
	"bytes"
	"compress/zlib"
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/filewright/filewright/benchmarks/internal/inputs"
	"github.com/filewright/filewright/internal/tinypdf"
)

// An inputSet creates each input once.
type inputSet struct {
	dir  string
	tile inputs.Set
}

func newInputs(dir string) *inputSet { return &inputSet{dir: dir, tile: inputs.Set{Dir: dir}} }

// make returns the path of a file, which create makes unless it exists.
func (in *inputSet) make(name string, create func(path string) error) ([]string, error) {
	path := filepath.Join(in.dir, name)
	if _, err := os.Stat(path); err == nil {
		return []string{path}, nil
	}
	return []string{path}, create(path)
}

// pages returns a PDF file of n pages of text, each with its own.
func pages(_ context.Context, in *inputSet, n int) ([]string, error) {
	return in.make(fmt.Sprintf("pages-%d.pdf", n), func(path string) error { return os.WriteFile(path, pdf(n, 0), 0o600) })
}

// scans is pages as pictures at 150 dpi, without text.
func scans(ctx context.Context, in *inputSet, n int) ([]string, error) {
	text, err := pages(ctx, in, n)
	if err != nil {
		return nil, err
	}
	return in.make(fmt.Sprintf("scans-%d.pdf", n), func(path string) error {
		if err := tool(ctx, "pdftoppm", "-r", "150", "-jpeg", text[0], path); err != nil {
			return err
		}
		pictures, err := filepath.Glob(path + "-*.jpg")
		if err != nil {
			return err
		}
		return inputs.WriteScan(path, pictures)
	})
}

// locked is pages with the password "secret".
func locked(ctx context.Context, in *inputSet, n int) ([]string, error) {
	plain, err := pages(ctx, in, n)
	if err != nil {
		return nil, err
	}
	return in.make(fmt.Sprintf("locked-%d.pdf", n), func(path string) error {
		return tool(ctx, "qpdf", "--encrypt", "secret", "secret", "256", "--", plain[0], path)
	})
}

// documents returns n PDF files of two pages.
func documents(_ context.Context, in *inputSet, n int) (paths []string, err error) {
	for i := range n {
		p, err := in.make(fmt.Sprintf("document-%d.pdf", i), func(path string) error { return os.WriteFile(path, pdf(2, i), 0o600) })
		if err != nil {
			return nil, err
		}
		paths = append(paths, p...)
	}
	return paths, nil
}

// texts returns n text files of 10 KB.
func texts(_ context.Context, in *inputSet, n int) (paths []string, err error) {
	for i := range n {
		p, err := in.make(fmt.Sprintf("text-%d.txt", i), func(path string) error { return os.WriteFile(path, prose(i, 10_000), 0o600) })
		if err != nil {
			return nil, err
		}
		paths = append(paths, p...)
	}
	return paths, nil
}

// picture returns a JPEG file of n megapixels, made of equal tiles.
func picture(ctx context.Context, in *inputSet, n int) ([]string, error) {
	tile, err := in.tile.Photo(ctx, 1000, 1000)
	if err != nil {
		return nil, err
	}
	return in.make(fmt.Sprintf("picture-%d.jpg", n), func(path string) error {
		across := int(math.Sqrt(float64(n)))
		return tool(ctx, "vips", "replicate", tile, path+"[Q=90]", fmt.Sprint(across), fmt.Sprint(n/across))
	})
}

// members returns a ZIP archive of n files of 200 bytes in a hundred folders.
func members(_ context.Context, in *inputSet, n int) ([]string, error) {
	return in.make(fmt.Sprintf("members-%d.zip", n), func(path string) error {
		var b bytes.Buffer
		z := zip.NewWriter(&b)
		for i := range n {
			w, err := z.Create(fmt.Sprintf("folder-%d/file-%d.txt", i%100, i))
			if err != nil {
				return err
			}
			if _, err := w.Write(prose(i, 200)); err != nil {
				return err
			}
		}
		if err := z.Close(); err != nil {
			return err
		}
		return os.WriteFile(path, b.Bytes(), 0o600)
	})
}

// rows returns a CSV file of n rows.
func rows(_ context.Context, in *inputSet, n int) ([]string, error) {
	return in.make(fmt.Sprintf("rows-%d.csv", n), func(path string) error {
		rng := rand.New(rand.NewPCG(1, 3))
		b := []byte("id,name,amount,date\n")
		for i := range n {
			b = fmt.Appendf(b, "%d,name %d,%.2f,2026-%02d-%02d\n", i, rng.IntN(1e6), 1e5*rng.Float64(), 1+rng.IntN(12), 1+rng.IntN(28))
		}
		return os.WriteFile(path, b, 0o600)
	})
}

// seconds returns a WAV file of n seconds.
func seconds(_ context.Context, in *inputSet, n int) ([]string, error) {
	return in.make(fmt.Sprintf("seconds-%d.wav", n), func(path string) error {
		const rate = 44100
		rng := rand.New(rand.NewPCG(1, 4))
		b := []byte("RIFF")
		b = binary.LittleEndian.AppendUint32(b, uint32(36+2*rate*n))
		b = append(b, "WAVEfmt "...)
		for _, v := range []any{uint32(16), uint16(1), uint16(1), uint32(rate), uint32(2 * rate), uint16(2), uint16(16)} {
			b, _ = binary.Append(b, binary.LittleEndian, v) // only types of a fixed size
		}
		b = append(b, "data"...)
		b = binary.LittleEndian.AppendUint32(b, uint32(2*rate*n))
		for i := range rate * n {
			t := float64(i) / rate
			b = binary.LittleEndian.AppendUint16(b, uint16(int16(8000*math.Sin(2*math.Pi*(220+40*math.Sin(t))*t)+1000*rng.NormFloat64())))
		}
		return os.WriteFile(path, b, 0o600)
	})
}

// paragraphs returns a Markdown file of n pages, with four paragraphs on each.
func paragraphs(_ context.Context, in *inputSet, n int) ([]string, error) {
	return in.make(fmt.Sprintf("paragraphs-%d.md", n), func(path string) error {
		return os.WriteFile(path, []byte(inputs.Words(1, 4*n)), 0o600)
	})
}

// docx is paragraphs as a Word document.
func docx(ctx context.Context, in *inputSet, n int) ([]string, error) {
	md, err := paragraphs(ctx, in, n)
	if err != nil {
		return nil, err
	}
	return in.make(fmt.Sprintf("pages-%d.docx", n), func(path string) error { return tool(ctx, "pandoc", md[0], "-o", path) })
}

// html is paragraphs as a web page.
func html(ctx context.Context, in *inputSet, n int) ([]string, error) {
	md, err := paragraphs(ctx, in, n)
	if err != nil {
		return nil, err
	}
	return in.make(fmt.Sprintf("pages-%d.html", n), func(path string) error {
		return tool(ctx, "pandoc", "-s", "--metadata", "title=Pages", md[0], "-o", path)
	})
}

func tool(ctx context.Context, argv ...string) error {
	if out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", argv[0], err, out)
	}
	return nil
}

// prose returns n bytes of words.
func prose(seed, n int) []byte {
	words := [...]string{"file", "page", "server", "queue", "worker", "result", "format", "limit", "key", "request"}
	rng := rand.New(rand.NewPCG(uint64(seed), 5))
	var b []byte
	for len(b) < n {
		b = append(append(b, words[rng.IntN(len(words))]...), ' ')
	}
	return append(b[:n-1], '\n')
}

// pdf returns a PDF file of n pages with 40 lines of text each.
func pdf(n, seed int) []byte {
	objects := []string{"<</Type/Catalog/Pages 2 0 R>>", "", "<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"}
	var kids []byte
	for i := range n {
		kids = fmt.Appendf(kids, "%d 0 R ", 4+2*i)
		text := []byte("BT /F1 11 Tf 14 TL 60 780 Td\n")
		for line := range 40 {
			p := prose(seed*1_000_000+i*100+line, 80)
			text = fmt.Appendf(text, "(%s) Tj T*\n", p[:len(p)-1])
		}
		var packed bytes.Buffer
		w := zlib.NewWriter(&packed)
		w.Write(append(text, "ET"...)) // a Buffer never fails
		w.Close()
		objects = append(objects,
			fmt.Sprintf("<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Contents %d 0 R/Resources<</Font<</F1 3 0 R>>>>>>", 5+2*i),
			tinypdf.Stream("/Filter/FlateDecode", packed.String()))
	}
	objects[1] = fmt.Sprintf("<</Type/Pages/Count %d/Kids[%s]>>", n, kids)
	return tinypdf.File("1.7", objects...)
}

// twice returns the files of f two times.
func twice(f func(context.Context, *inputSet, int) ([]string, error)) func(context.Context, *inputSet, int) ([]string, error) {
	return func(ctx context.Context, in *inputSet, n int) ([]string, error) {
		paths, err := f(ctx, in, n)
		return append(paths, paths...), err
	}
}
