package webops

import (
	"bufio"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"sync"
	"time"

	"github.com/filewright/filewright/fileops"
)

// printParams are the parameters of Page.printToPDF (Chrome DevTools Protocol, tip of
// tree). Lengths are in inches.
type printParams struct {
	Landscape               bool    `json:"landscape"`
	DisplayHeaderFooter     bool    `json:"displayHeaderFooter"`
	PrintBackground         bool    `json:"printBackground"`
	Scale                   float64 `json:"scale"`
	PageRanges              string  `json:"pageRanges,omitempty"`
	PaperWidth              float64 `json:"paperWidth"`
	PaperHeight             float64 `json:"paperHeight"`
	MarginTop               float64 `json:"marginTop"`
	MarginBottom            float64 `json:"marginBottom"`
	MarginLeft              float64 `json:"marginLeft"`
	MarginRight             float64 `json:"marginRight"`
	HeaderTemplate          string  `json:"headerTemplate,omitempty"`
	FooterTemplate          string  `json:"footerTemplate,omitempty"`
	PreferCSSPageSize       bool    `json:"preferCSSPageSize"`
	TransferMode            string  `json:"transferMode"`
	GenerateTaggedPDF       bool    `json:"generateTaggedPDF"`
	GenerateDocumentOutline bool    `json:"generateDocumentOutline"`
}

// params are the parameters of a call.
type params = map[string]any

// print prints pg to the file at path and replaces it.
func (b *browser) print(ctx context.Context, pg page, path string, progress func(float64)) error {
	if pg.scripts != nil {
		pg.html = withPolicy(pg.html, scriptPolicy)
		return b.printQuietly(ctx, append([]instruction{{"Runtime.enable", nil}}, quiet[1:]...), pg, path, progress)
	}
	pg.html = withPolicy(pg.html, policy)
	return b.printQuietly(ctx, quiet, pg, path, progress)
}

func (b *browser) printQuietly(ctx context.Context, quiet []instruction, pg page, path string, progress func(float64)) error {
	c := b.conn
	progress(0.1)
	var made struct {
		BrowserContextID string `json:"browserContextId"`
		TargetID         string `json:"targetId"`
		SessionID        string `json:"sessionId"`
	}
	if err := c.call(ctx, "", "Target.createBrowserContext", params{"disposeOnDetach": true}, &made); err != nil {
		return err
	}
	// The page and its process always end with the browser context.
	defer func() {
		_, _ = c.send("", "Target.disposeBrowserContext", params{"browserContextId": made.BrowserContextID}, nil)
	}()
	if err := c.call(ctx, "", "Target.createTarget", params{"url": "about:blank", "browserContextId": made.BrowserContextID}, &made); err != nil {
		return err
	}
	if err := c.call(ctx, "", "Target.attachToTarget", params{"targetId": made.TargetID, "flatten": true}, &made); err != nil {
		return err
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	s := &session{conn: c, id: made.SessionID, frame: made.TargetID, loaded: make(chan struct{}, 1), fail: fail}
	c.listen(s.id, s.handle)
	defer c.forget(s.id)
	err := s.print(ctx, quiet, pg, path, progress)
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

// A session is the connection to one page.
type session struct {
	conn   *conn
	id     string
	frame  string
	loaded chan struct{}
	fail   context.CancelCauseFunc

	mu     sync.Mutex
	errors int      // number of uncaught errors of the page's scripts
	texts  []string // messages of the first
}

func (s *session) call(ctx context.Context, method string, p, result any) error {
	return s.conn.call(ctx, s.id, method, p, result)
}

// handle processes an event of the page.
func (s *session) handle(e event) {
	switch e.method {
	case "Fetch.requestPaused":
		var p struct {
			RequestID string `json:"requestId"`
		}
		if json.Unmarshal(e.params, &p) == nil {
			// Aborted, not failed: no frame then shows an error page.
			_, _ = s.conn.send(s.id, "Fetch.failRequest", params{"requestId": p.RequestID, "errorReason": "Aborted"}, nil)
		}
	case "Page.javascriptDialogOpening":
		_, _ = s.conn.send(s.id, "Page.handleJavaScriptDialog", params{"accept": false}, nil)
	case "Runtime.exceptionThrown":
		s.noteError(e.params)
	case "Page.loadEventFired":
		select {
		case s.loaded <- struct{}{}:
		default:
		}
	case "Page.frameNavigated":
		var p struct {
			Frame struct {
				ID string `json:"id"`
			} `json:"frame"`
		}
		if json.Unmarshal(e.params, &p) == nil && p.Frame.ID == s.frame {
			s.fail(elsewhere(nil))
		}
	case "Inspector.targetCrashed":
		s.fail(fmt.Errorf("the process of a page: %w", errCrashed))
	case "Inspector.detached":
		s.fail(fmt.Errorf("the page was closed: %w", errCrashed))
	}
}

// An instruction is a call that is sent to each page before it has any content.
type instruction struct {
	method string
	params params
}

// quiet keeps a page from running code and from loading anything. The first instruction
// is for the page's code, the others for what it references. The last two report events
// to us. It is read-only.
var quiet = []instruction{
	{"Emulation.setScriptExecutionDisabled", params{"value": true}},
	{"Fetch.enable", params{"patterns": []params{{"urlPattern": "*"}}}},
	{"Network.enable", nil},
	{"Network.emulateNetworkConditions", params{"offline": true, "latency": 0, "downloadThroughput": 0, "uploadThroughput": 0}},
	{"Network.setBypassServiceWorker", params{"bypass": true}},
	{"Browser.setDownloadBehavior", params{"behavior": "deny"}},
	{"Page.enable", nil},
	{"Inspector.enable", nil},
}

// policy keeps a page from loading anything outside itself (Content Security Policy
// Level 3). The browser sends some requests on behalf of the page, and quiet does not
// always see them in time: it missed prefetch once in fifteen times.
const policy = `<meta http-equiv="Content-Security-Policy" content="default-src data: blob: 'unsafe-inline'">`

// scriptPolicy is the policy of a page whose scripts run.
const scriptPolicy = `<meta http-equiv="Content-Security-Policy" content="default-src data: blob: 'unsafe-inline' 'unsafe-eval'">`

// preamble matches everything before the first element, up to the doctype. The doctype
// decides the layout mode, so it has to come first.
var preamble = regexp.MustCompile(`(?i)^\x{feff}?(?:\s+|<!--(?s:.*?)-->|<\?[^>]*>)*<!doctype[^>]*>`)

// withPolicy adds policy to a page. The rest of the page comes later and can only make
// the policy stricter.
func withPolicy(html, policy string) string {
	start := preamble.FindString(html)
	return start + policy + html[len(start):]
}

func (s *session) print(ctx context.Context, quiet []instruction, pg page, path string, progress func(float64)) error {
	replies := make(chan message, len(quiet))
	for _, q := range quiet { // without waiting in between, which would cost a round trip each
		if _, err := s.conn.send(s.id, q.method, q.params, replies); err != nil {
			return err
		}
	}
	for range quiet {
		select {
		case m := <-replies:
			if m.Error != nil {
				m.Error.method = "preparation"
				return m.Error
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-s.conn.done:
			return errGone
		}
	}
	progress(0.2)
	if pg.media != "" || len(pg.features) > 0 {
		if err := s.call(ctx, "Emulation.setEmulatedMedia", emulated(pg.media, pg.features), nil); err != nil {
			return err
		}
	}
	if pg.shot != nil {
		if err := s.window(ctx, pg.shot); err != nil {
			return err
		}
	}
	if err := s.load(ctx, pg); err != nil {
		return err
	}
	if err := s.look(ctx, pg); err != nil {
		return err
	}
	progress(0.5)
	if pg.shot != nil {
		return s.capture(ctx, pg.shot, path, pg.most)
	}
	p := pg.layout.params()
	if pg.layout.single {
		if err := s.onOnePage(ctx, pg, &p); err != nil {
			return err
		}
	}
	if err := s.toFile(ctx, p, path, pg.most); err != nil || pg.layout.pages == "" {
		return err
	}
	progress(0.8)
	total, err := countPages(path)
	if err == nil {
		p.PageRanges, err = pg.layout.chosen(total)
	}
	if err != nil || p.PageRanges == "" {
		return err
	}
	return s.toFile(ctx, p, path, pg.most)
}

// emulated returns the parameters that set the media type and features of a page.
func emulated(media string, features []feature) params {
	p := params{"media": media}
	if len(features) > 0 {
		p["features"] = features
	}
	return p
}

// onOnePage makes the paper as high as the page, which is laid out in the width between the margins.
func (s *session) onOnePage(ctx context.Context, pg page, p *printParams) error {
	const (
		tallest = 200.0 // inches of a page (ISO 32000-1, annex C)
		reserve = 1.0   // CSS pixels, for lengths that are rounded
	)
	width := (p.PaperWidth - p.MarginLeft - p.MarginRight) * pixelsPerInch / p.Scale
	if width < 1 {
		return fileops.Fail(fileops.ErrEngine, nil, "the document could not be printed; perhaps its pages have no room for anything")
	}
	metrics := params{"width": int(width), "height": int(p.PaperHeight * pixelsPerInch), "deviceScaleFactor": 1, "mobile": false}
	if err := s.call(ctx, "Emulation.setDeviceMetricsOverride", metrics, nil); err != nil {
		return err
	}
	media := pg.media
	if media == "" {
		media = "print"
	}
	if err := s.call(ctx, "Emulation.setEmulatedMedia", emulated(media, pg.features), nil); err != nil {
		return err
	}
	call := params{
		"expression": `(() => {
			const style = document.createElement("style");
			style.textContent = "* { break-before: auto !important; break-after: auto !important; break-inside: auto !important }";
			document.documentElement.append(style);
			const body = document.body, margin = body ? getComputedStyle(body) : null;
			return Math.max(document.documentElement.getBoundingClientRect().height, body ? body.getBoundingClientRect().height + parseFloat(margin.marginTop) + parseFloat(margin.marginBottom) : 0, body ? body.scrollHeight : 0);
		})()`,
		"returnByValue": true,
	}
	var seen struct {
		Result struct {
			Value float64 `json:"value"`
		} `json:"result"`
	}
	if pg.scripts != nil { // the page may have changed its own functions
		var err error
		if call["contextId"], err = s.ownWorld(ctx); err != nil {
			return err
		}
	}
	if err := s.call(ctx, "Runtime.evaluate", call, &seen); err != nil {
		return err
	}
	height := (seen.Result.Value+reserve)*p.Scale/pixelsPerInch + p.MarginTop + p.MarginBottom
	const lowest = 0.1 // inches between the margins
	p.PaperHeight = min(max(height, p.MarginTop+p.MarginBottom+lowest), tallest)
	// The style of the document may set another size, which decides where pages end.
	rule, err := json.Marshal(fmt.Sprintf("@page { size: %.4fin %.4fin !important; margin: %.4fin %.4fin %.4fin %.4fin !important }",
		p.PaperWidth, p.PaperHeight, p.MarginTop, p.MarginRight, p.MarginBottom, p.MarginLeft))
	if err != nil {
		return err
	}
	call["expression"] = `(() => {
		const style = document.createElement("style");
		style.textContent = ` + string(rule) + `;
		document.documentElement.append(style);
		return 0;
	})()`
	return s.call(ctx, "Runtime.evaluate", call, nil)
}

// load shows the page and waits until it is complete, and until its scripts are done.
func (s *session) load(ctx context.Context, pg page) error {
	if pg.scripts != nil {
		limited, stop := context.WithTimeoutCause(ctx, pg.scripts.limit, pg.scripts.late())
		defer stop()
		ctx = limited
	}
	if err := s.call(ctx, "Page.setDocumentContent", params{"frameId": s.frame, "html": pg.html}, nil); err != nil {
		return err
	}
	select {
	case <-s.loaded:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-s.conn.done:
		return errGone
	}
	if pg.scripts == nil {
		return nil
	}
	return s.settle(ctx, pg.scripts)
}

// toFile prints the page to the file at path and replaces it.
func (s *session) toFile(ctx context.Context, p printParams, path string, most int64) error {
	var printed struct {
		Stream string `json:"stream"`
	}
	p.TransferMode = "ReturnAsStream"
	if err := s.call(ctx, "Page.printToPDF", p, &printed); err != nil {
		var refused *protocolError
		if errors.As(err, &refused) {
			return fileops.Fail(fileops.ErrEngine, err, "the document could not be printed; perhaps its pages have no room for anything")
		}
		return err
	}
	return s.save(ctx, printed.Stream, path, most)
}

// pageObject matches a page in a PDF by the browser, which writes its objects without
// compression (SkPDFDocument.cpp in Skia).
var pageObject = regexp.MustCompile(`/Type /Page[^A-Za-z]`)

// countPages returns the number of pages of a PDF by the browser.
func countPages(path string) (int, error) {
	f, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer f.Close()
	r, n := bufio.NewReaderSize(f, 1<<20), 0
	for pageObject.FindReaderIndex(r) != nil {
		n++
	}
	return n, nil
}

// look waits for the fonts in the page, gives the page a title, counts its losses, and
// checks whether it shows anything. Scripts are off for the page, but not for us.
func (s *session) look(ctx context.Context, pg page) error {
	title, err := json.Marshal(pg.title)
	if err != nil {
		return err
	}
	lost := "{}"
	if pg.lost != nil {
		lost = countLosses
	}
	var seen struct {
		Result struct {
			Value struct {
				Frames bool   `json:"frames"`
				Broken bool   `json:"broken"`
				Lost   losses `json:"lost"`
			} `json:"value"`
		} `json:"result"`
	}
	call := params{
		"expression": `document.fonts.ready.then(() => {
			if (!document.title.trim()) document.title = ` + string(title) + `;
			const first = document.images[0];
			return {frames: document.body instanceof HTMLFrameSetElement, broken: !first || !first.naturalWidth, lost: ` + lost + `};
		})`,
		"awaitPromise": true, "returnByValue": true,
	}
	if pg.scripts != nil { // the page may have changed its own functions
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, pg.scripts.limit, pg.scripts.late())
		defer stop()
		if call["contextId"], err = s.ownWorld(ctx); err != nil {
			return err
		}
	}
	err = s.call(ctx, "Runtime.evaluate", call, &seen)
	seen.Result.Value.Lost.run = pg.scripts != nil
	var refused *protocolError
	switch {
	case errors.As(err, &refused):
		select {
		case <-ctx.Done(): // possibly a crash
			return context.Cause(ctx)
		case <-time.After(time.Second):
		}
		return elsewhere(err)
	case err != nil:
		return err
	case seen.Result.Value.Frames:
		return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the page consists of frames, and what they show is in other files")
	case seen.Result.Value.Lost.everything():
		switch l := seen.Result.Value.Lost; {
		case l.run && l.Away == 0:
			return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the page shows nothing after its scripts have run; wait_for_selector or wait_delay can wait for its content")
		case l.Scripts > 0 && !l.run:
			return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the page shows nothing without its scripts, which are not run")
		}
		return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the page shows nothing, because what it shows is in other files")
	case pg.check && seen.Result.Value.Broken:
		return fileops.Fail(fileops.ErrCorruptInput, nil, "the drawing is damaged or cannot be read")
	}
	if pg.lost != nil {
		pg.lost(seen.Result.Value.Lost)
	}
	if pg.scripts != nil {
		s.mu.Lock()
		defer s.mu.Unlock()
		pg.scripts.warn(s.errors, s.texts)
	}
	return nil
}

// elsewhere returns the error for a page that navigates to another address.
func elsewhere(cause error) error {
	return fileops.Fail(fileops.ErrUnsupportedInput, cause, "the page leads on to another page at once")
}

// save writes a stream of the browser to a file. It fails if there are more than most bytes.
func (s *session) save(ctx context.Context, stream, path string, most int64) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	err = s.copyStream(ctx, f, stream, most)
	return errors.Join(err, f.Close())
}

func (s *session) copyStream(ctx context.Context, w io.Writer, stream string, most int64) error {
	defer func() { _, _ = s.conn.send(s.id, "IO.close", params{"handle": stream}, nil) }()
	var total int64
	for {
		var part struct {
			Base64Encoded bool   `json:"base64Encoded"`
			Data          string `json:"data"`
			EOF           bool   `json:"eof"`
		}
		if err := s.call(ctx, "IO.read", params{"handle": stream, "size": 1 << 20}, &part); err != nil {
			return err
		}
		data := []byte(part.Data)
		if part.Base64Encoded {
			var err error
			if data, err = base64.StdEncoding.DecodeString(part.Data); err != nil {
				return err
			}
		}
		if total += int64(len(data)); total > most {
			return fileops.Fail(fileops.ErrLimit, nil, "the result has more than the limit of %d bytes; split the document", most)
		}
		if _, err := w.Write(data); err != nil {
			return err
		}
		if part.EOF {
			return nil
		}
	}
}
