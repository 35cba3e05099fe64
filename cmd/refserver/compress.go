package main

import (
	"mime"
	"net/http"
	"strings"

	"github.com/klauspost/compress/gzhttp"
)

// texts are the media types whose responses are compressed. Events are not: each must leave at once.
var texts = map[string]bool{
	"text/html": true, "text/css": true, "text/javascript": true, "text/plain": true, "application/json": true,
	"application/problem+json": true, "application/yaml": true, "image/svg+xml": true,
}

// compressed compresses the texts that h answers with, as gzip or zstd, if the client accepts it. Files
// are sent as they are: clients continue interrupted downloads, and rely on the length and the ETag.
func compressed(h http.Handler) http.Handler {
	wrap, err := gzhttp.NewWrapper(
		// Less fits into two packets, and most polls for a status get less: compression takes longer
		// than it saves.
		gzhttp.MinSize(2048), gzhttp.EnableZstd(true), gzhttp.SuffixETag("-c"),
		// Pages of the dashboard contain secrets and texts of requests. Random lengths hide
		// whether they match (BREACH).
		gzhttp.RandomJitter(32, 0, false),
		gzhttp.ContentTypeFilter(func(kind string) bool {
			media, _, _ := mime.ParseMediaType(kind)
			return texts[media]
		}),
	)
	if err != nil { // the options are constants
		panic(err)
	}
	texts := wrap(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if known := r.Header.Get("If-None-Match"); known != "" {
			r.Header.Set("If-None-Match", plainETags.Replace(known))
		}
		h.ServeHTTP(w, r)
	}))
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if carriesFiles(r.URL.Path) {
			h.ServeHTTP(w, r)
			return
		}
		texts.ServeHTTP(w, r)
	})
}

// plainETags removes what gzhttp adds to ETags of compressed responses.
var plainETags = strings.NewReplacer(`-c-gzip"`, `"`, `-c-zstd"`, `"`, `-c"`, `"`)

// carriesFiles reports whether responses of a path can be files of users.
func carriesFiles(path string) bool {
	for _, part := range []string{"/download", "/upload/", "/run/", "/forms/", "/mcp", "/files/"} {
		if strings.Contains(path, part) {
			return true
		}
	}
	return false
}
