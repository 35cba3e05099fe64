// Package docsite makes static pages of the Markdown files in docs. refserver serves them at /docs.
// They need no network and nothing from other servers.
package docsite

import (
	"bytes"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"iter"
	"maps"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Path is the path of the site. The home page has no slash at the end.
const Path = "/docs"

// Reference is the path of the API reference. It is not part of the site: the service renders it from
// its OpenAPI document.
const Reference = Path + "/api"

// home is the file of the home page. Its lists of links are the navigation.
const home = "index.md"

// policy is the Content-Security-Policy of all pages.
const policy = "default-src 'none'; style-src 'self'; script-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

var (
	//go:embed page.html
	pageTemplate string
	//go:embed site.css
	style []byte
	//go:embed site.js
	script []byte
)

// An Entry is a section that the search finds.
type Entry struct {
	URL     string `json:"u"`
	Page    string `json:"p"`           // title of the page
	Section string `json:"s,omitempty"` // title of the section
	Text    string `json:"t,omitempty"` // of the section
}

// A Site is the rendered documentation. It is an http.Handler for Path and everything below it, except
// Reference.
type Site struct {
	files map[string]file // by path of the URL
}

type file struct {
	kind    string
	content []byte
	etag    string
}

// New renders the Markdown files of source. The search also finds the entries of other.
func New(source fs.FS, other []Entry) (*Site, error) {
	s := &Site{files: make(map[string]file)}
	pages, err := s.read(source)
	if err != nil {
		return nil, err
	}
	t, err := template.New("page").Parse(pageTemplate)
	if err != nil {
		return nil, fmt.Errorf("docsite: %w", err)
	}
	nav := navigation(pages)
	var index []Entry
	for _, name := range order(pages, nav) {
		p := pages[name]
		index = append(index, p.entries...)
		data := view{Page: p, Home: name == home, Reference: Reference}
		for _, g := range nav {
			links := slices.Clone(g.Links)
			for i, l := range links {
				links[i].Here = l.URL == p.URL
			}
			data.Nav = append(data.Nav, group{g.Title, links})
		}
		data.Back, data.Next = neighbours(nav, p.URL)
		if name == home {
			if q := pages["troubleshooting.md"]; q != nil {
				data.Errors = q.errors()
			}
		}
		var b bytes.Buffer
		if err := t.Execute(&b, data); err != nil {
			return nil, fmt.Errorf("docsite: %w", err)
		}
		s.add(p.URL, "text/html; charset=utf-8", b.Bytes())
	}
	b, err := json.Marshal(append(index, other...))
	if err != nil {
		return nil, err
	}
	s.add(Path+"/search.json", "application/json", b)
	s.add(Path+"/site.css", "text/css; charset=utf-8", style)
	s.add(Path+"/site.js", "text/javascript; charset=utf-8", script)
	return s, nil
}

// Check returns an error if a link of a page leads nowhere, or if the home page lacks a page.
func Check(source fs.FS) error {
	s := &Site{files: make(map[string]file)}
	pages, err := s.read(source)
	if err != nil {
		return err
	}
	return check(pages, s.files)
}

// read renders the pages of source, by name, and adds its pictures to the site.
func (s *Site) read(source fs.FS) (map[string]*page, error) {
	pages := make(map[string]*page)
	err := fs.WalkDir(source, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := fs.ReadFile(source, name)
		if err != nil {
			return err
		}
		switch path.Ext(name) {
		case ".md":
			pages[name], err = render(name, b)
		case ".png":
			s.add(Path+"/"+name, "image/png", b)
		case ".svg":
			s.add(Path+"/"+name, "image/svg+xml", b)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("docsite: %w", err)
	}
	return pages, nil
}

func (s *Site) add(url, kind string, content []byte) {
	sum := sha256.Sum256(content)
	s.files[url] = file{kind, content, `"` + hex.EncodeToString(sum[:16]) + `"`}
}

// Files yields the path and the content of every file, in the order of the paths.
func (s *Site) Files() iter.Seq2[string, []byte] {
	return func(yield func(string, []byte) bool) {
		for _, url := range slices.Sorted(maps.Keys(s.files)) {
			if !yield(url, s.files[url].content) {
				return
			}
		}
	}
}

// Has reports whether the site has a file for the path of a URL.
func (s *Site) Has(url string) bool {
	_, ok := s.files[url]
	return ok
}

// ServeHTTP implements http.Handler.
func (s *Site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", policy)
	f, ok := s.files[r.URL.Path]
	switch trimmed := strings.TrimRight(r.URL.Path, "/"); {
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "method not allowed", http.StatusMethodNotAllowed)
	case ok:
		h.Set("ETag", f.etag)
		h.Set("Cache-Control", "no-cache")
		for known := range strings.SplitSeq(r.Header.Get("If-None-Match"), ",") {
			if known = strings.TrimPrefix(strings.TrimSpace(known), "W/"); known == f.etag || known == "*" {
				w.WriteHeader(http.StatusNotModified)
				return
			}
		}
		h.Set("Content-Type", f.kind)
		h.Set("Content-Length", strconv.Itoa(len(f.content)))
		w.WriteHeader(http.StatusOK)
		if r.Method == http.MethodGet {
			w.Write(f.content)
		}
	case trimmed != r.URL.Path && s.Has(trimmed), strings.HasSuffix(trimmed, ".md") && s.Has(strings.TrimSuffix(trimmed, ".md")):
		http.Redirect(w, r, strings.TrimSuffix(trimmed, ".md"), http.StatusMovedPermanently)
	default:
		http.Error(w, "Page not found. All pages: "+Path, http.StatusNotFound)
	}
}

// A view is what the template shows.
type view struct {
	Page       *page
	Home       bool
	Reference  string
	Nav        []group
	Back, Next *link
	Errors     []link // on the home page
}

type group struct {
	Title string
	Links []link
}

type link struct {
	ID, Title, URL string
	Here           bool
}

// navigation returns the links of the home page by section.
func navigation(pages map[string]*page) []group {
	if pages[home] == nil {
		return nil
	}
	return pages[home].groups
}

// order returns the names of the pages in the order of the navigation.
func order(pages map[string]*page, nav []group) []string {
	at := map[string]int{Path: 0}
	for _, g := range nav {
		for _, l := range g.Links {
			if _, ok := at[l.URL]; !ok {
				at[l.URL] = len(at)
			}
		}
	}
	names := slices.Sorted(maps.Keys(pages))
	slices.SortStableFunc(names, func(a, b string) int { return at[pages[a].URL] - at[pages[b].URL] })
	return names
}

// neighbours returns the links before and after a page in the navigation.
func neighbours(nav []group, url string) (back, next *link) {
	var all []link
	for _, g := range nav {
		all = append(all, g.Links...)
	}
	i := slices.IndexFunc(all, func(l link) bool { return l.URL == url })
	if i > 0 {
		back = &all[i-1]
	}
	if i >= 0 && i+1 < len(all) {
		next = &all[i+1]
	}
	return back, next
}

// check is Check for rendered pages.
func check(pages map[string]*page, files map[string]file) error {
	known := make(map[string]*page)
	for _, p := range pages {
		known[p.URL] = p
	}
	var errs []error
	listed := map[string]bool{Path: true}
	for _, g := range navigation(pages) {
		for _, l := range g.Links {
			listed[l.URL] = true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(pages)) {
		p := pages[name]
		if !listed[p.URL] {
			errs = append(errs, fmt.Errorf("%s has no link on the home page %s", name, home))
		}
		for _, url := range p.links {
			target, fragment, _ := strings.Cut(url, "#")
			_, isFile := files[target]
			switch q := known[target]; {
			case target == Reference, isFile:
			case q == nil:
				errs = append(errs, fmt.Errorf("%s: no page %s", name, target))
			case fragment != "" && !q.ids[fragment]:
				errs = append(errs, fmt.Errorf("%s: no section %s", name, url))
			}
		}
	}
	return errors.Join(errs...)
}
