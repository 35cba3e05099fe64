package httpapi

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/filewright/filewright/fileops/format"
)

// download answers GET and HEAD /v1/download/<result_file_key>. The link to a
// result is a capability: it works without a key until the result expires,
// unless Config.PrivateDownloads is set. Uploads need their owner's key.
func (s *Service) download(w http.ResponseWriter, r *http.Request) {
	key := r.PathValue("file_key")
	owner := ""
	f, err := s.uploads.Get(r.Context(), "", key)
	if err == nil && f.Task == "" || s.cfg.PrivateDownloads || err != nil {
		// Who asks for what does not exist is not told more than who asks
		// for what is not his.
		who, aerr := s.authenticate(r)
		if aerr == nil {
			owner, aerr = who.Account, s.limit(w, who)
		}
		if aerr != nil && (err == nil || s.cfg.PrivateDownloads || !errors.Is(aerr, ErrUnauthenticated)) {
			s.fail(w, r, aerr)
			return
		}
	}
	f, obj, err := s.uploads.Open(r.Context(), owner, key)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer obj.Close()
	h := w.Header()
	h.Set("Content-Type", safeType(f.Name, f.ContentType))
	h.Set("Content-Disposition", disposition(f.Name))
	h.Set("ETag", `"`+f.ETag+`"`)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Content-Security-Policy", "sandbox; default-src 'none'; frame-ancestors 'none'")
	// Pages of others must not embed it, unless there are some that may.
	if len(s.cfg.Origins) == 0 {
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
	} else {
		h.Set("Cross-Origin-Resource-Policy", "cross-origin")
	}
	h.Set("Cache-Control", "private, no-store")
	var content io.ReadSeeker = io.NewSectionReader(obj, 0, obj.Info().Size)
	if l, ok := obj.(interface{ File() *os.File }); ok {
		content = l.File() // goes out by sendfile; it is ours alone until obj is closed
	}
	rw := &rangeWriter{recorder: w.(*recorder)}
	http.ServeContent(rw, r, "", f.Created, content)
	if rw.refused {
		for _, name := range []string{"Content-Disposition", "Content-Security-Policy", "ETag", "Last-Modified"} {
			h.Del(name)
		}
		s.fail(w, r, problem(http.StatusRequestedRangeNotSatisfiable, "invalid_range", "the file has no such range"))
	}
}

// A rangeWriter keeps back the text that http.ServeContent answers to a range
// that does not exist, so that the answer can be like other errors.
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

// disposition returns the header that names a download: in ASCII for old clients,
// and as it is (RFC 6266, 4.3; RFC 8187).
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

// safeType returns the type under which a file is delivered: what browsers
// could run is only bytes.
func safeType(name, declared string) string {
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
