package mediaops

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"golang.org/x/text/language"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/charset"
)

// maxSubtitleFile limits the bytes of a subtitle file, which is held in memory.
const maxSubtitleFile = 16 << 20

// A textFormat is a format of subtitles that ffmpeg reads: its demuxer, and its codec in a
// container.
type textFormat struct{ demuxer, codec string }

// textFormats returns the formats that the parameter subtitle_key takes. All of them are
// read through the format of libass.
func (a abilities) textFormats() map[format.Format]textFormat {
	out := make(map[format.Format]textFormat)
	for f, x := range map[format.Format]textFormat{format.SRT: {"srt", "subrip"}, format.VTT: {"webvtt", "webvtt"}, format.ASS: {"ass", "ass"}} {
		if a.demuxers[x.demuxer] && a.decoders[x.codec] && a.encoders["ass"] && a.muxers["ass"] {
			out[f] = x
		}
	}
	return out
}

// subtitleFileParams returns the parameters that add a subtitle file to a video of t.
func (e *Engine) subtitleFileParams(t target) fileops.Schema {
	if len(e.texts) == 0 || t.subs == "" && !e.burns {
		return nil
	}
	var formats []format.Format
	for _, f := range []format.Format{format.SRT, format.VTT, format.ASS} {
		if _, ok := e.texts[f]; ok {
			formats = append(formats, f)
		}
	}
	params := fileops.Schema{{
		Name: "subtitle_key", Type: fileops.Upload, Formats: formats,
		Doc: "Subtitle file to add: the file_key of an upload. It becomes a track, or part of the picture with subtitles=burn.",
	}}
	if t.subs != "" {
		params = append(params, fileops.Param{
			Name: "subtitle_language", Min: 2, Max: 35,
			Doc: "Language of the track that subtitle_key becomes, such as en, eng or pt-BR; players show it in their menu.",
		})
	}
	return params
}

// languageCode returns the code of ISO 639-2 for a language tag (RFC 5646), or "".
func languageCode(tag string) string {
	t, err := language.Parse(tag)
	if err != nil {
		return ""
	}
	base, sure := t.Base()
	if sure == language.No {
		return ""
	}
	return base.ISO3()
}

// checkSubtitleFile returns an error if the parameters for a subtitle file contradict each
// other, or if t cannot hold its subtitles.
func (r request) checkSubtitleFile(to format.Format, t target) error {
	bad := func(param, reason string, a ...any) error {
		return &fileops.ParamError{Param: param, Reason: fmt.Sprintf(reason, a...)}
	}
	burns, hasFile, hasLanguage := r.subtitles == burnSubtitles, r.given("subtitle_key"), r.given("subtitle_language")
	switch {
	case hasFile && t.subs == "" && !burns:
		return bad("subtitle_key", "needs subtitles=%s, because %s cannot hold subtitle tracks", burnSubtitles, to.Title())
	case hasFile && burns && r.subtitleTrack > 0:
		return bad("subtitle_track", "cannot be combined with subtitle_key and subtitles=%s", burnSubtitles)
	case hasLanguage && !hasFile:
		return bad("subtitle_language", "needs subtitle_key")
	case hasLanguage && burns:
		return bad("subtitle_language", "cannot be combined with subtitles=%s", burnSubtitles)
	case hasLanguage && languageCode(r.subtitleLanguage) == "":
		return bad("subtitle_language", "is not a language; it must be a code such as en, eng or pt-BR")
	}
	return nil
}

// A newTrack is a subtitle file that becomes a track.
type newTrack struct {
	path, demuxer string
	codec         string // of the track, or "copy"
	language      string // ISO 639-2, or ""
}

// cueTimes match lines with the times that ffmpeg reads. The first group is the start.
var cueTimes = map[format.Format]*regexp.Regexp{
	format.SRT: regexp.MustCompile(`^\s*(\d+:\d+:\d+[,.]\d+)\s*-->\s*\d+:\d+:\d+[,.]\d+`),
	format.VTT: regexp.MustCompile(`^\s*((?:\d+:)?\d+:\d+\.\d+)\s*-->\s*(?:\d+:)?\d+:\d+\.\d+`),
	format.ASS: regexp.MustCompile(`^\s*Dialogue:[^,]*,\s*(\d+:\d+:\d+)\D\d+,\s*\d+:\d+:\d+\D\d+,`),
}

var (
	blankLine = regexp.MustCompile(`\n[ \t]*\n`)
	vttLooks  = regexp.MustCompile(`(?m)^(?:STYLE|REGION)[ \t]*$|-->.*[ \t](?:line|position|align|size|vertical|region):`)
	assLooks  = regexp.MustCompile(`\\pos\(|\\move\(|\\fn|\\fs|\\k|\\t\(|\\p1`)
)

// addSubtitleFile makes the subtitle file of job part of r: as a track of a target t, or to
// be burnt in. ffmpeg reads a copy in UTF-8.
func (e *Engine) addSubtitleFile(ctx context.Context, job *fileops.Job, m *media, t target, r *request) error {
	bad := func(reason string, a ...any) error {
		return &fileops.ParamError{Param: "subtitle_key", Reason: fmt.Sprintf(reason, a...)}
	}
	f := job.Extra["subtitle_key"]
	known, ok := e.texts[f.Format()]
	if !ok {
		return bad("has a format that cannot be read here")
	}
	if f.Size() > maxSubtitleFile {
		return bad("has more than %d bytes", maxSubtitleFile)
	}
	source, err := charset.NewText(f.Reader(), f.Size())
	if err != nil {
		return err
	}
	text, err := io.ReadAll(fileops.ContextReader(ctx, source.Reader()))
	if err != nil {
		return err
	}
	if name := source.Guess(); name != "" {
		job.Warn(fileops.WarnEncodingGuessed, "The text of the subtitles is not UTF-8; it was read as %s.", name)
	}
	text = bytes.ReplaceAll(bytes.TrimPrefix(text, []byte("\ufeff")), []byte("\r\n"), []byte("\n"))
	text = bytes.ReplaceAll(text, []byte("\r"), []byte("\n"))
	end := max(m.videos()[0].length(), m.duration)
	text, n := timed(text, f.Format(), end)
	if n.left == 0 && n.late > 0 {
		return bad("has no subtitles before the end of the video")
	}
	dir, err := job.Dir()
	if err != nil {
		return err
	}
	path, drawn := filepath.Join(dir, "added."+string(f.Format())), filepath.Join(dir, subtitleFile)
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return err
	}
	out := func() node {
		return e.output(drawn, "ass", e.maxOutput, []node{ownInput(path, known.demuxer).Get("0")}, opts{"c:s:0": "ass", "map_metadata": -1})
	}
	if err := e.run(ctx, job, pass{out: out, path: drawn, limit: e.maxOutput, still: true}); err != nil {
		if ctx.Err() != nil || !errors.Is(err, fileops.ErrCorruptInput) {
			return err
		}
		return bad("is damaged: no subtitles can be read")
	}
	read, err := os.ReadFile(drawn)
	if err != nil {
		return err
	}
	found := bytes.Count(read, []byte("\nDialogue:"))
	if found == 0 {
		return bad("has no subtitles with a valid time")
	}
	if n := n.invalid + max(n.left-found, 0); n > 0 {
		job.Warn(fileops.WarnContentDropped, "%s left out, because the time is invalid.", verb(n, "subtitle"))
	}
	if n.late > 0 {
		job.Warn(fileops.WarnContentDropped, "%s left out, because the video ends before.", verb(n.late, "subtitle"))
	}
	if r.subtitles == burnSubtitles {
		r.burnt, r.burntTrack = subtitleFile, stream{Index: -1}
		return nil
	}
	codec := t.subtitleCodec(stream{Type: "subtitle", Codec: known.codec})
	if codec != "copy" && (f.Format() == format.ASS && assLooks.Match(text) || f.Format() == format.VTT && vttLooks.Match(text)) {
		job.Warn(fileops.WarnLayoutSimplified, "Fonts, effects and exact positions of the subtitles were left out or simplified.")
	}
	r.added = &newTrack{path: path, demuxer: known.demuxer, codec: codec, language: languageCode(r.subtitleLanguage)}
	return nil
}

// A cueCount counts the subtitles of a text.
type cueCount struct{ left, invalid, late int }

// timed returns a text without the subtitles that start at end or later, if it is not 0:
// they would make the video longer. It also leaves out those of srt and vtt whose time is
// invalid: ffmpeg would show them as text of the one before.
func timed(text []byte, f format.Format, end float64) (out []byte, n cueCount) {
	mark, between := []byte("-->"), []byte("\n\n")
	if f == format.ASS {
		mark, between = []byte("Dialogue:"), []byte("\n")
	} else {
		text = blankLine.ReplaceAll(text, between)
	}
	var kept [][]byte
	for _, block := range bytes.Split(text, between) {
		var cues, invalid, late int
		for line := range bytes.Lines(block) {
			if !bytes.Contains(line, mark) {
				continue
			}
			cues++
			if t := cueTimes[f].FindSubmatch(line); t == nil {
				invalid++
			} else if end > 0 && clock(string(t[1])) >= end {
				late++
			}
		}
		switch {
		case cues > 0 && late == cues:
			n.late += cues
			continue
		case cues == 1 && invalid == 1:
			n.invalid++
			continue
		}
		n.left += cues
		kept = append(kept, block)
	}
	return bytes.Join(kept, between), n
}

// clock returns the seconds of a time such as 1:02:03,450.
func clock(s string) (seconds float64) {
	for part := range strings.SplitSeq(strings.ReplaceAll(s, ",", "."), ":") {
		seconds = 60*seconds + number(part)
	}
	return seconds
}

// addTrack returns streams with the track that r adds to the subtitles of m.
func (r request) addTrack(o opts, streams []node) []node {
	if r.added == nil {
		return streams
	}
	n := 0
	for k := range o {
		if strings.HasPrefix(k, "c:s:") {
			n++
		}
	}
	o[numbered("c:s", n)] = r.added.codec
	if r.added.language != "" {
		o[numbered("metadata:s:s", n)] = "language=" + r.added.language
	}
	if n == 0 {
		o["disposition:s:0"] = "default"
	}
	return append(slices.Clip(streams), ownInput(r.added.path, r.added.demuxer, r.window()).Get("0"))
}
