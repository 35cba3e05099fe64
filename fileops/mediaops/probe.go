package mediaops

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
)

const (
	maxAlloc   = 1 << 30
	maxStreams = 32
	memory     = 4 << 30 // address space of a process
)

// A media is an input and ffprobe's description of it.
type media struct {
	file   *fileops.File
	path   string
	source source

	decoder string // of the video; "" means ffmpeg's choice

	streams  []stream
	excluded int               // streams that were removed from streams, see only
	tags     map[string]string // of the file; keys in lower case
	chapters int
	start    string  // time of the first frame or sound in seconds, as ffprobe prints it
	duration float64 // seconds, 0 if unknown
	bitRate  float64 // bit/s of the whole file, 0 if unknown
}

// A stream is one of the streams of a media file.
type stream struct {
	Index         int
	Codec         string `json:"codec_name"`
	Type          string `json:"codec_type"`
	Tag           string `json:"codec_tag_string"`
	Profile       string
	TimeBase      string `json:"time_base"`
	Extradata     string `json:"extradata_hash"` // of the decoder's initialisation data
	Width, Height int
	PixFmt        string `json:"pix_fmt"`
	SAR           string `json:"sample_aspect_ratio"`
	FieldOrder    string `json:"field_order"`
	Reordered     int    `json:"has_b_frames"` // by how many frames the order of storage differs from that of display
	Transfer      string `json:"color_transfer"`
	RFrameRate    string `json:"r_frame_rate"`
	AvgFrameRate  string `json:"avg_frame_rate"`
	Frames        string `json:"nb_frames"` // by the header
	SampleRate    string `json:"sample_rate"`
	Channels      int
	BitsPerSample int    `json:"bits_per_sample"`
	BitsPerRaw    string `json:"bits_per_raw_sample"`
	BitRateText   string `json:"bit_rate"`
	DurationText  string `json:"duration"`
	Start         string `json:"start_time"`
	Disposition   map[string]int
	Tags          map[string]string
	SideData      []struct {
		Type     string `json:"side_data_type"`
		Rotation float64
	} `json:"side_data_list"`

	turn int // degrees by which a filter turns the picture clockwise
}

// cover reports whether s is a cover picture of sound, not a video.
func (s stream) cover() bool { return s.Disposition["attached_pic"] != 0 }

// sized reports whether the size of the picture is known. If not, none of it could be decoded, and
// ffmpeg cannot write it.
func (s stream) sized() bool { return s.Width > 0 && s.Height > 0 }

func (s stream) seconds() float64 { return number(s.DurationText) }

// length returns the seconds of s, 0 if unknown.
func (s stream) length() float64 {
	if n := s.seconds(); n > 0 {
		return n
	}
	var h, m int
	var sec float64
	if n, _ := fmt.Sscanf(s.Tags["DURATION"], "%d:%d:%f", &h, &m, &sec); n == 3 { // Matroska's statistics
		return float64(h)*3600 + float64(m)*60 + sec
	}
	return 0
}

// counted returns the seconds by the header of a stream in an AVI file, 0 if unknown. The duration
// that ffprobe reports is that of the part which is there.
func (s stream) counted() float64 { return number(s.Frames) * ratio(s.TimeBase, '/') }

func (s stream) rate() int { return int(number(s.SampleRate)) }

// bitRate returns bit/s, or 0 if unknown.
func (s stream) bitRate() float64 {
	if n := number(s.BitRateText); n > 0 {
		return n
	}
	return number(s.Tags["BPS"]) // Matroska's statistics
}

// bits returns the bits per sample of s if its codec is lossless, else 0.
func (s stream) bits() int {
	lossless := strings.HasPrefix(s.Codec, "pcm_") && s.Codec != "pcm_alaw" && s.Codec != "pcm_mulaw"
	switch s.Codec {
	case "flac", "alac", "wavpack", "ape", "tta", "truehd", "wmalossless":
		lossless = true
	}
	if !lossless {
		return 0
	}
	if n := int(number(s.BitsPerRaw)); n > 0 {
		return n
	}
	if s.BitsPerSample > 0 {
		return s.BitsPerSample
	}
	return 16
}

// turned reports whether the picture is stored rotated, and whether that exchanges width
// and height.
func (s stream) turned() (rotated, sideways bool) {
	for _, d := range s.SideData {
		if r := math.Mod(math.Abs(d.Rotation), 360); r != 0 {
			return true, math.Mod(r+45, 180) >= 90
		}
	}
	return false, false
}

// hdr reports whether s has the transfer function of HDR10 or HLG.
func (s stream) hdr() bool { return s.Transfer == "smpte2084" || s.Transfer == "arib-std-b67" }

// dolbyVision reports whether s has a Dolby Vision configuration. Some of its profiles
// have no usual transfer function.
func (s stream) dolbyVision() bool {
	for _, d := range s.SideData {
		if strings.HasPrefix(d.Type, "DOVI") {
			return true
		}
	}
	return false
}

// frameRate returns the average frames per second, or 0 if unknown, and whether the
// frame rate is variable.
func (s stream) frameRate() (fps float64, variable bool) {
	avg, r := ratio(s.AvgFrameRate, '/'), ratio(s.RFrameRate, '/')
	if avg <= 0 || avg > 1000 {
		avg = r
	}
	return avg, avg > 0 && math.Abs(r-avg) > 0.02*avg
}

// size returns the display size of the picture: upright, with square pixels.
func (s stream) size() (w, h float64) {
	w, h = float64(s.Width), float64(s.Height)
	if sar := ratio(s.SAR, ':'); sar > 1 && sar < 10 {
		w *= sar
	} else if sar > 0.1 && sar < 1 {
		h /= sar
	}
	if _, sideways := s.turned(); sideways != (s.turn%180 != 0) {
		w, h = h, w
	}
	return w, h
}

func number(s string) float64 {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) || n < 0 {
		return 0
	}
	return n
}

// ratio parses "30000/1001" or "4:3". It returns 0 for anything else.
func ratio(s string, sep byte) float64 {
	a, b, _ := strings.Cut(s, string(sep))
	if d := number(b); d > 0 {
		return number(a) / d
	}
	return 0
}

// options returns the options that restrict how ffmpeg and ffprobe open an input.
func (e *Engine) options(s source) map[string]any {
	o := map[string]any{
		"protocol_whitelist": "file,pipe",
		"format_whitelist":   strings.Join(s.demuxers, ","),
		"max_pixels":         e.maxPixels + e.maxPixels/8 + 1<<16, // of decoded frames, which are rounded up to whole blocks
		"max_streams":        maxStreams,
	}
	if len(s.demuxers) == 1 {
		o["f"] = s.demuxers[0] // unambiguous
	}
	return o
}

// probe runs ffprobe on an input.
func (e *Engine) probe(ctx context.Context, job *fileops.Job, f *fileops.File) (*media, error) {
	src, err := e.source(f)
	if err != nil {
		return nil, err
	}
	path, err := job.Path(f)
	if err != nil {
		return nil, err
	}
	m, err := e.look(ctx, job, path, src)
	if err != nil {
		return nil, err
	}
	m.file = f
	if err := e.checkDuration(fmt.Sprintf("the recording takes %.0f seconds,", m.duration), m.duration); err != nil {
		return nil, err
	}
	if v := m.videos(); len(v) > 0 && v[0].transparent() && e.decoders[alphaDecoders[v[0].Codec]] {
		m.decoder = alphaDecoders[v[0].Codec]
	}
	if len(m.videos())+len(m.audios()) == 0 {
		return nil, fileops.Fail(fileops.ErrUnsupportedInput, nil, "the file contains neither sound nor video")
	}
	return m, nil
}

// look runs ffprobe on a file that only the demuxers of src may read.
func (e *Engine) look(ctx context.Context, job *fileops.Job, path string, src source) (*media, error) {
	dir, err := job.Dir()
	if err != nil {
		return nil, err
	}
	args := []string{"-hide_banner", "-v", "error", "-max_alloc", fmt.Sprint(maxAlloc)}
	opts := e.options(src)
	for _, k := range sortedKeys(opts) {
		args = append(args, "-"+k, fmt.Sprint(opts[k]))
	}
	args = append(args, "-show_streams", "-show_data_hash", "MD5", "-show_format", "-show_chapters", "-of", "json=compact=1", "file:"+path)
	var out bytes.Buffer
	tooLarge := false
	err = e.ffprobe.Run(ctx, engine.Cmd{
		Args: args, Dir: dir, Stdout: &out,
		// ffprobe then continues without the size of the picture.
		OnLine: func(line string) { tooLarge = tooLarge || strings.Contains(line, "max pixel count") },
		Limits: e.limits.Or(engine.Limits{CPU: 2 * time.Minute, Memory: memory, FileSize: 1 << 20}),
		Access: engine.Access{Read: []string{filepath.Dir(path)}},
	})
	if err != nil {
		return nil, e.failure(job, err, fileops.ErrCorruptInput)
	}
	if tooLarge {
		return nil, fileops.Fail(fileops.ErrLimit, nil, "the picture has more than %s; make it smaller first", e.pixels())
	}
	var answer struct {
		Streams  []stream
		Chapters []struct{}
		Format   struct {
			Duration string
			Start    string `json:"start_time"`
			BitRate  string `json:"bit_rate"`
			Tags     map[string]string
		}
	}
	if err := json.Unmarshal(out.Bytes(), &answer); err != nil {
		return nil, fileops.Fail(fileops.ErrEngine, err, "")
	}
	m := &media{path: path, source: src, streams: answer.Streams, chapters: len(answer.Chapters)}
	m.addTags(answer.Format.Tags)
	if a := m.audios(); len(a) > 0 && slices.Contains(src.demuxers, "ogg") {
		m.addTags(a[0].Tags) // Ogg stores its tags in the stream
	}
	m.duration, m.bitRate = number(answer.Format.Duration), number(answer.Format.BitRate)
	m.start = answer.Format.Start
	for _, s := range m.streams {
		if !s.cover() {
			m.duration = max(m.duration, s.seconds())
		}
		if err := e.checkPixels(s.Width, s.Height); err != nil {
			return nil, err
		}
		switch s.Tag {
		case "encv", "enca", "drmi", "drms":
			return nil, fileops.Fail(fileops.ErrUnsupportedInput, nil, "the file is protected by digital rights management and cannot be converted")
		}
	}
	return m, nil
}

// addTags adds tags of the whole file.
func (m *media) addTags(tags map[string]string) {
	if m.tags == nil {
		m.tags = map[string]string{}
	}
	for key, value := range tags {
		m.tags[strings.ToLower(key)] = value
	}
}

// declared returns the seconds of streams of m by the record of its container, or 0 if
// there is none or if ffmpeg estimates it.
func (m *media) declared(streams []stream) float64 {
	switch m.source.demuxers[0] {
	case "mpeg", "mpegts", "aac", "amr", "gif":
		return 0
	case "mp3":
		if !hasFrameCount(m.file) {
			return 0
		}
	}
	longest, timed := 0.0, 0
	for _, s := range streams {
		if s.Type != "audio" && s.Type != "video" || s.cover() {
			continue
		}
		d := s.length()
		switch m.source.demuxers[0] {
		case "avi":
			d = max(d, s.counted())
		case "asf":
			d = max(d, truncatedASF(m.file))
		}
		if d == 0 {
			longest = 0
			break
		}
		longest = max(longest, d)
	}
	if longest > 0 {
		return longest
	}
	for _, s := range m.streams {
		if !s.cover() && s.Type != "attachment" {
			timed++
		}
	}
	whole := m.source.demuxers[0] != "flv" || endsWithTag(m.file)
	if timed+m.excluded > len(streams) && whole { // the record may be about another stream
		return 0
	}
	return m.duration
}

// truncatedASF returns the seconds by the header of an ASF file (wmv, wma) that is shorter than the
// header says, else 0. ffprobe does not report them (Advanced Systems Format 01.20.03, 3.2).
func truncatedASF(f *fileops.File) float64 {
	properties := []byte{0xA1, 0xDC, 0xAB, 0x8C, 0x47, 0xA9, 0xCF, 0x11, 0x8E, 0xE4, 0x00, 0xC0, 0x0C, 0x20, 0x53, 0x65}
	head := make([]byte, 64<<10)
	n, err := f.Reader().ReadAt(head, 0)
	if err != nil && !errors.Is(err, io.EOF) {
		return 0
	}
	at := bytes.Index(head[:n], properties)
	if at < 0 || n-at < 92 {
		return 0
	}
	p := head[at:]
	size, duration, preroll := binary.LittleEndian.Uint64(p[40:]), binary.LittleEndian.Uint64(p[64:]), binary.LittleEndian.Uint64(p[80:])
	broadcast := p[88]&1 != 0 // then the fields are invalid
	if broadcast || size <= uint64(f.Size()) || duration > 1<<53 || preroll > 1<<32 {
		return 0
	}
	return max(0, float64(duration)/1e7-float64(preroll)/1e3)
}

// endsWithTag reports whether an FLV file ends with a complete tag, which repeats its
// size after its content. A file that is cut off does not.
func endsWithTag(f *fileops.File) bool {
	const header = 11
	r := f.Reader()
	var size [4]byte
	var tag [4]byte
	if _, err := r.ReadAt(size[:], f.Size()-4); err != nil {
		return false
	}
	n := binary.BigEndian.Uint32(size[:])
	if _, err := r.ReadAt(tag[:], f.Size()-4-int64(n)); err != nil {
		return false
	}
	return n >= header && binary.BigEndian.Uint32(tag[:])&0xffffff == n-header
}

// hasFrameCount reports whether the first frame of an MP3 file counts the others, with a
// header by Xing, LAME or Fraunhofer. Without it, the duration is an estimate.
func hasFrameCount(f *fileops.File) bool {
	head := make([]byte, 10)
	at := int64(0)
	if _, err := f.Reader().ReadAt(head, 0); err == nil && string(head[:3]) == "ID3" {
		at = 10 + int64(head[6])<<21 + int64(head[7])<<14 + int64(head[8])<<7 + int64(head[9])
	}
	frame := make([]byte, 256)
	n, _ := f.Reader().ReadAt(frame, at)
	return slices.ContainsFunc([]string{"Xing", "Info", "VBRI"}, func(mark string) bool { return bytes.Contains(frame[:n], []byte(mark)) })
}

func (m *media) of(kind string, ok func(stream) bool) []stream {
	var out []stream
	for _, s := range m.streams {
		if s.Type == kind && ok(s) {
			out = append(out, s)
		}
	}
	return out
}

// videos returns the decodable video streams, the default one first, without cover
// pictures.
func (m *media) videos() []stream {
	v := m.of("video", func(s stream) bool {
		return !s.cover() && s.Codec != "" && s.Codec != "unknown" && s.sized()
	})
	sortDefault(v)
	return v
}

// audios returns the decodable sound tracks, the default one first.
func (m *media) audios() []stream {
	a := m.of("audio", stream.sounds)
	sortDefault(a)
	return a
}

// sounds reports whether the sound track s can be decoded.
func (s stream) sounds() bool {
	return s.Codec != "" && s.Codec != "unknown" && s.Channels > 0 && s.rate() > 0
}

// covers returns the pictures that can be copied as a cover of another file.
func (m *media) covers() []stream {
	return m.of("video", func(s stream) bool { return s.cover() && (s.Codec == "mjpeg" || s.Codec == "png") })
}

func (m *media) subtitles() []stream {
	return m.of("subtitle", func(s stream) bool { return s.Codec != "" })
}

func sortDefault(s []stream) {
	slices.SortStableFunc(s, func(a, b stream) int { return b.Disposition["default"] - a.Disposition["default"] })
}

// video returns the video stream to use.
func (m *media) video() (stream, error) {
	if v := m.videos(); len(v) > 0 {
		return v[0], nil
	}
	return stream{}, fileops.Fail(fileops.ErrUnsupportedInput, nil, "the file has no video stream, only sound")
}

// audio returns the sound track to use.
func (m *media) audio() (stream, error) {
	if a := m.audios(); len(a) > 0 {
		return a[0], nil
	}
	return stream{}, fileops.Fail(fileops.ErrUnsupportedInput, nil, "the file has no audio stream")
}

// own returns the target that keeps the format of the job's input, and the input.
func (e *Engine) own(ctx context.Context, job *fileops.Job) (target, *media, error) {
	t, err := e.target(job.Input().Format())
	if err != nil {
		return t, nil, err
	}
	m, err := e.probe(ctx, job, job.Input())
	return t, m, err
}
