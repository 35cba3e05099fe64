package dashboard_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/dashboard"
	"github.com/filewright/filewright/httpapi/dashboard/thumbnail"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
)

// drawings answers by the name of the file.
type drawings struct{}

func (drawings) Can(name string, _ int64) bool { return !strings.HasSuffix(name, ".txt") }

func (drawings) Draw(ctx context.Context, f *upload.File, side int, open func(context.Context) (blob.Object, error)) (*thumbnail.Picture, error) {
	switch f.Name {
	case "none.pdf":
		return nil, thumbnail.ErrNone
	case "busy.pdf":
		return nil, thumbnail.ErrBusy
	}
	obj, err := open(ctx)
	if err != nil {
		return nil, err
	}
	defer obj.Close()
	b, err := io.ReadAll(io.NewSectionReader(obj, 0, obj.Info().Size))
	return &thumbnail.Picture{Type: "image/webp", Content: append(b, map[int]string{thumbnail.Small: " small", thumbnail.Large: " large"}[side]...)}, err
}

// Thumbnails are for those who may see the file, and a missing one is no error of the page.
func TestThumbnails(t *testing.T) {
	t.Parallel()
	s := newSite(t, func(cfg *dashboard.Config) { cfg.Thumbnails = drawings{} })
	v, acct := s.member("ada")
	eve, _ := s.member("eve")
	key := v.send("a.pdf", "content")
	path := "/dashboard/files/" + key + "/thumbnail"
	for query, want := range map[string]string{"": "content large", "?small": "content small"} {
		p := v.get(path + query)
		if p.status != 200 || p.text != want || p.header.Get("Content-Type") != "image/webp" || p.header.Get("X-Content-Type-Options") != "nosniff" || !strings.Contains(p.header.Get("Content-Security-Policy"), "sandbox") {
			t.Errorf("%s: %d %q, %v", query, p.status, p.text, p.header)
		}
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+path+query, nil)
		systest.NoError(t, err)
		r.Header.Set("If-None-Match", p.header.Get("ETag"))
		if p := v.do(r); p.status != 304 {
			t.Errorf("%s again: %d", query, p.status)
		}
	}
	for name, who := range map[string]*visitor{"of another account": eve, "none": v, "busy": v} {
		at := path
		if who == v {
			at = "/dashboard/files/" + v.send(name+".pdf", "x") + "/thumbnail"
		}
		if p := who.get(at); p.status != 204 || p.text != "" || (name == "none") != strings.HasPrefix(p.header.Get("Cache-Control"), "private") {
			t.Errorf("%s: %d %q, %v", name, p.status, p.text, p.header)
		}
	}
	if p := s.visitor().get(path); p.path != "/dashboard/login" {
		t.Errorf("a stranger: %d %s", p.status, p.path)
	}
	if p := v.get("/dashboard/files/nothing/thumbnail"); p.status != 204 {
		t.Errorf("a file that does not exist: %d", p.status)
	}

	// The page shows them for inputs and results, but not for files that have expired.
	text := v.send("b.txt", "text")
	op, err := s.service.Operations().Submit(t.Context(), status.Operation{
		Owner: acct.ID, Action: "zip", Created: time.Now(), Items: []status.Item{
			{Queue: "archive", Inputs: []status.File{{Key: key, Name: "a.pdf", Size: 7}}},
			{Queue: "archive", Inputs: []status.File{{Key: "old", Name: "old.pdf", Size: 7, Expires: time.Now().Add(-time.Hour)}}},
			{Queue: "archive", Inputs: []status.File{{Key: text, Name: "b.txt", Size: 4}}},
		},
	})
	systest.NoError(t, err)
	s.finish(op.ID, status.Outcome{Results: []status.File{{Key: key, Name: "a.pdf", Size: 7}, {Key: "photo", Name: "photo.tiff", Size: 7}, {Key: "icon", Name: "icon.png", Size: 7}}})
	page := v.get("/dashboard/operations/" + op.ID).text
	for _, want := range []string{
		`<img src="` + path + `?small"`, `<img src="` + path + `"`, `<img src="/dashboard/files/photo/thumbnail"`, `<img src="/dashboard/files/icon"`,
		`href="/dashboard/files/` + text + `" target="_blank" data-preview="text"`,
	} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %s", want)
		}
	}
	for _, unwanted := range []string{"files/old", text + "/thumbnail", `data-preview="" `} {
		if strings.Contains(page, unwanted) {
			t.Errorf("the page has %s", unwanted)
		}
	}
}
