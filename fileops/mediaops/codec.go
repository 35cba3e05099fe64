package mediaops

import (
	"fmt"
	"image/color"
	"math"
	"slices"

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

// audioCodec adds the options for sound track number i of the output. It copies s if
// mayCopy is set and the codecs fit, else encodes it for t. kbit is the bit rate, or 0
// for the default of the target. plain restricts the result to what every player and
// encoder supports.
func audioCodec(o opts, i int, s stream, t target, kbit int, mayCopy, plain bool) {
	set := func(name string, v any) { o[fmt.Sprintf("%s:a:%d", name, i)] = v }
	channels := s.Channels
	if mayCopy && kbit == 0 && slices.Contains(t.copyAudio, s.Codec) && (!t.stereo || channels <= 2) {
		set("c", "copy")
		return
	}
	switch {
	case channels > 8: // there is no usual layout for mixing
		channels = 2
		set("filter", firstTwo)
	case (t.stereo || plain) && channels > 2:
		channels = 2
		set("ac", channels)
	}
	if channels > 2 && t.audio == "libopus" {
		// It does not know the side layouts that most films have.
		set("filter", "aformat=channel_layouts=7.1|6.1|5.1|5.0|quad|3.0|stereo|mono")
	}
	if rate := t.sampleRate(s.rate(), kbit, plain); rate != s.rate() && t.audio != "libopus" || plain {
		set("ar", rate)
	}
	if t.audio == "pcm" {
		set("c", pcm(s, t.muxer))
		return
	}
	set("c", t.audio)
	if kbit > 0 {
		kbit = acceptedRate(t.audio, kbit, channels)
	}
	rate, ok := audioRates[t.audio]
	if !ok {
		rate = audioRates["aac"]
	}
	switch {
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

// acceptedRate returns the accepted bit rate of an encoder that is nearest to kbit.
func acceptedRate(encoder string, kbit, channels int) int {
	switch {
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
	w, h := fit(v, sh.width, sh.height, sh.even)
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
	if sh.pixels != "" {
		steps = append(steps, step{"format", sh.pixels})
	}
	return filter(in, steps...)
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
