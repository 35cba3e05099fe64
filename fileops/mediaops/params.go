package mediaops

import (
	"fmt"
	"image/color"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/colour"
)

// Values of the parameter fit, as for pictures.
const (
	fitInside  = "inside"
	fitCover   = "cover"
	fitContain = "contain"
	fitFill    = "fill"
)

// Values of the parameter subtitles.
const (
	keepSubtitles = "keep"
	burnSubtitles = "burn"
	dropSubtitles = "drop"
)

// A choice is a codec that a request can select, and its encoder.
type choice struct{ codec, encoder string }

func encoderOf(choices []choice, codec string) string {
	for _, c := range choices {
		if c.codec == codec {
			return c.encoder
		}
	}
	return ""
}

func codecs(choices []choice) (names []string) {
	for _, c := range choices {
		names = append(names, c.codec)
	}
	return names
}

// maxCRF maps encoders with a constant rate factor to its largest value. It is read-only.
var maxCRF = map[string]int{"libx264": 51, "libx265": 51, "libvpx": 63, "libvpx-vp9": 63, "libaom-av1": 63, "libsvtav1": 63}

// sampleRates maps encoders to the sampling rates that they accept, in Hz; encoders that
// are not listed accept every rate. libopus always decodes to 48 kHz, so it has none. It
// is read-only.
var sampleRates = map[string][]int{
	"libmp3lame": {8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000},
	"aac":        {8000, 11025, 12000, 16000, 22050, 24000, 32000, 44100, 48000, 64000, 88200, 96000},
	"wmav2":      {8000, 11025, 16000, 22050, 32000, 44100, 48000},
	"mp2":        {16000, 22050, 24000, 32000, 44100, 48000},
	"libtwolame": {16000, 22050, 24000, 32000, 44100, 48000},
	"ac3":        {32000, 44100, 48000},
	"libopus":    {48000},
}

// parameters returns the parameters of a conversion from one format to another, without
// convert_to, and the names of those that change a file of the same format.
func (e *Engine) parameters(from, to format.Format) (params fileops.Schema, changes []string) {
	t := e.targets[to]
	sound := from != format.GIF
	switch t.kind {
	case audio:
		params = append(soundParams(t, t.audios), trimParams()...)
		params = append(params,
			fileops.Param{Name: "fade_in", Type: fileops.Number, Min: 0.01, Max: 3600, Doc: "Seconds at the start in which the sound rises from silence."},
			fileops.Param{Name: "fade_out", Type: fileops.Number, Min: 0.01, Max: 3600, Doc: "Seconds at the end in which the sound falls to silence."},
		)
	case video:
		if sound {
			params = append(params, soundParams(t, t.audios)...)
		}
		params = append(params, e.videoParams(t)...)
		if sound {
			params = append(params, fileops.Param{Name: "mute", Type: fileops.Boolean, Default: false, Doc: "Leaves out the sound."})
		}
		if sound { // not for pictures
			params = append(params, e.subtitleParams(from, t)...)
		}
		params = append(params, trimParams()...)
	case animation:
		params = append(sizeParams(), fileops.Param{Name: "fps", Type: fileops.Number, Min: 1, Max: 50, Doc: "Frames per second; without it, those of the input, at most 12.5."})
		params = append(params, trimParams()...)
	case still:
		params = append(sizeParams(), fileops.Param{Name: "time", Type: fileops.Number, Min: 0, Max: 360000, Doc: "Where to take the picture, in seconds; without it, one that is typical of the video."})
	}
	if t.kind != audio {
		params = append(params, colour.Param("background", "Colour behind transparent parts and of borders, as #rrggbb or a name of CSS 2.1; without it, white where the format has no transparency, and black for borders."))
	}
	if from == to {
		for _, p := range params {
			switch p.Name {
			case "fit", "background", "subtitle_track", "subtitle_language": // these need others
			default:
				changes = append(changes, p.Name)
			}
		}
		// Those that are compatible with every other parameter come first.
		slices.SortStableFunc(changes, func(a, b string) int { return rank(a) - rank(b) })
	}
	return params, changes
}

func rank(param string) int {
	switch param {
	case "fps":
		return 0
	case "channels":
		return 1
	}
	return 2
}

// subtitleParams returns the parameters of subtitles: of those that files of a format may
// have, and of those that a file adds.
func (e *Engine) subtitleParams(from format.Format, t target) (params fileops.Schema) {
	added := e.subtitleFileParams(t)
	const doc = "What happens to subtitles: they stay tracks where the format has them (keep), become part of the picture (burn), or are left out (drop)." +
		" With subtitle_key, burn draws that file, and drop replaces the tracks of the video."
	switch {
	case holdsSubtitles(from):
		params = append(params,
			fileops.Param{Name: "subtitles", Default: keepSubtitles, Enum: e.subtitleModes(), Doc: doc},
			fileops.Param{Name: "subtitle_track", Type: fileops.Integer, Min: 1, Max: maxStreams, Doc: "Which subtitle track to keep or to burn in, from 1; without it, all are kept, or the default one is burnt in."},
		)
	case len(added) > 0 && e.burns:
		params = append(params, fileops.Param{Name: "subtitles", Default: keepSubtitles, Enum: []string{keepSubtitles, burnSubtitles}, Doc: doc})
	}
	return append(params, added...)
}

// holdsSubtitles reports whether files of a format may have subtitles in text.
func holdsSubtitles(f format.Format) bool {
	switch f {
	case format.MP4, format.M4V, format.MOV, format.MKV, format.WebM:
		return true
	}
	return false
}

// subtitleModes returns the values of the parameter subtitles.
func (e *Engine) subtitleModes() []string {
	if e.burns {
		return []string{keepSubtitles, burnSubtitles, dropSubtitles}
	}
	return []string{keepSubtitles, dropSubtitles}
}

func trimParams() fileops.Schema {
	return fileops.Schema{
		{Name: "start", Type: fileops.Number, Min: 0, Max: 360000, Doc: "Start in seconds."},
		{Name: "duration", Type: fileops.Number, Min: 0.01, Max: 360000, OneOf: "length", Doc: "How much to take, in seconds; without it, up to the end."},
		{Name: "end", Type: fileops.Number, Min: 0.01, Max: 360000, OneOf: "length", Doc: "Where to stop, in seconds from the start of the input."},
	}
}

func sizeParams() fileops.Schema {
	return fileops.Schema{
		{Name: "width", Type: fileops.Integer, Min: 16, Max: 8192, Doc: "Width in pixels; see fit."},
		{Name: "height", Type: fileops.Integer, Min: 16, Max: 8192, Doc: "Height in pixels; see fit."},
		{
			Name: "fit", Default: fitInside, Enum: []string{fitInside, fitCover, fitContain, fitFill},
			Aliases: map[string]string{"exact": fitFill, "crop": fitCover, "pad": fitContain},
			Doc:     "How the picture fits width and height: at most this size, never enlarged (inside), or exactly this size by cropping (cover), borders (contain) or stretching (fill).",
		},
		{
			Name: "rotate", Type: fileops.Integer, Enum: []string{"90", "180", "270"}, Doc: "Degrees to turn the picture clockwise.",
			Aliases: map[string]string{"-90": "270", "-180": "180", "-270": "90"},
		},
	}
}

// videoParams returns the parameters of the picture of a video.
func (e *Engine) videoParams(t target) fileops.Schema {
	params := append(sizeParams(),
		fileops.Param{Name: "video_height", Type: fileops.Integer, Min: 16, Max: 8192, Doc: "The same as height: 720 makes a video of at most 720p."},
		fileops.Param{Name: "fps", Type: fileops.Number, Min: 1, Max: 120, Doc: "Frames per second; without it, those of the input."},
	)
	if len(t.videos) > 1 {
		params = append(params, fileops.Param{
			Name: "video_codec", Enum: codecs(t.videos), Aliases: codecAliases(t.videos),
			Doc: "Codec of the picture; without it, that of the input if the format allows it.",
		})
	}
	most := maxCRF[t.video]
	for _, c := range t.videos {
		most = max(most, maxCRF[c.encoder])
	}
	if most > 0 {
		params = append(params, fileops.Param{
			Name: "crf", Type: fileops.Integer, Min: 1, Max: float64(most), OneOf: "rate",
			Doc: "Constant rate factor: the smaller, the better and larger; 23 is usual for H.264, 28 for HEVC, 31 for VP9 and 35 for AV1.",
		})
	}
	return append(params,
		fileops.Param{Name: "video_bitrate", Type: fileops.Integer, Min: 16, Max: 200000, OneOf: "rate", Doc: "Average bit rate of the picture in kbit/s."},
		fileops.Param{Name: "max_bytes", Type: fileops.Integer, Min: 10000, Max: 1 << 40, OneOf: "rate", Doc: "Maximum size of the result in bytes; the picture is encoded in two passes if it would be larger."},
	)
}

// codecAliases returns other usual names of codecs.
func codecAliases(choices []choice) map[string]string {
	out := make(map[string]string)
	for alias, codec := range map[string]string{"x264": "h264", "avc": "h264", "h265": "hevc", "x265": "hevc"} {
		if encoderOf(choices, codec) != "" {
			out[alias] = codec
		}
	}
	return out
}

// soundParams returns the parameters of sound. choices are the codecs of t.
func soundParams(t target, choices []choice) fileops.Schema {
	var params fileops.Schema
	if t.lossy() {
		params = append(params, fileops.Param{Name: "audio_bitrate", Type: fileops.Integer, Min: 32, Max: 320, Doc: "Bit rate of the sound in kbit/s, within what the format allows; without it, one that suits the format."})
	}
	if len(choices) > 1 {
		params = append(params, fileops.Param{Name: "audio_codec", Enum: codecs(choices), Doc: "Codec of the sound; without it, that of the input if the format allows it."})
	}
	if t.audio != "libopus" {
		params = append(params, fileops.Param{Name: "sample_rate", Type: fileops.Integer, Min: 8000, Max: 96000, Doc: "Samples per second of the sound, such as 44100; the codec decides which ones are possible."})
	}
	return append(params,
		fileops.Param{Name: "channels", Type: fileops.Integer, Min: 1, Max: 2, Doc: "Channels of the sound: 1 (mono) or 2 (stereo); without it, those of the input."},
		fileops.Param{Name: "volume", Type: fileops.Number, Min: 0, Max: 10, OneOf: "loudness", Doc: "Factor for the volume: 0.5 is half, 2 is double the amplitude."},
		fileops.Param{Name: "loudness", Type: fileops.Number, Min: -40, Max: -5, OneOf: "loudness", Doc: "Loudness in LUFS (EBU R 128) to which the sound is normalised: -23 for broadcasting, -14 for streaming."},
		fileops.Param{Name: "audio_track", Type: fileops.Integer, Min: 1, Max: maxStreams, Doc: "Which sound track to take, from 1; without it, all that the format can hold, or the default one."},
	)
}

// A request holds the parameters of a conversion.
type request struct {
	width, height   float64 // pixels, 0 if absent
	fit             string
	turn            int          // degrees clockwise, 0 if absent
	fps             float64      // 0 if absent
	start, duration float64      // seconds, 0 if absent
	time            float64      // seconds, -1 if absent
	ground          *color.NRGBA // background of transparent content, nil if absent

	videoCodec string // "" if absent
	crf        int    // 0 if absent
	videoRate  int    // kbit/s, 0 if absent
	maxBytes   int64  // 0 if absent

	mute            bool
	audioTrack      int // from 1, 0 if absent
	audioCodec      string
	bitRate         int     // kbit/s, 0 if absent
	sampleRate      int     // Hz, 0 if absent
	channels        int     // 0 if absent
	volume          float64 // factor, -1 if absent
	loudness        float64 // LUFS, 0 if absent
	fadeIn, fadeOut float64 // seconds, 0 if absent
	subtitles       string
	subtitleTrack   int // from 1, 0 if absent

	subtitleLanguage string // of the added track, "" if absent

	given func(name string) bool

	// These are set while the conversion runs.
	exact              bool           // the part of the video can be copied exactly
	frames             int            // of the part if it is copied, 0 if start and duration are enough
	burnt              string         // file of subtitles to burn in, "" for none
	burntTrack         stream         // where they come from
	added              *newTrack      // subtitles that become a track, nil for none
	stamp              *stamp         // drawn over the pictures, nil for none
	gains              map[int]string // filters for the loudness, by the index of the track
	measured           float64        // seconds of sound, for fadeOut
	twoPass, firstPass bool
	mark               int  // degrees clockwise by which the copied picture is marked as turned
	marked             bool // mark is set
	quantiser          int  // quality for a maximum size, 0 if the encoder keeps a bit rate
}

func requestOf(p fileops.Params) (request, error) {
	r := request{
		width: p.Float("width"), height: p.Float("height"), fit: p.Get("fit"), turn: p.Int("rotate"), fps: p.Float("fps"),
		start: p.Float("start"), duration: p.Float("duration"), time: -1, ground: colour.Parse(p.Get("background")),
		videoCodec: p.Get("video_codec"), crf: p.Int("crf"), videoRate: p.Int("video_bitrate"), maxBytes: int64(p.Float("max_bytes")),
		mute: p.Bool("mute"), audioTrack: p.Int("audio_track"), audioCodec: p.Get("audio_codec"), bitRate: p.Int("audio_bitrate"),
		sampleRate: p.Int("sample_rate"), channels: p.Int("channels"), volume: -1, loudness: p.Float("loudness"),
		fadeIn: p.Float("fade_in"), fadeOut: p.Float("fade_out"), subtitles: p.Get("subtitles"), subtitleTrack: p.Int("subtitle_track"),
		subtitleLanguage: p.Get("subtitle_language"),
		given:            p.Has,
	}
	if h := p.Float("video_height"); h > 0 && (r.height == 0 || h < r.height) {
		r.height = h
	}
	if p.Has("time") {
		r.time = p.Float("time")
	}
	if p.Has("volume") {
		r.volume = p.Float("volume")
	}
	if r.fit == fitInside {
		r.fit = ""
	}
	if p.Has("end") {
		if r.duration = p.Float("end") - r.start; r.duration <= 0 {
			return r, &fileops.ParamError{Param: "end", Reason: "must be after start"}
		}
	}
	return r, r.check()
}

// check returns an error if parameters contradict each other.
func (r request) check() error {
	bad := func(param, reason string, a ...any) error {
		return &fileops.ParamError{Param: param, Reason: fmt.Sprintf(reason, a...)}
	}
	if r.fit != "" && (r.width == 0 || r.height == 0) {
		return bad("fit", "needs width and height")
	}
	if r.mute {
		for _, name := range []string{"audio_bitrate", "audio_codec", "sample_rate", "channels", "volume", "loudness", "audio_track"} {
			if r.given(name) {
				return bad(name, "cannot be combined with mute")
			}
		}
	}
	if r.subtitleTrack > 0 && r.subtitles == dropSubtitles {
		return bad("subtitle_track", "cannot be combined with subtitles=%s", dropSubtitles)
	}
	return nil
}

// chosen returns t with the codecs of r, and an error if other parameters do not fit them.
func (t target) chosen(r request) (target, error) {
	bad := func(param, reason string, a ...any) (target, error) {
		return t, &fileops.ParamError{Param: param, Reason: fmt.Sprintf(reason, a...)}
	}
	only := func(list []string, codec string) []string {
		return slices.DeleteFunc(slices.Clone(list), func(c string) bool { return c != codec })
	}
	if r.videoCodec != "" {
		t.video, t.copyVideo = encoderOf(t.videos, r.videoCodec), only(t.copyVideo, r.videoCodec)
	}
	if r.audioCodec != "" {
		t.audio, t.copyAudio = encoderOf(t.audios, r.audioCodec), only(t.copyAudio, r.audioCodec)
	}
	if most := maxCRF[t.video]; r.crf > most {
		return bad("crf", "must be from 1 to %d for this codec", most)
	}
	if r.bitRate > 0 && !t.lossy() {
		return bad("audio_bitrate", "cannot be combined with a lossless codec")
	}
	rates := sampleRates[t.audio]
	if t.rates != nil && rates != nil {
		rates = slices.DeleteFunc(slices.Clone(rates), func(n int) bool { return !slices.Contains(t.rates, n) })
	}
	if r.sampleRate > 0 && rates != nil && !slices.Contains(rates, r.sampleRate) {
		return bad("sample_rate", "must be one of: %s", strings.Trim(strings.ReplaceAll(fmt.Sprint(rates), " ", ", "), "[]"))
	}
	return t, nil
}

// only returns m without the streams that r excludes, and an error if m lacks one that r
// names.
func (m *media) only(r request) (*media, error) {
	out := *m
	sounds, texts := m.of("audio", stream.sounds), m.subtitles()
	if r.audioTrack > len(sounds) {
		return nil, lacks("audio_track", len(sounds), "sound track")
	}
	if r.subtitleTrack > len(texts) {
		return nil, lacks("subtitle_track", len(texts), "subtitle track")
	}
	excluded := func(s stream) bool {
		switch s.Type {
		case "audio":
			return r.mute || r.audioTrack > 0 && s.Index != sounds[r.audioTrack-1].Index
		case "subtitle":
			return r.subtitles == dropSubtitles || r.subtitleTrack > 0 && s.Index != texts[r.subtitleTrack-1].Index
		}
		return false
	}
	out.streams = slices.DeleteFunc(slices.Clone(m.streams), excluded)
	out.excluded = len(m.streams) - len(out.streams)
	return &out, nil
}

// encodesPicture reports whether r changes pictures.
func (r request) encodesPicture() bool {
	return r.width > 0 || r.height > 0 || r.fps > 0 || r.turn > 0 || r.crf > 0 || r.videoRate > 0 || r.twoPass || r.burnt != "" || r.stamp != nil ||
		(r.start > 0 || r.duration > 0) && !r.exact
}

// usualSound reports whether r changes no more of the sound than its bit rate and length.
func (r request) usualSound() bool {
	return r.audioTrack == 0 && r.audioCodec == "" && r.sampleRate == 0 && r.channels == 0 && r.volume < 0 && r.loudness == 0 && r.fadeIn == 0 && r.fadeOut == 0
}

// seekable are the demuxers that find the packets of every stream for a time.
var seekable = []string{"mov", "matroska", "mp3", "wav", "flac", "aiff", "ogg"}

// soundSettings returns how to encode the sound track s of m.
func (r request) soundSettings(m *media, s stream, p plan) soundSettings {
	x := soundSettings{kbit: r.bitRate, copies: p.copies, plain: p.plain}
	if r.start > 0 && !slices.Contains(seekable, m.source.demuxers[0]) {
		x.copies = false
	}
	if r.channels != s.Channels {
		x.channels = r.channels
	}
	if r.sampleRate != s.rate() {
		x.rate = r.sampleRate
	}
	if r.volume >= 0 {
		x.filters = append(x.filters, fmt.Sprintf("volume=%g", r.volume))
	}
	if gain := r.gains[s.Index]; gain != "" {
		x.filters = append(x.filters, gain, fmt.Sprintf("aresample=%d", s.rate()))
	}
	if r.fadeIn > 0 {
		x.filters = append(x.filters, "afade=t=in:st=0:d="+seconds(r.fadeIn))
	}
	if r.fadeOut > 0 {
		x.filters = append(x.filters, fmt.Sprintf("afade=t=out:st=%s:d=%s", seconds(max(r.measured-r.fadeOut, 0)), seconds(r.fadeOut)))
	}
	return x
}

// quality replaces the options of a video encoder by those of the request.
func (r request) quality(o opts, encoder string) {
	switch _, quantised := o["q:v:0"]; {
	case r.quantiser > 0 && quantised:
		o["q:v:0"] = r.quantiser
	case r.quantiser > 0:
		o["crf"] = r.quantiser
	case r.crf > 0:
		o["crf"] = r.crf
	case r.videoRate > 0:
		delete(o, "crf")
		delete(o, "q:v:0")
		o["b:v:0"] = fmt.Sprintf("%dk", r.videoRate)
		if maxCRF[encoder] > 0 && encoder != "libsvtav1" { // ffmpeg's own encoders fail if it is hard to keep
			o["maxrate:v:0"], o["bufsize:v:0"] = fmt.Sprintf("%dk", r.videoRate*3/2), fmt.Sprintf("%dk", r.videoRate*3)
		}
	}
	if !r.twoPass {
		return
	}
	pass := 2
	if r.firstPass {
		pass = 1
	}
	if encoder == "libx265" {
		o["x265-params"] = fmt.Sprintf("%s:pass=%d:stats=passes", o["x265-params"], pass)
		return
	}
	o["pass:v:0"], o["passlogfile:v:0"] = pass, "passes"
	if o["deadline"] == "realtime" { // which has one pass only
		o["deadline"], o["cpu-used"] = "good", 4
	}
}

// twoPasses are the encoders that keep a bit rate well in two passes. It is read-only.
var twoPasses = map[string]bool{"libx264": true, "libx265": true, "libvpx": true, "libvpx-vp9": true, "libaom-av1": true}

// lacks returns the error for the number of a track that is larger than n.
func lacks(param string, n int, noun string) error {
	return &fileops.ParamError{Param: param, Reason: fmt.Sprintf("is too large: the file has %s", plural(n, noun))}
}
