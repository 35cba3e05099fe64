package netguard_test

import (
	"errors"
	"net/url"
	"testing"

	"github.com/filewright/filewright/internal/netguard"
	"github.com/filewright/filewright/internal/systest"
)

// A redirect never leads from https to http, and headers stay with one origin.
func TestRedirect(t *testing.T) {
	for _, tt := range []struct {
		from, to   string
		sameOrigin bool
		err        error
	}{
		{"https://a.example/1", "https://a.example/2?q", true, nil},
		{"https://a.example/", "https://A.EXAMPLE:443/", true, nil},
		{"http://a.example:80/", "http://a.example/", true, nil},
		{"http://[2001:DB8::1]/", "http://[2001:db8::1]:80/", true, nil},
		{"http://a.example/", "https://a.example/", false, nil},
		{"http://a.example:8080/", "https://a.example:8080/", false, nil},
		{"https://a.example/", "https://a.example:8443/", false, nil},
		{"https://a.example/", "https://www.a.example/", false, nil},
		{"http://a.example:443/", "https://a.example/", false, nil},
		{"https://a.example/", "http://a.example/", false, netguard.ErrDowngrade},
		{"https://a.example:8080/", "http://a.example:8080/", false, netguard.ErrDowngrade},
	} {
		from, err := url.Parse(tt.from)
		systest.NoError(t, err)
		to, err := url.Parse(tt.to)
		systest.NoError(t, err)
		same, err := netguard.Redirect(from, to)
		if same != tt.sameOrigin || !errors.Is(err, tt.err) {
			t.Errorf("%s to %s: %v, %v; want %v, %v", from, to, same, err, tt.sameOrigin, tt.err)
		}
	}
}
