package main

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/filewright/filewright/internal/systest"
)

// Texts are compressed for clients that accept it. Files of users and events are not.
func TestCompressed(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a text that can be compressed, ", 500)
	h := compressed(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", r.URL.Query().Get("type"))
		w.Header().Set("ETag", `"abc"`)
		if r.Header.Get("If-None-Match") == `"abc"` {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		io.WriteString(w, text)
		http.NewResponseController(w).Flush()
	}))
	get := func(path, accept, known string) *httptest.ResponseRecorder {
		r := httptest.NewRequest("GET", path, nil)
		r.Header.Set("Accept-Encoding", accept)
		r.Header.Set("If-None-Match", known)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		return w
	}
	for _, tt := range []struct{ path, accept, want string }{
		{"/docs?type=text/html;+charset=utf-8", "gzip, deflate, br", "gzip"},
		{"/docs?type=text/html", "gzip, zstd", "zstd"},
		{"/docs?type=text/html", "", ""},
		{"/api/v1/formats?type=application/json", "gzip", "gzip"},
		{"/api/v1/formats?type=application/problem%2Bjson", "gzip", "gzip"},
		{"/api/v1/status/x/events?type=text/event-stream", "gzip", ""},
		{"/docs/images/x.png?type=image/png", "gzip", ""},
		{"/v1/download/x?type=text/html", "gzip", ""},
		{"/api/v1/operations/x/download?type=text/html", "gzip", ""},
		{"/api/v1/run/convert?type=text/html", "gzip", ""},
		{"/forms/libreoffice/convert?type=text/html", "gzip", ""},
	} {
		w := get(tt.path, tt.accept, "")
		if got := w.Header().Get("Content-Encoding"); got != tt.want {
			t.Errorf("%s for %q: encoding %q, want %q", tt.path, tt.accept, got, tt.want)
			continue
		}
		var body io.Reader = w.Body
		var err error
		etag := `"abc"`
		switch tt.want {
		case "gzip":
			body, err = gzip.NewReader(w.Body)
			etag = w.Header().Get("ETag")
		case "zstd":
			body, err = zstd.NewReader(w.Body)
			etag = w.Header().Get("ETag")
		}
		systest.NoError(t, err)
		if tt.want != "" && (etag == `"abc"` || w.Body.Len() > len(text)/10) {
			t.Errorf("%s: ETag %s, %d bytes", tt.path, etag, w.Body.Len())
		}
		b, err := io.ReadAll(body)
		systest.NoError(t, err)
		if string(b) != text {
			t.Errorf("%s: another text", tt.path)
		}
		if w := get(tt.path, tt.accept, etag); w.Code != http.StatusNotModified {
			t.Errorf("%s with ETag %s: %d", tt.path, etag, w.Code)
		}
	}
}
