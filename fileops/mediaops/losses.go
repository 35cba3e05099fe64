package mediaops

import (
	"fmt"
	"image/color"
	"image/gif"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// An outcome describes what a run of ffmpeg made of its input, for warnings.
type outcome struct {
	to      format.Format
	target  target
	kept    []stream // streams of the input that the result contains, in any encoding
	encoded bool     // the picture was encoded, not copied
	opaque  bool     // the encoded picture has no transparency
	ground  *color.NRGBA
	burnt   bool // subtitles are in the picture
	plain   bool // other streams may have been left out because the input is odd
}

// has reports whether the result contains a stream.
func (o outcome) has(s stream) bool {
	return slices.ContainsFunc(o.kept, func(k stream) bool { return k.Index == s.Index })
}

// warn warns about what the result of a conversion of m lacks.
func (o outcome) warn(job *fileops.Job, m *media) {
	if left := o.leftOut(m); len(left) > 0 {
		job.Warn(fileops.WarnStreamsDropped, "%s left out%s.", counted(left), o.reason(left))
	}
	if o.encoded {
		o.warnPicture(job, m.videos()[0], m.file)
	}
	if o.target.kind != audio && o.target.kind != video {
		return // nobody expects tags in a picture
	}
	if slices.ContainsFunc(m.streams, func(s stream) bool { return s.cover() && !o.has(s) }) {
		job.Warn(fileops.WarnMetadataDropped, "The cover picture was left out.")
	}
	if m.chapters > 0 && !o.target.holdsChapters() {
		job.Warn(fileops.WarnMetadataDropped, "%s were left out, because %s cannot hold them.", plural(m.chapters, "chapter mark"), o.to.Title())
	}
	var lost []string
	for _, key := range userTags {
		if m.tags[key] != "" && !o.target.holdsTag(key) {
			lost = append(lost, strings.ReplaceAll(key, "_", " "))
		}
	}
	if len(lost) > 0 {
		job.Warn(fileops.WarnMetadataDropped, "Tags that %s cannot hold were left out: %s.", o.to.Title(), strings.Join(lost, ", "))
	}
}

// warnPicture warns about what encoding the picture v loses.
func (o outcome) warnPicture(job *fileops.Job, v stream, f *fileops.File) {
	if v.hdr() || v.dolbyVision() {
		job.Warn(fileops.WarnHDRDropped, "The video is HDR; the result has standard dynamic range.")
	}
	if o.opaque && o.ground == nil && v.transparent() && (v.Codec != "gif" || clearGIF(f)) {
		job.Warn(fileops.WarnTransparencyDropped, "Parts of the video are transparent; the background of the result is white.")
	}
}

// leftOut returns the streams that the result lacks although users expect them there:
// nobody expects pictures in a sound file, or sound in a still picture.
func (o outcome) leftOut(m *media) (left []stream) {
	for _, s := range m.streams {
		expected := false
		switch {
		case s.cover(): // metadata
		case s.Type == "data" && s.Tag == "text": // QuickTime's form of chapters
		case o.target.kind == video:
			expected = true
		case o.target.kind == animation:
			expected = s.Type == "audio" || s.Type == "subtitle"
		case o.target.kind == audio:
			expected = s.Type == "audio"
		}
		if expected && !o.has(s) {
			left = append(left, s)
		}
	}
	return left
}

// reason returns the reason for the absence of streams as the end of a sentence, or ""
// if it is not their format.
func (o outcome) reason(left []stream) string {
	format := func(s stream) bool {
		return s.Type == "subtitle" || s.Type == "audio" && (!o.target.tracks || o.target.kind != video)
	}
	if o.plain || o.burnt || !slices.ContainsFunc(left, format) || slices.ContainsFunc(left, func(s stream) bool { return !format(s) }) {
		return ""
	}
	pronoun := "them"
	if len(left) == 1 {
		pronoun = "it"
	}
	return fmt.Sprintf(", because %s cannot hold %s", o.to.Title(), pronoun)
}

// counted returns a subject and verb for streams: "1 sound track and 2 subtitle tracks
// were".
func counted(streams []stream) string {
	var parts []string
	for _, kind := range [][2]string{
		{"video", "video track"}, {"audio", "sound track"}, {"subtitle", "subtitle track"}, {"data", "data track"}, {"attachment", "attached file"},
	} {
		n := 0
		for _, s := range streams {
			if s.Type == kind[0] {
				n++
			}
		}
		if n > 0 {
			parts = append(parts, plural(n, kind[1]))
		}
	}
	all := strings.Join(parts, ", ")
	if i := strings.LastIndex(all, ", "); i >= 0 {
		all = all[:i] + " and " + all[i+2:]
	}
	if len(streams) == 1 {
		return all + " was"
	}
	return all + " were"
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// userTags are the tags that users see in players. Other tags are technical.
var userTags = []string{
	"title", "artist", "album", "album_artist", "composer", "genre", "date", "track", "disc", "comment", "copyright", "lyrics", "location",
}

// heldTags maps muxers to the only tags that they write. The others write all tags.
var heldTags = map[string][]string{
	"mp4":    {"title", "artist", "album", "album_artist", "composer", "genre", "date", "track", "disc", "comment", "copyright", "lyrics", "location"},
	"mov":    {"title", "artist", "album", "genre", "date", "comment", "copyright", "location"},
	"3gp":    {"title", "artist", "album", "genre", "date", "comment", "copyright", "location"},
	"avi":    {"title", "artist", "album", "genre", "date", "track", "comment", "copyright"},
	"wav":    {"title", "artist", "album", "genre", "date", "track", "comment", "copyright"},
	"vob":    {},
	"mpeg":   {},
	"mpegts": {},
	"adts":   {},
}

func (t target) holdsTag(key string) bool {
	held, limited := heldTags[t.muxer]
	return !limited || slices.Contains(held, key)
}

func (t target) holdsChapters() bool {
	switch t.muxer {
	case "avi", "flv", "vob", "mpeg", "mpegts", "adts", "ogg", "flac", "wav":
		return false
	}
	return true
}

// clearGIF reports whether the first frame of a GIF has transparent pixels. Most GIFs
// declare a transparent colour only to leave out pixels that do not change.
func clearGIF(f *fileops.File) bool {
	config, err := gif.DecodeConfig(f.Reader())
	if err != nil {
		return false
	}
	m, err := gif.Decode(f.Reader())
	if err != nil {
		return false
	}
	if b := m.Bounds(); b.Dx() < config.Width || b.Dy() < config.Height {
		return true
	}
	opaque, ok := m.(interface{ Opaque() bool })
	return ok && !opaque.Opaque()
}

// mergeLosses warns about what a merge of parts lacks. Only the first tracks of the
// parts are merged. w and h are the size of the result, 0 for sound.
func mergeLosses(job *fileops.Job, parts []*media, o outcome, w, h int) {
	var left []stream
	tags, scaled := false, 0
	for _, m := range parts {
		one := o
		if a := m.audios(); len(a) > 0 {
			one.kept = append(one.kept, a[0])
		}
		if v := m.videos(); len(v) > 0 && o.target.kind == video {
			one.kept = append(one.kept, v[0])
			if o.encoded {
				one.warnPicture(job, v[0], m.file)
				if vw, vh := fit(v[0], 0, 0, true); vw > w || vh > h {
					scaled++
				}
			}
		}
		left = append(left, one.leftOut(m)...)
		tags = tags || m.chapters > 0 || len(m.covers()) > 0 ||
			slices.ContainsFunc(userTags, func(key string) bool { return m.tags[key] != "" })
	}
	if len(left) > 0 {
		job.Warn(fileops.WarnStreamsDropped, "%s left out; only the first tracks were merged.", counted(left))
	}
	if tags {
		job.Warn(fileops.WarnMetadataDropped, "The tags, covers and chapter marks of the parts were left out.")
	}
	if scaled > 0 {
		job.Warn(fileops.WarnLayoutSimplified, "%s larger than the first one and scaled down to %d × %d pixels.", verb(scaled, "video"), w, h)
	}
}

func verb(n int, noun string) string {
	if n == 1 {
		return "1 " + noun + " was"
	}
	return plural(n, noun) + " were"
}

// damageSigns are in ffmpeg's messages about content that it could not read. Intact
// files cause other messages, for example about timestamps.
var damageSigns = []string{
	"Invalid data found", "damaged", "corrupt", "while decoding", "prematurely", "concealing", "Invalid NAL unit size", "partial file", "truncated",
}

func isDamageSign(line string) bool {
	return slices.ContainsFunc(damageSigns, func(sign string) bool { return strings.Contains(line, sign) })
}
