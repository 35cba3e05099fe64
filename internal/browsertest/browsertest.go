// Package browsertest drives a headless Chromium in tests. A test fails on everything that a user
// would find broken: JavaScript errors, console messages, violations of the
// Content-Security-Policy, failed requests, and accessibility problems that axe-core finds.
package browsertest

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/draw"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/browser"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	cdruntime "github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"

	"github.com/filewright/filewright/internal/systest"
)

// patience is the timeout of every step, for a slow machine.
const patience = 5 * time.Minute

// A Tab is a page in its own browser. Its methods fail the test after an error.
type Tab struct {
	t   testing.TB
	ctx context.Context

	mu       sync.Mutex
	problems []string
	expected []string // texts of expected problems
	requests map[network.RequestID]string
}

// Open starts a browser with one empty page. The browser stops with the test.
func Open(t testing.TB) *Tab {
	t.Helper()
	path := ""
	for _, name := range []string{"chromium", "google-chrome-stable", "google-chrome", "chromium-headless-shell"} {
		if p, err := exec.LookPath(name); err == nil {
			path = p
			break
		}
	}
	if path == "" {
		t.Fatal("there is no Chromium; scripts/setup.sh test installs it")
	}
	options := []chromedp.ExecAllocatorOption{
		chromedp.ExecPath(path), chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck, chromedp.DisableGPU,
		chromedp.Flag("headless", "new"), chromedp.Flag("disable-background-networking", true), chromedp.Flag("disable-sync", true),
		chromedp.Flag("disable-component-update", true), chromedp.Flag("disable-extensions", true), chromedp.Flag("disable-default-apps", true),
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("mute-audio", true), chromedp.Flag("force-color-profile", "srgb"),
		chromedp.Flag("font-render-hinting", "none"), chromedp.Flag("disable-dev-shm-usage", true), chromedp.Flag("password-store", "basic"),
		chromedp.UserDataDir(t.TempDir()), chromedp.WSURLReadTimeout(patience),
	}
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox) // Chromium's sandbox does not work as root
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), options...)
	t.Cleanup(stop)
	ctx, end := chromedp.NewContext(alloc, chromedp.WithErrorf(func(string, ...any) {}))
	t.Cleanup(end)
	tab := &Tab{t: t, ctx: ctx, requests: make(map[network.RequestID]string)}
	chromedp.ListenTarget(ctx, tab.hear)
	tab.Do(network.Enable(), log.Enable(), cdruntime.Enable(), page.Enable())
	t.Cleanup(func() { chromedp.Cancel(ctx) })
	return tab
}

// hear records problems of the page.
func (tab *Tab) hear(event any) {
	switch e := event.(type) {
	case *cdruntime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if x := e.ExceptionDetails.Exception; x != nil {
			text += " " + x.Description
		}
		tab.problem("JavaScript error: " + text)
	case *cdruntime.EventConsoleAPICalled:
		if e.Type == cdruntime.APITypeError || e.Type == cdruntime.APITypeWarning || e.Type == cdruntime.APITypeAssert {
			var b strings.Builder
			for _, a := range e.Args {
				fmt.Fprintf(&b, " %s%s", a.Value, a.Description)
			}
			tab.problem("console:" + b.String())
		}
	case *log.EventEntryAdded: // reports of the Content-Security-Policy and failed requests
		if e.Entry.Level == log.LevelError || e.Entry.Level == log.LevelWarning {
			tab.problem(fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	case *network.EventRequestWillBeSent:
		tab.mu.Lock()
		tab.requests[e.RequestID] = e.Request.Method + " " + e.Request.URL
		tab.mu.Unlock()
	case *network.EventResponseReceived:
		if e.Response.Status >= 400 {
			tab.problem(fmt.Sprintf("%d for %s", e.Response.Status, e.Response.URL))
		}
	case *network.EventLoadingFailed:
		tab.mu.Lock()
		what := tab.requests[e.RequestID]
		tab.mu.Unlock()
		if !e.Canceled && e.ErrorText != "net::ERR_ABORTED" { // otherwise the browser left the page
			tab.problem("request failed: " + e.ErrorText + " " + what)
		}
	}
}

func (tab *Tab) problem(text string) {
	tab.mu.Lock()
	defer tab.mu.Unlock()
	if !slices.ContainsFunc(tab.expected, func(e string) bool { return strings.Contains(text, e) }) {
		tab.problems = append(tab.problems, text)
	}
}

// Expect declares that problems with a text are expected in the next steps. Call end after them.
func (tab *Tab) Expect(text string) (end func()) {
	tab.mu.Lock()
	tab.expected = append(tab.expected, text)
	tab.mu.Unlock()
	return func() {
		tab.mu.Lock()
		tab.expected = slices.DeleteFunc(tab.expected, func(e string) bool { return e == text })
		tab.mu.Unlock()
	}
}

// NoProblems fails the test if the page had a problem so far.
func (tab *Tab) NoProblems() {
	tab.t.Helper()
	tab.mu.Lock()
	defer tab.mu.Unlock()
	for _, p := range tab.problems {
		tab.t.Errorf("in the browser: %s", p)
	}
	tab.problems = nil
}

// Do runs actions of chromedp.
func (tab *Tab) Do(actions ...chromedp.Action) {
	tab.t.Helper()
	tab.check(tab.run(actions...))
}

// onElement is Do for an element that the page may replace at any time, as lists that update
// themselves do. Between looking an element up and using it, it can disappear; then nothing has
// happened yet, and the actions run again.
func (tab *Tab) onElement(actions ...chromedp.Action) {
	tab.t.Helper()
	err := tab.run(actions...)
	for begun := time.Now(); err != nil && strings.Contains(err.Error(), "Could not find node") && time.Since(begun) < patience; {
		err = tab.run(actions...)
	}
	tab.check(err)
}

func (tab *Tab) run(actions ...chromedp.Action) error {
	// The first call starts the browser, which runs until its context is done.
	if chromedp.FromContext(tab.ctx).Target == nil {
		return chromedp.Run(tab.ctx, actions...)
	}
	ctx, cancel := context.WithTimeout(tab.ctx, patience)
	defer cancel()
	return chromedp.Run(ctx, actions...)
}

// check ends the test if there is an error, and shows the page.
func (tab *Tab) check(err error) {
	tab.t.Helper()
	if err != nil {
		var where, text string
		ctx, cancel := context.WithTimeout(tab.ctx, 10*time.Second)
		defer cancel()
		chromedp.Run(ctx, chromedp.Location(&where), chromedp.Evaluate(`document.body.innerText.slice(0, 2000)`, &text))
		tab.t.Fatalf("%v at %s:\n%s", err, where, text)
	}
}

// Go opens an address and waits until the page is loaded.
func (tab *Tab) Go(url string) {
	tab.t.Helper()
	tab.Do(chromedp.Navigate(url), chromedp.WaitReady("body"))
}

// Eval evaluates JavaScript in the page and decodes the result into v. It awaits a promise.
func (tab *Tab) Eval(script string, v any) {
	tab.t.Helper()
	tab.Do(chromedp.Evaluate(script, v, func(p *cdruntime.EvaluateParams) *cdruntime.EvaluateParams { return p.WithAwaitPromise(true) }))
}

// Wait waits until a JavaScript expression is true, also across page loads.
func (tab *Tab) Wait(expression string) {
	tab.t.Helper()
	var good bool
	var err error
	for begun := time.Now(); time.Since(begun) < patience; time.Sleep(30 * time.Millisecond) {
		ctx, cancel := context.WithTimeout(tab.ctx, patience)
		err = chromedp.Run(ctx, chromedp.Evaluate("Boolean("+expression+")", &good)) // fails while the browser leaves a page
		cancel()
		if err == nil && good {
			return
		}
	}
	failed := fmt.Errorf("%s does not become true", expression)
	if err != nil {
		failed = fmt.Errorf("%w: %w", failed, err)
	}
	tab.Do(chromedp.ActionFunc(func(context.Context) error { return failed }))
}

// Click clicks the element of a selector as soon as it is visible.
func (tab *Tab) Click(selector string) {
	tab.t.Helper()
	tab.onElement(chromedp.Click(selector, chromedp.ByQuery, chromedp.NodeVisible))
}

// Leave clicks an element that leads to another page, and waits for that page.
func (tab *Tab) Leave(selector string) {
	tab.t.Helper()
	tab.Eval(`window.leaving = true`, nil)
	tab.Click(selector)
	tab.Wait(`window.leaving === undefined && document.readyState === "complete"`)
}

// Arrive waits until the page with a path is loaded. The browser has its path earlier than its content.
func (tab *Tab) Arrive(path string) {
	tab.t.Helper()
	tab.Wait(fmt.Sprintf(`location.pathname === %q && document.readyState === "complete"`, path))
}

// Fill types a text into a field.
func (tab *Tab) Fill(selector, text string) {
	tab.t.Helper()
	tab.onElement(chromedp.WaitVisible(selector, chromedp.ByQuery), chromedp.Clear(selector, chromedp.ByQuery), chromedp.SendKeys(selector, text, chromedp.ByQuery))
}

// Text returns the text of the element of a selector.
func (tab *Tab) Text(selector string) (text string) {
	tab.t.Helper()
	tab.onElement(chromedp.TextContent(selector, &text, chromedp.ByQuery))
	return strings.Join(strings.Fields(text), " ")
}

// Size sets the size of the page in pixels.
func (tab *Tab) Size(width, height int64) {
	tab.t.Helper()
	tab.Do(chromedp.EmulateViewport(width, height))
}

// Scheme sets the preferred color scheme: "light" or "dark".
func (tab *Tab) Scheme(scheme string) {
	tab.t.Helper()
	tab.Do(emulation.SetEmulatedMedia().WithFeatures([]*emulation.MediaFeature{
		{Name: "prefers-color-scheme", Value: scheme}, {Name: "prefers-reduced-motion", Value: "reduce"},
	}))
}

// Downloads sets the download directory.
func (tab *Tab) Downloads(dir string) {
	tab.t.Helper()
	tab.Do(browser.SetDownloadBehavior(browser.SetDownloadBehaviorBehaviorAllow).WithDownloadPath(dir))
}

// Accessible fails the test if axe-core finds violations of WCAG 2.2 A and AA or of its best
// practices. It also fails if the page is wider than the screen.
func (tab *Tab) Accessible() {
	tab.t.Helper()
	tab.obey("wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice")
	tab.Fits()
}

// Contrasts fails the test if axe-core finds text that its background makes hard to read. Use it for
// pages that differ only in their colours from one that is Accessible.
func (tab *Tab) Contrasts() {
	tab.t.Helper()
	tab.obey("color-contrast")
}

// obey fails the test if axe-core finds violations of rules, which it knows by their names or their tags.
// Of elements that differ only in their texts and addresses, as the rows of a table, it checks the first
// five: axe-core needs half a minute for 2,000 labels.
func (tab *Tab) obey(rules ...string) {
	tab.t.Helper()
	var loaded bool
	if tab.Eval(`typeof axe === "object"`, &loaded); !loaded {
		var ignored any
		tab.Eval(axe(tab.t)+"\n;true", &ignored)
	}
	var found []struct {
		ID, Impact, Help string
		Nodes            []struct {
			HTML           string `json:"html"`
			FailureSummary string `json:"failureSummary"`
		}
	}
	// Elements that axe-core is told to leave out take it longer than those that it checks.
	tab.Eval(fmt.Sprintf(`(async () => {
		const marks = (%s)().map(e => [e, document.createComment("")])
		for (const [e, mark] of marks) e.replaceWith(mark)
		try {
			return (await axe.run(document, {iframes: false, resultTypes: ["violations"], runOnly: ["%s"]})).violations
		} finally {
			for (const [e, mark] of marks) mark.replaceWith(e)
		}
	})()`, alike, strings.Join(rules, `", "`)), &found)
	var where string
	tab.Do(chromedp.Location(&where))
	for _, v := range found {
		for _, n := range v.Nodes {
			tab.t.Errorf("axe: %s: %s (%s, %s): %s\n%s", where, v.Help, v.ID, v.Impact, n.HTML, n.FailureSummary)
		}
	}
}

// Fits fails the test if the page is wider than the screen.
func (tab *Tab) Fits() {
	tab.t.Helper()
	var over int
	if tab.Eval(`Math.max(0, document.documentElement.scrollWidth - innerWidth)`, &over); over > 0 {
		var culprits string
		tab.Eval(`[...document.querySelectorAll("main *")].filter(e => e.getBoundingClientRect().right > innerWidth + 1 && !e.closest(".scroll, pre, .sr, .nav")).slice(0, 5).map(e => e.outerHTML.slice(0, 120)).join("\n")`, &culprits)
		var where string
		tab.Do(chromedp.Location(&where))
		tab.t.Errorf("%s is %d pixels wider than the screen:\n%s", where, over, culprits)
	}
}

// alike is a function that returns the rows, list items, paragraphs and labels of which the page has at
// least five before them. They are alike if they have the same name, class, role and attributes,
// children of the same kinds, and parents that are alike. The first of a parent always stays, and so do
// those that have the focus, a state, or an ID, to which others may refer.
const alike = `() => {
	const found = new Set(), seen = {}
	const own = e => [e.localName, e.className, e.role, e.checked, ...e.getAttributeNames()].join()
	const visit = (e, path) => {
		const kind = own(e)
		const kinds = new Set([...e.children].map(child => visit(child, path + ">" + kind)))
		const shape = kind + "(" + [...kinds].join() + ")"
		seen[path + shape] = (seen[path + shape] ?? 0) + 1
		if (seen[path + shape] > 5 && e.previousElementSibling?.localName === e.localName) found.add(e)
		return shape
	}
	visit(document.body, "")
	const stays = e => e.contains(document.activeElement) || e.matches("[id]") || e.querySelector("[id], iframe, dialog, details, audio, video")
	return [...found].filter(e => e.matches("tr, li, p, pre, .tag") && !stays(e))
}`

// axe returns the script of axe-core, which scripts/setup.sh installs.
func axe(t testing.TB) string {
	t.Helper()
	_, file, _, _ := runtime.Caller(0)
	b, err := os.ReadFile(filepath.Join(filepath.Dir(file), "node_modules", "axe-core", "axe.min.js"))
	if err != nil {
		t.Fatalf("%v; scripts/setup.sh test installs it", err)
	}
	return string(b)
}

// Screenshot writes the visible part of the page as a small PNG.
func (tab *Tab) Screenshot(path string) {
	tab.t.Helper()
	var shot []byte
	tab.Do(chromedp.CaptureScreenshot(&shot))
	small, err := Shrink(shot)
	systest.NoError(tab.t, err)
	systest.NoError(tab.t, os.WriteFile(path, small, 0o644))
}

// Shrink reduces a screenshot PNG to a palette of 256 colours.
func Shrink(b []byte) ([]byte, error) {
	src, err := png.Decode(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	bounds := src.Bounds()
	flat := image.NewRGBA(bounds)
	draw.Draw(flat, bounds, src, bounds.Min, draw.Src)
	counts := make(map[color.RGBA]int)
	for i := 0; i < len(flat.Pix); i += 4 {
		counts[color.RGBA{flat.Pix[i], flat.Pix[i+1], flat.Pix[i+2], 255}]++
	}
	colours := palette(counts)
	index := make(map[color.RGBA]uint8)
	for c := range counts {
		index[c] = uint8(colours.Index(c))
	}
	out := image.NewPaletted(bounds, colours)
	for i := range out.Pix {
		p := flat.Pix[4*i:]
		out.Pix[i] = index[color.RGBA{p[0], p[1], p[2], 255}]
	}
	var buf bytes.Buffer
	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&buf, out)
	return buf.Bytes(), err
}

// palette chooses 256 colours. The 128 most frequent are kept exactly: the plain colours of a page
// must not change. The others come from a median cut, which repeatedly halves the box with the most
// colours and the widest range.
func palette(counts map[color.RGBA]int) color.Palette {
	all := make([]color.RGBA, 0, len(counts))
	for c := range counts {
		all = append(all, c)
	}
	slices.SortFunc(all, func(x, y color.RGBA) int {
		return cmp.Or(counts[y]-counts[x], int(x.R)-int(y.R), int(x.G)-int(y.G), int(x.B)-int(y.B))
	})
	sure := min(len(all), 128)
	var out color.Palette
	for _, c := range all[:sure] {
		out = append(out, c)
	}
	boxes := [][]color.RGBA{all[sure:]}
	channels := []func(color.RGBA) int{
		func(c color.RGBA) int { return int(c.R) }, func(c color.RGBA) int { return int(c.G) }, func(c color.RGBA) int { return int(c.B) },
	}
	widest := func(box []color.RGBA) (channel func(color.RGBA) int, width int) {
		for _, ch := range channels {
			lo, hi := 255, 0
			for _, c := range box {
				lo, hi = min(lo, ch(c)), max(hi, ch(c))
			}
			if hi-lo >= width {
				channel, width = ch, hi-lo
			}
		}
		return channel, width
	}
	for len(boxes) < 128 {
		best, score := -1, 0
		for i, box := range boxes {
			if _, w := widest(box); len(box) > 1 && w*len(box) > score {
				best, score = i, w*len(box)
			}
		}
		if best < 0 {
			break
		}
		box := boxes[best]
		ch, _ := widest(box)
		slices.SortFunc(box, func(x, y color.RGBA) int { return ch(x) - ch(y) })
		boxes[best] = box[:len(box)/2]
		boxes = append(boxes, box[len(box)/2:])
	}
	for _, box := range boxes {
		var r, g, b, n int
		for _, c := range box {
			w := counts[c]
			r, g, b, n = r+int(c.R)*w, g+int(c.G)*w, b+int(c.B)*w, n+w
		}
		if n > 0 {
			out = append(out, color.RGBA{uint8(r / n), uint8(g / n), uint8(b / n), 255})
		}
	}
	return out
}

// Listen calls f with every event of the page until end is called. ctx is for actions in the page.
func (tab *Tab) Listen(f func(ctx context.Context, event any)) (end func()) {
	ctx, cancel := context.WithCancel(tab.ctx)
	chromedp.ListenTarget(ctx, func(e any) { f(tab.ctx, e) })
	return cancel
}

// Phone emulates a phone with the given page size: touch input and no scroll bars.
func (tab *Tab) Phone(width, height int64) {
	tab.t.Helper()
	tab.Do(chromedp.EmulateViewport(width, height, chromedp.EmulateMobile, chromedp.EmulateTouch))
}
