// Package benchmarks measures the processors and the service beside the tools
// that people use today, in one run: go test -bench . ./benchmarks
//
// Each processor runs as it would in the service, with inputs from disk and
// results to disk. The other tool runs as its documentation says, a process for
// each file.
package benchmarks

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
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/standard"
)

// A bench is one operation, and how others do it.
type bench struct {
	name   string
	action string
	args   fileops.Args
	in     func(b *testing.B) []string // paths
	others []other
}

// An other is a tool that does the same. Its command line may contain the
// inputs (@1, @2 …), a new directory (@dir) and an output path (@out).
type other struct {
	name string
	out  string // name of the output
	argv []string
}

var benches = []bench{
	{"docx-pdf", "convert", fileops.Args{"convert_to": "pdf"}, one(docx), []other{
		{"soffice", "report.pdf", []string{"soffice", "-env:UserInstallation=file://@dir/profile", "--headless", "--norestore", "--convert-to", "pdf", "--outdir", "@dir", "@1"}}}},
	{"md-docx", "convert", fileops.Args{"convert_to": "docx"}, one(markdown), []other{
		{"pandoc", "x.docx", []string{"pandoc", "-o", "@out", "@1"}}}},
	{"pdf-png", "convert", fileops.Args{"convert_to": "png"}, one(pdf), []other{
		{"pdftoppm", "x", []string{"pdftoppm", "-r", "150", "-png", "@1", "@out"}}}},
	{"pdf-jpg", "convert", fileops.Args{"convert_to": "jpg"}, one(pdf), []other{
		{"pdftoppm", "x", []string{"pdftoppm", "-r", "150", "-jpeg", "@1", "@out"}}}},
	{"pdf-txt", "convert", fileops.Args{"convert_to": "txt"}, one(pdf), []other{
		{"pdftotext", "x.txt", []string{"pdftotext", "@1", "@out"}}}},
	{"jpg-webp", "convert", fileops.Args{"convert_to": "webp"}, one(photo), []other{
		{"vips", "x.webp", []string{"vips", "copy", "@1", "@out"}}}},
	{"jpg-png", "convert", fileops.Args{"convert_to": "png"}, one(photo), []other{
		{"vips", "x.png", []string{"vips", "copy", "@1", "@out"}}}},
	{"compress-jpg", "compress", nil, one(photo), []other{
		{"vips", "x.jpg", []string{"vips", "jpegsave", "@1", "@out", "--Q", "75", "--optimize-coding", "--interlace", "--strip"}}}},
	{"compress-pdf", "compress", nil, one(scan), []other{
		{"qpdf", "x.pdf", []string{"qpdf", "--object-streams=generate", "--recompress-flate", "--optimize-images", "@1", "@out"}}}},
	{"mp4-mp3", "convert", fileops.Args{"convert_to": "mp3"}, one(clip), []other{
		{"ffmpeg", "x.mp3", []string{"ffmpeg", "-nostdin", "-v", "error", "-i", "@1", "-b:a", "192k", "@out"}}}},
	{"merge-pdf", "merge", nil, func(b *testing.B) []string { return []string{pdf(b), pdf(b), pdf(b)} }, []other{
		{"qpdf", "x.pdf", []string{"qpdf", "--empty", "--pages", "@1", "@2", "@3", "--", "@out"}},
		{"pdfunite", "x.pdf", []string{"pdfunite", "@1", "@2", "@3", "@out"}}}},
	{"lock-pdf", "lock", fileops.Args{"password": "s3cret"}, one(pdf), []other{
		{"qpdf", "x.pdf", []string{"qpdf", "--encrypt", "s3cret", "owner", "256", "--", "@1", "@out"}}}},
	{"zip", "zip", nil, mixed, []other{
		{"zip", "x.zip", []string{"zip", "-q", "-j", "@out", "@1", "@2", "@3"}},
		{"7z", "x.7z.zip", []string{"7z", "a", "-tzip", "-bso0", "@out", "@1", "@2", "@3"}}}},
}

func BenchmarkProcessors(b *testing.B) {
	set := standard.Probe(b.Context(), &standard.Options{CacheDir: b.TempDir()})
	defer set.Close()
	reg, err := fileops.NewRegistry(set.Actions()...)
	if err != nil {
		b.Fatal(err)
	}
	for _, bm := range benches {
		b.Run(bm.name, func(b *testing.B) {
			paths := bm.in(b)
			b.Run("filewright", func(b *testing.B) { ours(b, reg, bm, paths) })
			for _, o := range bm.others {
				b.Run(o.name, func(b *testing.B) { theirs(b, o, paths) })
			}
		})
	}
}

func ours(b *testing.B, reg *fileops.Registry, bm bench, paths []string) {
	var inputs []*fileops.File
	var formats []format.Format
	for _, p := range paths {
		f := fileops.Path(p)
		inputs, formats = append(inputs, f), append(formats, f.Format())
	}
	action, params, err := reg.Resolve(bm.action, formats, bm.args)
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	size := int64(0)
	r := fileops.Runner{TempDir: dir}
	run := func() {
		size = 0
		sink := fileops.SinkFunc(func(ctx context.Context, f *fileops.File) error {
			size += f.Size()
			return fileops.ToDir(dir).Put(ctx, f)
		})
		if err := r.Do(b.Context(), action, params, sink, inputs...); err != nil {
			b.Fatal(err)
		}
	}
	run() // engines are warm in a server
	for b.Loop() {
		run()
	}
	report(b, paths, size)
}

func theirs(b *testing.B, o other, paths []string) {
	if _, err := exec.LookPath(o.argv[0]); err != nil {
		b.Fatalf("%s is needed for the comparison: make bench installs it", o.argv[0])
	}
	dir := b.TempDir()
	size := int64(0)
	run := func(i int) {
		sub := filepath.Join(dir, fmt.Sprint(i))
		if err := os.Mkdir(sub, 0o700); err != nil {
			b.Fatal(err)
		}
		pairs := []string{"@dir", dir, "@out", filepath.Join(sub, o.out)} // the profile of soffice is kept
		for n, p := range paths {
			pairs = append(pairs, fmt.Sprintf("@%d", n+1), p)
		}
		var argv []string
		for _, a := range o.argv {
			argv = append(argv, strings.NewReplacer(pairs...).Replace(a))
		}
		if out, err := exec.CommandContext(b.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
			b.Fatalf("%v: %v\n%s", argv, err, out)
		}
		size = 0
		made, _ := filepath.Glob(filepath.Join(sub, "*"))
		if o.name == "soffice" {
			made = []string{filepath.Join(dir, o.out)}
		}
		for _, p := range made {
			st, err := os.Stat(p)
			if err != nil {
				b.Fatal(err)
			}
			size += st.Size()
		}
	}
	n := 0
	run(n) // soffice makes its profile
	for b.Loop() {
		n++
		run(n)
	}
	report(b, paths, size)
}

// report adds how large the result is, in percent of the input.
func report(b *testing.B, paths []string, size int64) {
	var in int64
	for _, p := range paths {
		st, err := os.Stat(p)
		if err != nil {
			b.Fatal(err)
		}
		in += st.Size()
	}
	b.SetBytes(in)
	b.ReportMetric(100*float64(size)/float64(in), "%size")
}

func one(f func(*testing.B) string) func(*testing.B) []string {
	return func(b *testing.B) []string { return []string{f(b)} }
}

// The inputs are made once, of the sample files of the repository and by the
// tools that the tests use.

var (
	madeMu sync.Mutex
	made   = map[string]string{}
)

func input(b *testing.B, name string, argv ...string) string {
	b.Helper()
	madeMu.Lock()
	defer madeMu.Unlock()
	if p, ok := made[name]; ok {
		return p
	}
	dir, err := os.MkdirTemp("", "benchmarks-")
	if err != nil {
		b.Fatal(err)
	}
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		b.Fatalf("%v: %v\n%s", argv, err, out)
	}
	made[name] = filepath.Join(dir, name)
	return made[name]
}

func TestMain(m *testing.M) {
	code := m.Run()
	for _, p := range made {
		os.RemoveAll(filepath.Dir(p))
	}
	os.Exit(code)
}

func sampleFile(b *testing.B, name string) string {
	p, err := filepath.Abs(filepath.Join("..", "examples", "files", name))
	if err != nil {
		b.Fatal(err)
	}
	return p
}

func docx(b *testing.B) string { return sampleFile(b, "report.docx") }
func clip(b *testing.B) string { return sampleFile(b, "clip.mp4") }

// text is ten pages of words.
func text() string {
	words := strings.Fields("the quick brown fox jumps over a lazy dog while nobody looks at what happens in this field of corn")
	rng := rand.New(rand.NewPCG(1, 2))
	var s bytes.Buffer
	for p := range 60 {
		if p%6 == 0 {
			fmt.Fprintf(&s, "# Chapter %d\n\n", p/6+1)
		}
		for range 90 {
			s.WriteString(words[rng.IntN(len(words))] + " ")
		}
		s.WriteString("\n\n")
	}
	return s.String()
}

func markdown(b *testing.B) string {
	return input(b, "text.md", "bash", "-c", "cat > text.md <<'END'\n"+text()+"END\n")
}

func pdf(b *testing.B) string {
	md := markdown(b)
	return input(b, "text.pdf", "bash", "-c", "pandoc -o text.docx "+md+" && soffice -env:UserInstallation=file://$PWD/profile --headless --norestore --convert-to pdf text.docx")
}

// photo is 12 megapixels.
func photo(b *testing.B) string {
	return input(b, "photo.jpg", "bash", "-c", "vips perlin a.v 4000 3000 --cell-size 96 && vips gaussnoise n.v 4000 3000 --sigma 6 && vips linear a.v b.v 100 128 && vips add b.v n.v c.v && "+
		"vips bandjoin 'c.v b.v c.v' d.v && vips cast d.v e.v uchar && vips copy e.v f.v --interpretation srgb && vips jpegsave f.v photo.jpg --Q 92")
}

// scan is two pages at 300 dpi.
func scan(b *testing.B) string {
	p := pdf(b)
	return input(b, "scan.pdf", "bash", "-c", "pdftoppm -r 300 -l 2 -jpeg "+p+" s && python3 - <<'END'\n"+
		"import glob\n"+
		"objs=[];pages=[]\n"+
		"for f in sorted(glob.glob('s*.jpg')):\n"+
		"    d=open(f,'rb').read();i=2\n"+
		"    while d[i+1] not in (0xc0,0xc1,0xc2): i+=2+int.from_bytes(d[i+2:i+4],'big')\n"+
		"    h=int.from_bytes(d[i+5:i+7],'big');w=int.from_bytes(d[i+7:i+9],'big')\n"+
		"    n=3+len(objs); c=b'q 595 0 0 842 0 0 cm /I Do Q'\n"+
		"    objs+=[b'<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</XObject<</I %d 0 R>>>>/Contents %d 0 R>>'%(n+1,n+2),\n"+
		"      b'<</Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter/DCTDecode/Length %d>>stream\\n'%(w,h,len(d))+d+b'\\nendstream',\n"+
		"      b'<</Length %d>>stream\\n'%len(c)+c+b'\\nendstream']; pages.append(n)\n"+
		"objs=[b'<</Type/Catalog/Pages 2 0 R>>',b'<</Type/Pages/Kids[%s]/Count %d>>'%(b' '.join(b'%d 0 R'%p for p in pages),len(pages))]+objs\n"+
		"o=b'%PDF-1.4\\n';offs=[]\n"+
		"for n,x in enumerate(objs): offs.append(len(o)); o+=b'%d 0 obj\\n'%(n+1)+x+b'\\nendobj\\n'\n"+
		"x=len(o); o+=b'xref\\n0 %d\\n0000000000 65535 f \\n'%(len(objs)+1)+b''.join(b'%010d 00000 n \\n'%f for f in offs)+b'trailer<</Size %d/Root 1 0 R>>\\nstartxref\\n%d\\n%%%%EOF\\n'%(len(objs)+1,x)\n"+
		"open('scan.pdf','wb').write(o)\nEND\n")
}

// mixed is a photograph, text and a document.
func mixed(b *testing.B) []string {
	return []string{photo(b), input(b, "big.txt", "bash", "-c", "for i in $(seq 200); do cat "+markdown(b)+"; done > big.txt"), docx(b)}
}
