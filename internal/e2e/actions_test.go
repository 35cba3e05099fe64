//go:build linux

package e2e

import (
	"archive/zip"
	"bytes"
	"fmt"
	"image"
	_ "image/jpeg"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// A new user pastes the lines that the server prints at its first start.
func TestPasteTheBanner(t *testing.T) {
	t.Parallel()
	s := start(t, filepath.Join(t.TempDir(), "data"))
	_, script, ok := strings.Cut(s.banner, "paste this into another terminal:")
	if !ok {
		t.Fatalf("no lines to paste: %s", s.banner)
	}
	dir := t.TempDir()
	path := docx(t).save(t)
	script = strings.Replace(script, "file=@report.docx", "file=@"+path+" -F wait=10m", 1) // the host may be busy
	paste(t, script, dir)
	if err := s.stop(); err != nil {
		t.Errorf("stop: %v", err)
	}
	again := startLean(t, s.dir)
	if again.key != "" || strings.Contains(again.banner, "API key") {
		t.Errorf("the key is shown again: %s", again.banner)
	}
}

// paste runs the lines of the banner in dir and checks the files that they create. The line that
// waits for the result, if there is one, runs again if the host is too busy to finish within its
// minute.
func paste(t *testing.T, script, dir string) {
	t.Helper()
	wait := regexp.MustCompile(`(?m)^LINK=.*$`)
	script = wait.ReplaceAllStringFunc(script, func(line string) string {
		return "for try in 1 2 3 4 5; do " + line + "; [ -z \"$LINK\" ] || break; done"
	})
	cmd := exec.CommandContext(t.Context(), "bash", "-c", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if text := tool(t, "pdftotext", filepath.Join(dir, "report.pdf"), "-"); !strings.Contains(text, "quick brown fox") {
		t.Errorf("text of the PDF: %s\n%s", text, out)
	}
}

// In a clone the lines use the sample file of the repository, and work in a terminal in any
// directory. Without the one call, they show each step.
func TestPasteTheBannerOfAClone(t *testing.T) {
	t.Parallel()
	clone := filepath.Join(t.TempDir(), "somebody's clone")
	files := filepath.Join(clone, "examples", "files")
	systest.NoError(t, os.MkdirAll(files, 0o755))
	systest.NoError(t, os.WriteFile(filepath.Join(files, "report.docx"), docx(t).b, 0o644))
	s, err := launchBy([]string{"env", "--chdir", clone}, filepath.Join(t.TempDir(), "data"), "--run-timeout", "0")
	systest.NoError(t, err)
	t.Cleanup(s.kill)
	_, script, _ := strings.Cut(s.banner, "paste this into another terminal:")
	if !strings.Contains(script, "LINK=") {
		t.Errorf("no line waits for the result: %s", script)
	}
	paste(t, script, t.TempDir())
}

func TestDocumentsToPDF(t *testing.T) {
	t.Parallel()
	for _, f := range []file{
		docx(t), odt(t), rtf(t), pptx(t),
		{"report.md", []byte(markdown)},
		{"notes.txt", []byte("The quick brown fox\nÄpfel, 日本語\n")},
		{"page.html", []byte("<html><body><h1>Annual report</h1><p>The quick brown fox</p></body></html>")},
		sample(t, format.XLSX), sample(t, format.ODS), sample(t, format.ODP),
		{"table.csv", []byte("name,count\nThe quick brown fox,3\nÄpfel,4\n")},
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			got := shared.one(t, "convert", map[string]any{"convert_to": "pdf"}, f)
			if want := format.Base(f.name) + ".pdf"; got.name != want {
				t.Errorf("name %q, want %q", got.name, want)
			}
			path := got.save(t)
			want := "quick brown fox"
			if format.Parse(f.name) == format.XLSX {
				want = "äpfel" // the long text overlaps the next cell and is cut, as in any sheet
			}
			if text := tool(t, "pdftotext", path, "-"); !strings.Contains(strings.ToLower(strings.Join(strings.Fields(text), " ")), want) {
				t.Errorf("text: %q", text)
			}
			tool(t, "qpdf", "--check", path)
		})
	}
}

func TestDocumentsAmongEachOther(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		in  file
		to  string
		txt func(t *testing.T, path string) string
	}{
		{docx(t), "odt", pandocText}, {odt(t), "docx", pandocText}, {rtf(t), "docx", pandocText}, {docx(t), "rtf", rtfText},
		{docx(t), "txt", plainText}, {docx(t), "html", plainText},
		{file{"report.md", []byte(markdown)}, "docx", pandocText},
		{sample(t, format.XLSX), "ods", nil}, {sample(t, format.XLSX), "csv", plainText}, {sample(t, format.CSV), "xlsx", nil},
		{pptx(t), "odp", nil},
	} {
		t.Run(tt.in.name+" to "+tt.to, func(t *testing.T) {
			t.Parallel()
			got := shared.one(t, "convert", map[string]any{"convert_to": tt.to}, tt.in)
			if format.Parse(got.name) != format.Format(tt.to) {
				t.Errorf("name %q", got.name)
			}
			path := got.save(t)
			if tt.txt != nil {
				if text := strings.Join(strings.Fields(tt.txt(t, path)), " "); !strings.Contains(text, "quick brown fox") {
					t.Errorf("text: %q", text)
				}
			} else if out := tool(t, "unzip", "-t", path); !strings.Contains(out, "No errors") {
				t.Error(out)
			}
		})
	}
}

func pandocText(t *testing.T, path string) string { return tool(t, "pandoc", "-t", "plain", path) }
func plainText(t *testing.T, path string) string  { return tool(t, "cat", path) }
func rtfText(t *testing.T, path string) string {
	return tool(t, "pandoc", "-f", "rtf", "-t", "plain", path)
}

func TestPDFToOthers(t *testing.T) {
	t.Parallel()
	for _, to := range []string{"png", "jpg", "webp"} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			out := shared.run(t, "convert", map[string]any{"convert_to": to}, pdf(t))
			if len(out) != 2 || out[0].name != "paper-001."+to || out[1].name != "paper-002."+to {
				t.Fatalf("%d results", len(out))
			}
			for _, f := range out {
				path := f.save(t)
				w, _ := strconv.Atoi(strings.TrimSpace(tool(t, "vipsheader", "-f", "width", path)))
				if w < 1238 || w > 1242 { // 595 pt at 150 dpi
					t.Errorf("width %d", w)
				}
			}
		})
	}
	t.Run("txt", func(t *testing.T) {
		t.Parallel()
		got := shared.one(t, "convert", map[string]any{"convert_to": "txt"}, pdf(t))
		if !strings.Contains(string(got.b), "quick brown fox") || !strings.Contains(string(got.b), "Page 2") {
			t.Errorf("text: %q", got.b)
		}
	})
	t.Run("docx", func(t *testing.T) {
		t.Parallel()
		got := shared.one(t, "convert", map[string]any{"convert_to": "docx"}, pdf(t))
		if text := pandocText(t, got.save(t)); !strings.Contains(strings.Join(strings.Fields(text), " "), "quick brown fox") {
			t.Errorf("text: %q", text)
		}
	})
	t.Run("txt to png", func(t *testing.T) {
		t.Parallel()
		got := shared.one(t, "convert", map[string]any{"convert_to": "png"}, file{"notes.txt", []byte("hello\n")})
		tool(t, "vipsheader", got.save(t))
	})
	t.Run("some pages at another resolution", func(t *testing.T) {
		t.Parallel()
		got := shared.one(t, "convert", map[string]any{"convert_to": "png", "pages": "2", "dpi": 72}, pdf(t))
		if w := strings.TrimSpace(tool(t, "vipsheader", "-f", "width", got.save(t))); w != "595" {
			t.Errorf("width %s", w)
		}
	})
}

// written returns a picture with text.
func written(t testing.TB) file {
	return makeFile(t, "written.png", "", "bash", "-c",
		"vips text a.v 'The quick brown fox' --dpi 200 && vips invert a.v b.v && vips embed b.v written.png 40 40 700 140 --extend white")
}

// Every advertised pair of image formats works. With -short, every format is part of a pair.
func TestImages(t *testing.T) {
	t.Parallel()
	var pairs systest.Pairs
	for _, from := range []format.Format{format.JPG, format.PNG, format.WebP, format.GIF, format.TIFF, format.BMP, format.AVIF, format.HEIC} {
		targets := shared.targets(t, string(from))
		if len(targets) < 7 {
			t.Errorf("%s converts to %v only", from, targets)
		}
		for _, to := range targets {
			if !pairs.Run(string(from), to) {
				continue
			}
			t.Run(fmt.Sprintf("%s to %s", from, to), func(t *testing.T) {
				t.Parallel()
				if format.Format(to).Family() == format.Document && to != "pdf" {
					in := written(t)
					if from != format.PNG {
						in = shared.one(t, "convert", map[string]any{"convert_to": string(from)}, in)
					}
					got := shared.one(t, "convert", map[string]any{"convert_to": to}, in)
					text := string(got.b)
					if to == "docx" {
						text = pandocText(t, got.save(t))
					}
					if !strings.Contains(strings.Join(strings.Fields(text), " "), "quick brown fox") {
						t.Errorf("text: %q", text)
					}
					return
				}
				for _, f := range shared.run(t, "convert", map[string]any{"convert_to": to}, sample(t, from)) {
					path := f.save(t)
					if to == "pdf" {
						tool(t, "qpdf", "--check", path)
						if info := tool(t, "pdfinfo", path); !strings.Contains(info, "Pages:           1") {
							t.Error(info)
						}
						continue
					}
					if to == "ico" {
						if out := tool(t, "file", path); !strings.Contains(out, "icon") {
							t.Error(out)
						}
						continue
					}
					if format.Format(to).Family() == format.Video {
						if size := probe(t, path, "stream=width,height"); size != "160,120" {
							t.Errorf("size %s", size)
						}
						continue
					}
					if header := tool(t, "vipsheader", path); !strings.Contains(header, ": 160x120 ") {
						t.Errorf("header %s", header)
					}
				}
			})
		}
	}
}

// targets returns the target formats of an extension from supported-operation.
func (s *server) targets(t testing.TB, ext string) []string {
	t.Helper()
	r := s.want(t, 200, "", "POST", "/api/v1/supported-operation", map[string]any{"ext": ext, "action": "convert"})
	var out []string
	params, _ := r.body["parameters"].(map[string]any)
	values, _ := params["convert_to"].([]any)
	for _, v := range values {
		out = append(out, v.(string))
	}
	return out
}

// probe returns entries of ffprobe's description, a line for each section and its fields with commas.
func probe(t testing.TB, path, entries string) string {
	return strings.TrimSpace(tool(t, "ffprobe", "-v", "error", "-show_entries", entries, "-of", "csv=p=0", path))
}

func TestAudioAndVideo(t *testing.T) {
	t.Parallel()
	audios := []string{"mp3", "wav", "flac", "ogg", "opus", "m4a", "aac"}
	videos := []string{"mp4", "mov", "mkv", "webm", "avi"}
	type pair struct{ from, to string }
	var pairs []pair
	for i, a := range audios {
		pairs = append(pairs, pair{a, audios[(i+1)%len(audios)]}, pair{a, audios[(i+3)%len(audios)]})
	}
	for i, v := range videos {
		pairs = append(pairs, pair{v, videos[(i+1)%len(videos)]}, pair{v, videos[(i+2)%len(videos)]}, pair{v, audios[i]})
	}
	pairs = append(pairs, pair{"mp4", "mp3"}, pair{"mp4", "gif"}, pair{"webm", "gif"})
	var some systest.Pairs
	for _, p := range pairs {
		if !some.Run(p.from, p.to) {
			continue
		}
		t.Run(p.from+" to "+p.to, func(t *testing.T) {
			t.Parallel()
			in := audio
			if format.Format(p.from).Family() == format.Video {
				in = video
			}
			path := shared.one(t, "convert", map[string]any{"convert_to": p.to}, in(t, p.from)).save(t)
			// A line for each stream, and then one for the file.
			lines := strings.Split(probe(t, path, "stream=codec_type:format=duration"), "\n")
			streams, duration := lines[:len(lines)-1], lines[len(lines)-1]
			hasVideo := slices.Contains(streams, "video")
			if wantVideo := format.Format(p.to).Family() != format.Audio; hasVideo != wantVideo {
				t.Errorf("streams: %s", streams)
			}
			if p.to == "gif" || p.to == "aac" { // containers without a duration
				return
			}
			d, err := strconv.ParseFloat(duration, 64)
			if err != nil || d < 1.8 || d > 2.3 {
				t.Errorf("duration %v (%v)", d, err)
			}
		})
	}
}

// The three compression levels differ, and never enlarge a file.
func TestCompress(t *testing.T) {
	t.Parallel()
	photo := photograph(t)
	for _, f := range []file{
		photo,
		makeFile(t, "photo.webp", "", "vips", "webpsave", photo.save(t), "photo.webp", "--Q", "98"),
		scanPDF(t, photo),
		makeFile(t, "clip.mp4", "", "ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "testsrc2=size=640x480:rate=25:duration=2", "-vf", "noise=alls=20:allf=t", "-c:v", "libx264", "-crf", "10", "-pix_fmt", "yuv420p", "clip.mp4"),
		makeFile(t, "tone.mp3", "", "ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", "anoisesrc=duration=4:seed=7", "-b:a", "320k", "tone.mp3"),
	} {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			var sizes []int
			for _, level := range []string{"less_compression", "recommended_compression", "extreme_compression"} {
				got := shared.one(t, "compress", map[string]any{"compression_value": level}, f)
				if got.name != f.name || len(got.b) > len(f.b) {
					t.Errorf("%s: %s of %d bytes from %d", level, got.name, len(got.b), len(f.b))
				}
				sizes = append(sizes, len(got.b))
			}
			if sizes[0] <= sizes[1] || sizes[1] <= sizes[2] {
				t.Errorf("levels of %d bytes give %v", len(f.b), sizes)
			}
			// The middle level is the default, and has short names.
			for _, params := range []map[string]any{nil, {"compression_value": "recommended"}} {
				if got := shared.one(t, "compress", params, f); len(got.b) > sizes[0] || len(got.b) < sizes[2] {
					t.Errorf("%v gives %d bytes", params, len(got.b))
				}
			}
		})
	}
}

// photograph returns a picture with enough noise that quality costs bytes.
func photograph(t testing.TB) file {
	return makeFile(t, "photo.jpg", "", "bash", "-c",
		"vips perlin a.v 1600 1200 --cell-size 64 --seed 7 && vips gaussnoise n.v 1600 1200 --sigma 12 --seed 7 && vips linear a.v b.v 100 128 && vips add b.v n.v c.v && "+
			"vips bandjoin 'c.v b.v c.v' d.v && vips cast d.v e.v uchar && vips copy e.v f.v --interpretation srgb && vips jpegsave f.v photo.jpg --Q 97")
}

// scanPDF returns a page that is one large picture. The service creates it, because img2pdf is not
// installed everywhere, and qpdf checks it.
func scanPDF(t testing.TB, photo file) file {
	out := shared.one(t, "convert", map[string]any{"convert_to": "pdf", "page_size": "a4"}, photo)
	tool(t, "qpdf", "--check", out.save(t))
	return file{"scan.pdf", out.b}
}

func TestMerge(t *testing.T) {
	t.Parallel()
	a, b := pdf(t), pdf(t)
	b.name = "second.pdf"
	got := shared.one(t, "merge", nil, a, jpg(t), b)
	if got.name != "merged.pdf" {
		t.Errorf("name %q", got.name)
	}
	path := got.save(t)
	tool(t, "qpdf", "--check", path)
	if n := strings.TrimSpace(tool(t, "qpdf", "--show-npages", path)); n != "5" {
		t.Errorf("%s pages, want 2 + 1 + 2", n)
	}
	js := tool(t, "qpdf", "--json", "--json-key=outlines", path)
	if strings.Count(js, `"A sample"`) != 2 {
		t.Errorf("bookmarks of the inputs are lost: %s", js)
	}
	if n := strings.Count(tool(t, "bash", "-c", `qpdf --qdf --object-streams=disable "$1" -`, "bash", path), "/URI (https://example.com/)"); n != 4 {
		t.Errorf("%d links, want 4", n)
	}
	for i, want := range []string{"Page 1", "Page 2", "", "Page 1", "Page 2"} {
		page := fmt.Sprint(i + 1)
		if text := tool(t, "pdftotext", "-f", page, "-l", page, path, "-"); !strings.Contains(text, want) {
			t.Errorf("page %s: %q, want %q", page, text, want)
		}
	}
}

func TestZip(t *testing.T) {
	t.Parallel()
	for _, action := range []string{"zip", "create_zip", "ZIP"} {
		same := file{"Äpfel.txt", []byte("one\n")}
		other := file{"Äpfel.txt", []byte("two\n")}
		got := shared.one(t, action, nil, same, other, jpg(t), file{"noextension", []byte{0, 1, 2}})
		if got.name != "files.zip" {
			t.Errorf("name %q", got.name)
		}
		if out := tool(t, "unzip", "-t", got.save(t)); !strings.Contains(out, "No errors") {
			t.Error(out)
		}
		z, err := zip.NewReader(bytes.NewReader(got.b), int64(len(got.b)))
		systest.NoError(t, err)
		var names []string
		for _, f := range z.File {
			names = append(names, f.Name)
		}
		if len(names) != 4 || names[0] != "Äpfel.txt" || names[1] == names[0] || names[2] != "photo.jpg" {
			t.Errorf("names %q", names)
		}
	}
}

// Other programs require the password of a protected archive.
func TestZipWithPassword(t *testing.T) {
	t.Parallel()
	got := shared.one(t, "zip", map[string]any{"password": "s3cret"}, file{"a.txt", []byte("hello\n")}, jpg(t))
	path := got.save(t)
	if out := tool(t, "7z", "t", "-ps3cret", path); !strings.Contains(out, "Everything is Ok") {
		t.Error(out)
	}
	if err := exec.Command("7z", "t", "-pwrong", path).Run(); err == nil {
		t.Error("it opens with a wrong password")
	}
}

func TestDataAndArchives(t *testing.T) {
	t.Parallel()
	got := shared.one(t, "convert", map[string]any{"convert_to": "json"}, file{"table.csv", []byte("name,count\nÄpfel,3\n")})
	if out := tool(t, "/usr/bin/python3", "-c", "import json,sys; print(json.load(open(sys.argv[1])))", got.save(t)); strings.TrimSpace(out) != "[{'name': 'Äpfel', 'count': '3'}]" {
		t.Errorf("json: %s", out)
	}
	if got := shared.one(t, "convert", map[string]any{"convert_to": "csv"}, file{"table.json", got.b}); !strings.Contains(string(got.b), "Äpfel,3") {
		t.Errorf("csv: %q", got.b)
	}
	tar := makeFile(t, "a.tar.gz", "", "bash", "-c", "mkdir -p d && echo hello > d/x.txt && echo there > y.txt && tar czf a.tar.gz d y.txt")
	zip := shared.one(t, "convert", map[string]any{"convert_to": "zip"}, tar)
	if out := tool(t, "unzip", "-p", zip.save(t), "d/x.txt", "y.txt"); zip.name != "a.zip" || out != "hello\nthere\n" {
		t.Errorf("%s: %q", zip.name, out)
	}
}

func TestPasswords(t *testing.T) {
	t.Parallel()
	for _, password := range []string{"s3cret", "with space", "Pässwörd 日本語"} {
		locked := shared.one(t, "lock", map[string]any{"password": password}, pdf(t))
		path := locked.save(t)
		if locked.name != "paper.pdf" {
			t.Errorf("name %q", locked.name)
		}
		if out := tool(t, "qpdf", "--show-encryption", "--password="+password, path); !strings.Contains(out, "R = 6") || !strings.Contains(out, "AESv3") {
			t.Errorf("encryption: %s", out)
		}
		if err := exec.Command("qpdf", "--check", path).Run(); err == nil {
			t.Error("it opens without the password")
		}
		unlocked := shared.one(t, "unlock", map[string]any{"password": password}, locked)
		if out := tool(t, "qpdf", "--show-encryption", unlocked.save(t)); !strings.Contains(out, "not encrypted") {
			t.Error(out)
		}
		if text := tool(t, "pdftotext", unlocked.save(t), "-"); !strings.Contains(text, "quick brown fox") {
			t.Errorf("text: %s", text)
		}
		reset := shared.one(t, "reset_password", map[string]any{"old_password": password, "new_password": "other"}, locked)
		tool(t, "qpdf", "--check", "--password=other", reset.save(t))

		shared.fails(t, "wrong_password", "unlock", map[string]any{"password": "no"}, locked)
		shared.fails(t, "wrong_password", "reset_password", map[string]any{"old_password": "no", "new_password": "x"}, locked)
	}
	shared.fails(t, "not_encrypted", "unlock", map[string]any{"password": "x"}, pdf(t))
	foreign := lockedPDF(t, "abc")
	shared.one(t, "unlock", map[string]any{"password": "abc"}, foreign)
	shared.one(t, "unlock", map[string]any{"password": "owner-abc"}, foreign)
	shared.fails(t, "password_required", "merge", nil, foreign)
	shared.fails(t, "password_required", "convert", map[string]any{"convert_to": "png"}, foreign)
	shared.fails(t, "password_required", "compress", nil, foreign)
}

// The first examples of the README and of its pages work as they are written.
func TestOneCallOfTheDocs(t *testing.T) {
	t.Parallel()
	s := start(t, filepath.Join(t.TempDir(), "data"))
	calls := 0
	for _, page := range []string{"README.md", filepath.Join("docs", "index.md"), filepath.Join("docs", "onecall.md")} {
		text := string(systest.ReadFile(t, filepath.Join("..", "..", page)))
		for _, m := range regexp.MustCompile(`(?m)^\$ (curl .* -o report\.pdf)$`).FindAllStringSubmatch(text, -1) {
			calls++
			dir := t.TempDir()
			systest.NoError(t, os.WriteFile(filepath.Join(dir, "report.docx"), docx(t).b, 0o600))
			cmd := exec.CommandContext(t.Context(), "bash", "-c", m[1])
			cmd.Dir, cmd.Env = dir, append(os.Environ(), "API="+s.url, "KEY="+s.key)
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("%s: %v\n%s", m[1], err, out)
			}
			if text := tool(t, "pdftotext", filepath.Join(dir, "report.pdf"), "-"); !strings.Contains(text, "quick brown fox") {
				t.Errorf("%s: text of the PDF: %s", m[1], text)
			}
		}
	}
	if calls != 4 {
		t.Errorf("the pages have %d calls", calls)
	}
}

// A picture is drawn over pages and pictures.
func TestWatermarkPicture(t *testing.T) {
	t.Parallel()
	m := image.NewNRGBA(image.Rect(0, 0, 60, 40))
	for i := range m.Pix {
		m.Pix[i] = []byte{0, 255, 0, 255}[i%4]
	}
	var b bytes.Buffer
	systest.NoError(t, png.Encode(&b, m))
	logo := file{"logo.png", b.Bytes()}
	key := shared.upload(t, logo.name, logo.b, 1)
	params := map[string]any{"image_key": key, "opacity": 1, "position": "center", "scale": 0.5}
	for _, in := range []file{pdf(t), jpg(t), sample(t, format.PNG), video(t, "mp4")} {
		out := shared.one(t, "watermark", params, in).save(t)
		base := strings.TrimSuffix(out, filepath.Ext(out))
		switch filepath.Ext(out) {
		case ".pdf":
			tool(t, "pdftoppm", "-png", "-singlefile", "-r", "50", out, base)
			out = base + ".png"
		case ".mp4":
			tool(t, "ffmpeg", "-v", "error", "-i", out, "-frames:v", "1", base+".png")
			out = base + ".png"
		}
		drawn, err := os.Open(out)
		systest.NoError(t, err)
		defer drawn.Close()
		shown, _, err := image.Decode(drawn)
		systest.NoError(t, err)
		middle := shown.At(shown.Bounds().Dx()/2, shown.Bounds().Dy()/2)
		if r, g, b, _ := middle.RGBA(); r>>8 > 12 || g>>8 < 243 || b>>8 > 12 {
			t.Errorf("%s: the colour in the middle is %v", in.name, middle)
		}
	}
	broken := shared.upload(t, "broken.png", logo.b[:len(logo.b)/2], 1)
	for _, in := range []file{pdf(t), jpg(t)} {
		if text := shared.fails(t, "invalid_parameter", "watermark", map[string]any{"image_key": broken}, in); !strings.Contains(text, "image_key") {
			t.Errorf("a broken picture: %s", text)
		}
	}
	p := shared.want(t, 400, "unsupported_operation", "POST", "/api/v1/do", map[string]any{"action": "watermark", "file_keys": []string{shared.upload(t, "a.pdf", pdf(t).b, 1)},
		"parameters": map[string]any{"image_key": key, "text": "too"}})
	if p.str("param") != "parameters.image_key" {
		t.Errorf("both: %s", p.raw)
	}
}
