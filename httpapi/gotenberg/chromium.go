package gotenberg

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"regexp/syntax"
	"strings"
	"time"
)

// maxPage bounds a page with everything in it, in bytes: the limit of the engine.
const maxPage = 32 << 20

// maxTemplate bounds a header or footer in bytes.
const maxTemplate = 64 << 10

// A page holds the fields of a route of Chromium.
type page struct {
	params         map[string]any // of the action
	ranges         string         // of pages
	expression     string
	selector       string
	loading        bool // fails if a resource cannot be loaded
	exceptions     bool // fails if a script does
	omitBackground bool
	background     bool
	loader         *loader
	shown          string // selector of the part that a screenshot shows
}

// page reads the fields that all routes of Chromium have, in the order of Gotenberg.
func (r *reader) page(c *call) *page {
	l := &loader{c: c, mainFails: []int64{499, 599}}
	p := &page{params: make(map[string]any), loader: l}
	r.flag("skipNetworkIdleEvent", true)
	r.flag("skipNetworkAlmostIdleEvent", true)
	r.json("failOnHttpStatusCodes", &l.mainFails)
	r.json("failOnResourceHttpStatusCodes", &l.partFails)
	r.json("ignoreResourceHttpStatusDomains", &l.ignored)
	p.loading = r.flag("failOnResourceLoadingFailed", false)
	p.exceptions = r.flag("failOnConsoleExceptions", false)
	r.custom("waitDelay", func(v string) error {
		d, err := time.ParseDuration(v)
		if err == nil && d > 0 {
			p.params["wait_delay"] = d.Seconds()
		}
		return err
	})
	p.expression, p.selector = r.text("waitForExpression"), r.text("waitForSelector")
	wait := p.expression
	if v := r.text("waitWindowStatus"); v != "" {
		text, _ := json.Marshal(v) // a string has no error
		wait = "window.status === " + string(text)
		if p.expression != "" {
			wait = "(" + wait + ") && (" + p.expression + ")"
		}
	}
	if wait != "" {
		p.params["wait_for_expression"] = wait
	}
	if p.selector != "" {
		p.params["wait_for_selector"] = p.selector
	}
	l.cookies = r.cookies()
	l.agent = cmp.Or(r.text("userAgent"), "Mozilla/5.0 (X11; Linux x86_64) Chromium")
	l.headers = r.headers()
	r.custom("emulatedMediaType", func(v string) error {
		if v != "screen" && v != "print" {
			return errors.New("wrong value, expected either 'screen', 'print' or empty")
		}
		p.params["media"] = v
		return nil
	})
	features := map[string]string{}
	if r.json("emulatedMediaFeatures", &features); len(features) > 0 {
		p.params["media_features"] = features
	}
	p.omitBackground = r.flag("omitBackground", false)
	return p
}

// json decodes a field in JSON.
func (r *reader) json(name string, to any) {
	r.custom(name, func(v string) error {
		if err := json.Unmarshal([]byte(v), to); err != nil {
			return fmt.Errorf("unmarshal %s: %w", name, err)
		}
		return nil
	})
}

// A cookie is a cookie of a page.
type cookie struct {
	Name, Value, Domain, Path string
	Secure                    bool
}

// cookies reads the field cookies.
func (r *reader) cookies() (list []cookie) {
	r.custom("cookies", func(v string) error {
		if err := json.Unmarshal([]byte(v), &list); err != nil {
			return fmt.Errorf("unmarshal cookies: %w", err)
		}
		var errs []error
		for i, c := range list {
			if strings.TrimSpace(c.Name) == "" || strings.TrimSpace(c.Value) == "" || strings.TrimSpace(c.Domain) == "" {
				errs = append(errs, fmt.Errorf("cookie %d must have its name, value and domain set", i))
			}
		}
		return errors.Join(errs...)
	})
	return list
}

// A header is a request header for some of the URLs of a page.
type header struct {
	name, value string
	scope       *regexp.Regexp // nil: all
}

// headers reads the field extraHttpHeaders. A value may end in ";scope=<regular expression>".
func (r *reader) headers() (list []header) {
	r.custom("extraHttpHeaders", func(v string) error {
		var all map[string]string
		if err := json.Unmarshal([]byte(v), &all); err != nil {
			return fmt.Errorf("unmarshal extraHttpHeaders: %w", err)
		}
		const most = 64
		if len(all) > most {
			return fmt.Errorf("too many headers, got %d, expected at most %d", len(all), most)
		}
		var errs []error
		for name, value := range all {
			h, err := parseHeader(name, value)
			errs, list = append(errs, err), append(list, h)
		}
		return errors.Join(errs...)
	})
	return list
}

func parseHeader(name, value string) (header, error) {
	h := header{name: name}
	var values []string
	for token := range strings.SplitSeq(value, ";") {
		if !strings.HasPrefix(strings.ToLower(strings.TrimSpace(token)), "scope") {
			if token != "" {
				values = append(values, token)
			}
			continue
		}
		key, scope, ok := strings.Cut(strings.Join(strings.Fields(token), ""), "=")
		if !ok || !strings.EqualFold(key, "scope") || scope == "" {
			return h, fmt.Errorf("invalid scope '%s' for header '%s'", scope, name)
		}
		const longest = 1024
		re, err := regexp.Compile(scope)
		var bad *syntax.Error
		switch {
		case len(scope) > longest:
			return h, fmt.Errorf("scope regex pattern for header '%s' is too long, got %d characters, expected at most %d", name, len(scope), longest)
		case errors.As(err, &bad):
			return h, fmt.Errorf("invalid scope regex pattern for header '%s': error parsing regexp: %s in `%s`", name, bad.Code, scope)
		case err != nil:
			return h, fmt.Errorf("invalid scope regex pattern for header '%s': %w", name, err)
		}
		h.scope = re
	}
	h.value = strings.Join(values, "; ")
	return h, nil
}

// print reads the fields of a conversion to PDF.
func (r *reader) print(p *page) {
	turned := r.flag("landscape", false)
	p.background = r.flag("printBackground", false)
	scale := r.number("scale", 1)
	if r.flag("singlePage", false) {
		p.params["single_page"] = true
	}
	width, height := r.length("paperWidth", 8.5), r.length("paperHeight", 11)
	if turned {
		width, height = height, width
	}
	sides := map[string]float64{}
	for _, side := range []string{"Top", "Bottom", "Left", "Right"} {
		sides["margin_"+strings.ToLower(side)] = r.length("margin"+side, 0.39)
	}
	p.ranges = strings.Join(strings.Fields(r.text("nativePageRanges")), "")
	follow := r.flag("preferCssPageSize", false)
	outline := r.flag("generateDocumentOutline", false)
	tagged := r.flag("generateTaggedPdf", false) || outline
	for name, v := range map[string]any{
		"print_background": p.background, "scale": scale, "bookmarks": outline, "tagged": tagged, "pages": p.ranges,
	} {
		if v != "" {
			p.params[name] = v
		}
	}
	for name, v := range sides {
		p.params[name] = v
	}
	if !follow {
		p.params["paper_width"], p.params["paper_height"] = width, height
	}
}

// check returns the error for fields that do not fit together.
func (p *page) check(raw string) error {
	switch {
	case p.omitBackground && !p.background:
		return refuse(http.StatusBadRequest, "omitBackground requires printBackground set to true")
	case p.ranges != "" && !pageRanges.MatchString(p.ranges):
		return refuse(http.StatusBadRequest, "Chromium does not handle the page ranges '%s' (nativePageRanges) syntax", raw)
	}
	return nil
}

// explain returns the response for the failure of a conversion.
func (p *page) explain(err error) error {
	var f *failure
	text := ""
	switch {
	case errors.As(err, &f):
		text = f.Message
	default:
		a := answerOf(err)
		if a.status != http.StatusBadRequest {
			return err
		}
		return refuse(http.StatusBadRequest, "Chromium does not handle the provided settings; please check for aberrant form values: %s", a.text)
	}
	switch {
	case p.shown != "" && strings.Contains(text, `"selector"`):
		return refuse(http.StatusBadRequest, "The selector '%s' (selector) matched no element with a visible box", p.shown)
	case strings.Contains(text, "wait_for_expression"):
		return refuse(http.StatusBadRequest, "The expression '%s' (waitForExpression) returned an exception or undefined", p.expression)
	case strings.Contains(text, "wait_for_selector"):
		return refuse(http.StatusBadRequest, "The selector '%s' (waitForSelector) returned an exception or undefined", p.selector)
	case f.Code == "invalid_parameter" && p.ranges != "" && strings.Contains(text, "pages"):
		return refuse(http.StatusBadRequest, "The page ranges '%s' (nativePageRanges) exceeds the page count", p.ranges)
	}
	return err
}

// A source returns a page, and its URL if it has one.
type source func() ([]byte, *url.URL, error)

// A kind reads the fields that name a page.
type kind func(*call, *reader, *page) source

// convertHTML answers POST /forms/chromium/convert/html.
func convertHTML(c *call) ([]doc, error) { return c.print(fromHTML) }

// convertMarkdown answers POST /forms/chromium/convert/markdown.
func convertMarkdown(c *call) ([]doc, error) { return c.print(fromMarkdown) }

func fromHTML(c *call, r *reader, _ *page) source {
	index := r.indexHTML()
	return func() ([]byte, *url.URL, error) {
		text, err := c.read(index.key, maxPage)
		return text, nil, err
	}
}

func fromMarkdown(c *call, r *reader, _ *page) source {
	index := r.indexHTML()
	r.inputs(".md")
	return func() ([]byte, *url.URL, error) {
		text, err := c.template(index)
		return text, nil, err
	}
}

// indexHTML returns the file index.html.
func (r *reader) indexHTML() file {
	f, ok := r.form.input("index.html")
	if !ok {
		r.fail("form file 'index.html' is required")
	}
	return f
}

// print converts a page to PDF.
func (c *call) print(of kind) ([]doc, error) {
	r := &reader{form: &c.form}
	p := r.page(c)
	r.print(p)
	after, later := c.post(r, true)
	from := of(c, r, p)
	if err := r.err(); err != nil {
		return nil, err
	}
	if later == nil {
		later = p.check(r.text("nativePageRanges"))
	}
	if later != nil {
		return nil, later
	}
	if after.pdfua {
		p.params["tagged"] = true
	}
	for _, name := range []string{"header", "footer"} {
		if f, ok := c.form.input(name + ".html"); ok {
			text, err := c.read(f.key, maxTemplate)
			if err != nil {
				return nil, err
			}
			if text = bytes.TrimSpace(text); len(text) > 0 {
				p.params[name] = string(text)
			}
		}
	}
	d, err := c.page(p, from)
	if err != nil {
		return nil, err
	}
	p.params["convert_to"] = "pdf"
	products, err := c.run(step{"convert", p.params, []doc{d}})
	if err != nil {
		return nil, p.explain(err)
	}
	if err := p.warned(products[0]); err != nil {
		return nil, err
	}
	return after.apply(c, []doc{{products[0].docs[0].key, c.base() + ".pdf"}})
}

// screenshot returns the handler of a route of screenshots.
func screenshot(of kind) handler {
	return func(c *call) ([]doc, error) {
		r := &reader{form: &c.form}
		p := r.page(c)
		p.params["width"], p.params["height"] = r.integer("width", 800, 1, 8192), r.integer("height", 600, 1, 8192)
		p.params["clip"] = r.flag("clip", false)
		if p.shown = r.text("selector"); p.shown != "" {
			p.params["selector"] = p.shown
		}
		to := "png"
		r.custom("format", func(v string) error {
			if v != "png" && v != "jpeg" && v != "webp" {
				return errors.New("wrong value, expected either 'png', 'jpeg' or 'webp'")
			}
			to = v
			return nil
		})
		if quality := r.integer("quality", 100, 0, 100); to != "png" {
			p.params["quality"] = max(quality, 1)
		}
		r.flag("optimizeForSpeed", false)
		p.params["density"] = r.number("deviceScaleFactor", 1)
		p.params["transparent"] = p.omitBackground
		from := of(c, r, p)
		if err := r.err(); err != nil {
			return nil, err
		}
		d, err := c.page(p, from)
		if err != nil {
			return nil, err
		}
		p.params["convert_to"] = to
		products, err := c.run(step{"screenshot", p.params, []doc{d}})
		if err != nil {
			return nil, p.explain(err)
		}
		if err := p.warned(products[0]); err != nil {
			return nil, err
		}
		return []doc{{products[0].docs[0].key, c.base() + "." + to}}, nil
	}
}

// base returns the name of results without a name of their own, without an extension.
func (c *call) base() string {
	return cmp.Or(c.output, c.trace)
}

// page stores the page with its files in it.
func (c *call) page(p *page, from source) (doc, error) {
	select {
	case c.bundles <- struct{}{}:
	case <-c.ctx.Done():
		return doc{}, c.ctx.Err()
	}
	defer func() { <-c.bundles }()
	// A slow site must not keep others from their turn.
	ctx, cancel := context.WithTimeout(c.ctx, c.cfg.LoadTime)
	defer cancel()
	p.loader.ctx = ctx
	text, base, err := from()
	if err != nil {
		return doc{}, err
	}
	b := &bundle{c: c, base: base, loader: p.loader, left: maxPage, seen: make(map[string]string)}
	text, err = b.page(text)
	if err != nil {
		return doc{}, err
	}
	if len(p.loader.failed) > 0 {
		return doc{}, refuse(http.StatusConflict, "Invalid HTTP status code from resources:\n%s", strings.Join(p.loader.failed, "\n"))
	}
	if p.loading && len(b.missing) > 0 {
		return doc{}, refuse(http.StatusConflict, "Chromium failed to load resources: %s", strings.Join(b.missing, "\n"))
	}
	if scripts.Match(text) || p.expression != "" || p.selector != "" || p.params["wait_for_expression"] != nil || p.params["wait_delay"] != nil {
		p.params["javascript"] = true
	}
	f, err := c.store("index.html", "text/html", bytes.NewReader(text), int64(len(text)))
	if err != nil {
		return doc{}, err
	}
	return doc{f.Key, "index.html"}, nil
}

// scripts matches the code of a page.
var scripts = regexp.MustCompile(`(?i)<script|\son[a-z]+\s*=|javascript:`)

// warned returns the error for warnings that the client wants to be errors.
func (p *page) warned(made product) error {
	if !p.exceptions {
		return nil
	}
	for _, w := range made.warnings {
		if w.Code == "script_failed" {
			return refuse(http.StatusConflict, "Chromium console exceptions:\n%s", w.Message)
		}
	}
	return nil
}
