package pdfread_test

import (
	"archive/zip"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"image"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"sync"
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread"
	"github.com/filewright/filewright/internal/systest"
)

func newEngine(t testing.TB, o pdfread.Options) *pdfread.Engine {
	t.Helper()
	o.CacheDir = systest.CodeCache()
	e, err := pdfread.New(context.Background(), o)
	systest.NoError(t, err)
	systest.AtEnd(t, e.Close)
	return e
}

type result struct {
	name string
	b    []byte
}

// collect returns a sink that appends results to out.
func collect(out *[]result) fileops.Sink {
	return fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := io.ReadAll(f.Reader())
		*out = append(*out, result{f.Name(), b})
		return err
	})
}

func convert(ctx context.Context, t testing.TB, e *pdfread.Engine, args fileops.Args, in *fileops.File) ([]result, error) {
	t.Helper()
	var out []result
	r := fileops.Runner{TempDir: t.TempDir()}
	err := r.Run(ctx, e.Convert(), args, collect(&out), in)
	return out, err
}

func mustConvert(t testing.TB, e *pdfread.Engine, args fileops.Args, pdf []byte) []result {
	t.Helper()
	out, err := convert(t.Context(), t, e, args, fileops.Bytes("in.pdf", pdf))
	systest.NoError(t, err)
	return out
}

// A pdfFile builds a PDF file object by object.
type pdfFile struct{ objs []string }

// add adds an object and returns a reference to it.
func (p *pdfFile) add(format string, args ...any) string {
	p.objs = append(p.objs, fmt.Sprintf(format, args...))
	return fmt.Sprintf("%d 0 R", len(p.objs))
}

func (p *pdfFile) stream(dict, content string) string {
	return p.add("<<%s/Length %d>>stream\n%s\nendstream", dict, len(content), content)
}

// finish writes the file; root is a reference to the catalog.
func (p *pdfFile) finish(root string) []byte {
	var b bytes.Buffer
	b.WriteString("%PDF-1.6\n%\xe2\xe3\xcf\xd3\n")
	var offs []int
	for i, o := range p.objs {
		offs = append(offs, b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	at := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(p.objs)+1)
	for _, o := range offs {
		fmt.Fprintf(&b, "%010d 00000 n \n", o)
	}
	fmt.Fprintf(&b, "trailer\n<</Size %d/Root %s>>\nstartxref\n%d\n%%%%EOF\n", len(p.objs)+1, root, at)
	return b.Bytes()
}

// A pdfPage is an argument of pages.
type pdfPage struct {
	extra   string // entries of the page
	content string
}

// pages builds a file with the given pages. F1 is Helvetica, F2 Times, F3
// Courier and F4 Helvetica Bold.
func pages(ps ...pdfPage) []byte {
	p := &pdfFile{}
	fonts := ""
	for i, n := range []string{"Helvetica", "Times-Roman", "Courier", "Helvetica-Bold"} {
		fonts += fmt.Sprintf("/F%d %s", i+1, p.add("<</Type/Font/Subtype/Type1/BaseFont/%s/Encoding/WinAnsiEncoding>>", n))
	}
	root := p.add("") // placeholder for the catalog and the page tree, written when the kids are known
	tree := p.add("")
	var kids []string
	for _, pg := range ps {
		extra := pg.extra
		if !strings.Contains(extra, "/MediaBox") {
			extra += "/MediaBox[0 0 595 842]"
		}
		if !strings.Contains(extra, "/Resources") {
			extra += "/Resources<</Font<<" + fonts + ">>>>"
		} else {
			extra = strings.Replace(extra, "/Resources<<", "/Resources<</Font<<"+fonts+">>", 1)
		}
		kids = append(kids, p.add("<</Type/Page/Parent %s%s/Contents %s>>", tree, extra, p.stream("", pg.content)))
	}
	p.objs[4] = fmt.Sprintf("<</Type/Catalog/Pages %s>>", tree)
	p.objs[5] = fmt.Sprintf("<</Type/Pages/Kids[%s]/Count %d>>", strings.Join(kids, " "), len(kids))
	return p.finish(root)
}

// lines returns content that shows lines of text from x, y downwards.
func lines(font string, size, x, y, pitch float64, text ...string) string {
	var b strings.Builder
	for i, s := range text {
		fmt.Fprintf(&b, "BT /%s %g Tf %g %g Td (%s) Tj ET\n", font, size, x, y-float64(i)*pitch, strings.NewReplacer(`\`, `\\`, "(", `\(`, ")", `\)`).Replace(s))
	}
	return b.String()
}

// prose returns n words that differ enough to detect a wrong order.
func prose(seed, n int) string {
	stems := strings.Fields("river stone window garden letter morning captain silver market winter engine harbour paper village island theatre")
	var b strings.Builder
	for i := range n {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(&b, "%s%c%c", stems[(seed*7+i*5)%len(stems)], 'a'+rune((seed+i/26)%26), 'a'+rune(i%26))
	}
	return b.String()
}

// tool runs a program and returns its standard output. The test fails if the program fails.
var tool = systest.Run

func write(t testing.TB, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	systest.NoError(t, os.WriteFile(path, b, 0o600))
	return path
}

// office converts with LibreOffice, one file at a time.
func office(t testing.TB, name string, content []byte, to string) []byte {
	t.Helper()
	officeLock.Lock()
	defer officeLock.Unlock()
	in := write(t, name, content)
	dir := filepath.Dir(in)
	tool(t, "soffice", "-env:UserInstallation=file://"+dir+"/profile", "--headless", "--norestore", "--convert-to", to, "--outdir", dir, in)
	ext, _, _ := strings.Cut(to, ":")
	b := systest.ReadFile(t, filepath.Join(dir, strings.TrimSuffix(name, filepath.Ext(name))+"."+ext))
	return b
}

var officeLock sync.Mutex

func pdfPages(t testing.TB, pdf []byte) int {
	t.Helper()
	n := 0
	for l := range strings.SplitSeq(tool(t, "pdfinfo", write(t, "x.pdf", pdf)), "\n") {
		if v, ok := strings.CutPrefix(l, "Pages:"); ok {
			fmt.Sscan(v, &n)
		}
	}
	return n
}

// tokens returns the words of s without differences between programs: case,
// ligatures and hyphens at line ends.
func tokens(s string) []string {
	s = norm.NFKC.String(s)
	s = strings.NewReplacer("-\n", "", "\u00ad\n", "", "\u00ad", "", "‐\n", "").Replace(s)
	return strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.IsMark(r) })
}

// recall returns the fraction of the words of want that are in got.
func recall(want, got []string) float64 {
	if len(want) == 0 {
		return 1
	}
	count := make(map[string]int)
	for _, w := range got {
		count[w]++
	}
	hit := 0
	for _, w := range want {
		if count[w] > 0 {
			count[w]--
			hit++
		}
	}
	return float64(hit) / float64(len(want))
}

// order returns the length of the longest common subsequence of words, as a
// fraction of want (Hunt-Szymanski algorithm).
func order(want, got []string) float64 {
	if len(want) == 0 {
		return 1
	}
	pos := make(map[string][]int)
	for i, w := range got {
		pos[w] = append(pos[w], i)
	}
	var tails []int
	for _, w := range want {
		for _, i := range slices.Backward(pos[w]) {
			if k := sort.SearchInts(tails, i); k == len(tails) {
				tails = append(tails, i)
			} else {
				tails[k] = i
			}
		}
	}
	return float64(len(tails)) / float64(len(want))
}

// ssim returns the mean structural similarity of two images in gray, in windows
// of 8 × 8 pixels.
func ssim(t testing.TB, a, b image.Image) float64 {
	t.Helper()
	w, h := min(a.Bounds().Dx(), b.Bounds().Dx()), min(a.Bounds().Dy(), b.Bounds().Dy())
	if d := a.Bounds().Size().Sub(b.Bounds().Size()); d.X < -1 || d.X > 1 || d.Y < -1 || d.Y > 1 {
		t.Fatalf("sizes %v and %v differ", a.Bounds().Size(), b.Bounds().Size())
	}
	gray := func(m image.Image) []float64 {
		out := make([]float64, w*h)
		for y := range h {
			for x := range w {
				r, g, b, _ := m.At(m.Bounds().Min.X+x, m.Bounds().Min.Y+y).RGBA()
				out[y*w+x] = (0.299*float64(r) + 0.587*float64(g) + 0.114*float64(b)) / 257
			}
		}
		return out
	}
	ga, gb := gray(a), gray(b)
	sum, n := 0.0, 0.0
	for y := 0; y+8 <= h; y += 4 {
		for x := 0; x+8 <= w; x += 4 {
			var sa, sb, saa, sbb, sab float64
			for j := range 8 {
				for k := range 8 {
					p, q := ga[(y+j)*w+x+k], gb[(y+j)*w+x+k]
					sa, sb, saa, sbb, sab = sa+p, sb+q, saa+p*p, sbb+q*q, sab+p*q
				}
			}
			ma, mb := sa/64, sb/64
			va, vb, cov := saa/64-ma*ma, sbb/64-mb*mb, sab/64-ma*mb
			sum += (2*ma*mb + 6.5025) * (2*cov + 58.5225) / ((ma*ma + mb*mb + 6.5025) * (va + vb + 58.5225))
			n++
		}
	}
	return sum / n
}

// unzip returns the parts of a docx file and checks that each XML part is well
// formed.
func unzip(t testing.TB, docx []byte) map[string][]byte {
	t.Helper()
	z, err := zip.NewReader(bytes.NewReader(docx), int64(len(docx)))
	systest.NoError(t, err)
	out := make(map[string][]byte)
	for _, f := range z.File {
		r, err := f.Open()
		systest.NoError(t, err)
		b, err := io.ReadAll(r)
		systest.NoError(t, err)
		if out[f.Name] != nil {
			t.Errorf("part %s is there twice", f.Name)
		}
		out[f.Name] = b
		if strings.HasSuffix(f.Name, ".xml") || strings.HasSuffix(f.Name, ".rels") {
			d := xml.NewDecoder(bytes.NewReader(b))
			for {
				if _, err := d.Token(); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					t.Fatalf("%s: %v", f.Name, err)
				}
			}
		}
	}
	return out
}
