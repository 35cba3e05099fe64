package mediaops_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/binary"
	"image"
	"image/color"
	"image/gif"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// warned runs an action and returns its warnings, one a line: "code: message".
func warned(t testing.TB, a fileops.Action, args fileops.Args, in ...*fileops.File) string {
	t.Helper()
	text, err := tryWarned(t, a, args, in...)
	systest.NoError(t, err)
	return text
}

func tryWarned(t testing.TB, a fileops.Action, args fileops.Args, in ...*fileops.File) (string, error) {
	t.Helper()
	var lines []string
	r := fileops.Runner{TempDir: t.TempDir(), Warn: func(w fileops.Warning) { lines = append(lines, w.Code+": "+w.Message) }}
	err := r.Run(t.Context(), a, args, fileops.SinkFunc(func(context.Context, *fileops.File) error { return nil }), in...)
	return strings.Join(lines, "\n"), err
}

// tagged returns the arguments for two chapters and the usual tags.
func tagged(t *testing.T) []string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tags.txt")
	text := ";FFMETADATA1\ntitle=T\nartist=A\nalbum=B\nalbum_artist=AA\ncomposer=C\ngenre=Rock\ndate=2020\ntrack=3\ndisc=1\ncomment=Cm\ncopyright=Co\nlyrics=L\n"
	for _, c := range []string{"0\nEND=500\ntitle=c1\n", "500\nEND=1000\ntitle=c2\n"} {
		text += "[CHAPTER]\nTIMEBASE=1/1000\nSTART=" + c
	}
	systest.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return []string{"-f", "ffmetadata", "-i", path}
}

// Warnings name the tags, chapters and tracks that the results lack, and nothing else.
func TestTagsAndChaptersTold(t *testing.T) {
	t.Parallel()
	song := makeFile(t, "in.mp3", args(tone(1, 44100), tagged(t), "-map 0 -map_metadata 1 -map_chapters 1 -c:a libmp3lame")...)
	film := makeFile(t, "in.mkv", args(picture("160x120", 25, 1), tone(1, 44100), tagged(t), "-map 0 -map 1 -map_metadata 2 -map_chapters 2 -c:v libx264 -pix_fmt yuv420p -c:a aac")...)
	keys := []string{"title", "artist", "album", "album_artist", "composer", "genre", "date", "track", "disc", "comment", "copyright", "lyrics"}
	for in, targets := range map[*fileops.File][]string{
		song: {"m4a", "aac", "ogg", "opus", "wma", "flac", "wav", "aiff"},
		film: {"mp4", "m4v", "mov", "webm", "avi", "wmv", "flv", "mpeg", "ts", "mp3", "m4a", "wav"},
	} {
		for _, to := range targets {
			t.Run(string(in.Format())+" to "+to, func(t *testing.T) {
				t.Parallel()
				p := probe(t, must(t, engine(t).Convert(), convertTo(to), in))
				has := map[string]bool{}
				for key := range p.Format.Tags {
					has[strings.ToLower(key)] = true
				}
				for _, s := range p.Streams {
					for key := range s.Tags {
						has[strings.ToLower(key)] = true
					}
				}
				if to == "avi" {
					has["album"] = true // it is stored under another name
				}
				var lost []string
				for _, key := range keys {
					if !has[key] {
						lost = append(lost, strings.ReplaceAll(key, "_", " "))
					}
				}
				var want []string
				title := format.Format(to).Title()
				if len(p.Chapters) == 0 {
					want = append(want, "metadata_dropped: 2 chapter marks were left out, because "+title+" cannot hold them.")
				}
				if len(lost) > 0 {
					want = append(want, "metadata_dropped: Tags that "+title+" cannot hold were left out: "+strings.Join(lost, ", ")+".")
				}
				if got := warned(t, engine(t).Convert(), convertTo(to), in); got != strings.Join(want, "\n") {
					t.Errorf("warnings %q, want %q", got, want)
				}
			})
		}
	}
}

// A cover is kept where the format can hold it. Otherwise a warning names the loss.
func TestCoverIsToldOrKept(t *testing.T) {
	t.Parallel()
	in := makeFile(t, "song.mp3", args(tone(1, 44100), "-i", coverArt(t), "-map 0 -map 1 -c:a libmp3lame -c:v copy -disposition:v attached_pic")...)
	for _, to := range []string{"m4a", "flac", "ogg", "opus", "wav", "aac"} {
		out := must(t, engine(t).Convert(), convertTo(to), in)
		kept := len(probe(t, out).codecs("video")) > 0
		told := strings.Contains(warned(t, engine(t).Convert(), convertTo(to), in), "The cover picture was left out.")
		if kept == told {
			t.Errorf("%s: cover kept %t, loss told %t", to, kept, told)
		}
	}
}

func TestPlainHasNoWarnings(t *testing.T) {
	t.Parallel()
	e := engine(t)
	film := makeFile(t, "in.mp4", args(picture("160x120", 25, 4), tone(4, 44100), "-c:v libx264 -qp 5 -pix_fmt yuv420p -c:a aac")...)
	song := makeFile(t, "in.mp3", args(tone(4, 44100), "-b:a 256k")...)
	for _, to := range []string{"webm", "mkv", "mov", "avi", "wmv", "flv", "mpeg", "ts", "3gp", "mp3", "wav", "ogg", "jpg", "png"} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			if got := warned(t, e.Convert(), convertTo(to), film); got != "" {
				t.Errorf("film: %s", got)
			}
			if to == "jpg" || to == "png" {
				return
			}
			if got := warned(t, e.Convert(), convertTo(to, "start", 1, "duration", 1.5), film); got != "" {
				t.Errorf("part of the film: %s", got)
			}
		})
	}
	for _, to := range []string{"wav", "ogg", "opus", "m4a", "flac", "aac", "aiff", "wma"} {
		if got := warned(t, e.Convert(), convertTo(to), song); got != "" {
			t.Errorf("%s: %s", to, got)
		}
	}
	for _, in := range []*fileops.File{film, song} {
		if got := warned(t, e.Compress(), nil, in); got != "" {
			t.Errorf("compressed %s: %s", in.Format(), got)
		}
		if got := warned(t, e.Merge(), nil, in, in); got != "" {
			t.Errorf("merged %s: %s", in.Format(), got)
		}
	}
}

func TestStreamsTold(t *testing.T) {
	t.Parallel()
	e := engine(t)
	srt := filepath.Join(t.TempDir(), "a.srt")
	systest.NoError(t, os.WriteFile(srt, []byte("1\n00:00:00,000 --> 00:00:00,900\nHello\n"), 0o600))
	film := makeFile(t, "in.mkv", args(picture("160x120", 25, 1), tone(1, 44100), tone(1, 48000), "-i", srt,
		"-map 0 -map 1 -map 2 -map 3 -c:v libx264 -qp 5 -pix_fmt yuv420p -c:a aac -c:s srt", "-attach", srt, "-metadata:s:t mimetype=text/plain")...)
	withCover := makeFile(t, "song.mp3", args(tone(2, 44100), "-i", coverArt(t), "-map 0 -map 1 -c:a libmp3lame -c:v copy -disposition:v attached_pic")...)
	timecode := makeFile(t, "in.mov", args(picture("160x120", 25, 1), "-c:v libx264 -pix_fmt yuv420p -timecode 01:00:00:00")...)
	for name, tt := range map[string]struct {
		in   *fileops.File
		to   string
		want string
	}{
		"subtitles are kept":   {film, "mp4", "streams_dropped: 1 attached file was left out."},
		"tracks and subtitles": {film, "avi", "streams_dropped: 1 sound track, 1 subtitle track and 1 attached file were left out."},
		"second track":         {film, "mp3", "streams_dropped: 1 sound track was left out, because MP3 cannot hold it."},
		"sound of a GIF":       {film, "gif", "streams_dropped: 2 sound tracks and 1 subtitle track were left out, because GIF cannot hold them."},
		"still":                {film, "jpg", ""},
		"timecode":             {timecode, "mkv", "streams_dropped: 1 data track was left out."},
		"cover":                {withCover, "wav", "metadata_dropped: The cover picture was left out."},
		"cover is kept":        {withCover, "m4a", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := warned(t, e.Convert(), convertTo(tt.to), tt.in); got != tt.want {
				t.Errorf("warnings %q, want %q", got, tt.want)
			}
		})
	}
	if got := warned(t, e.Compress(), nil, film); got != "" {
		t.Errorf("compressed: %s", got)
	}
	large := makeFile(t, "large.mp4", args(picture("320x240", 25, 1), tone(1, 44100), "-c:v libx264 -pix_fmt yuv420p -c:a aac -metadata title=T")...)
	want := strings.Join([]string{
		"streams_dropped: 1 sound track, 1 subtitle track and 1 attached file were left out; only the first tracks were merged.",
		"metadata_dropped: The tags, covers and chapter marks of the parts were left out.",
		"layout_simplified: 1 video was larger than the first one and scaled down to 160 × 120 pixels.",
	}, "\n")
	if got := warned(t, e.Merge(), nil, film, large); got != want {
		t.Errorf("merged: %q, want %q", got, want)
	}
}

// oneFrame returns a GIF with one frame that is red, with a hole if clear is set.
func oneFrame(t *testing.T, clear bool) *fileops.File {
	t.Helper()
	m := image.NewPaletted(image.Rect(0, 0, 32, 32), color.Palette{color.NRGBA{255, 0, 0, 255}, color.NRGBA{}})
	if clear {
		m.SetColorIndex(5, 5, 1)
	}
	var b bytes.Buffer
	systest.NoError(t, gif.EncodeAll(&b, &gif.GIF{Image: []*image.Paletted{m, m}, Delay: []int{10, 10}}))
	return fileops.Bytes("in.gif", b.Bytes())
}

func TestPictureLossesTold(t *testing.T) {
	t.Parallel()
	vp9 := halfClear(t, "in.webm", "-pix_fmt yuva420p -c:v libvpx-vp9 -deadline realtime -b:v 2M -auto-alt-ref 0")
	prores := halfClear(t, "in.mov", "-c:v prores_ks -profile:v 4444 -pix_fmt yuva444p10le")
	hdr := makeFile(t, "in.mkv", args(picture("160x120", 10, 1), "-c:v libx265 -x265-params log-level=error -pix_fmt yuv420p10le -color_primaries bt2020 -color_trc smpte2084 -colorspace bt2020nc")...)
	clear := "transparency_dropped: Parts of the video are transparent; the background of the result is white."
	high := "hdr_dropped: The video is HDR; the result has standard dynamic range."
	for name, tt := range map[string]struct {
		in   *fileops.File
		args fileops.Args
		want string
	}{
		"vp9":                 {vp9, convertTo("mp4"), clear},
		"prores":              {prores, convertTo("webm"), clear},
		"on a colour":         {vp9, convertTo("mp4", "background", "red"), ""},
		"copied":              {vp9, convertTo("mkv"), ""},
		"PNG":                 {vp9, convertTo("png"), ""},
		"JPEG":                {vp9, convertTo("jpg"), clear},
		"GIF with a hole":     {oneFrame(t, true), convertTo("mp4"), clear},
		"GIF without a hole":  {oneFrame(t, false), convertTo("mp4"), ""},
		"HDR to SDR":          {hdr, convertTo("webm"), high},
		"HDR to a picture":    {hdr, convertTo("jpg"), high},
		"HDR copied":          {hdr, convertTo("mp4"), ""},
		"Dolby Vision to SDR": {dolbyVision(t), convertTo("webm"), high},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := warned(t, engine(t).Convert(), tt.args, tt.in); got != tt.want {
				t.Errorf("warnings %q, want %q", got, tt.want)
			}
		})
	}
}

// dolbyVision makes a video with a Dolby Vision configuration box and no other sign of
// HDR, as in profile 5.
func dolbyVision(t *testing.T) *fileops.File {
	t.Helper()
	b := systest.ReadFile(t, onDisk(t, makeFile(t, "in.mp4", args(picture("160x120", 10, 1), "-c:v libx265 -x265-params log-level=error -pix_fmt yuv420p10le -tag:v hvc1")...)))
	box := append([]byte("\x00\x00\x00\x20dvcC\x01\x00\x0a\x0d"), make([]byte, 20)...) // profile 5, level 1
	// The media data comes first, so its offsets stay.
	at, start := 0, 0
	for _, kind := range []string{"moov", "trak", "mdia", "minf", "stbl", "stsd", "hvc1"} {
		at = start + bytes.Index(b[start:], []byte(kind)) - 4
		if at < start-4 {
			t.Fatal("no box " + kind)
		}
		start = at + 8
		binary.BigEndian.PutUint32(b[at:], binary.BigEndian.Uint32(b[at:])+uint32(len(box)))
	}
	end := at + int(binary.BigEndian.Uint32(b[at:])) - len(box)
	b = append(b[:end:end], append(box, b[end:]...)...)
	return fileops.Bytes("in.mp4", b)
}

// A truncated file fails, or completes with a warning.
func TestTruncatedIsTold(t *testing.T) {
	t.Parallel()
	noise := "-f lavfi -i anoisesrc=duration=20:sample_rate=44100:seed=7"
	video := args(picture("160x120", 10, 20), "-f lavfi -i sine=duration=20")
	files := map[string][]string{
		"in.mp4":  append(video, args("-c:v libx264 -preset ultrafast -pix_fmt yuv420p -movflags +faststart")...),
		"in.mkv":  append(video, args("-c:v libx264 -preset ultrafast -pix_fmt yuv420p -c:a aac")...),
		"in.flv":  append(video, args("-c:v libx264 -preset ultrafast -pix_fmt yuv420p -c:a aac")...),
		"in.avi":  append(video, args("-c:v mpeg4 -c:a mp3")...),
		"in.wmv":  append(video, args("-c:v wmv2 -c:a wmav2")...),
		"in.wma":  args(noise),
		"in.mp3":  args(noise),
		"in.m4a":  args(noise, "-movflags +faststart"),
		"in.flac": args(noise),
		"in.aiff": args(noise),
	}
	only := map[string]string{"in.mp4": "mov", "in.mkv": "avi", "in.avi": "mp3", "in.wmv": "mkv"} // with -short
	for name, a := range files {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := systest.ReadFile(t, onDisk(t, makeFile(t, name, a...)))
			targets := []string{"wav"}
			if name == "in.mp4" || name == "in.mkv" || name == "in.flv" {
				targets = append(targets, "mov", "avi")
			}
			if name == "in.avi" || name == "in.wmv" {
				targets = append(targets, "mov", "mkv", "mp3")
			}
			for _, to := range targets {
				if want := cmp.Or(only[name], "wav"); testing.Short() && to != want {
					continue
				}
				if got, err := tryWarned(t, engine(t).Convert(), convertTo(to), fileops.Bytes(name, b)); err != nil || got != "" {
					t.Errorf("whole to %s: %v, %s", to, err, got)
				}
				got, err := tryWarned(t, engine(t).Convert(), convertTo(to), fileops.Bytes(name, b[:len(b)*93/100]))
				if err != nil || !strings.HasPrefix(got, "content_dropped: ") || strings.Contains(got, "\n") {
					t.Errorf("93 %% to %s: %v, %q", to, err, got)
				}
				got, err = tryWarned(t, engine(t).Convert(), convertTo(to), fileops.Bytes(name, b[:len(b)/2]))
				if err == nil && !strings.HasPrefix(got, "content_dropped: ") || err != nil && fileops.Code(err) != "corrupt_input" {
					t.Errorf("half to %s: %v, %q", to, err, got)
				}
				got, err = tryWarned(t, engine(t).Convert(), convertTo(to), fileops.Bytes(name, b[:len(b)*3/100]))
				if fileops.Code(err) != "corrupt_input" {
					t.Errorf("3 %% to %s: %v, %q", to, err, got)
				}
			}
		})
	}
}
