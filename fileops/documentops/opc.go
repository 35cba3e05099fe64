package documentops

import (
	"context"
	"net/url"
	"path"
	"slices"
	"strings"
)

const contentTypes = "[Content_Types].xml"

// An opc is a document in Office Open XML packaging: parts, and relationships
// between them (ISO/IEC 29500-2).
type opc struct {
	*archive
	sources []*source // owners of relationships, the package first
}

// A source is a part with relationships, or the package itself.
type source struct {
	part  string // "" for the package
	rels  *entry // lists the relationships
	text  []byte
	links []link
}

// A link is a relationship to another part. Relationships to targets outside the
// package are ignored.
type link struct {
	tag    tag
	id     string
	kind   string // last element of its type: "image", "slide"
	target attr
	to     *entry // nil if the part is missing
}

// openOPC reads all relationships.
func openOPC(ctx context.Context, a *archive) (*opc, error) {
	if a.find(contentTypes) == nil {
		return nil, damaged(errXML)
	}
	if a.has("_xmlsignatures/") {
		return nil, errSigned()
	}
	p := &opc{archive: a}
	for _, e := range a.entries {
		dir, base := path.Split(e.Name)
		if !strings.HasSuffix(strings.ToLower(base), ".rels") || !strings.EqualFold(path.Base(dir), "_rels") {
			continue
		}
		s := &source{rels: e, part: path.Join(path.Dir(path.Clean(dir)), base[:len(base)-len(".rels")])}
		if base[:len(base)-len(".rels")] == "" {
			s.part = ""
		}
		text, ok, err := e.text(ctx, maxIndex)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue // irrelevant here
		}
		s.text = text
		if err := p.parse(s); err != nil {
			return nil, err
		}
		p.sources = append(p.sources, s)
	}
	slices.SortStableFunc(p.sources, func(a, b *source) int { return strings.Compare(a.part, b.part) })
	return p, nil
}

func (p *opc) parse(s *source) error {
	for t, err := range tags(s.text) {
		if err != nil {
			return err
		}
		if t.closing || t.name() != "Relationship" {
			continue
		}
		l := link{tag: t}
		external := false
		for a := range t.attrs() {
			switch a.name {
			case "Id":
				l.id = a.value
			case "Type":
				l.kind = a.value[strings.LastIndexByte(a.value, '/')+1:]
			case "Target":
				l.target = a
			case "TargetMode":
				external = strings.EqualFold(a.value, "External")
			}
		}
		if l.kind == "origin" && strings.Contains(string(t.text[t.start:t.end]), "digital-signature") {
			return errSigned()
		}
		if external || l.target.value == "" {
			continue
		}
		l.to = p.find(resolve(s.part, l.target.value))
		if l.to == nil {
			if u, err := url.PathUnescape(l.target.value); err == nil {
				l.to = p.find(resolve(s.part, u))
			}
		}
		s.links = append(s.links, l)
	}
	return nil
}

// resolve returns the name of the part that a relationship target of source
// refers to (ISO/IEC 29500-2, 6.5.3.4).
func resolve(source, target string) string {
	target, _, _ = strings.Cut(target, "#")
	if strings.HasPrefix(target, "/") {
		return strings.TrimPrefix(path.Clean(target), "/")
	}
	return path.Join(path.Dir(source), target)
}

// relative returns the target for a relationship from source to a part, in the
// style of the previous target.
func relative(source, part, before string) string {
	escaped := (&url.URL{Path: part}).EscapedPath()
	if strings.HasPrefix(before, "/") {
		return "/" + escaped
	}
	dir := path.Dir(source)
	if dir == "." {
		return escaped
	}
	up := ""
	for !strings.HasPrefix(part, dir+"/") {
		up += "../"
		if dir = path.Dir(dir); dir == "." {
			return up + escaped
		}
	}
	return up + (&url.URL{Path: strings.TrimPrefix(part, dir+"/")}).EscapedPath()
}

// main returns the main part of the document, regardless of its name, or nil.
func (p *opc) main() *entry {
	for _, s := range p.sources {
		for _, l := range s.links {
			if s.part == "" && l.kind == "officeDocument" && l.to != nil {
				return l.to
			}
		}
	}
	return nil
}

// reachable returns the entries that are reachable from the package by
// relationships.
func (p *opc) reachable() map[*entry]bool {
	by := make(map[string]*source)
	for _, s := range p.sources {
		by[strings.ToLower(s.part)] = s
	}
	seen := make(map[*entry]bool)
	queue := []*source{by[""]}
	for ; len(queue) > 0; queue = queue[1:] {
		if queue[0] == nil {
			continue
		}
		for _, l := range queue[0].links {
			if l.to != nil && !seen[l.to] {
				seen[l.to] = true
				queue = append(queue, by[strings.ToLower(l.to.Name)])
			}
		}
	}
	return seen
}

// strip drops parts that no reader shows: unreferenced media and, if extras is
// set, the document's preview and the author's printer settings.
func (p *opc) strip(ctx context.Context, extras bool) error {
	seen := p.reachable()
	if len(seen) == 0 {
		return nil // without relationships all parts look unreferenced
	}
	for _, e := range p.entries {
		if strings.Contains(strings.ToLower(e.Name), "/media/") && !seen[e] {
			e.drop = true
		}
	}
	if !extras {
		return nil
	}
	for _, s := range p.sources {
		for _, l := range s.links {
			switch {
			case l.to == nil:
			case l.kind == "thumbnail" && s.part == "":
				l.to.drop = true
			case l.kind == "printerSettings":
				if err := p.dropPrinter(ctx, s, l); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// dropPrinter drops printer settings, and the attribute of the sheet's page
// setup that refers to them.
func (p *opc) dropPrinter(ctx context.Context, s *source, l link) error {
	sheet := p.find(s.part)
	if sheet == nil {
		return nil
	}
	text, ok, err := sheet.text(ctx, maxPart)
	if err != nil || !ok {
		return err
	}
	var edits []edit
	for t, err := range tags(text) {
		if err != nil {
			return err
		}
		if t.closing {
			continue
		}
		for a := range t.attrs() {
			if a.prefix == "" || a.name != "id" || a.value != l.id {
				continue
			}
			if t.name() != "pageSetup" {
				return nil // something else uses it
			}
			edits = append(edits, edit{a.start, a.end, ""})
		}
	}
	sheet.data = apply(text, edits)
	l.to.drop = true
	return nil
}

// finish updates relationships and content types after parts were renamed or dropped.
// moved maps a dropped part to its replacement.
func (p *opc) finish(ctx context.Context, moved map[*entry]*entry) error {
	for _, s := range p.sources {
		var edits []edit
		for _, l := range s.links {
			to := l.to
			if to == nil {
				continue
			}
			if m := moved[to]; m != nil {
				to = m
			}
			switch {
			case to.drop:
				edits = append(edits, edit{l.tag.start, endOf(l.tag), ""})
			case to != l.to || to.name != to.Name:
				edits = append(edits, setAttr(l.target, relative(s.part, to.name, l.target.value)))
			}
		}
		if len(edits) > 0 {
			s.rels.data = apply(s.text, edits)
		}
	}
	return p.contentTypes(ctx)
}

// endOf returns the end of an element without content. A separate end tag belongs to
// the element.
func endOf(t tag) int {
	if t.empty {
		return t.end
	}
	for next, err := range tags(t.text[t.end:]) {
		if err == nil && next.closing {
			return t.end + next.end
		}
		break
	}
	return t.end
}

// contentTypes updates the list of media types to the names of parts (ISO/IEC
// 29500-2, 6.2.3).
func (p *opc) contentTypes(ctx context.Context) error {
	list := p.find(contentTypes)
	changed := make(map[string]*entry) // by name in lower case
	for _, e := range p.entries {
		if e.drop || e.name != e.Name {
			changed["/"+strings.ToLower(e.Name)] = e
		}
	}
	if len(changed) == 0 {
		return nil
	}
	text, err := list.read(ctx, maxIndex)
	if err != nil {
		return err
	}
	var edits []edit
	known := make(map[string]string)
	head := -1 // end of the root's start tag
	for t, err := range tags(text) {
		if err != nil {
			return err
		}
		switch {
		case t.closing:
		case t.name() == "Types":
			head = t.end
		case t.name() == "Default":
			ext, _ := t.attr("Extension")
			known[strings.ToLower(ext)], _ = t.attr("ContentType")
		case t.name() == "Override":
			part, _ := t.attr("PartName")
			if changed[strings.ToLower(part)] != nil {
				edits = append(edits, edit{t.start, endOf(t), ""})
			}
		}
	}
	if head < 0 {
		return damaged(errXML)
	}
	var added []string
	for _, e := range p.entries {
		if e.drop || e.name == e.Name {
			continue
		}
		ext := strings.TrimPrefix(path.Ext(e.name), ".")
		mime := mimeOf(ext)
		switch have, ok := known[ext]; {
		case !ok:
			added = append(added, `<Default Extension="`+ext+`" ContentType="`+mime+`"/>`)
			known[ext] = mime
		case have != mime:
			added = append(added, `<Override PartName="/`+escaper.Replace((&url.URL{Path: e.name}).EscapedPath())+`" ContentType="`+mime+`"/>`)
		}
	}
	edits = append(edits, edit{head, head, strings.Join(added, "")})
	slices.SortStableFunc(edits, func(a, b edit) int { return a.start - b.start })
	list.data = apply(text, edits)
	return nil
}

// mimeOf returns the media type of a recoded picture.
func mimeOf(ext string) string {
	if ext == "png" {
		return "image/png"
	}
	return "image/jpeg"
}
