package documentops

import (
	"bytes"
	"context"
	"net/url"
	"path"
	"strconv"
	"strings"
)

const manifest = "META-INF/manifest.xml"

// An odf is a document in OpenDocument packaging (OpenDocument 1.3 part 2).
type odf struct {
	*archive
	manifest []byte
	parts    []*odfPart // parts that may refer to pictures
}

// An odfPart is an XML part with references to pictures.
type odfPart struct {
	entry *entry
	text  []byte
	refs  []odfRef
}

type odfRef struct {
	tag  tag
	href attr
	to   *entry
}

func openODF(ctx context.Context, a *archive) (*odf, error) {
	m := a.find(manifest)
	if m == nil {
		return nil, damaged(errXML)
	}
	d := &odf{archive: a}
	var ok bool
	var err error
	if d.manifest, ok, err = m.text(ctx, maxIndex); err != nil {
		return nil, err
	}
	if !ok {
		return nil, damaged(errXML)
	}
	for t, err := range tags(d.manifest) {
		if err != nil {
			return nil, err
		}
		if !t.closing && t.name() == "encryption-data" { // part 2, 4.4
			return nil, errProtected()
		}
	}
	for _, e := range a.entries {
		low := strings.ToLower(e.Name)
		if strings.HasPrefix(low, "meta-inf/") && strings.Contains(low, "signatures") { // part 2, 5
			return nil, errSigned()
		}
		switch path.Base(low) {
		case "content.xml", "styles.xml":
		default:
			continue
		}
		text, ok, err := e.text(ctx, maxPart)
		if err != nil {
			return nil, err
		}
		if !ok {
			return nil, errTooLarge
		}
		p := &odfPart{entry: e, text: text}
		for t, err := range tags(text) {
			if err != nil {
				return nil, err
			}
			if t.closing {
				continue
			}
			for at := range t.attrs() {
				if at.name != "href" || at.prefix == "" {
					continue
				}
				if to := d.target(e, at.value); to != nil {
					p.refs = append(p.refs, odfRef{t, at, to})
				}
			}
		}
		d.parts = append(d.parts, p)
	}
	return d, nil
}

// target returns the entry that a reference in a part points to. The reference is
// relative to the document of the part, which may be embedded in another document.
func (d *odf) target(from *entry, href string) *entry {
	if strings.HasPrefix(href, "#") || strings.Contains(href, ":") {
		return nil
	}
	if e := d.find(path.Join(path.Dir(from.Name), href)); e != nil {
		return e
	}
	if u, err := url.PathUnescape(href); err == nil {
		return d.find(path.Join(path.Dir(from.Name), u))
	}
	return nil
}

// strip drops the thumbnail of the first page and unreferenced pictures.
func (d *odf) strip(extras bool) {
	used := make(map[*entry]bool)
	for _, p := range d.parts {
		for _, r := range p.refs {
			used[r.to] = true
		}
	}
	for _, e := range d.entries {
		switch low := strings.ToLower(e.Name); {
		case strings.HasPrefix(low, "pictures/") && !strings.HasSuffix(low, "/"):
			e.drop = !used[e]
		case strings.HasPrefix(low, "thumbnails/"):
			e.drop = extras
		}
	}
}

// needs determines the display sizes of pictures. It uses frames of a given size
// that do not clip them (OpenDocument 1.3 part 3, 10.4).
func (d *odf) needs() (needs, error) {
	out := make(needs)
	for _, p := range d.parts {
		clipped := make(map[string]bool) // names of styles that clip pictures
		style := ""
		var frames []*need
		for t, err := range tags(p.text) {
			if err != nil {
				return nil, err
			}
			name := t.name()
			switch {
			case name == "frame" && t.closing:
				if len(frames) > 0 {
					frames = frames[:len(frames)-1]
				}
			case t.closing:
			case name == "style":
				style, _ = t.attr("name")
			case name == "graphic-properties":
				if clip, ok := t.attr("clip"); ok && strings.ContainsAny(clip, "123456789") {
					clipped[style] = true
				}
			case name == "frame":
				if !t.empty {
					frames = append(frames, frameSize(t, clipped))
				}
			default:
				for a := range t.attrs() {
					if a.name == "href" && a.prefix != "" {
						if e := d.target(p.entry, a.value); e != nil {
							d.use(out.of(e), name, frames)
						}
					}
				}
			}
		}
	}
	return out, nil
}

func (d *odf) use(n *need, element string, frames []*need) {
	if element != "image" {
		n.fixed = true // a background, a pattern, a bullet
		return
	}
	if len(frames) == 0 || frames[len(frames)-1].unknown {
		n.unknown = true
		return
	}
	f := frames[len(frames)-1]
	n.width, n.height = max(n.width, f.width), max(n.height, f.height)
}

func frameSize(t tag, clipped map[string]bool) *need {
	n := new(need)
	for a := range t.attrs() {
		switch a.name {
		case "width":
			n.width = inches(a.value)
		case "height":
			n.height = inches(a.value)
		case "style-name":
			n.unknown = n.unknown || clipped[a.value]
		case "rel-width", "rel-height", "transform":
			n.unknown = true
		}
	}
	n.unknown = n.unknown || n.width <= 0 || n.height <= 0
	return n
}

// inches parses a length (OpenDocument 1.3 part 3, 18.3.18). It returns 0 if s
// is not a length.
func inches(s string) float64 {
	for _, u := range []struct {
		name string
		per  float64
	}{{"cm", 2.54}, {"mm", 25.4}, {"in", 1}, {"pt", 72}, {"pc", 6}, {"px", 96}} {
		if v, ok := strings.CutSuffix(s, u.name); ok {
			n, err := strconv.ParseFloat(v, 64)
			if err != nil || !(n > 0 && n < 10000) {
				return 0
			}
			return n / u.per
		}
	}
	return 0
}

// finish updates references and the manifest after entries were renamed or dropped.
func (d *odf) finish(moved map[*entry]*entry) error {
	for _, p := range d.parts {
		var edits []edit
		for _, r := range p.refs {
			to := r.to
			if m := moved[to]; m != nil {
				to = m
			}
			if to == r.to && to.name == to.Name || to.drop {
				continue
			}
			name := to.name
			if dir := path.Dir(p.entry.Name); dir != "." {
				name = strings.TrimPrefix(name, dir+"/")
			}
			edits = append(edits, setAttr(r.href, (&url.URL{Path: name}).EscapedPath()))
		}
		if len(edits) > 0 {
			p.entry.data = apply(p.text, edits)
		}
	}
	var edits []edit
	for t, err := range tags(d.manifest) {
		if err != nil {
			return err
		}
		if t.closing || t.name() != "file-entry" {
			continue
		}
		name, _ := t.attr("full-path")
		e := d.find(name)
		if e == nil || e.drop {
			if e != nil || strings.EqualFold(name, "Thumbnails/") && !d.kept("thumbnails/") {
				edits = append(edits, edit{t.start, endOf(t), ""})
			}
			continue
		}
		if e.name == e.Name {
			continue
		}
		for a := range t.attrs() {
			switch a.name {
			case "full-path":
				edits = append(edits, setAttr(a, e.name))
			case "media-type":
				edits = append(edits, setAttr(a, mimeOf(strings.TrimPrefix(path.Ext(e.name), "."))))
			}
		}
	}
	if b := apply(d.manifest, edits); !bytes.Equal(b, d.manifest) {
		d.find(manifest).data = b
	}
	return nil
}

// kept reports whether an entry below a folder is in the result.
func (d *odf) kept(prefix string) bool {
	for _, e := range d.entries {
		if !e.drop && strings.HasPrefix(strings.ToLower(e.Name), prefix) {
			return true
		}
	}
	return false
}
