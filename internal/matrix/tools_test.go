package matrix_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"image"
	"image/draw"
	"image/png"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// tool runs a program and returns its standard output. The test fails if the program fails.
var tool = systest.Run

// python is a process of testdata/judge.py that answers questions one after the other, because its
// start takes longer than most answers.
type python struct {
	mu  sync.Mutex
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Scanner
}

func startPython() (*python, error) {
	p := &python{cmd: exec.Command("/usr/bin/python3", "testdata/judge.py")}
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	r, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(r)
	p.out.Buffer(nil, 64<<20)
	return p, p.cmd.Start()
}

func (p *python) close() error {
	p.in.Close()
	return p.cmd.Wait()
}

// An answer of judge.py.
type answer struct {
	Error   string
	Text    string
	Images  int
	Tables  int
	Rows    [][]string
	Entries map[string]string // name to SHA-256
}

func (p *python) ask(t testing.TB, op, path string) answer {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	q, _ := json.Marshal(map[string]string{"op": op, "path": path})
	if _, err := p.in.Write(append(q, '\n')); err != nil {
		t.Fatal(err)
	}
	if !p.out.Scan() {
		t.Fatalf("judge.py has ended: %v", p.out.Err())
	}
	var a answer
	systest.NoError(t, json.Unmarshal(p.out.Bytes(), &a))
	if a.Error != "" {
		t.Fatalf("judge.py %s: %s", op, a.Error)
	}
	return a
}

// decode decodes the first picture of a file with ffmpeg, or with vips for formats that ffmpeg does
// not support. args select the position in a video.
func decode(t testing.TB, path string, args ...string) *image.NRGBA {
	t.Helper()
	path, err := filepath.Abs(path) // tools run in an empty directory
	systest.NoError(t, err)
	switch path[strings.LastIndexByte(path, '.')+1:] {
	case "avif", "heic", "jxl", "webp", "jp2", "tiff":
		tmp := t.TempDir() + "/x.png"
		tool(t, "vips", "copy", path, tmp+"[compression=0]")
		return decodePNG(t, tmp)
	}
	m, err := parsePAM(tool(t, "ffmpeg", append(append([]string{"-nostdin", "-v", "error", "-xerror", "-i", path}, args...), "-frames:v", "1", "-pix_fmt", "rgba", "-f", "image2pipe", "-c:v", "pam", "-")...))
	if err != nil {
		t.Fatalf("%s: %v", path, err)
	}
	return m
}

// decodePNG decodes a PNG that a judge has written.
func decodePNG(t testing.TB, path string) *image.NRGBA {
	t.Helper()
	f, err := os.Open(path)
	systest.NoError(t, err)
	defer f.Close()
	src, err := png.Decode(f)
	systest.NoError(t, err)
	switch m := src.(type) {
	case *image.NRGBA:
		return m
	case *image.RGBA: // for images without transparency, where both types are equal
		return &image.NRGBA{Pix: m.Pix, Stride: m.Stride, Rect: m.Rect}
	}
	m := image.NewNRGBA(src.Bounds())
	draw.Draw(m, m.Rect, src, src.Bounds().Min, draw.Src)
	return m
}

// parsePAM reads a portable arbitrary map of four channels (netpbm, pam(5)).
func parsePAM(s string) (*image.NRGBA, error) {
	head, pix, ok := strings.Cut(s, "ENDHDR\n")
	if !ok {
		return nil, fmt.Errorf("no picture came out: %.100q", s)
	}
	v := make(map[string]int)
	for line := range strings.Lines(head) {
		if f := strings.Fields(line); len(f) == 2 {
			v[f[0]], _ = strconv.Atoi(f[1])
		}
	}
	w, h := v["WIDTH"], v["HEIGHT"]
	if w*h == 0 || v["DEPTH"] != 4 || len(pix) != 4*w*h {
		return nil, fmt.Errorf("picture of %v with %d bytes", v, len(pix))
	}
	return &image.NRGBA{Pix: []byte(pix), Stride: 4 * w, Rect: image.Rect(0, 0, w, h)}, nil
}
