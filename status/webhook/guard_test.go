package webhook_test

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/status/webhook"
)

// everything allows requests to all addresses.
var everything = []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")}

const notPublic = "the address is not public"

// TestGuard sends to addresses that must not be reached: to a local listener in every
// known spelling, and to addresses that are dangerous in other networks.
func TestGuard(t *testing.T) {
	t.Parallel()
	var accepted atomic.Int64
	listen := func(network, address string) (port string) {
		ln, err := net.Listen(network, address)
		if err != nil {
			t.Logf("%s: %v", address, err) // no IPv6 here
			return "9"
		}
		t.Cleanup(func() { ln.Close() })
		go func() {
			for {
				c, err := ln.Accept()
				if err != nil {
					return
				}
				accepted.Add(1)
				c.Close()
			}
		}()
		_, port, _ = net.SplitHostPort(ln.Addr().String())
		return port
	}
	port, port6 := listen("tcp4", "127.0.0.1:0"), listen("tcp6", "[::1]:0")

	urls := make(map[string]bool) // true if the check of the URL already refuses it
	for u, literal := range map[string]bool{
		"http://localhost:%s/":              false, // a name that means this machine
		"http://LOCALHOST.:%s/":             false,
		"HTTP://localhost:%s/":              false,
		"http://2130706433:%s/":             false, // some resolvers take this for an address
		"http://0x7f000001:%s/":             false,
		"http://0177.0.0.1:%s/":             false,
		"http://127.1:%s/":                  false,
		"http://127.0.0.1:%s/":              true,
		"https://127.0.0.1:%s/":             true,
		"http://127.255.255.254:%s/":        true,
		"http://0.0.0.0:%s/":                true,
		"http://[::ffff:127.0.0.1]:%s/":     true,
		"http://[::ffff:7f00:1]:%s/":        true,
		"http://[0:0:0:0:0:ffff:7f00:1]:%s": true,
		"http://[::127.0.0.1]:%s/":          true, // IPv4-compatible
		"http://[64:ff9b::127.0.0.1]:%s/":   true, // NAT64
		"http://[64:ff9b:1::7f00:1]:%s/":    true, // local NAT64
		"http://[2002:7f00:1::]:%s/":        true, // 6to4
		"http://[2001:0:7f00:1::]:%s/":      true, // Teredo
	} {
		urls[strings.Replace(u, "%s", port, 1)] = literal
		urls[strings.Replace(u, "%s", port6, 1)] = literal
	}
	for _, host := range []string{
		"[::1]:" + port6, "[::]:" + port6, "10.0.0.1", "172.16.0.1", "172.31.255.255", "192.168.1.1",
		"169.254.169.254", "169.254.170.2", "100.100.100.200", "100.64.0.1", "192.0.0.192", "168.63.129.16", // metadata
		"[fd00:ec2::254]", "[fe80::1]", "[fe80::1%25lo]", "[fec0::1]", "[fc00::1]", "0.1.2.3", "192.0.2.1", "198.18.0.1", "198.51.100.1",
		"203.0.113.1", "192.88.99.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255", "[ff02::1]", "[ff0e::1]",
		"[2001:db8::1]", "[2001:10::1]", "[3fff::1]", "[100::1]", "[5f00::1]", "[64:ff9b::a00:1]", "[::ffff:10.0.0.1]", "[::ffff:a9fe:a9fe]",
	} {
		urls["http://"+host+"/latest/meta-data"] = true
	}

	strict := openSQLite(t)
	w := newHooks(t, strict, func(c *webhook.Config) {
		c.Allow, c.Schedule, c.Timeout, c.Endpoints, c.Workers = nil, []time.Duration{}, patience, len(urls), 4*len(urls)
	})
	// A server with another configuration may have registered an endpoint that this one
	// refuses.
	lax := newHooks(t, strict, func(c *webhook.Config) { c.Allow, c.Endpoints = everything, len(urls) })
	endpoints := make(map[string]string)
	for u, literal := range urls {
		_, _, err := w.Create(t.Context(), "bob", webhook.NewEndpoint{URL: u})
		var bad *webhook.InputError
		if literal && (!errors.As(err, &bad) || bad.Param != "url") {
			t.Errorf("%s: error is %v, want one about the URL", u, err)
		} else if !literal && err != nil {
			t.Errorf("%s: %v", u, err)
		}
		e, _ := create(t, lax, "alice", u, webhook.OperationCompleted)
		endpoints[e.ID] = u
	}
	one(t, strict, "alice", "op1")
	run(t, w)
	wait(t, "all attempts", func() bool {
		s, err := w.Stats(t.Context())
		return err == nil && s.Pending == 0
	})
	list, err := w.Deliveries(t.Context(), "alice", webhook.Query{Limit: 2 * len(urls)})
	if err != nil || len(list) != len(urls) {
		t.Fatalf("%d deliveries, error %v, want %d", len(list), err, len(urls))
	}
	for _, d := range list {
		_, attempts := delivery(t, w, "alice", d.ID)
		u := endpoints[d.Endpoint]
		switch {
		case len(attempts) != 1 || attempts[0].Status != 0:
			t.Errorf("%s: attempts %+v", u, attempts)
		case attempts[0].Error == notPublic:
		case urls[u] || strings.Contains(u, "//localhost:"):
			t.Errorf("%s: error is %q, want %q", u, attempts[0].Error, notPublic)
		case !strings.Contains(attempts[0].Error, "name"): // no resolver took it for an address
			t.Errorf("%s: error is %q", u, attempts[0].Error)
		}
	}
	if n := accepted.Load(); n != 0 {
		t.Errorf("%d connections were made", n)
	}
	if s, err := w.Stats(t.Context()); err != nil || s.Attempts["blocked"] == 0 || s.Attempts["delivered"] != 0 {
		t.Errorf("stats are %+v, error %v", s, err)
	}
}

func TestPublic(t *testing.T) {
	t.Parallel()
	w := newHooks(t, openSQLite(t), func(c *webhook.Config) { c.Allow = nil })
	for _, host := range []string{"8.8.8.8", "1.1.1.1", "192.0.1.1", "172.32.0.1", "100.128.0.1", "[2606:4700:4700::1111]", "[2a00:1450::1]", "[::ffff:8.8.8.8]", "example.com", "bücher.example"} {
		if _, _, err := w.Create(t.Context(), "alice", webhook.NewEndpoint{URL: "https://" + host + ":8443/hook?x=1"}); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
}

func TestInput(t *testing.T) {
	t.Parallel()
	w := newHooks(t, openSQLite(t), func(c *webhook.Config) { c.Endpoints = 2 })
	long := strings.Repeat("x", 3000)
	for _, c := range []struct {
		param string
		n     webhook.NewEndpoint
	}{
		{"url", webhook.NewEndpoint{}},
		{"url", webhook.NewEndpoint{URL: "ftp://example.com/"}},
		{"url", webhook.NewEndpoint{URL: "file:///etc/passwd"}},
		{"url", webhook.NewEndpoint{URL: "gopher://example.com"}},
		{"url", webhook.NewEndpoint{URL: "//example.com/"}},
		{"url", webhook.NewEndpoint{URL: "/hook"}},
		{"url", webhook.NewEndpoint{URL: "https://"}},
		{"url", webhook.NewEndpoint{URL: "https:///path"}},
		{"url", webhook.NewEndpoint{URL: "https://user:pass@example.com/"}},
		{"url", webhook.NewEndpoint{URL: "https://user@example.com/"}},
		{"url", webhook.NewEndpoint{URL: "https://example.com/#part"}},
		{"url", webhook.NewEndpoint{URL: "https://example.com:0/"}},
		{"url", webhook.NewEndpoint{URL: "https://example.com:70000/"}},
		{"url", webhook.NewEndpoint{URL: "https://example.com/\r\nHost: x"}},
		{"url", webhook.NewEndpoint{URL: "https://exa mple.com/"}},
		{"url", webhook.NewEndpoint{URL: "https://example.com/" + long}},
		{"events", webhook.NewEndpoint{URL: "https://example.com/", Events: []string{"operation.completed", "operation.done"}}},
		{"description", webhook.NewEndpoint{URL: "https://example.com/", Description: long}},
		{"description", webhook.NewEndpoint{URL: "https://example.com/", Description: "a\nb"}},
		{"description", webhook.NewEndpoint{URL: "https://example.com/", Description: "\xff"}},
	} {
		_, _, err := w.Create(t.Context(), "alice", c.n)
		var bad *webhook.InputError
		if !errors.As(err, &bad) || bad.Param != c.param || bad.Message == "" || c.param == "events" && len(bad.Allowed) != 4 {
			t.Errorf("%.80v: error is %v, want one about %s", fmt.Sprint(c.n), err, c.param)
		}
	}
	e, secret := create(t, w, "alice", "https://example.com/", webhook.OperationFailed, webhook.FileTaskFailed, webhook.OperationFailed)
	if !strings.HasPrefix(secret, "whsec_") || len(e.Events) != 2 {
		t.Errorf("endpoint %+v with the secret %q", e, secret)
	}
	for _, url := range []string{"http://10.0.0.1/", ""} {
		var bad *webhook.InputError
		if _, err := w.Update(t.Context(), "alice", e.ID, webhook.Change{URL: &url}); !errors.As(err, &bad) {
			t.Errorf("change to %q: error is %v", url, err)
		}
	}
	create(t, w, "alice", "https://example.com/")
	if _, _, err := w.Create(t.Context(), "alice", webhook.NewEndpoint{URL: "https://example.com/"}); !errors.Is(err, webhook.ErrLimit) {
		t.Errorf("error is %v, want one that matches ErrLimit", err)
	}
	create(t, w, "bob", "https://example.com/")
}
