package httpapi

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/trace"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
)

// download answers GET and HEAD /v1/download/<result_file_key>. The link to a result is a
// capability: it works without a key until the result expires, unless Config.PrivateDownloads is
// set. Uploads require the owner's key. Without it the response is the same as for an unknown file
// key.
func (s *Service) download(w http.ResponseWriter, r *http.Request) {
	key := r.PathValue("file_key")
	owner := ""
	f, err := s.uploads.Get(r.Context(), "", key)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.fail(w, r, err)
		return
	}
	if err != nil || f.Task == "" || s.cfg.PrivateDownloads {
		// A missing file gets the same response as a file of another account.
		who, err := s.authenticate(r)
		if err == nil {
			owner, err = who.Account, s.limit(w, who)
		}
		if err == nil {
			err = who.may(ScopeRead)
		}
		if err != nil {
			s.fail(w, r, err)
			return
		}
	}
	if err == nil && s.cfg.RedirectDownloads && r.Method == http.MethodGet && s.redirect(w, r, owner, f) {
		return
	}
	var obj blob.Object
	if err == nil {
		_, span := trace.Start(r.Context(), "store open", trace.Client)
		obj, err = s.uploads.OpenFile(r.Context(), owner, f)
		span.End(spanCode(err))
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer obj.Close()
	s.serveContent(w, r, attachment{f.Name, safeType(f.Name), f.ETag, f.Created, contentOf(obj)})
}

// contentOf returns a reader of an object.
func contentOf(obj blob.Object) io.ReadSeeker {
	if l, ok := obj.(blob.LocalObject); ok {
		return l.File() // served with sendfile; only one request uses it until obj is closed
	}
	return io.NewSectionReader(obj, 0, obj.Info().Size)
}

// An attachment is the body of a download.
type attachment struct {
	name, contentType, etag string
	modified                time.Time
	content                 io.ReadSeeker
}

// serveContent answers a request with a download, or with the range of it that the request names.
func (s *Service) serveContent(w http.ResponseWriter, r *http.Request, a attachment) {
	h := w.Header()
	h.Set("Content-Type", a.contentType)
	h.Set("Content-Disposition", disposition(a.name))
	h.Set("ETag", `"`+a.etag+`"`)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	s.embedding(h)
	h.Set("Cache-Control", "private, no-store")
	rw := &rangeWriter{recorder: w.(*recorder)}
	http.ServeContent(rw, r, "", a.modified, a.content)
	if rw.refused {
		for _, name := range []string{"Content-Disposition", "Content-Security-Policy", "ETag", "Last-Modified"} {
			h.Del(name)
		}
		s.fail(w, r, problem(http.StatusRequestedRangeNotSatisfiable, "invalid_range", "the file has no such range"))
	}
}

// embedding forbids other sites to embed a download, unless the configuration permits some origins.
func (s *Service) embedding(h http.Header) {
	if len(s.cfg.Origins) == 0 {
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
	} else {
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	}
}

// redirect answers a download with a redirect to the store, or with the error that prevents it. It
// returns false if the store has no links.
func (s *Service) redirect(w http.ResponseWriter, r *http.Request, owner string, f *upload.File) bool {
	link, err := s.uploads.Link(r.Context(), owner, f, blob.LinkOptions{
		ContentType: safeType(f.Name), ContentDisposition: disposition(f.Name),
	})
	if err != nil {
		s.fail(w, r, err)
		return true
	}
	if link == nil {
		return false
	}
	h := w.Header()
	h.Set("Cache-Control", "private, no-store")
	s.embedding(h)
	// The store's ETag may differ from the ETag that the service sends.
	if hasETag(r.Header.Values("If-None-Match"), f.ETag) {
		h.Set("ETag", `"`+f.ETag+`"`)
		w.WriteHeader(http.StatusNotModified)
		return true
	}
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Location", link.String())
	h.Set("Content-Length", "0")
	w.WriteHeader(http.StatusTemporaryRedirect)
	return true
}

// hasETag reports whether the values of If-None-Match name an ETag.
func hasETag(values []string, etag string) bool {
	for _, v := range values {
		for one := range strings.SplitSeq(v, ",") {
			one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
			if one == "*" || one == `"`+etag+`"` {
				return true
			}
		}
	}
	return false
}

// A rangeWriter discards the text that http.ServeContent sends for an unsatisfiable range. The
// response can then be a Problem like other errors.
type rangeWriter struct {
	*recorder
	refused bool
}

func (w *rangeWriter) WriteHeader(status int) {
	if status == http.StatusRequestedRangeNotSatisfiable {
		w.refused = true
		return
	}
	w.recorder.WriteHeader(status)
}

func (w *rangeWriter) Write(p []byte) (int, error) {
	if w.refused {
		return len(p), nil
	}
	return w.recorder.Write(p)
}

// disposition returns the Content-Disposition header: an ASCII name for old clients, and the full
// name (RFC 6266, 4.3; RFC 8187).
func disposition(name string) string {
	ascii := strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' || r == '"' || r == '\\' || r == '%' {
			return '_'
		}
		return r
	}, name)
	if ascii == name {
		return `attachment; filename="` + name + `"`
	}
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; c < 0x80 && (c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte("!#$&+-.^_`|~", c) >= 0) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return `attachment; filename="` + ascii + `"; filename*=UTF-8''` + b.String()
}

// safeType returns the media type of a download, by its extension. Types that browsers could execute become plain
// bytes.
func safeType(name string) string {
	f := format.Parse(name)
	switch f {
	case format.HTML, format.SVG, format.XML, format.EPUB, format.FODT, format.FODS, format.FODP:
		return "application/octet-stream"
	case format.TXT, format.MD, format.CSV, format.TSV:
		return f.MIME() + "; charset=utf-8"
	}
	if f.Known() {
		return f.MIME()
	}
	return "application/octet-stream"
}
