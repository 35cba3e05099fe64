package mediaops

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// tagFields are the tags that the action metadata sets and removes.
var tagFields = []string{"title", "artist", "album", "album_artist", "composer", "genre", "date", "track", "disc", "comment", "copyright", "lyrics"}

// Values of the parameter remove besides tags.
const (
	removeAll      = "all"
	removeCover    = "cover"
	removeChapters = "chapters"
)

// Metadata returns the action "metadata" for audio and video. It changes tags and encodes
// nothing: all streams are copied.
//
//   - set: an object with title, artist, album, album_artist, composer, genre, date, track,
//     disc, comment, copyright or lyrics. Each value is a string or a number. The names author
//     and description stand for artist and comment.
//   - remove: names of tags, "cover", "chapters", or "all" for these and every other tag.
//     Removal comes first. The languages of tracks stay.
//
// Tags that the format of the file cannot hold are refused. 3gp is left out.
func (e *Engine) Metadata() fileops.Action {
	spec := fileops.Spec{
		Name: "metadata", Engine: e.name(), Family: "media",
		Summary: "Changes the tags of audio and video and copies the streams.",
	}
	formats := e.rewritten(func(t target) bool { return t.plays() && t.holdsTag("title") })
	// ffmpeg writes the tags of 3gp, but does not read them.
	formats = slices.DeleteFunc(formats, func(f format.Format) bool { return f == format.ThGP })
	if len(formats) > 0 {
		spec.Accepts = []fileops.Accept{{Formats: formats, Changes: []string{"set", "remove"}, Params: fileops.Schema{
			{Name: "set", Type: fileops.Object, Min: 1, Max: 20, Doc: "Values by tag: " + strings.Join(tagFields, ", ") + "."},
			{Name: "remove", Type: fileops.List, Min: 1, Max: 20, Doc: "Tags to remove, or cover, chapters or all."},
		}}}
	}
	return fileops.Func(spec, e.metadata)
}

// fieldOf returns the tag that a request means: author and description are the names of
// these fields in other families.
func fieldOf(name string) string {
	switch name = strings.ToLower(name); name {
	case "author":
		return "artist"
	case "description":
		return "comment"
	}
	return name
}

// A tagEdit is a change of tags.
type tagEdit struct {
	set                  map[string]string // values by tag; "" removes the tag
	all, cover, chapters bool              // to remove
}

// tagEditOf returns the requested change of a file of the given format.
func tagEditOf(p fileops.Params, t target, f format.Format) (edit tagEdit, err error) {
	edit.set = make(map[string]string)
	for _, name := range p.List("remove") {
		switch name = fieldOf(name); {
		case name == removeAll:
			edit.all, edit.cover, edit.chapters = true, true, true
		case name == removeCover:
			edit.cover = true
		case name == removeChapters:
			edit.chapters = true
		case slices.Contains(tagFields, name):
			edit.set[name] = ""
		default:
			allowed := append([]string{removeAll, removeCover, removeChapters}, tagFields...)
			return edit, &fileops.ParamError{Param: "remove", Reason: fmt.Sprintf("has %q, which is no tag; known are: %s", name, strings.Join(allowed, ", ")), Allowed: allowed}
		}
	}
	const longest = 10_000 // bytes
	for name, v := range p.Object("set") {
		bad := func(reason string, a ...any) (tagEdit, error) {
			return edit, &fileops.ParamError{Param: "set", Reason: fmt.Sprintf("has %q, which ", name) + fmt.Sprintf(reason, a...), Allowed: tagFields}
		}
		field := fieldOf(name)
		if !slices.Contains(tagFields, field) {
			return bad("is no tag; known are: %s", strings.Join(tagFields, ", "))
		}
		if !t.holdsTag(field) {
			return bad("%s cannot hold", f.Title())
		}
		var text string
		switch v := v.(type) {
		case string:
			text = strings.TrimSpace(v)
		case float64:
			text = strconv.FormatFloat(v, 'f', -1, 64)
		default:
			return bad("must be a string or a number")
		}
		if text == "" || len(text) > longest || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' && r != '\n' && r != '\r' && r != '\t' }) {
			return bad("must have 1 to %d bytes and no control characters", longest)
		}
		edit.set[field] = text
	}
	return edit, nil
}

func (e *Engine) metadata(ctx context.Context, job *fileops.Job) error {
	e = e.within(job)
	in := job.Input()
	t, err := e.target(in.Format())
	if err != nil {
		return err
	}
	edit, err := tagEditOf(job.Params, t, in.Format())
	if err != nil {
		return err
	}
	m, err := e.probe(ctx, job, in)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(m.streams, func(s stream) bool { return s.Type == "video" && !s.cover() && !s.sized() }) {
		return fileops.Fail(fileops.ErrCorruptInput, nil, "the file is damaged: no picture of its video could be decoded")
	}
	kept := slices.DeleteFunc(slices.Clone(m.streams), func(s stream) bool {
		switch s.Type {
		case "audio", "subtitle":
			// ffmpeg reads closed captions from every file of the MP4 family, but writes them only to QuickTime files.
			return s.Codec == "" || s.Codec == "unknown" || s.Codec == "eia_608" && t.iso && in.Format() != format.MOV
		case "video":
			return s.cover() && (edit.cover || !t.holdsCover() || !s.sized())
		case "attachment":
			return t.muxer != "matroska"
		}
		return true // data: ffmpeg writes the tracks of time codes and chapters itself
	})
	return job.WriteFile(in.Name(), func(path string) error {
		out := func() node { return e.retag(m, kept, t, edit, path) }
		err := e.run(ctx, job, pass{out: out, path: path, limit: e.maxOutput, expected: m.duration, declared: m.declared(kept), to: 1})
		if errors.Is(err, errFull) {
			return e.tooLarge()
		}
		if err != nil {
			return err
		}
		if in.Format() == format.MP3 {
			if err := dropID3v1(m.path, path); err != nil {
				return err
			}
		}
		res, err := e.look(ctx, job, path, e.sources[in.Format()])
		if err != nil {
			return err
		}
		if err := edit.verify(m, kept, res); err != nil {
			return err
		}
		o := outcome{to: in.Format(), target: t, kept: kept}
		if edit.cover {
			o.kept = append(slices.Clone(kept), m.of("video", stream.cover)...) // the loss is intended
		}
		o.warn(job, &media{file: m.file, streams: m.streams})
		return nil
	})
}

// holdsCover reports whether t can store a cover picture.
func (t target) holdsCover() bool {
	return t.cover || t.iso || t.muxer == "matroska" || t.muxer == "asf"
}

// retag returns the output that copies streams of m and changes its tags.
func (e *Engine) retag(m *media, kept []stream, t target, edit tagEdit, path string) node {
	in := e.input(m)
	o := opts{"c": "copy", "max_muxing_queue_size": 4096}
	var streams []node
	covers, videos := m.of("video", stream.cover), 0
	for _, s := range kept {
		streams = append(streams, pick(in, s))
		if s.Type == "video" {
			if slices.ContainsFunc(covers, func(c stream) bool { return c.Index == s.Index }) {
				o[numbered("disposition:v", videos)] = "attached_pic"
			} else if s.Codec == "hevc" && t.iso {
				o[numbered("tag:v", videos)] = "hvc1"
			}
			videos++
		}
	}
	switch {
	case edit.all:
		o["map_metadata"] = -1
	case slices.Contains(m.source.demuxers, "ogg"):
		o["map_metadata"] = "0:s:a:0" // Ogg stores its tags in the stream
	}
	if edit.chapters {
		o["map_chapters"] = -1
	}
	if edit.all { // descriptions of the tracks stay
		for i, s := range kept {
			var lines []string
			for _, name := range []string{"language", "filename", "mimetype"} { // the last two are required for attachments
				if v := s.Tags[name]; v != "" {
					lines = append(lines, name+"="+v)
				}
			}
			if lines != nil {
				o[fmt.Sprintf("metadata:s:%d", i)] = lines
			}
		}
	}
	var tags []string
	for _, name := range slices.Sorted(maps.Keys(edit.set)) {
		tags = append(tags, name+"="+edit.set[name])
	}
	if len(tags) > 0 {
		o["metadata"] = tags
	}
	return e.output(path, t.muxer, e.maxOutput, streams, t.muxed, o)
}

// verify fails if res is not m with the change. A file that declares more than it holds is damaged.
func (edit tagEdit) verify(m *media, kept []stream, res *media) error {
	shape := func(streams []stream) (out []string) {
		for _, s := range streams {
			if s.Type == "audio" || s.Type == "video" || s.Type == "subtitle" {
				out = append(out, fmt.Sprint(s.Type, s.Codec, s.Width, s.Height, s.Channels, s.SampleRate))
			}
		}
		slices.Sort(out)
		return out
	}
	if a, b := shape(kept), shape(res.streams); !slices.Equal(a, b) {
		return unexpected("streams %v became %v", a, b)
	}
	switch more := res.duration - m.duration; {
	case m.duration == 0: // the file does not say
	case more < -max(0.5, m.duration/50):
		return fileops.Fail(fileops.ErrCorruptInput, nil, "only %.1f of %.1f seconds can be read", res.duration, m.duration)
	case more > max(0.5, m.duration/50):
		return unexpected("%.2f seconds became %.2f", m.duration, res.duration)
	}
	for name, want := range edit.set {
		if got := strings.TrimSpace(res.tags[name]); got != want && !strings.HasPrefix(got, want) && (want == "" || !sameText(got, want)) {
			return unexpected("the tag %s is %q", name, got)
		}
	}
	return nil
}

// sameText reports whether two tags are equal but for line ends, and for the numbers of
// tracks, which some formats store as numbers.
func sameText(a, b string) bool {
	clean := func(s string) string {
		return strings.TrimLeft(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(s), "0")
	}
	return clean(a) == clean(b)
}
