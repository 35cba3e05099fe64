package officeops

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"net/url"
	"os"
	"slices"
	"strings"

	"golang.org/x/net/html"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
)

// embedPictures replaces the references to pictures in a page by data URLs and writes the
// result to path. pandoc has written the page, and the pictures of the book to work/media. References to other
// files are left out: recordings, and what the book lacks. pandoc can embed pictures itself,
// but it fails if there is one such reference. A compromised engine may have written these
// files: see [engine.Open].
func (t *task) embedPictures(ctx context.Context, made *os.File, path, work, media string) error {
	if err := os.Remove(path); err != nil { // do not write to a link's target
		return err
	}
	e := &embedder{work: work, media: media + "/", drawings: t.last}
	if err := create(path, func(w io.Writer) error { return e.page(ctx, &limitedWriter{w, maxOutput}, made) }); err != nil {
		return err
	}
	e.lost.warn(t.job)
	return nil
}

// An embedder copies a page with its pictures.
type embedder struct {
	work, media string // media: what the paths of pictures below work start with
	drawings    bool   // count drawings of a picture, such as covers; a later step counts them otherwise
	lost        pageLosses
}

func (e *embedder) page(ctx context.Context, w io.Writer, page io.Reader) error {
	z := html.NewTokenizer(&attributeCounter{r: fileops.ContextReader(ctx, page)})
	z.SetMaxBuf(maxToken)
	hidden := false // the text of an element that is left out follows
	for {
		kind := z.Next()
		raw := z.Raw()
		text := hidden && kind == html.TextToken
		hidden = false
		var err error
		switch {
		case kind == html.ErrorToken:
			return tokenError(z.Err())
		case text:
		case kind == html.StartTagToken || kind == html.SelfClosingTagToken:
			raw = bytes.Clone(raw) // Token changes it
			t := z.Token()
			if e.unknown(t) {
				hidden = t.Data == "iframe" || t.Data == "script"
				break
			}
			err = e.tag(w, t, raw)
		case kind == html.EndTagToken:
			raw = bytes.Clone(raw)
			if name, _ := z.TagName(); !isRecording(string(name)) && string(name) != "iframe" {
				_, err = w.Write(raw)
			}
		default:
			_, err = w.Write(raw)
		}
		if err != nil {
			return err
		}
	}
}

// tokenError returns the failure of a tokenizer, nil at the end of its page.
func tokenError(err error) error {
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case errors.Is(err, html.ErrBufferExceeded):
		return fileops.Fail(fileops.ErrLimit, err, "the page has a tag, or a text between two tags, of more than %d MiB", maxToken>>20)
	}
	return err
}

func isRecording(element string) bool { return element == "audio" || element == "video" }

// unknown reports whether a tag is left out, because it shows or runs another file. The
// content of a recording stays: it is for readers who cannot play it.
func (e *embedder) unknown(t html.Token) bool {
	switch t.Data {
	case "audio", "video":
		e.lost.recordings++
	case "source", "track":
	case "iframe", "frame", "embed":
		e.lost.frames++
	case "link":
		if slices.ContainsFunc(t.Attr, func(a html.Attribute) bool { return a.Key == "rel" && strings.EqualFold(a.Val, "stylesheet") }) {
			e.lost.styles++
		}
	case "script":
		if !slices.ContainsFunc(t.Attr, func(a html.Attribute) bool { return a.Key == "src" }) {
			return false
		}
		e.lost.scripts++
	default:
		return false
	}
	return true
}

// tag writes a tag. raw is its source. A picture that the book lacks becomes its
// description.
func (e *embedder) tag(w io.Writer, t html.Token, raw []byte) error {
	refers := func(a html.Attribute) bool {
		switch a.Key {
		case "src", "srcset", "data-src", "poster", "background":
			return true
		case "href", "xlink:href":
			return t.Data == "image"
		}
		return false
	}
	if !slices.ContainsFunc(t.Attr, refers) {
		_, err := w.Write(raw)
		return err
	}
	var out bytes.Buffer // the tag without its pictures, which can be large
	var picture *os.File
	var at int // its place in out
	defer func() {
		if picture != nil {
			picture.Close()
		}
	}()
	shown := false
	out.WriteString("<" + t.Data)
	for _, a := range t.Attr {
		value := a.Val
		if refers(a) && !isEmbedded(value) {
			if picture != nil || a.Key == "srcset" {
				continue
			}
			var kind string
			if picture, kind = e.open(value); picture == nil {
				continue
			}
			out.WriteString(" " + a.Key + `="data:` + kind + ";base64,")
			at = out.Len()
			out.WriteString(`"`)
			shown = true
			continue
		}
		shown = shown || refers(a)
		out.WriteString(" " + a.Key + `="` + html.EscapeString(value) + `"`)
	}
	switch {
	case !shown && t.Data == "img":
		e.lost.images++
		for _, a := range t.Attr {
			if a.Key == "alt" {
				_, err := io.WriteString(w, html.EscapeString(a.Val))
				return err
			}
		}
		return nil
	case !shown && t.Data == "image" && e.drawings:
		e.lost.drawings++
	}
	if t.Type == html.SelfClosingTagToken {
		out.WriteString(" /")
	}
	out.WriteString(">")
	if picture == nil {
		_, err := w.Write(out.Bytes())
		return err
	}
	if _, err := w.Write(out.Bytes()[:at]); err != nil {
		return err
	}
	enc := base64.NewEncoder(base64.StdEncoding, w)
	_, err := io.Copy(enc, picture)
	if err := errors.Join(err, enc.Close()); err != nil {
		return err
	}
	_, err = w.Write(out.Bytes()[at:])
	return err
}

// isEmbedded reports whether a reference is to something in the page.
func isEmbedded(ref string) bool {
	return strings.HasPrefix(ref, "#") || len(ref) >= 5 && strings.EqualFold(ref[:5], "data:")
}

// open opens a picture that pandoc has written, and returns its MIME type. It returns nil if
// ref is no such picture.
func (e *embedder) open(ref string) (*os.File, string) {
	f := format.Parse(ref)
	if !strings.HasPrefix(ref, e.media) || f.Family() != format.Image {
		return nil, ""
	}
	name, err := url.PathUnescape(ref)
	if err != nil {
		name = ref
	}
	for _, n := range []string{ref, name} {
		if !fs.ValidPath(n) {
			continue
		}
		if made, err := engine.Open(e.work, n); err == nil {
			return made, f.MIME()
		}
	}
	return nil, ""
}
