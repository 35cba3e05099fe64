package mediaops

import (
	"context"
	"errors"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// Loading ffmpeg takes as long as encoding ten seconds of sound, and ffprobe is no
// smaller. For sound, ffmpeg therefore starts at once, with the arguments for the usual
// content of such a file. Before it starts encoding, it prints a description of the
// input. If the description is understood and leads to the same arguments, the run
// continues. If it leads to other arguments, ffmpeg is restarted with these. In every
// other case, and after every failure, the normal way with ffprobe is used.

// errOtherwise stops a run whose arguments do not fit its input.
var errOtherwise = errors.New("the input is not as it was expected")

// beforeHeard is the timeout for ffmpeg's description of the input.
const beforeHeard = time.Minute

// A hearing collects ffmpeg's description of the input during the start of a run.
type hearing struct {
	said announcement

	// agree reports whether the run's arguments fit the described input, and returns the
	// expected seconds of output.
	agree func(*media) (seconds float64, ok bool)

	decided chan struct{} // closed when agreed and seconds are set
	agreed  bool
	seconds float64

	declared float64 // see pass
}

// quickly converts to sound without ffprobe, if possible. done reports whether it did.
// An error is final.
func (e *Engine) quickly(ctx context.Context, job *fileops.Job, t target, r request, path string) (done bool, err error) {
	m, done, err := e.atOnce(ctx, job, t, r, path)
	if m == nil || err != nil {
		return done, err
	}
	err = e.transcode(ctx, job, m, t, r, path)
	if err == nil || ctx.Err() != nil || errors.Is(err, fileops.ErrLimit) {
		return true, err
	}
	job.Log.Debug("running ffprobe after all", "err", err.Error())
	return false, nil
}

// atOnce converts to sound without ffprobe. done reports whether it did. If not, m is
// the input if ffmpeg's description was sufficient, else nil.
func (e *Engine) atOnce(ctx context.Context, job *fileops.Job, t target, r request, path string) (m *media, done bool, err error) {
	guess, err := e.guess(job, t)
	if guess == nil || r.start > 0 || err != nil {
		return nil, false, err
	}
	out := func(m *media) func() node {
		return func() node { return e.sound(m, t, r, plan{copies: true}, path) }
	}
	begun, err := e.arguments(out(guess))
	if err != nil {
		return nil, false, err
	}
	h := &hearing{decided: make(chan struct{})}
	h.agree = func(found *media) (float64, bool) {
		found.file, found.path, found.source = guess.file, guess.path, guess.source
		a, err := found.audio()
		if err != nil || !t.lossy() && a.bits() > 0 { // the description does not contain the resolution
			return 0, false
		}
		if found.duration > e.maxDuration || slices.ContainsFunc(found.streams, func(s stream) bool { return e.checkPixels(s.Width, s.Height) != nil }) {
			return 0, false
		}
		m = found
		h.declared = r.declared(found, found.audios()[:1])
		right, err := e.arguments(out(found))
		return r.length(found.duration), err == nil && slices.Equal(right, begun)
	}
	err = e.run(ctx, job, pass{out: out(guess), path: path, limit: e.maxOutput, to: 1, heard: h})
	switch {
	case err == nil:
		o := e.outcome(m, t, r, plan{copies: true})
		o.to = format.Format(job.Params.Get("convert_to"))
		o.warn(job, m)
		return nil, true, nil
	case errors.Is(err, errFull):
		return nil, false, e.tooLarge()
	case ctx.Err() != nil:
		return nil, false, err
	case errors.Is(err, errOtherwise):
		return m, false, nil
	}
	job.Log.Debug("running ffprobe first", "err", err.Error())
	return nil, false, nil
}

// usualSound maps formats to their usual sound codec.
var usualSound = map[format.Format]string{
	format.MP4: "aac", format.MOV: "aac", format.M4V: "aac", format.ThGP: "aac", format.M4A: "aac",
	format.MKV: "aac", format.WebM: "opus", format.TS: "aac", format.FLV: "aac", format.AVI: "mp3", format.WMV: "wmav2",
	format.MP3: "mp3", format.AAC: "aac", format.WAV: "pcm_s16le", format.AIFF: "pcm_s16be", format.FLAC: "flac",
	format.OGG: "vorbis", format.Opus: "opus", format.WMA: "wmav2", format.AMR: "amr_nb",
}

// guess returns the usual form of the job's input, or nil.
func (e *Engine) guess(job *fileops.Job, t target) (*media, error) {
	f := job.Input()
	src, err := e.source(f)
	if err != nil {
		return nil, err
	}
	a := stream{Codec: usualSound[f.Format()], Type: "audio", SampleRate: "44100", Channels: 2}
	switch {
	case f.Format() == format.AMR:
		a.SampleRate, a.Channels = "8000", 1
	case f.Format() == format.Opus:
		a.SampleRate = "48000"
	}
	if a.Codec == "" || !t.lossy() && a.bits() > 0 {
		return nil, nil
	}
	if f.Format() == format.AVI { // only ffprobe reports what the header counts, and so whether the file is complete
		return nil, nil
	}
	if f.Format().Family() != format.Audio {
		a.Index = 1
	}
	path, err := job.Path(f)
	if err != nil {
		return nil, err
	}
	return &media{file: f, path: path, source: src, streams: []stream{a}}, nil
}

// An announcement is ffmpeg's description of its first input at the log level "info".
type announcement struct {
	media media
	odd   bool // a part was not understood
}

var (
	saidLevel    = regexp.MustCompile(`^(?:\[[^\]]* @ [0-9a-fx]+\] )*\[(info|warning|error|fatal|panic)\] `)
	saidDuration = regexp.MustCompile(`^  Duration: (\d+):(\d\d):(\d\d\.\d+),`)
	saidStream   = regexp.MustCompile(`^  Stream #0:(\d+)(?:\[0x[0-9a-f]+\])?(?:\(\w+\))?: (Video|Audio|Subtitle|Data|Attachment): (\w+)(.*)$`)
	saidTag      = regexp.MustCompile(`^(    |      )(\w+) *: (.+)$`)
	saidSound    = regexp.MustCompile(`^[^,]*, (\d+) Hz, ([^,]+), \w+(?:,| |$)`)
	saidSize     = regexp.MustCompile(`, (\d+)x(\d+)\b`)
	protected    = regexp.MustCompile(`\((encv|enca|drmi|drms) / `)
)

// layouts maps the usual channel layouts to their number of channels.
var layouts = map[string]int{"mono": 1, "stereo": 2, "downmix": 2, "5.1": 6, "5.1(side)": 6, "7.1": 8}

// add parses a line without its level. end reports that the description is complete.
func (a *announcement) add(text string) (end bool) {
	switch {
	case strings.HasPrefix(text, "Stream mapping:"), strings.HasPrefix(text, "Output #"): // their order varies
		return true
	case strings.HasPrefix(text, "  Duration: "):
		d := saidDuration.FindStringSubmatch(text)
		if d == nil || a.media.duration > 0 { // "N/A", or the duration of another input
			a.odd = a.odd || d == nil
			break
		}
		a.media.duration = 3600*number(d[1]) + 60*number(d[2]) + number(d[3])
	case strings.HasPrefix(text, "    Chapter #0:"):
		a.media.chapters++
	case strings.HasPrefix(text, "  Stream #0:"):
		s, ok := saidOf(text)
		a.odd = a.odd || !ok || slices.ContainsFunc(a.media.streams, func(x stream) bool { return x.Index == s.Index })
		a.media.streams = append(a.media.streams, s)
	default:
		a.addTag(text)
	}
	return false
}

// addTag parses the line of a tag of the file or, because Ogg stores its tags there, of
// its first stream.
func (a *announcement) addTag(text string) {
	m := saidTag.FindStringSubmatch(text)
	if len(m) == 0 || len(m[1]) == 6 && len(a.media.streams) != 1 {
		return
	}
	if _, ok := a.media.tags[strings.ToLower(m[2])]; !ok {
		a.media.addTags(map[string]string{m[2]: m[3]})
	}
}

// saidOf parses the line of a stream.
func saidOf(text string) (s stream, ok bool) {
	m := saidStream.FindStringSubmatch(text)
	if len(m) == 0 || m[3] == "none" || m[3] == "unknown" || protected.MatchString(text) {
		return s, false
	}
	index, err := strconv.Atoi(m[1])
	s = stream{Index: index, Type: strings.ToLower(m[2]), Codec: m[3], Disposition: map[string]int{}}
	for flag, said := range map[string]string{"default": " (default)", "attached_pic": " (attached pic)"} {
		if strings.Contains(m[4], said) {
			s.Disposition[flag] = 1
		}
	}
	switch s.Type {
	case "audio":
		d := saidSound.FindStringSubmatch(m[4])
		if d == nil {
			return s, false
		}
		s.SampleRate, s.Channels = d[1], layouts[d[2]]
		return s, err == nil && s.rate() > 0 && s.Channels > 0
	case "video":
		for _, d := range saidSize.FindAllStringSubmatch(m[4], -1) {
			s.Width, s.Height = int(number(d[1])), int(number(d[2]))
		}
	}
	return s, err == nil
}

// found returns the input, or nil if the description was not sufficient.
func (a *announcement) found() *media {
	if a.odd || a.media.duration == 0 {
		return nil
	}
	return &a.media
}

// line parses a line of standard error and returns it if it is a complaint. It fails
// with errOtherwise if the run's arguments do not fit the input.
func (h *hearing) line(line string) (complaint string, err error) {
	m := saidLevel.FindStringSubmatchIndex(line)
	if m == nil {
		return "", nil // continuation of a multi-line message
	}
	decided := h.isDecided()
	switch level := line[m[2]:m[3]]; {
	case level == "warning":
	case level != "info":
		h.said.odd = true
		return line, nil
	case !decided && h.said.add(line[m[1]:]):
		if found := h.said.found(); found != nil {
			h.seconds, h.agreed = h.agree(found)
		}
		close(h.decided)
		if !h.agreed {
			return "", errOtherwise
		}
	}
	return "", nil
}

func (h *hearing) isDecided() bool {
	select {
	case <-h.decided:
		return true
	default:
		return false
	}
}
