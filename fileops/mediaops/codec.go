package mediaops

import (
	"cmp"
	"fmt"
	"image/color"
	"math"
	"slices"
	"strings"

	"github.com/filewright/filewright/internal/colour"
)

// A level is the strength of compression. Conversion aims for invisible loss.
type level int

const (
	converted level = iota
	less
	recommended
	extreme
)

// videoCodec adds the options of a video encoder.
func videoCodec(o opts, encoder string, l level) {
	o["c:v:0"] = encoder
	switch encoder {
	case "libx264":
		o["crf"] = [...]int{23, 23, 28, 33}[l]
		o["preset"] = [...]string{"fast", "medium", "fast", "fast"}[l]
	case "libvpx-vp9":
		o["crf"] = [...]int{31, 31, 37, 43}[l]
		o["b:v:0"] = 0 // constant quality
		o["row-mt"] = 1
		// Measured on 640 × 360: realtime takes a third of the time of good and produces
		// a fifth more bytes.
		o["deadline"], o["cpu-used"] = "realtime", 5
		if l != converted {
			o["deadline"], o["cpu-used"] = "good", 4
		}
	case "libx265":
		o["crf"] = [...]int{26, 26, 30, 34}[l]
		o["preset"] = "fast"
		o["x265-params"] = "log-level=error" // it writes to standard error by itself
	case "libvpx": // a maximum bit rate is required, else 200 kbit/s is the default
		o["crf"], o["b:v:0"] = [...]int{10, 10, 20, 30}[l], "20M"
		o["deadline"], o["cpu-used"] = "realtime", 5
	case "libsvtav1":
		o["crf"], o["preset"] = [...]int{35, 35, 42, 50}[l], 8
	case "libaom-av1":
		o["crf"], o["b:v:0"] = [...]int{32, 32, 40, 48}[l], 0
		o["cpu-used"], o["row-mt"] = 6, 1
	case "mpeg4":
		o["q:v:0"] = [...]int{4, 5, 8, 12}[l]
		o["tag:v:0"] = "xvid" // AVI players search for this tag
	case "wmv2":
		o["q:v:0"] = [...]int{4, 5, 8, 12}[l]
	case "mpeg2video":
		o["q:v:0"] = [...]int{4, 5, 9, 14}[l]
		o["bf"] = 2
	}
}

// firstTwo selects the first two of many channels.
const firstTwo = "pan=stereo|c0=c0|c1=c1"

// An audioRate is the default bit rate of an audio encoder.
type audioRate struct {
	mono, stereo, surround int // kbit/s
	quality                int // for a variable bit rate, instead of the rates; 0 means none
}

// audioRates maps encoders to their default rates. It is read-only.
var audioRates = map[string]audioRate{
	"libmp3lame": {quality: 2}, // about 190 kbit/s in stereo
	"libvorbis":  {quality: 5}, // about 160 kbit/s in stereo
	"libopus":    {mono: 80, stereo: 128, surround: 256},
	"wmav2":      {mono: 96, stereo: 192, surround: 192},
	"mp2":        {mono: 128, stereo: 224, surround: 224},
	"libtwolame": {mono: 128, stereo: 224, surround: 224},
	"aac":        {mono: 96, stereo: 160, surround: 384},
	"ac3":        {mono: 96, stereo: 192, surround: 448},
}

// kbit returns the bit rate in kbit/s for the given number of channels.
func (r audioRate) kbit(channels int) int {
	switch channels {
	case 1:
		return r.mono
	case 2:
		return r.stereo
	}
	return r.surround
}

// soundSettings say how to encode a sound track.
type soundSettings struct {
	kbit     int      // bit rate in kbit/s, 0 for the default of the target
	rate     int      // Hz, 0 for that of the input
	channels int      // 1, 2, or 0 for those of the input
	filters  []string // applied after the channels are mixed
	copies   bool     // copy the track if the target allows it
	plain    bool     // only what every player and encoder supports
}

// mixed returns the filters that mix the channels of s, and their number then.
func (x soundSettings) mixed(s stream, t target) (filters []string, channels int) {
	channels = s.Channels
	if channels > 8 { // there is no usual layout for mixing
		filters, channels = append(filters, firstTwo), 2
	}
	switch {
	case x.channels == 1:
		return append(filters, "aformat=channel_layouts=mono"), 1
	case x.channels == 2, (t.stereo || x.plain) && channels > 2:
		return append(filters, "aformat=channel_layouts=stereo"), 2
	}
	return filters, channels
}

// audioCodec adds the options for sound track number i of the output. It copies s if x
// allows it and the codecs fit, else encodes it for t.
func audioCodec(o opts, i int, s stream, t target, x soundSettings) {
	set := func(name string, v any) { o[fmt.Sprintf("%s:a:%d", name, i)] = v }
	if t.copiesSound(s, x) {
		set("c", "copy")
		return
	}
	kbit := x.kbit
	filters, channels := x.mixed(s, t)
	filters = append(filters, x.filters...)
	if channels > 2 && t.audio == "libopus" {
		// It does not know the side layouts that most films have.
		filters = append(filters, "aformat=channel_layouts=7.1|6.1|5.1|5.0|quad|3.0|stereo|mono")
	}
	if len(filters) > 0 {
		set("filter", strings.Join(filters, ","))
	}
	final := cmp.Or(x.rate, t.sampleRate(s.rate(), kbit, x.plain))
	if final != s.rate() && t.audio != "libopus" || x.plain {
		set("ar", final)
	}
	if t.audio == "pcm" {
		set("c", pcm(s, t.muxer))
		return
	}
	set("c", t.audio)
	if kbit > 0 {
		kbit = acceptedRate(t.audio, kbit, channels, final)
	}
	rate, ok := audioRates[t.audio]
	if !ok {
		rate = audioRates["aac"]
	}
	switch {
	case t.audio == "alac":
	case t.audio == "flac":
		set("compression_level", 8)
		if s.bits() <= 16 {
			set("sample_fmt", "s16")
		}
	case kbit > 0:
		set("b", fmt.Sprintf("%dk", kbit))
	case rate.quality > 0:
		set("q", rate.quality)
	default:
		set("b", fmt.Sprintf("%dk", rate.kbit(channels)))
	}
}

// sampleRate returns the output sampling rate for sound with the given rate.
func (t target) sampleRate(rate, kbit int, plain bool) int {
	switch {
	case plain && t.audio == "libopus":
		return 48000
	case plain:
		return 44100
	case t.lossy() && rate > 48000 && rate%44100 == 0:
		return 44100
	case t.lossy() && rate > 48000:
		return 48000
	case t.rates != nil && !slices.Contains(t.rates, rate):
		return t.rates[0]
	case rate < 32000 && (kbit > 64 || kbit > 0 && t.audio == "libvorbis"): // low sampling rates limit the bit rate
		return 44100
	}
	return rate
}

// copiesSound reports whether the sound track s is copied into t.
func (t target) copiesSound(s stream, x soundSettings) bool {
	return x.copies && x.kbit == 0 && x.rate == 0 && x.channels == 0 && len(x.filters) == 0 &&
		slices.Contains(t.copyAudio, s.Codec) && (!t.stereo || s.Channels <= 2)
}

// acceptedRate returns the accepted bit rate of an encoder that is nearest to kbit, for
// sound with the given sampling rate in Hz.
func acceptedRate(encoder string, kbit, channels, rate int) int {
	switch {
	case encoder == "libvorbis" && rate < 32000:
		return max(min(kbit, rate/250*channels), 16*channels)
	case encoder == "libopus":
		return min(kbit, 256*channels)
	case encoder == "libvorbis" && channels == 1:
		return min(max(kbit, 32), 240)
	case encoder == "libvorbis":
		return min(max(kbit, 48, 16*channels), 320)
	}
	return kbit
}

// pcm returns the encoder for uncompressed sound: 24 bits if the source has more than
// 16, else 16.
func pcm(s stream, muxer string) string {
	bits, order := 16, "le"
	if s.bits() > 16 {
		bits = 24
	}
	if muxer == "aiff" {
		order = "be"
	}
	return fmt.Sprintf("pcm_s%d%s", bits, order)
}

// A shape describes the frames of the output.
type shape struct {
	width, height float64 // maximum, 0 means no limit
	fps           float64 // 0 means the frame rate of the source
	even          bool    // required by 4:2:0 encoders
	constant      bool
	pixels        string // pixel format, "" means the encoder's choice
	lanczos       bool
	ground        *color.NRGBA // background of transparent pictures; nil means white if the encoder has no transparency

	fit  string // fitCover, fitContain, fitFill, or "" for at most width and height
	turn int    // degrees clockwise
	draw []step // filters for frames of the final size

	stamp *stamp // drawn over frames of the final size, nil for none
}

// pictures returns the filters between a decoded video stream and its encoder.
func (e *Engine) pictures(in node, v stream, sh shape) node {
	switch {
	case !v.transparent():
	case sh.ground != nil:
		in = onGround(in, *sh.ground)
	case sh.pixels != "": // all these formats are opaque
		in = onGround(in, colour.White)
	}
	var steps []step
	switch v.FieldOrder {
	case "tt", "bb", "tb", "bt":
		steps = append(steps, step{"yadif", "deint=interlaced"})
	}
	switch v.turn = sh.turn; v.turn {
	case 90:
		steps = append(steps, step{"transpose", "clock"})
	case 180:
		steps = append(steps, step{"hflip"}, step{"vflip"})
	case 270:
		steps = append(steps, step{"transpose", "cclock"})
	}
	fps, variable := v.frameRate()
	switch {
	case sh.fps > 0:
		steps = append(steps, step{"fps", decimal(sh.fps)})
	case sh.constant && fps == 0:
		steps = append(steps, step{"fps", "25"})
	case sh.constant && (variable || usual(fps) == ""):
		steps = append(steps, step{"fps", decimal(min(fps, 60))})
	case sh.constant:
		steps = append(steps, step{"fps", usual(fps)})
	}
	// Always scale: a stream may change its size on the way, but an encoder cannot.
	w, h, framed := sh.frame(v)
	scale := step{"scale", fmt.Sprint(w), fmt.Sprint(h)}
	if sh.lanczos {
		scale = append(scale, "flags=lanczos")
	}
	steps = append(steps, scale, step{"setsar", "1"})
	if v.hdr() && e.toneMap {
		steps = append(steps,
			step{"zscale", "tin=" + v.Transfer, "pin=bt2020", "min=bt2020nc", "t=linear", "npl=100"},
			step{"format", "gbrpf32le"},
			step{"zscale", "p=bt709"},
			step{"tonemap", "hable", "desat=0"},
			step{"zscale", "t=bt709", "m=bt709", "r=tv"},
		)
	}
	steps = append(append(steps, framed...), sh.draw...)
	if sh.pixels != "" {
		steps = append(steps, step{"format", sh.pixels})
	}
	return sh.stamp.over(filter(in, steps...), sh.pixels)
}

// size returns the size of the frames that pictures makes of v.
func (sh shape) size(v stream) (w, h int) {
	v.turn = sh.turn
	if sh.fit == "" {
		return fit(v, sh.width, sh.height, sh.even)
	}
	w, h = int(sh.width), int(sh.height)
	if sh.even {
		w, h = w&^1, h&^1
	}
	return w, h
}

// frame returns the size in pixels to which frames of v are scaled, and the filters that
// then make the final size of them.
func (sh shape) frame(v stream) (w, h int, more []step) {
	w, h = sh.size(v)
	fw, fh := v.size()
	switch at := []string{fmt.Sprint(w), fmt.Sprint(h)}; sh.fit {
	case fitCover:
		scale := max(float64(w)/fw, float64(h)/fh)
		more = append(more, append(step{"crop"}, at...))
		return max(w, int(math.Ceil(fw*scale-0.001))), max(h, int(math.Ceil(fh*scale-0.001))), more
	case fitContain:
		c := color.NRGBA{A: 255}
		if sh.ground != nil {
			c = *sh.ground
		}
		pad := append(step{"pad"}, at...)
		more = append(more, append(pad, "(ow-iw)/2", "(oh-ih)/2", fmt.Sprintf("0x%02x%02x%02x", c.R, c.G, c.B)))
		scale := min(float64(w)/fw, float64(h)/fh)
		return max(1, min(w, int(math.Round(fw*scale)))), max(1, min(h, int(math.Round(fh*scale)))), more
	}
	return w, h, nil
}

// fit returns the size of the frames in pixels: the display size, scaled down to fit
// into width and height, never up.
func fit(v stream, width, height float64, even bool) (w, h int) {
	fw, fh := v.size()
	scale := 1.0
	if width > 0 {
		scale = min(scale, width/fw)
	}
	if height > 0 {
		scale = min(scale, height/fh)
	}
	unit := 1.0
	if even {
		unit = 2
	}
	round := func(x float64) int { return int(max(1, math.Floor(x*scale/unit+0.001)) * unit) }
	return round(fw), round(fh)
}

// usual returns the exact form of a common frame rate, or "" for any other.
func usual(fps float64) string {
	for _, r := range [...]struct {
		fps  float64
		text string
	}{
		{24000. / 1001, "24000/1001"}, {24, "24"}, {25, "25"}, {30000. / 1001, "30000/1001"}, {30, "30"},
		{50, "50"}, {60000. / 1001, "60000/1001"}, {60, "60"},
	} {
		if math.Abs(fps-r.fps) < 0.0005*fps {
			return r.text
		}
	}
	return ""
}

// decimal formats a frame rate with at most two decimals, which every encoder's time
// base can express.
func decimal(fps float64) string {
	if u := usual(fps); u != "" {
		return u
	}
	return fmt.Sprintf("%g", max(1, math.Round(fps*100)/100))
}
