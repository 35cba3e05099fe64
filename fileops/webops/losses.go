package webops

import (
	"encoding/xml"
	"fmt"
	"strings"

	"github.com/filewright/filewright/fileops"
)

// A losses counts the parts of a page that were not shown.
type losses struct {
	Scripts int `json:"scripts"`
	Away    int `json:"away"`   // scripts that are not in the page
	Images  int `json:"images"` // pictures that are not in the page
	Styles  int `json:"styles"` // style sheets that are not in the page
	Frames  int `json:"frames"` // frames and embedded documents that are not in the page

	Empty bool `json:"empty"` // the page shows nothing at all

	run bool // the scripts in the page were run
}

// everything reports whether a page shows nothing because of its losses.
func (l losses) everything() bool {
	return l.Empty && l.Scripts+l.Images+l.Styles+l.Frames > 0
}

// countLosses is an expression that counts the losses of a page. The page is at
// about:blank, so that the browser does not even request a relative address, and its
// network events would not tell. A rule of a style sheet counts if it applies to an
// element. Fonts do not count, and neither do pictures of one pixel, which count readers.
const countLosses = `(() => { try {
	const away = a => a && !/^\s*(?:data:|blob:|about:|javascript:|#|$)/i.test(a);
	const images = new Set(), styles = new Set();
	const tiny = e => [e.getAttribute('width'), e.getAttribute('height')].some(n => n === '0' || n === '1');
	for (const i of document.images) {
		const from = i.currentSrc || i.getAttribute('src') || i.getAttribute('srcset');
		if (!i.naturalWidth && away(from) && !tiny(i)) images.add(from);
	}
	const attribute = (selector, name, to) => {
		for (const e of document.querySelectorAll(selector)) if (away(e.getAttribute(name))) to.add(e.getAttribute(name));
	};
	attribute('video[poster]', 'poster', images);
	attribute('input[type=image i]', 'src', images);
	attribute('svg image, svg use', 'href', images);
	for (const e of document.querySelectorAll('svg image, svg use'))
		if (away(e.getAttribute('xlink:href'))) images.add(e.getAttribute('xlink:href'));
	const urls = text => {
		for (const m of text.matchAll(/url\(\s*(?:"([^"]*)"|'([^']*)'|([^)'"]*))\s*\)/g)) {
			const a = m[1] || m[2] || m[3];
			if (away(a)) images.add(a);
		}
	};
	for (const e of document.querySelectorAll('[style*="url("]')) urls(e.style.cssText);
	const applies = rule => {
		try {
			return document.querySelector(rule.selectorText.replace(/::?(?:before|after|marker|first-line|first-letter|hover|focus|active|visited)\b/g, '') || '*');
		} catch {
			return true;
		}
	};
	let left = 20000;
	const walk = sheet => {
		for (const rule of sheet.cssRules) {
			if (left-- < 0) return;
			if (rule instanceof CSSImportRule) {
				if (away(rule.href)) styles.add(rule.href);
			} else if (rule instanceof CSSStyleRule) {
				if (rule.cssText.includes('url(') && applies(rule)) urls(rule.style.cssText);
			} else if (rule.cssRules && !(rule instanceof CSSKeyframesRule) && (!rule.media || /print|all|^[^a-z]*$/.test(rule.media.mediaText))) {
				walk(rule);
			}
		}
	};
	for (const sheet of document.styleSheets) {
		try {
			walk(sheet);
		} catch {
			// A sheet from elsewhere is counted below.
		}
	}
	for (const l of document.querySelectorAll('link[rel~=stylesheet i]'))
		if (away(l.getAttribute('href')) && !/^\s*screen\s*$/i.test(l.media)) styles.add(l.getAttribute('href'));
	const frames = [...document.querySelectorAll('iframe, object, embed')].filter(e =>
		!e.hasAttribute('srcdoc') && away(e.getAttribute(e.tagName === 'OBJECT' ? 'data' : 'src')) && !tiny(e));
	const code = /^\s*(?:module|(?:text|application)\/(?:x-)?(?:java|ecma)script(?:\s*;.*)?)?\s*$/i;
	const scripts = [...document.scripts].filter(s => code.test(s.getAttribute('type') || '') && (s.hasAttribute('src') || s.textContent.trim()));
	const drawn = e => {
		const s = getComputedStyle(e), clear = /^rgba\(.*, 0\)$|^transparent$/;
		return s.display !== 'none' && (s.backgroundImage !== 'none' || !clear.test(s.backgroundColor) || parseFloat(s.borderTopWidth) + parseFloat(s.borderLeftWidth) > 0
			|| ['::before', '::after'].some(p => !/^(?:none|normal|""|)$/.test(getComputedStyle(e, p).content)));
	};
	const empty = !document.documentElement.innerText.trim()
		&& ![...document.images].some(i => i.naturalWidth || i.alt.trim())
		&& !document.querySelector('svg, math, hr, canvas, input:not([type=hidden i]), button, select, textarea, meter, progress, iframe[srcdoc], iframe[src^="data:" i], object[data^="data:" i], embed[src^="data:" i]')
		&& ![...document.querySelectorAll('*')].slice(0, 5000).some(drawn);
	return {scripts: scripts.length, away: scripts.filter(s => away(s.getAttribute('src'))).length, images: images.size, styles: styles.size, frames: frames.length, empty};
} catch { // an element whose name hides a function
	return {};
} })()`

// warn warns about the losses.
func (l losses) warn(job *fileops.Job) {
	switch {
	case l.Scripts > 0 && !l.run:
		job.Warn(fileops.WarnScriptNotRun, "The scripts of the page were not run.")
	case l.Away == 1 && l.run:
		job.Warn(fileops.WarnScriptNotRun, "1 script was not run, because it is not in the file.")
	case l.Away > 1 && l.run:
		job.Warn(fileops.WarnScriptNotRun, "%d scripts were not run, because they are not in the file.", l.Away)
	}
	var parts []string
	for _, p := range []struct {
		n    int
		noun string
	}{{l.Images, "picture"}, {l.Styles, "style sheet"}, {l.Frames, "frame"}} {
		switch {
		case p.n == 1:
			parts = append(parts, "1 "+p.noun)
		case p.n > 1:
			parts = append(parts, fmt.Sprintf("%d %ss", p.n, p.noun))
		}
	}
	if len(parts) == 0 {
		return
	}
	all := strings.Join(parts, ", ")
	if i := strings.LastIndex(all, ", "); i >= 0 {
		all = all[:i] + " and " + all[i+2:]
	}
	verb, pronoun := "were", "they are"
	if l.Images+l.Styles+l.Frames == 1 {
		verb, pronoun = "was", "it is"
	}
	job.Warn(fileops.WarnContentDropped, "%s %s left out, because %s not in the file.", all, verb, pronoun)
}

// svgLosses counts the losses of a drawing, which is not part of the page's document.
func svgLosses(in []byte) losses {
	var l losses
	seen := map[string]bool{}
	d := drawing(in)
	for {
		t, err := d.Token()
		if err != nil {
			return l // the browser reports damage
		}
		e, ok := t.(xml.StartElement)
		if !ok {
			continue
		}
		switch e.Name.Local {
		case "script":
			l.Scripts++
		case "image", "use", "feImage":
			for _, a := range e.Attr {
				if a.Name.Local != "href" || seen[a.Value] || a.Value == "" || strings.HasPrefix(a.Value, "#") || strings.HasPrefix(a.Value, "data:") {
					continue
				}
				seen[a.Value] = true
				l.Images++
			}
		}
	}
}
