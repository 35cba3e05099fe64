package inputs

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"math"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Mixed returns typical files of about size bytes in total. Half is already compressed (pictures,
// videos, archives). The other half is text, logs, records, office XML and source code, the latter
// from the Go library. Each file has between 40 KiB and a sixteenth of size.
func (s *Set) Mixed(size int64) ([]string, error) {
	name := fmt.Sprintf("mixed-%d", size)
	root, err := s.file(name, func(dir string) error {
		dir = filepath.Join(dir, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		return writeMixed(dir, size)
	})
	if err != nil {
		return nil, err
	}
	return filepath.Glob(filepath.Join(root, "*"))
}

// TarGZ returns the files of Mixed as a .tar.gz archive.
func (s *Set) TarGZ(ctx context.Context, size int64) (string, error) {
	files, err := s.Mixed(size)
	if err != nil {
		return "", err
	}
	return s.file("mixed.tar.gz", func(dir string) error {
		return tool(ctx, dir, "tar", "czf", "mixed.tar.gz", "-C", filepath.Dir(files[0]), ".")
	})
}

func writeMixed(dir string, size int64) error {
	kinds := []struct {
		ext   string
		share float64
		write func(w *bufio.Writer, rng *rand.Rand, n int64) error
	}{
		{"jpg", 0.2, noise("\xff\xd8\xff\xe0\x00\x10JFIF\x00\x01")},
		{"mp4", 0.2, noise("\x00\x00\x00\x18ftypmp42\x00\x00\x00\x00mp42isom")},
		{"zip", 0.1, noise("PK\x03\x04")},
		{"txt", 0.1, writeText}, {"log", 0.1, writeLog}, {"json", 0.1, writeJSON}, {"xml", 0.1, writeXML}, {"go", 0.1, writeSource()},
	}
	for k, kind := range kinds {
		left := int64(kind.share * float64(size))
		for i := 0; left > 0; i++ {
			rng := rand.New(rand.NewPCG(uint64(k), uint64(i)))
			// Sizes are distributed evenly on a logarithmic scale.
			low, high := math.Log(40<<10), math.Log(max(80<<10, float64(size)/16))
			n := min(left, int64(math.Exp(low+(high-low)*rng.Float64())))
			left -= n
			f, err := os.Create(filepath.Join(dir, fmt.Sprintf("%s-%04d.%s", kind.ext, i, kind.ext)))
			if err != nil {
				return err
			}
			w := bufio.NewWriterSize(f, 1<<20)
			err = kind.write(w, rng, n)
			if ferr := w.Flush(); err == nil {
				err = ferr
			}
			if cerr := f.Close(); err == nil {
				err = cerr
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// noise writes incompressible bytes.
func noise(head string) func(*bufio.Writer, *rand.Rand, int64) error {
	return func(w *bufio.Writer, rng *rand.Rand, n int64) error {
		w.WriteString(head)
		var b [8]byte
		for i := int64(len(head)); i < n; i += 8 {
			binary.LittleEndian.PutUint64(b[:], rng.Uint64())
			if _, err := w.Write(b[:]); err != nil {
				return err
			}
		}
		return nil
	}
}

// fill calls add until w has at least n bytes.
func fill(w *bufio.Writer, n int64, add func(b *bytes.Buffer)) error {
	var b bytes.Buffer
	for done := int64(0); done < n; {
		b.Reset()
		add(&b)
		m, err := w.Write(b.Bytes())
		if err != nil {
			return err
		}
		done += int64(m)
	}
	return nil
}

// A writer writes words of a vocabulary by frequency.
type writer struct {
	rng   *rand.Rand
	zipf  *rand.Zipf
	words []string
}

func newWriter(rng *rand.Rand) *writer {
	// Every file uses the same vocabulary of random syllables.
	const vowels, consonants = "aeiou", "bcdfghklmnprstvw"
	fixed := rand.New(rand.NewPCG(5, 5))
	w := &writer{rng: rng, zipf: rand.NewZipf(rng, 1.15, 4, 19999)}
	for i := range 20000 {
		var s strings.Builder
		for range 1 + min(3, i/40+fixed.IntN(2)) {
			s.WriteByte(consonants[fixed.IntN(len(consonants))])
			s.WriteByte(vowels[fixed.IntN(len(vowels))])
			if fixed.IntN(3) == 0 {
				s.WriteByte(consonants[fixed.IntN(len(consonants))])
			}
		}
		w.words = append(w.words, s.String())
	}
	return w
}

func (w *writer) word() string { return w.words[w.zipf.Uint64()] }

// sentences writes n words.
func (w *writer) sentences(b *bytes.Buffer, n int) {
	start := true
	for i := range n {
		s := w.word()
		if start {
			s = strings.ToUpper(s[:1]) + s[1:]
		}
		b.WriteString(s)
		start = i == n-1 || w.rng.IntN(12) == 0
		switch {
		case start:
			b.WriteString(". ")
		case w.rng.IntN(10) == 0:
			b.WriteString(", ")
		default:
			b.WriteByte(' ')
		}
	}
}

func writeText(w *bufio.Writer, rng *rand.Rand, n int64) error {
	v := newWriter(rng)
	return fill(w, n, func(b *bytes.Buffer) { v.sentences(b, 60+rng.IntN(80)); b.WriteString("\n\n") })
}

func writeLog(w *bufio.Writer, rng *rand.Rand, n int64) error {
	v := newWriter(rng)
	ms := int64(1_700_000_000_000)
	return fill(w, n, func(b *bytes.Buffer) {
		ms += int64(rng.IntN(2000))
		fmt.Fprintf(b, "%d.%03d 10.%d.%d.%d %s /api/v1/%s/%d %d %d \"%s\" id=%08x\n", ms/1000, ms%1000,
			rng.IntN(4), rng.IntN(30), rng.IntN(256), []string{"GET", "GET", "GET", "POST", "PUT"}[rng.IntN(5)], v.word(), rng.IntN(100000),
			[]int{200, 200, 200, 204, 404, 500}[rng.IntN(6)], rng.IntN(60000), []string{"client/1.2 (linux)", "client/1.3 (mac)", "probe/9"}[rng.IntN(3)], rng.Uint32())
	})
}

func writeJSON(w *bufio.Writer, rng *rand.Rand, n int64) error {
	v := newWriter(rng)
	return fill(w, n, func(b *bytes.Buffer) {
		fmt.Fprintf(b, `{"id":%d,"name":"%s %s","amount":%.2f,"tags":["%s","%s"],"active":%t,"address":{"street":"%s %d","city":"%s","zip":"%05d"}}`+"\n",
			rng.IntN(1e7), v.word(), v.word(), rng.Float64()*1e4, v.word(), v.word(), rng.IntN(2) == 0, v.word(), rng.IntN(200), v.word(), rng.IntN(1e5))
	})
}

// writeXML writes XML like a word processor's: much markup around few words.
func writeXML(w *bufio.Writer, rng *rand.Rand, n int64) error {
	v := newWriter(rng)
	return fill(w, n, func(b *bytes.Buffer) {
		fmt.Fprintf(b, `<w:p w:rsidR="%08X" w:rsidRDefault="%08X"><w:pPr><w:pStyle w:val="Normal"/><w:spacing w:after="%d"/></w:pPr>`, rng.Uint32(), rng.Uint32(), 20*rng.IntN(10))
		for range 1 + rng.IntN(5) {
			b.WriteString(`<w:r><w:rPr><w:rFonts w:ascii="Calibri" w:hAnsi="Calibri"/><w:sz w:val="22"/><w:lang w:val="en-GB"/></w:rPr><w:t xml:space="preserve">`)
			v.sentences(b, 3+rng.IntN(20))
			b.WriteString(`</w:t></w:r>`)
		}
		b.WriteString("</w:p>")
	})
}

// writeSource writes the source files of the Go library one after the other, repeatedly if
// necessary. It writes text if they are not installed.
func writeSource() func(*bufio.Writer, *rand.Rand, int64) error {
	var files []string
	goroot, _ := exec.Command("go", "env", "GOROOT").Output()
	root := filepath.Join(strings.TrimSpace(string(goroot)), "src")
	filepath.WalkDir(root, func(p string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() && strings.HasSuffix(p, ".go") {
			files = append(files, p)
		}
		return nil
	})
	next := 0
	return func(w *bufio.Writer, rng *rand.Rand, n int64) error {
		if len(files) == 0 {
			return writeText(w, rng, n)
		}
		for done := int64(0); done < n; next++ {
			f, err := os.Open(files[next%len(files)])
			if err != nil {
				return err
			}
			m, err := io.Copy(w, io.LimitReader(f, n-done))
			f.Close()
			if err != nil {
				return err
			}
			done += m
		}
		return nil
	}
}
