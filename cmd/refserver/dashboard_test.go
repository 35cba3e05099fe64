package main

import (
	"cmp"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload/blob/s3blob"
)

func TestWithDashboard(t *testing.T) {
	t.Parallel()
	says := func(text string) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(text)) })
	}
	h := withDashboard(says("pages"), says("service"))
	const html = "text/html,application/xhtml+xml,*/*;q=0.8"
	for _, tt := range []struct{ method, path, accept, want string }{
		{"GET", "/dashboard/", html, "pages"},
		{"POST", "/dashboard/login", html, "pages"},
		{"GET", "/dashboard", "", "/dashboard/"},
		{"GET", "/", html, "/dashboard/"},
		{"GET", "/", "", "service"}, // programs get a 404
		{"GET", "/", "application/json", "service"},
		{"POST", "/", html, "service"},
		{"GET", "/docs", html, "service"},
		{"GET", "/dashboards", html, "service"},
		{"PUT", "/v1/upload/a//b/../dashboard/", "", "service"},
	} {
		r := httptest.NewRequest(tt.method, "http://example.com"+tt.path, nil)
		r.Header.Set("Accept", tt.accept)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		got := w.Body.String()
		if w.Code == http.StatusSeeOther {
			got = w.Header().Get("Location")
		}
		if got != tt.want {
			t.Errorf("%s %s for %q: %s, want %s", tt.method, tt.path, tt.accept, got, tt.want)
		}
	}
}

// Pages may send parts to the bucket, with either URL style, and nowhere else.
func TestUploadOrigins(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		bucket *s3blob.Config
		want   []string
	}{
		"no bucket":        {nil, nil},
		"private":          {&s3blob.Config{Bucket: "b", Endpoint: "https://s3.example.com", Private: true}, nil},
		"Amazon":           {&s3blob.Config{Bucket: "bkt"}, []string{"https://bkt.s3.dualstack.eu-central-1.amazonaws.com"}},
		"Amazon in China":  {&s3blob.Config{Bucket: "bkt", Region: "cn-north-1"}, []string{"https://bkt.s3.dualstack.cn-north-1.amazonaws.com.cn"}},
		"dots in its name": {&s3blob.Config{Bucket: "b.example"}, []string{"https://s3.dualstack.eu-central-1.amazonaws.com"}},
		"path style":       {&s3blob.Config{Bucket: "bkt", Endpoint: "http://127.0.0.1:9000", Addressing: s3blob.PathStyle}, []string{"http://127.0.0.1:9000"}},
		"virtual hosted":   {&s3blob.Config{Bucket: "bkt", Endpoint: "https://s3.example.com:8443", Addressing: s3blob.VirtualHosted}, []string{"https://bkt.s3.example.com:8443"}},
		"without scheme":   {&s3blob.Config{Bucket: "bkt", Endpoint: "s3.example.com"}, []string{"https://s3.example.com"}},
		"public endpoint":  {&s3blob.Config{Bucket: "bkt", Endpoint: "http://minio:9000", PublicEndpoint: "https://files.example.com", Addressing: s3blob.PathStyle}, []string{"https://files.example.com"}},
	} {
		a := &app{}
		if c := tt.bucket; c != nil {
			c.Region = cmp.Or(c.Region, "eu-central-1")
			c.Credentials = credentials.NewStaticV4("key", "secret", "")
			s, err := s3blob.New(*c)
			systest.NoError(t, err)
			defer s.Close()
			a.blobs = s
		}
		if got, err := a.uploadOrigins(t.Context()); err != nil || !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, %v, want %q", name, got, err, tt.want)
		}
	}
}
