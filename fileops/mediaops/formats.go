package mediaops

import (
	"maps"
	"slices"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// abilities lists what an ffmpeg supports, by its own account.
type abilities struct {
	encoders, decoders, muxers, demuxers, filters map[string]bool
}

func (a abilities) missingFilters() []string {
	var missing []string
	for _, f := range []string{
		"aformat", "afade", "apad", "aresample", "atrim", "asetpts", "concat", "crop", "format", "fps", "hflip", "loudnorm", "lutrgb", "overlay", "pad", "pan",
		"palettegen", "paletteuse", "scale", "setpts", "setsar", "split", "thumbnail", "transpose", "trim", "vflip", "volume", "yadif",
	} {
		if !a.filters[f] {
			missing = append(missing, f)
		}
	}
	return missing
}

// A source is a readable format.
type source struct {
	// demuxers are the only ones that may read a file with this content.
	demuxers []string
	// decoders lists decoders of which one is needed; nil if many codecs are possible.
	decoders []string
}

func (a abilities) sources() map[format.Format]source {
	iso := source{demuxers: []string{"mov"}}
	mkv := source{demuxers: []string{"matroska"}}
	asf := source{demuxers: []string{"asf"}}
	all := map[format.Format]source{
		format.MP4: iso, format.MOV: iso, format.M4V: iso, format.ThGP: iso, format.M4A: iso,
		format.MKV: mkv, format.WebM: mkv,
		format.WMV: asf, format.WMA: asf,
		format.AVI:  {demuxers: []string{"avi"}},
		format.FLV:  {demuxers: []string{"flv"}},
		format.MPEG: {demuxers: []string{"mpeg", "mpegvideo"}},
		format.TS:   {demuxers: []string{"mpegts"}},
		format.GIF:  {demuxers: []string{"gif"}, decoders: []string{"gif"}},

		// ADTS may also have an ID3 tag in front.
		format.MP3:  {[]string{"mp3", "aac"}, []string{"mp3float", "mp3"}},
		format.AAC:  {[]string{"aac", "mp3"}, []string{"aac"}},
		format.WAV:  {demuxers: []string{"wav"}},
		format.FLAC: {[]string{"flac"}, []string{"flac"}},
		format.OGG:  {[]string{"ogg"}, []string{"vorbis", "libvorbis"}},
		format.Opus: {[]string{"ogg"}, []string{"opus", "libopus"}},
		format.AIFF: {demuxers: []string{"aiff"}},
		format.AMR:  {[]string{"amr"}, []string{"amrnb", "libopencore_amrnb"}},
	}
	maps.DeleteFunc(all, func(_ format.Format, s source) bool {
		has := func(m map[string]bool) func(string) bool { return func(n string) bool { return !m[n] } }
		noDemuxer := slices.ContainsFunc(s.demuxers, has(a.demuxers))
		noDecoder := s.decoders != nil && !slices.ContainsFunc(s.decoders, func(n string) bool { return a.decoders[n] })
		return noDemuxer || noDecoder
	})
	return all
}

// source returns the source for the content of a file or, if the content is not
// recognised, for its name: streams without a header may start with anything.
func (e *Engine) source(f *fileops.File) (source, error) {
	got := format.Sniff(f.Reader(), f.Size())
	if got == "" {
		switch name := f.Format(); name {
		case format.MP3, format.AAC, format.MPEG, format.TS:
			got = name
		}
	}
	s, ok := e.sources[got]
	switch {
	case ok:
		return s, nil
	case f.Size() == 0:
		return s, fileops.Fail(fileops.ErrCorruptInput, nil, "the file is empty")
	case got == "":
		return s, fileops.Fail(fileops.ErrCorruptInput, nil, "the file is damaged or is not a %s file", f.Format())
	}
	return s, fileops.Mismatch(f.Format(), got)
}

// A kind is the type of a target's content.
type kind int

const (
	audio     kind = iota // sound, optionally with a cover picture
	video                 // moving pictures, optionally with sound
	animation             // moving pictures without sound, in a picture format
	still                 // one picture
)

// A target is a writable format.
type target struct {
	kind  kind
	muxer string
	muxed map[string]any // options of the muxer

	video string // encoder
	audio string // encoder
	subs  string // encoder of text subtitles; "" if the format cannot store them

	videos []choice // codecs that a request can select, with their encoders
	audios []choice

	copyVideo []string // codecs that are copied unchanged
	copyAudio []string
	copySubs  []string

	tracks   bool // supports several sound tracks
	stereo   bool // mix down more than two channels
	rates    []int
	constant bool // needs a constant frame rate
	rotates  bool // stores the rotation of a picture
	cover    bool // audio: can store a cover picture
	iso      bool // belongs to the MP4 family
}

// plays reports whether t is a format of audio or video, not of pictures.
func (t target) plays() bool { return t.kind == audio || t.kind == video }

// target returns the target for a format, or an error if this host cannot write it.
func (e *Engine) target(f format.Format) (target, error) {
	t, ok := e.targets[f]
	if !ok {
		return t, fileops.Fail(fileops.ErrUnsupportedInput, nil, "%s cannot be written here", f)
	}
	return t, nil
}

// rewritten returns the formats, sorted, that are read and whose target keep accepts.
func (e *Engine) rewritten(keep func(target) bool) (formats []format.Format) {
	for _, f := range slices.Sorted(maps.Keys(e.sources)) {
		if t, ok := e.targets[f]; ok && keep(t) {
			formats = append(formats, f)
		}
	}
	return formats
}

// lossy reports whether the sound of t has a selectable bit rate.
func (t target) lossy() bool { return t.audio != "flac" && t.audio != "alac" && t.audio != "pcm" }

// targets returns the writable formats. Of several muxers or encoders, the first
// available one is used. Formats without any are left out.
func (a abilities) targets() map[format.Format]target {
	first := func(set map[string]bool, names ...string) string {
		for _, n := range names {
			if set[n] {
				return n
			}
		}
		return "missing"
	}
	muxer := func(names ...string) string { return first(a.muxers, names...) }
	enc := func(names ...string) string { return first(a.encoders, names...) }

	x264, aac, lame, opus := enc("libx264"), enc("aac"), enc("libmp3lame"), enc("libopus")
	pcm := "pcm"
	if !a.encoders["pcm_s16le"] || !a.encoders["pcm_s24le"] || !a.encoders["pcm_s16be"] || !a.encoders["pcm_s24be"] {
		pcm = "missing"
	}
	fast := map[string]any{"movflags": "+faststart"}
	with := func(m map[string]any, k, v string) map[string]any {
		m = maps.Clone(m)
		m[k] = v
		return m
	}
	common := []int{44100, 48000}
	h264, aacSound := choice{"h264", x264}, choice{"aac", aac}
	hevc, av1 := choice{"hevc", enc("libx265")}, choice{"av1", enc("libsvtav1", "libaom-av1")}
	vp9, vp8 := choice{"vp9", enc("libvpx-vp9")}, choice{"vp8", enc("libvpx")}
	mp3, ac3 := choice{"mp3", lame}, choice{"ac3", enc("ac3")}
	opusSound, vorbis := choice{"opus", opus}, choice{"vorbis", enc("libvorbis")}
	flac, alac := choice{"flac", enc("flac")}, choice{"alac", enc("alac")}

	mp4 := target{
		kind: video, muxer: muxer("mp4"), muxed: fast, video: x264, audio: aac, subs: enc("mov_text"), tracks: true, rotates: true, iso: true,
		videos: []choice{h264, hevc, av1}, audios: []choice{aacSound, mp3, ac3},
		copyVideo: []string{"h264", "hevc", "av1"}, copyAudio: []string{"aac", "mp3", "ac3", "eac3"}, copySubs: []string{"mov_text"},
	}
	m4v := mp4
	m4v.muxed = with(fast, "brand", "M4V ")
	mov := mp4
	mov.muxer = muxer("mov")
	mov.videos = []choice{h264, hevc}
	mov.copyVideo = []string{"h264", "hevc", "prores", "mjpeg", "mpeg4", "dnxhd"}
	mov.copyAudio = []string{"aac", "alac", "mp3", "ac3", "pcm_s16le", "pcm_s16be", "pcm_s24le", "pcm_s24be"}
	all := map[format.Format]target{
		format.MP4: mp4, format.M4V: m4v, format.MOV: mov,
		format.ThGP: {
			kind: video, muxer: muxer("3gp"), muxed: fast, video: x264, audio: aac, stereo: true, rotates: true, iso: true,
			copyVideo: []string{"h264", "mpeg4", "h263"}, copyAudio: []string{"aac", "amr_nb"},
		},
		format.MKV: {
			kind: video, muxer: muxer("matroska"), video: x264, audio: aac, subs: enc("srt", "subrip"), tracks: true,
			videos:    []choice{h264, hevc, av1, vp9},
			audios:    []choice{aacSound, mp3, ac3, opusSound, vorbis, flac},
			copyVideo: []string{"h264", "hevc", "av1", "vp8", "vp9", "mpeg4", "mpeg2video", "mpeg1video", "theora", "prores", "ffv1"},
			copyAudio: []string{"aac", "mp3", "mp2", "ac3", "eac3", "dts", "truehd", "opus", "vorbis", "flac", "alac", "pcm_s16le", "pcm_s24le"},
			copySubs:  []string{"subrip", "ass", "ssa", "webvtt", "dvd_subtitle", "hdmv_pgs_subtitle", "dvb_subtitle"},
		},
		format.WebM: {
			kind: video, muxer: muxer("webm"), video: enc("libvpx-vp9"), audio: opus, subs: enc("webvtt"), tracks: true,
			videos: []choice{vp9, vp8, av1}, audios: []choice{opusSound, vorbis},
			copyVideo: []string{"vp8", "vp9", "av1"}, copyAudio: []string{"opus", "vorbis"}, copySubs: []string{"webvtt"},
		},
		format.AVI: {
			kind: video, muxer: muxer("avi"), video: enc("mpeg4"), audio: lame, stereo: true, constant: true,
			copyVideo: []string{"mjpeg"}, copyAudio: []string{"mp3", "ac3"},
		},
		format.WMV: {
			kind: video, muxer: muxer("asf"), video: enc("wmv2"), audio: enc("wmav2"), stereo: true, rates: common, constant: true,
			copyVideo: []string{"wmv1", "wmv2", "wmv3", "vc1"}, copyAudio: []string{"wmav1", "wmav2"},
		},
		format.FLV: {
			kind: video, muxer: muxer("flv"), video: x264, audio: aac, stereo: true,
			copyVideo: []string{"h264", "flv1"}, copyAudio: []string{"aac"},
		},
		format.MPEG: {
			kind: video, muxer: muxer("vob", "mpeg"), video: enc("mpeg2video"), audio: enc("mp2", "libtwolame"), stereo: true, rates: common, constant: true,
			copyVideo: []string{"mpeg1video", "mpeg2video"}, copyAudio: []string{"mp2", "mp3"},
		},
		format.TS: {
			kind: video, muxer: muxer("mpegts"), video: x264, audio: aac, tracks: true,
			videos: []choice{h264, hevc}, audios: []choice{aacSound, mp3, ac3},
			copyVideo: []string{"h264", "hevc", "mpeg1video", "mpeg2video"}, copyAudio: []string{"aac", "mp3", "mp2", "ac3", "eac3"},
		},

		format.GIF:  {kind: animation, muxer: muxer("gif"), video: enc("gif")},
		format.WebP: {kind: animation, muxer: muxer("webp"), video: enc("libwebp_anim")},
		format.JPG:  {kind: still, muxer: muxer("image2pipe"), video: enc("mjpeg")},
		format.PNG:  {kind: still, muxer: muxer("image2pipe"), video: enc("png")},

		format.MP3: {
			muxer: muxer("mp3"), muxed: map[string]any{"id3v2_version": 3, "write_id3v1": 1},
			audio: lame, copyAudio: []string{"mp3"}, stereo: true, cover: true,
		},
		format.M4A: {muxer: muxer("ipod"), muxed: fast, audio: aac, audios: []choice{aacSound, alac}, copyAudio: []string{"aac", "alac"}, cover: true, iso: true},
		format.AAC: {muxer: muxer("adts"), audio: aac, copyAudio: []string{"aac"}},
		format.OGG: {muxer: muxer("ogg"), audio: enc("libvorbis"), copyAudio: []string{"vorbis"}},
		format.Opus: {
			muxer: muxer("opus", "ogg"), audio: opus, copyAudio: []string{"opus"},
		},
		format.WMA: {muxer: muxer("asf"), audio: enc("wmav2"), copyAudio: []string{"wmav1", "wmav2"}, stereo: true, rates: common},
		format.FLAC: {
			muxer: muxer("flac"), audio: enc("flac"), copyAudio: []string{"flac"}, cover: true,
		},
		format.WAV: {muxer: muxer("wav"), muxed: map[string]any{"rf64": "auto"}, audio: pcm, copyAudio: []string{"pcm_s16le", "pcm_s24le"}},
		format.AIFF: {
			muxer: muxer("aiff"), muxed: map[string]any{"write_id3v2": 1},
			audio: pcm, copyAudio: []string{"pcm_s16be", "pcm_s24be"}, cover: true,
		},
	}
	maps.DeleteFunc(all, func(f format.Format, t target) bool {
		if f == format.GIF || f == format.JPG || f == format.PNG {
			if !a.demuxers["png_pipe"] || !a.encoders["png"] { // the palette is passed as png
				return true
			}
		}
		return t.muxer == "missing" || t.video == "missing" || t.audio == "missing"
	})
	for f, t := range all {
		if t.subs == "missing" {
			t.subs = ""
		}
		absent := func(c choice) bool { return c.encoder == "missing" }
		t.videos, t.audios = slices.DeleteFunc(slices.Clone(t.videos), absent), slices.DeleteFunc(slices.Clone(t.audios), absent)
		all[f] = t
	}
	return all
}
