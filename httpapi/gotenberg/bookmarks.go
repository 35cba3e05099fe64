package gotenberg

import (
	"encoding/json"
	"fmt"
	"net/http"
	"path"
	"strings"
)

// A bookmark is a bookmark on the wire of Gotenberg.
type bookmark struct {
	Title    string     `json:"title"`
	Page     int        `json:"page"`
	Children []bookmark `json:"children,omitempty"`
}

// Bookmarks are those of all files, or of files by their name.
type bookmarks struct {
	given bool
	all   []bookmark
	by    map[string][]bookmark // nil: all
}

// bookmarks reads the field bookmarks.
func (r *reader) bookmarks(required bool) (b bookmarks) {
	read := (*reader).custom
	if required {
		read = (*reader).require
	}
	read(r, "bookmarks", func(v string) error {
		if json.Unmarshal([]byte(v), &b.all) == nil {
			b.given = len(b.all) > 0
			return nil
		}
		b.all = nil
		if err := json.Unmarshal([]byte(v), &b.by); err != nil {
			return fmt.Errorf("unmarshal bookmarks: %w", err)
		}
		b.given = true
		return nil
	})
	return b
}

// outline returns the parameter outline for bookmarks, whose pages are counted from offset+1.
func outline(list []bookmark, offset int) string {
	var b strings.Builder
	var write func(list []bookmark, level int)
	write = func(list []bookmark, level int) {
		for _, one := range list {
			title := strings.Map(func(r rune) rune {
				if r < ' ' {
					return ' '
				}
				return r
			}, one.Title)
			fmt.Fprintf(&b, "%s%d %s\n", strings.Repeat("  ", level), max(one.Page+offset, 0), title)
			write(one.Children, level+1)
		}
	}
	write(list, 0)
	return b.String()
}

// marked sets the bookmarks of documents.
func (c *call) marked(docs []doc, b bookmarks) ([]doc, error) {
	if !b.given {
		return docs, nil
	}
	for i, d := range docs {
		list := b.all
		if b.by != nil {
			var ok bool
			if list, ok = b.by[d.name]; !ok {
				continue
			}
		}
		made, err := c.each([]doc{d}, "bookmarks", map[string]any{"outline": outline(list, 0)})
		if err != nil {
			return nil, err
		}
		docs[i] = made[0]
	}
	return docs, nil
}

// tree returns the bookmarks of a report.
func (r report) tree() []bookmark {
	i := 0
	var below func(level int) []bookmark
	below = func(level int) []bookmark {
		out := []bookmark{}
		for i < len(r.PDF.Bookmarks) && r.PDF.Bookmarks[i].Level >= level {
			b := r.PDF.Bookmarks[i]
			i++
			one := bookmark{Title: b.Title, Page: b.Page}
			if children := below(level + 1); len(children) > 0 {
				one.Children = children
			}
			out = append(out, one)
		}
		return out
	}
	return below(0)
}

// readBookmarks answers POST /forms/pdfengines/bookmarks/read.
func readBookmarks(c *call) ([]doc, error) {
	docs, err := simple(&reader{form: &c.form})
	if err != nil {
		return nil, err
	}
	reports, err := c.reports(docs)
	if err != nil {
		return nil, err
	}
	all := make(map[string][]bookmark)
	for i, r := range reports {
		all[docs[i].name] = r.tree()
	}
	c.body = all
	return nil, nil
}

// writeBookmarks answers POST /forms/pdfengines/bookmarks/write.
func writeBookmarks(c *call) ([]doc, error) {
	r := &reader{form: &c.form}
	b := r.bookmarks(true)
	docs, err := simple(r)
	if err != nil {
		return nil, err
	}
	return c.marked(docs, b)
}

// An index says which bookmarks a merged file has.
type index struct {
	bookmarks
	own    bool // those of the files
	titles bool // one for each file
}

// index reads the fields of the bookmarks of a merged file.
func (r *reader) index() index {
	return index{bookmarks: r.bookmarks(false), own: r.flag("autoIndexBookmarks", false), titles: r.flag("titleBookmarks", false)}
}

// of returns the bookmarks of the merged file of docs.
func (x index) of(c *call, docs []doc) (bookmarks, error) {
	if !x.own && !x.titles && x.by == nil {
		return x.bookmarks, nil
	}
	reports, err := c.reports(docs)
	if err != nil {
		return bookmarks{}, err
	}
	all := bookmarks{given: true, all: []bookmark{}}
	offset := 0
	for i, r := range reports {
		list := []bookmark(nil)
		if given, ok := x.by[docs[i].name]; ok {
			list = given
		} else if x.own || x.titles {
			list = r.tree()
		}
		list = shifted(list, offset)
		if x.titles {
			title, _ := r.Metadata["title"].(string)
			if strings.TrimSpace(title) == "" {
				title = strings.TrimSuffix(docs[i].name, path.Ext(docs[i].name))
			}
			list = []bookmark{{title, offset + 1, list}}
		}
		all.all = append(all.all, list...)
		offset += r.PDF.Pages
	}
	if x.all != nil {
		all.all = append(x.all, all.all...)
	}
	return all, nil
}

func shifted(list []bookmark, offset int) []bookmark {
	out := make([]bookmark, len(list))
	for i, b := range list {
		out[i] = bookmark{b.Title, b.Page + offset, shifted(b.Children, offset)}
	}
	return out
}

// An attachment is a file to embed in PDF files.
type attachment struct {
	file
	mediaType, relationship string
}

// attachments reads the files and fields of attachments.
func (c *call) attachments() ([]attachment, error) {
	about := map[string]map[string]string{}
	if v := c.form.values["embedsMetadata"]; len(v) > 0 && v[0] != "" {
		if err := json.Unmarshal([]byte(v[0]), &about); err != nil {
			return nil, refuse(http.StatusBadRequest, "Invalid form data: form field 'embedsMetadata' is invalid: %v", err)
		}
	}
	var out []attachment
	for _, f := range c.form.of("embeds") {
		a := attachment{file: f, mediaType: about[f.name]["mimeType"], relationship: strings.ToLower(about[f.name]["relationship"])}
		out = append(out, a)
	}
	return out, nil
}

// attached embeds files in documents.
func (c *call) attached(docs []doc, list []attachment) (_ []doc, err error) {
	for _, a := range list {
		params := map[string]any{"file_key": a.key, "name": a.name}
		if a.mediaType != "" {
			params["media_type"] = a.mediaType
		}
		if a.relationship != "" {
			params["relationship"] = a.relationship
		}
		if docs, err = c.each(docs, "attach", params); err != nil {
			return nil, err
		}
	}
	return docs, nil
}

// embedPDF answers POST /forms/pdfengines/embed.
func embedPDF(c *call) ([]doc, error) {
	r, p := &reader{form: &c.form}, post{}
	v, later := c.invoice(r, "")
	docs, err := simple(r)
	if err == nil {
		err = later
	}
	if err != nil {
		return nil, err
	}
	if p.embeds, err = c.attachments(); err != nil {
		return nil, err
	}
	p.invoice = v
	return p.apply(c, docs)
}
