package httpapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/filewright/filewright/capability"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/internal/systest"
)

// TestOffer checks that a service without actions offers clients the actions of others while those
// exist.
func TestOffer(t *testing.T) {
	t.Parallel()
	svc, err := httpapi.New(httpapi.Config{Auth: httpapi.AllowAll(), Shared: true, Concurrency: map[string]int{}})
	systest.NoError(t, err)
	zip := fileops.Func(fileops.Spec{
		Name: "zip", Engine: "elsewhere", Family: "archive", Summary: "Zips.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.TXT}}},
	}, func(context.Context, *fileops.Job) error { return nil })
	post := func(path, body string) *httptest.ResponseRecorder {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/json")
		svc.ServeHTTP(w, r)
		return w
	}
	unknown := func() {
		t.Helper()
		for path, body := range map[string]string{
			"/api/v1/supported-operation": `{"ext":"txt","action":"zip"}`,
			"/api/v1/do":                  `{"action":"zip","file_keys":["x"]}`,
		} {
			if w := post(path, body); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
				t.Errorf("%s while nothing is on offer: %d %s, want 503 with Retry-After", path, w.Code, w.Body)
			}
		}
	}
	check := func(want bool) {
		t.Helper()
		w := post("/api/v1/supported-operation", `{"ext":"txt","action":"zip"}`)
		var got struct{ Supported bool }
		if err := json.Unmarshal(w.Body.Bytes(), &got); err != nil || w.Code != http.StatusOK || got.Supported != want {
			t.Errorf("supported-operation: %d %s, want supported to be %v, error %v", w.Code, w.Body, want, err)
		}
		w = httptest.NewRecorder()
		svc.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/api/v1/formats", nil))
		if strings.Contains(w.Body.String(), `"elsewhere"`) != want {
			t.Errorf("formats: %s, want the engine in it to be %v", w.Body, want)
		}
		if a := svc.Capabilities().Query(capability.Query{Ext: "txt", Action: "zip"}); a.Supported != want {
			t.Errorf("capabilities: %+v", a)
		}
	}
	unknown()
	systest.NoError(t, svc.Offer([]fileops.Action{zip}, []httpapi.Engine{{Name: "elsewhere", Version: "1"}}))
	check(true)
	if err := svc.Offer([]fileops.Action{fileops.Func(fileops.Spec{Name: "Bad Name"}, nil)}, nil); err == nil {
		t.Error("an action with a bad name was offered")
	}
	check(true)
	other := fileops.Func(fileops.Spec{
		Name: "zip", Engine: "go", Family: "archive", Summary: "Zips.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.PNG}}},
	}, func(context.Context, *fileops.Job) error { return nil })
	systest.NoError(t, svc.Offer([]fileops.Action{other}, nil))
	check(false)
	systest.NoError(t, svc.Offer(nil, nil))
	unknown()
}
