package matrix_test

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops/fileopstest"
)

// A media is what ffprobe says of a file.
type media struct {
	Streams []struct {
		Type   string `json:"codec_type"`
		Codec  string `json:"codec_name"`
		Width  int
		Height int
		Rate   string `json:"sample_rate"`
	}
}

func probe(t *testing.T, p string) media {
	t.Helper()
	var m media
	if err := json.Unmarshal([]byte(tool(t, "ffprobe", "-v", "error", "-of", "json", "-show_streams", p)), &m); err != nil {
		t.Fatal(err)
	}
	return m
}

// length decodes everything and returns how long it takes to play, because what
// a header says is only an estimate in some formats.
func length(t *testing.T, p, stream string) time.Duration {
	t.Helper()
	out := tool(t, "ffmpeg", "-nostdin", "-v", "error", "-xerror", "-i", p, "-map", "0:"+stream+":0", "-progress", "-", "-f", "null", "-")
	var last string
	for line := range strings.Lines(out) {
		if v, ok := strings.CutPrefix(strings.TrimSpace(line), "out_time_us="); ok {
			last = v
		}
	}
	us, err := strconv.Atoi(last)
	if err != nil {
		t.Fatalf("ffmpeg says %q", out)
	}
	return time.Duration(us) * time.Microsecond
}

// audio judges sound whose codec begins with codec.
func audio(codec string) func(*testing.T, []string, content) {
	return one(func(t *testing.T, p string, c content) {
		m := probe(t, p)
		if len(m.Streams) != 1 || m.Streams[0].Type != "audio" || !strings.HasPrefix(m.Streams[0].Codec, codec) {
			t.Errorf("streams %+v, want %s", m.Streams, codec)
		}
		hasSound(t, p, c)
	})
}

func hasSound(t *testing.T, p string, c content) {
	t.Helper()
	got := length(t, p, "a")
	if strings.HasSuffix(p, ".aac") && got > c.sound {
		// A bare stream cannot say how much of its first and last frame is
		// padding (ISO/IEC 14496-3, ADTS): at 8 kHz a frame is 128 ms.
		rate, err := strconv.Atoi(probe(t, p).Streams[0].Rate)
		if err != nil {
			t.Fatal(err)
		}
		got = max(c.sound, got-2*1024*time.Second/time.Duration(rate))
	}
	within(t, "sound", got, c.sound, c.slack())
	if !c.tone {
		return
	}
	// The tone crosses zero twice in each period.
	pcm := []byte(tool(t, "ffmpeg", "-nostdin", "-v", "error", "-i", p, "-ss", "0.3", "-t", "0.5", "-map", "0:a:0", "-ac", "1", "-ar", "44100", "-f", "s16le", "-"))
	crossings, n, last := 0, len(pcm)/2, int16(0)
	for i := range n {
		v := int16(binary.LittleEndian.Uint16(pcm[2*i:]))
		if v > 200 && last < 0 || v < -200 && last > 0 {
			crossings++
		}
		if v > 200 || v < -200 {
			last = v
		}
	}
	if hz := float64(crossings) / 2 / (float64(n) / 44100); hz < fileopstest.Tone-8 || hz > fileopstest.Tone+8 {
		t.Errorf("a tone of %.1f Hz, want %d", hz, fileopstest.Tone)
	}
}

// video judges moving pictures whose codec begins with codec.
func video(codec string) func(*testing.T, []string, content) {
	return one(func(t *testing.T, p string, c content) {
		m := probe(t, p)
		found := false
		for _, s := range m.Streams {
			if s.Type != "video" {
				continue
			}
			found = true
			if !strings.HasPrefix(s.Codec, codec) || s.Width != c.w || s.Height != c.h {
				t.Errorf("video %s of %d by %d, want %s of %d by %d", s.Codec, s.Width, s.Height, codec, c.w, c.h)
			}
		}
		if !found {
			t.Fatalf("no video: %+v", m.Streams)
		}
		got := length(t, p, "v")
		if c.moving > 0 {
			within(t, "video", got, c.moving, c.slack())
		}
		if c.sound > 0 {
			hasSound(t, p, c)
		}
		var middle []string
		if c.moving > 0 {
			middle = []string{"-ss", strconv.FormatFloat(got.Seconds()/2, 'f', 2, 64)}
		}
		frame := decode(t, p, middle...)
		for i, want := range fileopstest.PatchColors() {
			if at := frame.NRGBAAt(c.w/4+i%2*c.w/2, c.h/4+i/2*c.h/2); !near(at, want, 30) {
				t.Errorf("patch %d is %v, want %v", i+1, at, want)
			}
		}
	})
}

func judgeZIP(t *testing.T, p string, c content) {
	if c.password != "" {
		if out, err := try(t.Context(), "7z", "t", "-pwrong", p); err == nil {
			t.Errorf("opens with any password: %s", out)
		}
		extracted(t, c, "7z", "x", "-y", "-p"+c.password, p)
		return
	}
	tool(t, "unzip", "-tq", p)
	got := py.ask(t, "zip", p).Entries
	for _, e := range c.entries {
		sum := sha256.Sum256([]byte(e[1]))
		if len(c.entries) == 1 && len(got) == 1 { // what is in a gzip file need not have a name
			for _, is := range got {
				got[e[0]] = is
			}
		}
		if got[e[0]] != hex.EncodeToString(sum[:]) {
			t.Errorf("%s is missing or another: %v", e[0], got)
		}
	}
	if n := strings.Count(tool(t, "unzip", "-Z1", p), "\n"); n < len(c.entries) || n > len(c.entries)+1 { // directories may have entries
		t.Errorf("entries %v", got)
	}
}

func bySevenZip(t *testing.T, p string, c content) {
	if c.password != "" {
		if out, err := try(t.Context(), "7z", "t", "-pwrong", p); err == nil {
			t.Errorf("opens with any password: %s", out)
		}
	}
	extracted(t, c, "7z", "x", "-y", "-p"+c.password, p)
}

func byTar(t *testing.T, p string, c content) { extracted(t, c, "tar", "-xf", p) }

// extracted runs a program that extracts an archive into the directory where it
// is run, and compares.
func extracted(t *testing.T, c content, args ...string) {
	t.Helper()
	dir := t.TempDir()
	tool(t, "env", append([]string{"-C", dir}, args...)...)
	for _, e := range c.entries {
		b, err := os.ReadFile(filepath.Join(dir, e[0]))
		if err != nil || string(b) != e[1] {
			t.Errorf("%s: %v, or another content", e[0], err)
		}
	}
}
