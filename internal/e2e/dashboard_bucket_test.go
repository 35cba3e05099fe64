//go:build linux

package e2e

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/fetch"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/chromedp"
	"github.com/minio/minio-go/v7/pkg/cors"

	"github.com/filewright/filewright/internal/browsertest"
	"github.com/filewright/filewright/internal/s3test"
	"github.com/filewright/filewright/internal/systest"
)

// A browserBucket is a bucket that browsers know under another host name, so that it is not the
// site of the dashboard.
type browserBucket struct {
	name   string
	origin string
	url    string // for --blob-url
}

// otherOrigin returns the URL of the same server under another host name.
func otherOrigin(url string) string { return strings.Replace(url, "127.0.0.1", "localhost", 1) }

func newBrowserBucket(t *testing.T, name string) browserBucket {
	t.Helper()
	systest.NoError(t, buckets.MakeBucket(t.Context(), name))
	b := browserBucket{name: name, origin: otherOrigin(buckets.Endpoint)}
	b.url = fmt.Sprintf("s3://%s/x?endpoint=%s&public_endpoint=%s&region=%s&path_style=true", name, url.QueryEscape(buckets.Endpoint), url.QueryEscape(b.origin), s3test.Region)
	return b
}

// permit sets a CORS configuration, in the JSON format of aws s3api put-bucket-cors.
func (b browserBucket) permit(t *testing.T, rules string) {
	t.Helper()
	var c struct {
		CORSRules []struct {
			AllowedOrigins, AllowedMethods, AllowedHeaders, ExposeHeaders []string
			MaxAgeSeconds                                                 int
		}
	}
	d := json.NewDecoder(strings.NewReader(rules))
	d.DisallowUnknownFields()
	if err := d.Decode(&c); err != nil || len(c.CORSRules) == 0 {
		t.Fatalf("CORS rules: %v: %s", err, rules)
	}
	var list []cors.Rule
	for _, r := range c.CORSRules {
		list = append(list, cors.Rule{AllowedOrigin: r.AllowedOrigins, AllowedMethod: r.AllowedMethods, AllowedHeader: r.AllowedHeaders, ExposeHeader: r.ExposeHeaders, MaxAgeSeconds: r.MaxAgeSeconds})
	}
	client, err := buckets.Client()
	if err == nil {
		err = client.SetBucketCors(t.Context(), b.name, cors.NewConfig(list))
	}
	systest.NoError(t, err)
}

// documentedRules returns the CORS rules from docs/operations.md, with origin in place of the
// documented origin.
func documentedRules(t *testing.T, origin string) string {
	t.Helper()
	doc := systest.ReadFile(t, filepath.Join("..", "..", "docs", "operations.md"))
	m := regexp.MustCompile("(?s)```json\n(\\{\"CORSRules\".*?)```").FindSubmatch(doc)
	if m == nil || !bytes.Contains(m[1], []byte(`"https://app.example.com"`)) {
		t.Fatal("docs/operations.md has no CORS rules")
	}
	return strings.ReplaceAll(string(m[1]), "https://app.example.com", origin)
}

// traffic records a page's requests to a bucket: "PUT 200", "GET 206" and the like.
type traffic struct {
	mu      sync.Mutex
	origin  string
	methods map[network.RequestID]string
	seen    []string
}

func (b browserBucket) listen(tab *browsertest.Tab) *traffic {
	r := &traffic{origin: b.origin + "/", methods: make(map[network.RequestID]string)}
	tab.Listen(func(_ context.Context, e any) {
		r.mu.Lock()
		defer r.mu.Unlock()
		switch e := e.(type) {
		case *network.EventRequestWillBeSent:
			r.methods[e.RequestID] = e.Request.Method
		case *network.EventResponseReceived:
			if strings.HasPrefix(e.Response.URL, r.origin) && r.methods[e.RequestID] != "OPTIONS" {
				r.seen = append(r.seen, fmt.Sprint(r.methods[e.RequestID], " ", e.Response.Status))
			}
		}
	})
	return r
}

// count returns the number of requests of a kind.
func (r *traffic) count(what string) (n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.seen {
		if s == what {
			n++
		}
	}
	return n
}

// all returns and clears the recorded requests.
func (r *traffic) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	defer func() { r.seen = nil }()
	return slices.Clone(r.seen)
}

// downloaded waits until a download is complete.
func downloaded(t *testing.T, dir, name string) []byte {
	t.Helper()
	var b []byte
	eventually(t, name+" is downloaded", func() bool {
		b, _ = os.ReadFile(filepath.Join(dir, name))
		return len(b) > 0
	})
	return b
}

// runLines runs shell commands in a directory and returns their output.
func runLines(t *testing.T, dir, lines string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "sh", "-e", "-c", lines)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v: %s", lines, err, out)
	}
	return string(out)
}

// visit logs in to a server with its files in the bucket. got is the download directory, below dir.
// seen records the browser's requests to the bucket.
func (b browserBucket) visit(t *testing.T, s *server, dir string) (tab *browsertest.Tab, got string, seen *traffic) {
	t.Helper()
	tab = browsertest.Open(t)
	tab.Size(1280, 860)
	tab.Scheme("light")
	login(t, s, tab)
	got = filepath.Join(dir, "got")
	systest.NoError(t, os.Mkdir(got, 0o700))
	tab.Downloads(got)
	return tab, got, b.listen(tab)
}

// With the documented CORS rules, uploads go directly to a bucket on another origin, and downloads
// come from there.
func TestDashboardBucketRedirect(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBrowserBucket(t, "browser-redirect")
	app := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, `<!doctype html><html lang="en"><link rel="icon" href="data:,"><title>An app</title><h1>An app</h1>`)
	}))
	t.Cleanup(app.Close)
	s := start(t, filepath.Join(dir, "data"), "--blob-url", b.url, "--redirect-downloads", "--cors-origins", app.URL)
	b.permit(t, documentedRules(t, s.url))
	tab, got, seen := b.visit(t, s, dir)

	// Convert a document to PDF. The upload goes directly to the bucket. The preview of the result
	// comes from the server, so the bucket needs no permission for it.
	try(tab, s, filepath.Join("..", "..", "examples", "files", "report.docx"))
	choose(tab, "convert_to", "pdf")
	convertHere(tab, `document.querySelector("#results iframe")`)
	if all := seen.all(); !slices.Equal(all, []string{"PUT 200"}) {
		t.Errorf("the page has asked the bucket for %q", all)
	}
	want := fetchResult(t, s, tab)
	tab.Accessible()
	tab.Click("#results a.button")
	if pdf := downloaded(t, got, "report.pdf"); !bytes.HasPrefix(pdf, []byte("%PDF-")) || !bytes.Equal(pdf, want) {
		t.Errorf("the download is %.20q", pdf)
	}
	if all := seen.all(); !slices.Equal(all, []string{"GET 200"}) {
		t.Errorf("for the download the browser has asked the bucket for %q", all)
	}
	tab.Wait(`location.pathname === "/dashboard/try" && document.querySelector("#results iframe")`)
	tab.NoProblems()

	// Other kinds of results have a preview too.
	try(tab, s, filepath.Join("..", "..", "examples", "files", "report.docx"))
	choose(tab, "convert_to", "txt")
	convertHere(tab, `document.querySelector("#results pre")?.textContent.includes("Harvest")`)
	try(tab, s, filepath.Join("..", "..", "examples", "files", "clip.mp4"))
	choose(tab, "convert_to", "mp3")
	convertHere(tab, `document.querySelector("#results audio")?.readyState >= 1`)
	if all := seen.all(); !slices.Equal(all, []string{"PUT 200", "PUT 200"}) {
		t.Errorf("the page has asked the bucket for %q", all)
	}
	operation, link := attribute(tab, "#operation", "href"), attribute(tab, "#results a.button", "href")
	tab.Go(s.url + operation)
	tab.Click("#results a[data-preview=audio]")
	tab.Wait(`document.querySelector("dialog[open] audio")?.readyState >= 1`)
	tab.Click("dialog button")
	tab.Wait(`!document.querySelector("dialog[open], dialog audio")`)
	tab.Click("#results a.button")
	mp3 := downloaded(t, got, "clip.mp3")
	tab.NoProblems()
	// The curl command of the page works too.
	var line string
	tab.Eval(fmt.Sprintf(`import(document.querySelector("script[src*='/static/']").src.replace(/[^/]*$/, "curl.js")).then((curl) => curl.download({download_link: %q, file_name: "by curl.mp3"}))`, link), &line)
	runLines(t, dir, "API="+s.url+"\n"+line)
	if b, err := os.ReadFile(filepath.Join(dir, "by curl.mp3")); err != nil || !bytes.Equal(b, mp3) {
		t.Errorf("curl has %d bytes of %d: %v", len(b), len(mp3), err)
	}

	// A page of another origin can read a result, also partially.
	tab.Go(app.URL)
	var size int
	if tab.Eval(fmt.Sprintf(`fetch(%q).then((r) => r.arrayBuffer()).then((b) => b.byteLength)`, s.url+link), &size); size != len(mp3) {
		t.Errorf("another page reads %d bytes of %d", size, len(mp3))
	}
	var part string
	tab.Eval(fmt.Sprintf(`fetch(%q, {headers: {Range: "bytes=0-9"}}).then((r) => r.status + " " + r.headers.get("Content-Range"))`, s.url+link), &part)
	if want := fmt.Sprintf("206 bytes 0-9/%d", len(mp3)); part != want {
		t.Errorf("another page reads %s, want %s", part, want)
	}
	tab.NoProblems()

	// A large picture is uploaded in parts. One part is lost, one is refused, and both are retried.
	parts(t, s, tab, b, seen, noisePicture(t, dir, 2400, 2300))
	tab.NoProblems()

	// Files that browsers could execute are only saved, from the server and from the bucket.
	for name, text := range map[string]string{
		"hostile.html": `<script>document.title = "hacked"; window.hacked = 1</script>`,
		"hostile.svg":  `<svg xmlns="http://www.w3.org/2000/svg"><script>document.title = "hacked"</script></svg>`,
	} {
		key := s.upload(t, name, []byte(text), 1)
		req, err := http.NewRequestWithContext(t.Context(), "GET", s.url+"/v1/download/"+key, nil)
		systest.NoError(t, err)
		req.Header.Set("Authorization", "Bearer "+s.key)
		resp, err := http.DefaultClient.Do(req)
		systest.NoError(t, err)
		resp.Body.Close()
		h := resp.Header
		if resp.StatusCode != 200 || !strings.HasPrefix(resp.Request.URL.String(), b.origin+"/") || h.Get("Content-Type") != "application/octet-stream" || h.Get("Content-Disposition") != `attachment; filename="`+name+`"` {
			t.Errorf("%s comes from %s with %d %v", name, resp.Request.URL.Host, resp.StatusCode, h)
		}
		tab.Go(s.url + "/dashboard/settings")
		tab.Eval(fmt.Sprintf(`window.stays = true; location.href = "/v1/download/%s"; true`, key), nil)
		if saved := downloaded(t, got, name); string(saved) != text {
			t.Errorf("%s is saved as %q", name, saved)
		}
		tab.Wait(`window.stays && document.title !== "hacked" && window.hacked === undefined`)
		// Pages of the dashboard cannot embed it either.
		blocked := tab.Expect("violates the following Content Security Policy directive")
		failed := tab.Expect("ERR_BLOCKED")
		tab.Eval(fmt.Sprintf(`new Promise((done) => {
			const frame = document.createElement("iframe");
			document.addEventListener("securitypolicyviolation", (event) => done(event.effectiveDirective), { once: true });
			frame.src = "/v1/download/%s";
			document.body.append(frame);
		}).then((directive) => { window.blockedBy = directive; })`, key), nil)
		tab.Wait(`window.blockedBy === "frame-src"`)
		blocked()
		failed()
	}
	tab.NoProblems()
}

// convertHere starts the selected action, and waits for the result and for the expression seen.
func convertHere(tab *browsertest.Tab, seen string) {
	tab.Click("#start")
	tab.Wait(`document.querySelector("#state .completed, #state .failed")`)
	tab.Wait(`document.querySelector("#state .completed") && ` + seen)
}

// parts converts a picture of more than 10 MiB. The first part is lost in transit, and the second
// is refused for a while.
func parts(t *testing.T, s *server, tab *browsertest.Tab, b browserBucket, seen *traffic, picture string) {
	t.Helper()
	info, err := os.Stat(picture)
	if err != nil || info.Size() < 15<<20 {
		t.Fatalf("the picture is too small: %v, %v", info, err)
	}
	seen.all()
	var mu sync.Mutex
	puts := 0
	end := tab.Listen(func(ctx context.Context, e any) {
		p, ok := e.(*fetch.EventRequestPaused)
		if !ok {
			return
		}
		var action chromedp.Action = fetch.ContinueRequest(p.RequestID)
		if p.Request.Method == http.MethodPut {
			mu.Lock()
			puts++
			switch puts {
			case 1:
				action = fetch.FailRequest(p.RequestID, network.ErrorReasonConnectionReset)
			case 2:
				action = fetch.FulfillRequest(p.RequestID, http.StatusServiceUnavailable).WithResponseHeaders([]*fetch.HeaderEntry{
					{Name: "Access-Control-Allow-Origin", Value: s.url}, {Name: "Content-Type", Value: "application/xml"}, {Name: "Retry-After", Value: "1"},
				}).WithBody(base64.StdEncoding.EncodeToString([]byte(`<?xml version="1.0"?><Error><Code>SlowDown</Code><Message>Please reduce your request rate.</Message></Error>`)))
			}
			mu.Unlock()
		}
		go chromedp.Run(ctx, action)
	})
	defer end()
	tab.Do(fetch.Enable().WithPatterns([]*fetch.RequestPattern{{URLPattern: b.origin + "/*"}}))
	lost, slow := tab.Expect("ERR_CONNECTION_RESET"), tab.Expect("503")
	try(tab, s, picture)
	choose(tab, "convert_to", "jpg")
	tab.Click(`#parameters summary`)
	tab.Fill("#p-width", "240")
	tab.Eval(`window.notes = new Set(); new MutationObserver(() => notes.add(document.querySelector(".file-sub").textContent)).observe(document.querySelector(".file-sub"), {childList: true, characterData: true, subtree: true})`, nil)
	convertHere(tab, `document.querySelector("#results img")?.naturalWidth === 240`)
	tab.Wait(`[...notes].some((n) => n.includes("Please reduce your request rate. Retrying in 1 s."))`)
	lost()
	slow()
	mu.Lock()
	if want := int(info.Size()/(5<<20)) + 2; puts != want {
		t.Errorf("%d requests for parts, want %d", puts, want)
	}
	if n := seen.count("PUT 200"); n != puts-2 {
		t.Errorf("%d parts went straight to the bucket, want %d", n, puts-2)
	}
	mu.Unlock()
	tab.Do(fetch.Disable())
	if img := fetchResult(t, s, tab); !bytes.HasPrefix(img, []byte("\xff\xd8\xff")) {
		t.Errorf("the result is %.20q", img)
	}
	tab.Accessible()
}

// The bucket does not permit uploads from the page. The page shows a fix, which works. Downloads
// pass through the server.
func TestDashboardBucketUnwelcome(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	b := newBrowserBucket(t, "browser-unwelcome")
	s := start(t, filepath.Join(dir, "data"), "--blob-url", b.url)
	tab, got, seen := b.visit(t, s, dir)

	const rule = `#failures pre`
	unwelcome, failed, refused := tab.Expect("blocked by CORS policy"), tab.Expect("ERR_FAILED"), tab.Expect("403 for "+b.origin)
	try(tab, s, filepath.Join("..", "..", "examples", "files", "report.docx"))
	choose(tab, "convert_to", "pdf")
	tab.Click("#start")
	tab.Wait(`document.querySelector("#state .failed") && document.querySelector("` + rule + `")`)
	text := tab.Text("#failures")
	for _, part := range []string{"The bucket at " + b.origin + " does not respond to this page.", "aws s3api put-bucket-cors", s.url} {
		if !strings.Contains(text, part) {
			t.Errorf("without CORS the page says %q, not %q", text, part)
		}
	}
	tab.Accessible()
	tab.Eval(`document.querySelector("#step-result").scrollIntoView({block: "center"})`, nil)
	shot(tab, "bucket")
	tab.Phone(360, 780)
	tab.Accessible()
	tab.Scheme("dark")
	tab.Accessible()
	tab.Scheme("light")
	tab.Size(1280, 860)

	// The page reports a missing ETag header.
	permitted := tab.Text(rule)
	b.permit(t, permitted)
	end := tab.Listen(func(ctx context.Context, e any) {
		p, ok := e.(*fetch.EventRequestPaused)
		if !ok {
			return
		}
		headers := slices.DeleteFunc(slices.Clone(p.ResponseHeaders), func(h *fetch.HeaderEntry) bool {
			return strings.EqualFold(h.Name, "Access-Control-Expose-Headers")
		})
		go chromedp.Run(ctx, fetch.ContinueResponse(p.RequestID).WithResponseCode(p.ResponseStatusCode).WithResponseHeaders(headers))
	})
	tab.Do(fetch.Enable().WithPatterns([]*fetch.RequestPattern{{URLPattern: b.origin + "/*", RequestStage: fetch.RequestStageResponse}}))
	unwelcome()
	failed()
	refused()
	tab.Click("#start")
	tab.Wait(`document.querySelector("#failures")?.textContent.includes("does not expose ETags to this page") && document.querySelector("` + rule + `")`)
	tab.Accessible()
	tab.Do(fetch.Disable())
	end()
	if again := tab.Text(rule); again != permitted {
		t.Errorf("the rule is %s, and was %s", again, permitted)
	}

	// With the rule from the page the upload works.
	seen.all()
	convertHere(tab, `document.querySelector("#results iframe") && !document.querySelector("`+rule+`")`)
	tab.Click("#results a.button")
	if pdf := downloaded(t, got, "report.pdf"); !bytes.HasPrefix(pdf, []byte("%PDF-")) {
		t.Errorf("the download is %.20q", pdf)
	}
	try(tab, s, noisePicture(t, dir, 2000, 1900))
	choose(tab, "convert_to", "jpg")
	convertHere(tab, `document.querySelector("#results img")?.naturalWidth === 2000`)
	tab.Click("#results a.button")
	if img := downloaded(t, got, "noise.jpg"); !bytes.HasPrefix(img, []byte("\xff\xd8\xff")) {
		t.Errorf("the download is %.20q", img)
	}
	if all := seen.all(); !slices.Equal(all, []string{"PUT 200", "PUT 200", "PUT 200"}) {
		t.Errorf("the page has asked the bucket for %q", all)
	}
	tab.NoProblems()

	// The curl commands also send parts to the bucket.
	data := random(11 << 20)
	write(t, filepath.Join(dir, "in put.bin"), data)
	up := s.initiate(t, "in put.bin", len(data), 2)
	if !strings.HasPrefix(up.urls[0], b.origin+"/") {
		t.Fatalf("parts go to %s", up.urls[0])
	}
	urls, err := json.Marshal(up.urls)
	systest.NoError(t, err)
	var lines string
	tab.Eval(fmt.Sprintf(`import(document.querySelector("script[src$='/try.js']").src.replace("try.js", "curl.js")).then((curl) => curl.put({name: "in put.bin"}, %s, %d))`, urls, len(data)/2), &lines)
	out := runLines(t, dir, lines)
	etags := regexp.MustCompile(`(?i)\netag: *"?([0-9a-f]+)`).FindAllStringSubmatch(out, -1)
	if len(etags) != 2 {
		t.Fatalf("curl prints %s", out)
	}
	s.want(t, 200, "", "POST", "/api/v1/complete-upload", map[string]any{"file_key": up.key, "object_name": up.object, "upload_id": up.id, "parts": []map[string]any{
		{"part_number": 1, "etag": etags[0][1]}, {"part_number": 2, "etag": etags[1][1]},
	}})
	if d := s.want(t, 200, "", "GET", "/v1/download/"+up.key, nil); !bytes.Equal(d.raw, data) {
		t.Error("what curl has sent is something else")
	}
	tab.NoProblems()
}
