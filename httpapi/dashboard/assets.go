package dashboard

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strconv"
)

//go:embed static
var staticFiles embed.FS

// assets are the static files of the pages. Their address contains a hash of all files. So browsers
// can cache them forever, and modules can import each other by plain names.
type assets struct {
	base  string // "/dashboard/static/0123456789abcdef/"
	hash  string
	files map[string][]byte
}

func loadAssets() (*assets, error) {
	a := &assets{files: make(map[string][]byte)}
	sum := sha256.New()
	entries, err := staticFiles.ReadDir("static")
	if err != nil {
		return nil, err
	}
	for _, e := range entries { // sorted by name
		b, err := fs.ReadFile(staticFiles, "static/"+e.Name())
		if err != nil {
			return nil, err
		}
		a.files[e.Name()] = b
		sum.Write([]byte(e.Name() + "\x00" + strconv.Itoa(len(b)) + "\x00"))
		sum.Write(b)
	}
	a.hash = hex.EncodeToString(sum.Sum(nil)[:8])
	a.base = Path + "static/" + a.hash + "/"
	return a, nil
}

func (a *assets) url(name string) string { return a.base + name }

// ServeHTTP answers GET …/static/{hash}/{name}. During a rolling update, a page of another version
// has another hash. Its files are served but not cached.
func (a *assets) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("name")
	b, ok := a.files[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	h := w.Header()
	h.Set("Content-Type", contentType(name))
	h.Set("Cache-Control", "public, max-age=31536000, immutable")
	if r.PathValue("hash") != a.hash {
		h.Set("Cache-Control", "no-store")
	}
	h.Set("Content-Length", strconv.Itoa(len(b)))
	w.Write(b)
}

// contentType does not use the system's MIME tables, which differ.
func contentType(name string) string {
	switch path.Ext(name) {
	case ".css":
		return "text/css; charset=utf-8"
	case ".js":
		return "text/javascript; charset=utf-8"
	case ".svg":
		return "image/svg+xml"
	}
	return mime.TypeByExtension(path.Ext(name))
}
