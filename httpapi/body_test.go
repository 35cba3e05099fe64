package httpapi_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/filewright/filewright/httpapi"
)

// notes returns the body of an operation with n notes of s bytes each.
func notes(n int, s int) string {
	var b strings.Builder
	b.WriteString(`{"action":"convert","file_keys":["x"],"notes":{`)
	for i := range n {
		fmt.Fprintf(&b, `"%d, [\"{":%q,`, i, strings.Repeat("x", s))
	}
	return b.String() + `"":""}}`
}

// The values of a body determine its memory. They are counted before decoding.
func TestValuesOfBody(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{})
	for _, tt := range []struct {
		body string
		slug string
	}{
		{notes(4000, 0), ""},
		{notes(6000, 0), "too_large"},
		{`{"action":"convert","parameters":{"a":` + strings.Repeat("[", 6000), "too_large"},
		{`{"action":"convert","parameters":{"a":"` + strings.Repeat(`,[{\"`, 6000) + `"}}`, ""},
		{`{"file_keys":[` + strings.Repeat(`"",`, 6000) + `""]}`, "too_large"},
	} {
		st, m := a.call(t, "key-a", "POST", "/api/v1/do", tt.body)
		if tt.slug != "" && (st != 413 || m["error"] != tt.slug) || tt.slug == "" && m["error"] == "too_large" {
			t.Errorf("%.60s: %d %v", tt.body, st, m)
		}
	}
	var list strings.Builder
	for i := range 10_000 {
		fmt.Fprintf(&list, `{"etag":"d41d8cd98f00b204e9800998ecf8427e","part_number":%d},`, i+1)
	}
	if st, m := a.call(t, "key-a", "POST", "/api/v1/complete-upload", `{"file_key":"x","parts":[`+strings.TrimSuffix(list.String(), ",")+`]}`); st != 404 {
		t.Errorf("as many parts as there may be: %d %v", st, m)
	}
}

// Long bodies that arrive together wait for each other.
func TestLongBodies(t *testing.T) {
	t.Parallel()
	a := serve(t, httpapi.Config{Limits: httpapi.Limits{Rate: httpapi.Unlimited()}})
	body := notes(3, 100_000)
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			if st, m := a.call(t, "key-a", "POST", "/api/v1/do", body); st != 400 && st != 404 {
				t.Errorf("%d %v", st, m)
			}
		})
	}
	wg.Wait()
}
