package mediaops

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
)

// prepare finds out what the arguments of a conversion depend on. It returns r with it,
// and the fraction of the job's progress that this covers.
func (e *Engine) prepare(ctx context.Context, job *fileops.Job, m *media, t target, r request) (request, float64, error) {
	switch {
	case job.Extra["subtitle_key"] != nil:
		if err := e.addSubtitleFile(ctx, job, m, t, &r); err != nil {
			return r, 0, err
		}
	case r.subtitles == burnSubtitles:
		if err := e.extractSubtitles(ctx, job, m, &r); err != nil {
			return r, 0, err
		}
	}
	if t.kind == video && t.mayCopy(m.videos()[0]) && (r.start > 0 || r.duration > 0) {
		e.cut(ctx, job, m, &r)
	}
	if r.loudness == 0 && r.fadeOut == 0 {
		return r, 0, nil
	}
	const share = 0.3
	if err := e.measure(ctx, job, m, t, &r, share); err != nil {
		return r, 0, err
	}
	if r.fadeOut > 0 && r.fadeIn+r.fadeOut > r.measured+0.01 {
		return r, 0, &fileops.ParamError{Param: "fade_out", Reason: fmt.Sprintf("is too long: the sound takes %.2f seconds", r.measured)}
	}
	return r, share, nil
}

// subtitleFile is the name of the extracted subtitles. It needs no quotes in a filter.
const subtitleFile = "subtitles.ass"

// extractSubtitles writes the subtitles to burn in to a file. The filter that draws them
// would open any kind of file, so it does not get the input.
func (e *Engine) extractSubtitles(ctx context.Context, job *fileops.Job, m *media, r *request) error {
	texts := m.subtitles()
	sortDefault(texts)
	if len(texts) == 0 {
		return &fileops.ParamError{Param: "subtitles", Reason: "cannot be burnt in: the file has none"}
	}
	if !texts[0].isText() {
		return &fileops.ParamError{Param: "subtitles", Reason: "cannot be burnt in: they are pictures, not text"}
	}
	dir, err := job.Dir()
	if err != nil {
		return err
	}
	path := filepath.Join(dir, subtitleFile)
	out := func() node {
		return e.output(path, "ass", e.maxOutput, []node{pick(e.input(m), texts[0])}, opts{"c:s:0": "ass", "map_metadata": -1})
	}
	if err := e.run(ctx, job, pass{out: out, path: path, limit: e.maxOutput, still: true}); err != nil {
		return err
	}
	r.burnt, r.burntTrack = subtitleFile, texts[0]
	return nil
}

// drawSubtitles returns the filters that draw the subtitles. Their times are those of the
// input, so the frames get these times while they pass.
func (r request) drawSubtitles() []step {
	if r.burnt == "" {
		return nil
	}
	return []step{
		{"setpts", fmt.Sprintf("PTS+%s/TB", seconds(r.start))},
		{"subtitles", "filename=" + r.burnt},
		{"setpts", fmt.Sprintf("PTS-%s/TB", seconds(r.start))},
	}
}

// keyFrames reports for each of the given times in seconds whether the video of m has a
// key frame there, so that it can be cut there without encoding it.
func (e *Engine) keyFrames(ctx context.Context, job *fileops.Job, m *media, times ...float64) []bool {
	found := make([]bool, len(times))
	dir, err := job.Dir()
	if err != nil || math.Abs(number(m.start)) > 0.001 { // ffprobe counts from zero, ffmpeg from the start
		return found
	}
	args := []string{"-hide_banner", "-v", "error", "-max_alloc", fmt.Sprint(maxAlloc)}
	opts := e.options(m.source)
	for _, k := range sortedKeys(opts) {
		args = append(args, "-"+k, fmt.Sprint(opts[k]))
	}
	var intervals []string
	for _, at := range times {
		intervals = append(intervals, seconds(at)+"%+#1")
	}
	args = append(args, "-select_streams", fmt.Sprint(m.videos()[0].Index), "-read_intervals", strings.Join(intervals, ","),
		"-show_entries", "packet=pts_time,flags", "-of", "csv=p=0", "file:"+m.path)
	var out bytes.Buffer
	err = e.ffprobe.Run(ctx, engine.Cmd{
		Args: args, Dir: dir, Stdout: &out,
		Limits: e.limits.Or(engine.Limits{CPU: 2 * time.Minute, Memory: memory, FileSize: 1 << 20}),
		Access: engine.Access{Read: []string{filepath.Dir(m.path)}},
	})
	for i, line := range strings.Split(strings.TrimSpace(out.String()), "\n") {
		if at, flags, _ := strings.Cut(line, ","); err == nil && i < len(found) {
			found[i] = strings.HasPrefix(flags, "K") && math.Abs(number(at)-times[i]) < 0.001
		}
	}
	return found
}

// cut finds out whether the requested part of the video of m can be copied exactly. It
// must start and end at key frames: the frames between two of them are not stored in the
// order in which they are shown, unless the codec has no such frames.
func (e *Engine) cut(ctx context.Context, job *fileops.Job, m *media, r *request) {
	v := m.videos()[0]
	total := cmp.Or(v.length(), m.duration)
	fps, variable := v.frameRate()
	toEnd := r.duration == 0 || total > 0 && r.start+r.duration >= total
	var times []float64
	if r.start > 0 {
		times = append(times, r.start)
	}
	if ordered := v.Reordered == 0; !toEnd && !ordered {
		if fps == 0 || variable {
			return
		}
		times = append(times, r.start+r.duration)
		r.frames = int(math.Round(r.duration * fps))
	}
	r.exact = len(times) == 0 || !slices.Contains(e.keyFrames(ctx, job, m, times...), false)
}

// measuredValue is a line of the filter loudnorm.
var measuredValue = regexp.MustCompile(`^\s*"(\w+)" : "([^"]+)"`)

// The largest true peak in dBTP of normalised sound (EBU R 128, section h), and the
// filters that keep it. Peaks between samples show at four times the usual rate.
const (
	maxPeak = -1.0
	limiter = "aresample=192000,alimiter=limit=0.88:level=disabled:latency=1:attack=5:release=50"
)

// A loudness is the result of a measurement by EBU R 128.
type loudness struct {
	integrated, peak float64 // LUFS, dBTP
	seconds          float64
}

// measure decodes the sound tracks and sets the gains and the length of r.
func (e *Engine) measure(ctx context.Context, job *fileops.Job, m *media, t target, r *request, share float64) error {
	tracks := t.soundTracks(m, plan{copies: true})
	if t.kind == audio {
		tracks = m.audios()[:1]
	}
	r.gains = make(map[int]string)
	for i, a := range tracks {
		n := float64(len(tracks))
		l, err := e.loudness(ctx, job, m, t, *r, a, share*float64(i)/n, share*float64(i+1)/n)
		if err != nil {
			return err
		}
		r.measured = l.seconds
		if r.loudness == 0 || l.integrated <= -70 { // silence has no loudness
			continue
		}
		gain := r.loudness - l.integrated
		if r.gains[a.Index] = fmt.Sprintf("volume=%.2fdB", gain); l.peak+gain <= maxPeak {
			continue
		}
		// Limited peaks reduce the loudness, so the gain has to be larger.
		for range 5 {
			r.gains[a.Index] = fmt.Sprintf("volume=%.2fdB,%s", gain, limiter)
			if l, err = e.loudness(ctx, job, m, t, *r, a, share, share); err != nil {
				return err
			}
			if math.Abs(r.loudness-l.integrated) < 0.2 {
				break
			}
			gain += r.loudness - l.integrated
		}
		if r.loudness-l.integrated > 1 {
			return &fileops.ParamError{Param: "loudness", Reason: fmt.Sprintf("is too high for the peaks of this sound; at most %.0f is possible", math.Floor(l.integrated))}
		}
	}
	return nil
}

// loudness measures the sound track a with the channels and the gain of r.
func (e *Engine) loudness(ctx context.Context, job *fileops.Job, m *media, t target, r request, a stream, from, to float64) (l loudness, err error) {
	l.integrated, l.peak = math.Inf(-1), math.Inf(-1)
	r.fadeIn, r.fadeOut = 0, 0
	out := func() node {
		x := r.soundSettings(m, a, plan{})
		filters, _ := x.mixed(a, t)
		filters = append(append(filters, x.filters...), "loudnorm=print_format=json")
		return e.output("-", "null", e.maxOutput, []node{pick(e.input(m, r.window()), a)}, opts{"filter:a:0": strings.Join(filters, ",")})
	}
	info := func(line string) {
		v := measuredValue.FindStringSubmatch(line)
		if v == nil {
			return
		}
		n, err := strconv.ParseFloat(v[2], 64)
		switch {
		case err != nil:
		case v[1] == "input_i":
			l.integrated = n
		case v[1] == "input_tp":
			l.peak = n
		}
	}
	err = e.run(ctx, job, pass{out: out, null: true, limit: e.maxOutput, expected: r.length(m.duration), length: &l.seconds, from: from, to: to, info: info})
	return l, err
}

// unexpected returns the error for a result that differs from the request.
func unexpected(f string, a ...any) error {
	return fileops.Fail(fileops.ErrEngine, fmt.Errorf("unexpected result: "+f, a...), "")
}

// verify fails if the result at path is not what r requests.
func (e *Engine) verify(ctx context.Context, job *fileops.Job, m *media, r request, o outcome, path string) error {
	t := o.target
	if !r.shapes() {
		return nil
	}
	res, err := e.look(ctx, job, path, e.sources[o.to])
	if err != nil {
		return err
	}
	if r.added != nil && len(res.subtitles()) != len(m.heldSubtitles(t, o.plain))+1 {
		return unexpected("%s", plural(len(res.subtitles()), "subtitle track"))
	}
	want, long, frame := m.duration, res.duration, 0.1
	if t.kind == video {
		if err := sameVideo(m, res, r, o); err != nil {
			return err
		}
		v, made := m.videos()[0], res.videos()[0]
		want = cmp.Or(max(0, v.length()), want)
		if d := made.length(); d > 0 {
			long = d
			if made.seconds() == 0 { // Matroska's statistics say when it ends
				long -= number(made.Start)
			}
		}
		frame = o.tolerance(res)
	} else if len(res.audios()) != 1 {
		return unexpected("%d sound tracks", len(res.audios()))
	}
	switch o.to {
	case "mpeg", "aac": // they declare no duration
		return nil
	}
	if want = r.length(want); r.start == 0 && r.duration == 0 || want == 0 {
		return nil
	}
	if long > want+frame || r.added == nil && res.duration > r.length(m.duration)+max(frame, 0.15) || m.declared(o.kept) > 0 && long < want-frame && !o.encoded {
		return unexpected("%.3f seconds instead of %.3f", long, want)
	}
	return nil
}

// sameVideo checks that a result has one video of the expected size, and the sound tracks that its
// format can have.
func sameVideo(m, res *media, r request, o outcome) error {
	t, vs := o.target, res.videos()
	if len(vs) != 1 {
		return unexpected("%d videos", len(vs))
	}
	v := m.videos()[0]
	w, h := v.size()
	if o.encoded {
		ww, hh := t.shape(r).size(v)
		w, h = float64(ww), float64(hh)
	}
	if gw, gh := vs[0].size(); math.Abs(gw-w) > 1 || math.Abs(gh-h) > 1 {
		return unexpected("%g × %g pixels instead of %g × %g", gw, gh, w, h)
	}
	if n := len(t.soundTracks(m, plan{plain: o.plain})); len(res.audios()) != n {
		return unexpected("%d sound tracks instead of %d", len(res.audios()), n)
	}
	return nil
}

// tolerance returns by how many seconds the length of a video may differ: a frame, and what its
// container rounds.
func (o outcome) tolerance(res *media) float64 {
	v, frame := res.videos()[0], 0.04
	if fps, _ := v.frameRate(); fps > 0 {
		frame = 1 / fps
	}
	frame += 0.011
	if o.target.constant && len(res.audios()) > 0 { // the delay of the sound encoder becomes a first frame
		frame += 0.05
	}
	if v.length() == 0 {
		frame = max(frame, 0.15)
	}
	return frame
}

// shapes reports whether r says what the result looks like, apart from its quality.
func (r request) shapes() bool {
	return r.start > 0 || r.duration > 0 || r.width > 0 || r.height > 0 || r.fps > 0 || r.turn > 0 || r.mute || r.audioTrack > 0 || r.added != nil
}

// Bounds of the bit rates in kbit/s with which a recording is made to fit a size.
const (
	leastPicture = 12
	leastSound   = 32
	mostSound    = 128
)

// squeeze makes a video of at most r.maxBytes.
func (e *Engine) squeeze(ctx context.Context, job *fileops.Job, m *media, t target, r request, o outcome, path string) error {
	length := r.length(m.duration)
	switch {
	case length == 0:
		return &fileops.ParamError{Param: "max_bytes", Reason: "cannot be kept: the duration of the file is unknown"}
	case !t.lossy():
		return &fileops.ParamError{Param: "max_bytes", Reason: "cannot be combined with lossless sound"}
	}
	total := float64(r.maxBytes) * 8 / 1000 / length * 0.97 // kbit/s; the rest is for the container
	tracks := float64(len(t.soundTracks(m, plan{})))
	if r.bitRate == 0 && tracks > 0 {
		r.bitRate = int(min(mostSound, max(leastSound, total/4/tracks)))
	}
	o.encoded = true
	s := squeezer{e: e, job: job, m: m, t: t, r: r, o: o, path: path, length: length}
	search := s.byQuality
	if twoPasses[t.video] {
		search = s.inTwoPasses
	}
	fits, err := search(ctx, total-tracks*float64(r.bitRate))
	if err != nil {
		return err
	}
	if !fits {
		return &fileops.ParamError{Param: "max_bytes", Reason: fmt.Sprintf("is too small for %.0f seconds of video; choose a larger one, a smaller picture or a part of it", length)}
	}
	if err := e.verify(ctx, job, m, r, o, path); err != nil {
		return err
	}
	o.warn(job, m)
	return nil
}

// A squeezer encodes a video again and again until it fits a size.
type squeezer struct {
	e      *Engine
	job    *fileops.Job
	m      *media
	t      target
	r      request
	o      outcome
	path   string
	length float64 // seconds
}

// encode writes the video and returns its size, or a lower bound of a size that is much
// too large.
func (s *squeezer) encode(ctx context.Context, from float64) (size int64, err error) {
	limit := s.r.maxBytes * 3 / 2
	err = s.e.run(ctx, s.job, pass{
		out: func() node { return s.e.movie(s.m, s.t, s.r, plan{}, s.path, limit) }, path: s.path, limit: limit,
		expected: s.length, declared: s.r.declared(s.m, s.o.kept), from: from, to: 1,
	})
	if errors.Is(err, errFull) {
		return limit, nil
	}
	if err != nil {
		return 0, err
	}
	st, err := os.Stat(s.path)
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// inTwoPasses encodes the picture with the given bit rate in kbit/s, and with lower ones
// until the file fits.
func (s *squeezer) inTwoPasses(ctx context.Context, rate float64) (fits bool, err error) {
	s.r.twoPass = true
	for attempt := 0; attempt < 4 && rate >= leastPicture; attempt++ {
		s.r.videoRate = int(rate)
		if attempt == 0 {
			first := func() node {
				r := s.r
				r.firstPass = true
				v := s.m.videos()[0]
				o := opts{"an": "", "sn": ""}
				s.e.encodePicture(o, s.t, r)
				return s.e.output("-", "null", s.e.maxOutput, []node{s.e.pictures(pick(s.e.input(s.m, r.window()), v), v, s.t.shape(r))}, o)
			}
			if err := s.e.run(ctx, s.job, pass{out: first, null: true, limit: s.e.maxOutput, expected: s.length, to: 0.4}); err != nil {
				return false, err
			}
		}
		size, err := s.encode(ctx, 0.4)
		if err != nil || size <= s.r.maxBytes {
			return err == nil, err
		}
		rate *= max(0.5, float64(s.r.maxBytes)/float64(size)*0.96)
	}
	return false, nil
}

// byQuality encodes the picture with falling quality until the file fits. It is for
// encoders whose control of the bit rate fails at low rates: in ffmpeg 5.1 those of MPEG
// 1 to 4 crash, and SVT-AV1 exceeds the rate threefold.
func (s *squeezer) byQuality(ctx context.Context, _ float64) (fits bool, err error) {
	s.r.quantiser = 6
	most := 31
	if s.t.video == "libsvtav1" {
		s.r.quantiser, most = 38, maxCRF[s.t.video]
	}
	for {
		size, err := s.encode(ctx, 0)
		if err != nil || size <= s.r.maxBytes || s.r.quantiser >= most {
			return err == nil && size <= s.r.maxBytes, err
		}
		over := float64(size) / float64(s.r.maxBytes)
		next := float64(s.r.quantiser) * over // the size is about inverse to the quantiser
		if most > 31 {
			next = float64(s.r.quantiser) + 6*math.Log2(over) // its scale is logarithmic
		}
		s.r.quantiser = min(most, int(next)+1)
	}
}
