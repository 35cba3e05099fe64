package webops

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// temptation returns a page that references base in every possible way, with a script
// that does the same.
func temptation(base, secret string) string {
	ws := "ws" + strings.TrimPrefix(base, "http")
	host := strings.TrimPrefix(base, "http:")
	return strings.NewReplacer("BASE", base, "WS", ws, "HOST", host, "SECRET", secret).Replace(`<!DOCTYPE html>
<html manifest="BASE/manifest"><head><title>temptation</title>
<meta http-equiv="refresh" content="0;url=BASE/refresh">
<meta http-equiv="ref&#114;esh" content="0;url=BASE/refresh2">
<link rel="stylesheet" href="BASE/style.css"><link rel="icon" href="BASE/icon.png">
<link rel="preload" as="image" href="BASE/preload.png"><link rel="prefetch" href="BASE/prefetch"><link rel="modulepreload" href="BASE/module.js">
<link rel="preconnect" href="BASE"><link rel="dns-prefetch" href="HOST"><link rel="prerender" href="BASE/prerender"><link rel="manifest" href="BASE/app.json">
<style>@import url("BASE/import.css"); @font-face { font-family: far; src: url("BASE/font.woff2") }
body { font-family: far; background: url(BASE/background.png); cursor: url(BASE/cursor.png), auto } p { list-style: url(BASE/list.png); border-image: url(BASE/border.png) 1 }
p::before { content: url(BASE/before.png) } .m { mask: url(BASE/mask.svg#m); filter: url(BASE/filter.svg#f) } @media print { p { background: url(BASE/print.png) } }</style>
</head><body><p class="m">far text</p>
<img src="BASE/img.png"><img srcset="BASE/srcset.png 1x, BASE/srcset2.png 2x"><img loading="lazy" src="BASE/lazy.png"><picture><source srcset="BASE/source.png"><img src="BASE/picture.png"></picture>
<iframe src="BASE/frame"></iframe><iframe srcdoc="<img src=BASE/srcdoc.png><script>fetch('BASE/srcdocscript')</script>"></iframe>
<iframe src="data:text/html,<img src=BASE/dataframe.png>"></iframe><iframe src="javascript:fetch('BASE/javascript')"></iframe>
<object data="BASE/object"></object><embed src="BASE/embed"><applet archive="BASE/applet.jar"></applet>
<video src="BASE/video.mp4" poster="BASE/poster.png" autoplay></video><audio src="BASE/audio.mp3" autoplay preload></audio><video><source src="BASE/videosource.mp4"><track src="BASE/track.vtt" default></video>
<svg><use href="BASE/use.svg#a"/><image href="BASE/svgimage.png" width="9" height="9"/><image xlink:href="BASE/svgxlink.png" width="9" height="9"/><feImage href="BASE/fe.png"/></svg>
<img src="data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg'><image href='BASE/insvg.png' width='9' height='9'/><style>@import 'BASE/insvg.css';</style></svg>">
<a ping="BASE/ping" href="BASE/link">link</a><form action="BASE/form" id="f"><input autofocus onfocus="f.submit()"><input type="image" src="BASE/inputimage.png"></form>
<img src="file://SECRET"><iframe src="file://SECRET"></iframe><object data="file://SECRET"></object><embed src="file://SECRET"><link rel="stylesheet" href="file://SECRET">
<script src="BASE/script.js"></script><img src="x" onerror="new Image().src='BASE/onerror'">
<script>
document.body.append("SCRIPT RAN"); alert(1); print();
fetch("BASE/fetch"); new WebSocket("WS/socket"); new EventSource("BASE/events"); navigator.sendBeacon("BASE/beacon"); new Worker("BASE/worker.js");
fetch("file://SECRET").then(r => r.text()).then(t => document.body.append(t));
let c = new RTCPeerConnection({iceServers: [{urls: "stunHOST"}]}); c.createDataChannel("x"); c.createOffer().then(o => c.setLocalDescription(o));
window.open("BASE/open"); setTimeout(() => location = "BASE/location", 0);
</script>
<p>the end</p></body></html>`)
}

// A bait is a server that records its visitors.
type bait struct {
	url  string
	mu   sync.Mutex
	hits []string
}

func newBait(t *testing.T) *bait {
	b := &bait{}
	count := func(what string) {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.hits = append(b.hits, what)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		count(r.URL.Path)
		http.NotFound(w, r)
	}))
	s.Config.ConnState = func(c net.Conn, state http.ConnState) { // a connection is enough
		if state == http.StateNew {
			count("connection of " + c.RemoteAddr().String())
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	b.url = s.URL
	return b
}

// seen returns the visits so far.
func (b *bait) seen() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.hits...)
}

// all returns the visits until now, also those that the server has not accepted yet: it accepts
// connections in the order in which they were made.
func (b *bait) all(t *testing.T) []string {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(b.url, "http://"))
	systest.NoError(t, err)
	defer c.Close()
	own := "connection of " + c.LocalAddr().String()
	var hits []string
	eventually(t, "the last connection", func() bool { hits = b.seen(); return slices.Contains(hits, own) })
	return slices.DeleteFunc(hits, func(hit string) bool { return hit == own })
}

// secretFile creates a file whose content must not appear in a result.
func secretFile(t *testing.T) (path, content string) {
	path, content = filepath.Join(t.TempDir(), "secret.txt"), "topsecretcontent"
	systest.NoError(t, os.WriteFile(path, []byte(content), 0o644))
	return path, content
}

// A page reaches neither a server on this machine nor a file, and runs no script.
func TestNothingIsLoaded(t *testing.T) {
	t.Parallel()
	for _, f := range []format.Format{format.HTML, format.MD, format.SVG, format.CSV, format.TXT} {
		t.Run(string(f), func(t *testing.T) {
			t.Parallel()
			server := newBait(t)
			secret, content := secretFile(t)
			in := temptation(server.url, secret)
			switch f {
			case format.MD:
				in = "# Heading\n\n![picture](" + server.url + "/md.png)\n\n" + in[strings.Index(in, "<html"):]
			case format.SVG:
				in = `<svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" width="300" height="200"><style>@import "BASE/a.css"; @font-face{font-family:f;src:url(BASE/f.woff)}</style>
<text x="9" y="20" font-family="f">the end</text><image href="BASE/a.png" width="9" height="9"/><image xlink:href="file://SECRET" width="9" height="9"/><use href="BASE/b.svg#a"/>
<foreignObject width="99" height="99"><iframe xmlns="http://www.w3.org/1999/xhtml" src="BASE/frame"/><img xmlns="http://www.w3.org/1999/xhtml" src="file://SECRET"/></foreignObject><script>fetch("BASE/script")</script></svg>`
				in = strings.NewReplacer("BASE", server.url, "SECRET", secret).Replace(in)
			}
			path := convert(t, "page."+string(f), in, nil)
			if hits := server.all(t); len(hits) > 0 {
				t.Errorf("the server was visited: %v", hits)
			}
			text := output(t, "pdftotext", path, "-")
			if strings.Contains(text, content) || !strings.Contains(text, "the end") || f == format.HTML && strings.Contains(text, "SCRIPT RAN") {
				t.Errorf("text of the PDF: %s", text)
			}
		})
	}
}

// Each layer is sufficient alone: the browser's switches, and the instructions to a
// page. Without both, the same page does get through, which shows that the test works.
func TestEachWall(t *testing.T) {
	t.Parallel()
	script := filepath.Join(t.TempDir(), "browser")
	systest.WriteScript(t, script, `#!/bin/bash
args=()
for a; do case $a in --host-resolver-rules=*|--proxy-*|--dns-*|--js-flags=*) ;; *) args+=("$a");; esac; done
exec `+shared.prog.Path+` "${args[@]}"
`)
	unwalled := &engine.Program{Name: "browser", Path: script}
	for _, tt := range []struct {
		name  string
		prog  *engine.Program
		quiet []instruction
		hits  bool
	}{
		{"switches only", shared.prog, quiet[len(quiet)-2:], false},
		{"instructions only", unwalled, quiet, false},
		{"neither", unwalled, quiet[len(quiet)-2:], true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			server := newBait(t)
			secret, content := secretFile(t)
			b, _, err := startBrowser(t.Context(), tt.prog, shared.pool.opts)
			systest.NoError(t, err)
			defer b.stop()
			path := filepath.Join(t.TempDir(), "out.pdf")
			try := func() error {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				pg := page{html: temptation(server.url, secret), layout: layout{page: paper["a4"]}, most: 1e6}
				if len(tt.quiet) == len(quiet) {
					return b.print(ctx, pg, path, func(float64) {})
				}
				return b.printQuietly(ctx, tt.quiet, pg, path, func(float64) {})
			}
			err = try() // with scripts it may navigate elsewhere or never finish
			if tt.hits {
				// Retry until it does: the machine may be busy with other tests.
				for tries := 0; tries < 10 && len(server.seen()) == 0; tries++ {
					err = try()
				}
			}
			b.stop() // after that it visits nobody
			if hits := server.all(t); len(hits) > 0 != tt.hits {
				t.Errorf("visits: %v (%v)", hits, err)
			}
			// A failed print may leave half a file, which is not a result.
			if err == nil && strings.Contains(output(t, "pdftotext", path, "-"), content) {
				t.Error("a file was read")
			}
		})
	}
}

// A page that navigates elsewhere or has its content there fails, instead of printing an
// empty page.
func TestElsewhere(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		in   string
		kind error
	}{
		"refresh":         {`<meta http-equiv="refresh" content="0; url=about:blank"><p>text</p>`, nil},
		"encoded refresh": {`<meta http-equiv="&#114;efresh" content="0; url=about:blank"><p>text</p>`, fileops.ErrUnsupportedInput},
		"frames":          {`<frameset cols="50%,50%"><frame src="a.html"><frame src="b.html"></frameset>`, fileops.ErrUnsupportedInput},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := try(t, shared.Convert(), "page.html", tt.in, nil)
			if !errors.Is(err, tt.kind) {
				t.Errorf("got %v, want %v", err, tt.kind)
			}
		})
	}
}

// The policy comes before everything except the doctype.
func TestWithPolicy(t *testing.T) {
	t.Parallel()
	for in, before := range map[string]string{
		"":                              "",
		"text":                          "",
		"<p>x <!DOCTYPE html>":          "",
		"<!doctype html><html><p>x":     "<!doctype html>",
		"\ufeff \n<!DOCTYPE html>\n<p>": "\ufeff \n<!DOCTYPE html>",
		"<?xml version='1.0'?><!-- a\nb > --><!-- --><!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.0 Strict//EN' 'x'><html>": "<?xml version='1.0'?><!-- a\nb > --><!-- --><!DOCTYPE html PUBLIC '-//W3C//DTD XHTML 1.0 Strict//EN' 'x'>",
		"<!-- <!DOCTYPE html> --><p>":               "",
		"<!-- open <!DOCTYPE html><script src=x>":   "",
		"<script src=x></script><!DOCTYPE html>":    "",
		"<!DOCTYPE html [<!ENTITY a '>'>]><link x>": "<!DOCTYPE html [<!ENTITY a '>",
	} {
		if got, want := withPolicy(in, policy), before+policy+in[len(before):]; got != want {
			t.Errorf("%q: %q", in, got)
		}
	}
}

// The policy does not change the look of a page, including embedded resources.
func TestPolicyShowsAll(t *testing.T) {
	t.Parallel()
	const own = `<html style="color:#fe0000"><head><style>@import "data:text/css,i{color:%23fd0000}"; b{color:#fc0000}</style>
<style>@media print{u{color:#fb0000}}</style></head><body style="margin:0">
<p>one<p style="color:#fa0000">two<i>three</i><b>four</b><u>five</u>
<img src="data:image/svg+xml,<svg xmlns='http://www.w3.org/2000/svg' width='9' height='9'><style>rect{fill:%23f90000}</style><rect width='9' height='9'/></svg>">
<iframe srcdoc="<p style='color:#f80000'>six" height="40"></iframe><svg width="9" height="9"><style>#r{fill:#f70000}</style><rect id="r" width="9" height="9"/></svg>`
	img := firstPage(t, convert(t, "own.html", own, nil))
	seen := map[string]bool{}
	for y := range img.Bounds().Dy() {
		for x := range img.Bounds().Dx() {
			r, g, b, _ := img.At(x, y).RGBA()
			seen[fmt.Sprintf("%02x%02x%02x", r>>8, g>>8, b>>8)] = true
		}
	}
	for _, c := range []string{"fe", "fd", "fc", "fb", "fa", "f9", "f8", "f7"} {
		if !seen[c+"0000"] {
			t.Errorf("what is #%s0000 does not show", c)
		}
	}
}
