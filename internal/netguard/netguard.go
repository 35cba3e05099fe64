// Package netguard limits where requests to URLs of clients may go, and what they carry.
//
//   - [NewTransport] connects only to public addresses and to those that the operator permits. The
//     address that is dialled decides, so neither names, redirects nor DNS rebinding lead into the
//     network of the server.
//   - [Check] refuses URLs that cannot work, before anything is queued.
//   - [Redirect] says whether a redirect may be followed, and whether headers go with it.
//   - [Reason] describes a failure to the client without revealing addresses of the network.
package netguard

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// ErrNotPublic matches the error of dialling an address that is not allowed.
var ErrNotPublic = errors.New("the address is not public")

// notPublic lists the IPv4 networks that are not globally reachable by IANA's registry
// of special-purpose addresses (RFC 6890 and its successors). It adds multicast and the
// other addresses at which clouds serve metadata.
var notPublic = prefixes(
	"0.0.0.0/8",          // this network
	"10.0.0.0/8",         // private
	"100.64.0.0/10",      // shared by carriers; Alibaba's metadata
	"127.0.0.0/8",        // loopback
	"168.63.129.16/32",   // Azure's host, a public address
	"169.254.0.0/16",     // link-local; metadata of most clouds
	"172.16.0.0/12",      // private
	"192.0.0.0/24",       // protocol assignments; Oracle's metadata
	"192.0.2.0/24",       // documentation
	"192.88.99.0/24",     // relays of 6to4
	"192.168.0.0/16",     // private
	"198.18.0.0/15",      // benchmarks
	"198.51.100.0/24",    // documentation
	"203.0.113.0/24",     // documentation
	"224.0.0.0/4",        // multicast
	"240.0.0.0/4",        // reserved
	"255.255.255.255/32", // broadcast
)

// public holds the global unicast addresses of IPv6; notPublic6 lists its
// special-purpose networks. No other IPv6 address is public: loopback, unspecified,
// unique local, link and site local, multicast, NAT64 (64:ff9b::/96 and
// 64:ff9b:1::/48), IPv4-compatible.
var (
	public     = netip.MustParsePrefix("2000::/3")
	notPublic6 = prefixes(
		"2001::/23",     // protocol assignments, Teredo among them
		"2001:db8::/32", // documentation
		"2002::/16",     // 6to4
		"3fff::/20",     // documentation
	)
)

func prefixes(texts ...string) []netip.Prefix {
	var out []netip.Prefix
	for _, t := range texts {
		out = append(out, netip.MustParsePrefix(t))
	}
	return out
}

// Allowed reports whether requests may go to an address: one that is public or in one
// of the given networks.
func Allowed(ip netip.Addr, allow []netip.Prefix) bool {
	ip = ip.WithZone("").Unmap() // a mapped address is dialled as the IPv4 address
	in := func(p netip.Prefix) bool { return p.Contains(ip) }
	switch {
	case !ip.IsValid():
		return false
	case slices.ContainsFunc(allow, in):
		return true
	case ip.Is4():
		return !slices.ContainsFunc(notPublic, in)
	}
	return public.Contains(ip) && !slices.ContainsFunc(notPublic6, in)
}

// Options configure a transport.
type Options struct {
	Allow    []netip.Prefix // networks that requests may go to although they are not public
	TLS      *tls.Config    // nil: the default
	Idle     int            // idle connections to keep for each host; 0: none
	Resolver *net.Resolver  // nil: the default
}

// NewTransport returns a transport that uses no proxy and connects only to allowed
// addresses. It checks every address right before dialling it, after name resolution,
// so DNS rebinding does not help an attacker. A refused address fails with ErrNotPublic.
func NewTransport(o Options) *http.Transport {
	d := &net.Dialer{
		Resolver:  o.Resolver,
		KeepAlive: -1, // connections are short-lived
		ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil || network != "tcp4" && network != "tcp6" || !Allowed(ap.Addr(), o.Allow) {
				return ErrNotPublic
			}
			return nil
		},
	}
	return &http.Transport{
		DialContext:            d.DialContext,
		TLSClientConfig:        o.TLS.Clone(),
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		DisableKeepAlives:      o.Idle == 0,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    o.Idle,
		IdleConnTimeout:        30 * time.Second,
		ExpectContinueTimeout:  time.Second,
		MaxResponseHeaderBytes: 16 << 10,
	}
}

// The rules of [Check], as [URLError.Rule].
const (
	RuleForm        = "form"        // not a URL, too long, no host, invalid port
	RuleScheme      = "scheme"      // neither http nor https
	RuleCredentials = "credentials" // a user name or password
	RuleAddress     = "address"     // an address that is not public
)

// A URLError reports a URL that requests may not go to.
type URLError struct {
	Rule string
	Why  string // the predicate of a sentence about the URL, such as "has no host"
}

// Error implements error.
func (e *URLError) Error() string { return "the URL " + e.Why }

// maxURL is the maximum length of a URL. Presigned URLs with a session token have up to 2 KiB.
const maxURL = 8000

// Check parses a URL that a client has sent, and returns a [*URLError] if requests cannot go to it
// whatever its host resolves to. Names are checked only when they are dialled.
func Check(text string, allow []netip.Prefix) (*url.URL, error) {
	bad := func(rule, format string, args ...any) (*url.URL, error) {
		return nil, &URLError{rule, fmt.Sprintf(format, args...)}
	}
	if text == "" {
		return bad(RuleForm, "is missing")
	}
	if len(text) > maxURL {
		return bad(RuleForm, "has more than %d bytes", maxURL)
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return bad(RuleForm, "is not a URL")
	case u.Scheme != "http" && u.Scheme != "https":
		return bad(RuleScheme, "must start with https:// or http://")
	case u.Hostname() == "":
		return bad(RuleForm, "has no host")
	case u.User != nil:
		return bad(RuleCredentials, "must not contain a user name or password")
	}
	if p := u.Port(); p != "" {
		if n, err := strconv.Atoi(p); err != nil || n < 1 || n > 65535 {
			return bad(RuleForm, "has an invalid port")
		}
	}
	if ip, err := netip.ParseAddr(u.Hostname()); err == nil && !Allowed(ip, allow) {
		return bad(RuleAddress, "has a non-public address, which the operator must permit first")
	}
	return u, nil
}

// ErrDowngrade is the error of a redirect from https to http.
var ErrDowngrade = errors.New("the server redirects from https to http, which would reveal the file")

// Redirect checks a redirect between two URLs that [Check] accepts. It returns ErrDowngrade for one
// from https to http. sameOrigin reports whether both have the same scheme, host and port (RFC 6454,
// 5): to another origin, and from there on, no headers of the client may be sent, because they may
// be credentials.
func Redirect(from, to *url.URL) (sameOrigin bool, err error) {
	if from.Scheme == "https" && to.Scheme == "http" {
		return false, ErrDowngrade
	}
	return from.Scheme == to.Scheme && strings.EqualFold(from.Hostname(), to.Hostname()) && port(from) == port(to), nil
}

func port(u *url.URL) string {
	return cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
}

// Reason returns why a request to a URL of a client failed, in a form that the client may see: it
// does not reveal addresses inside the server's network. timeout is the text for a deadline.
func Reason(err error, timeout string) string {
	var dns *net.DNSError
	var cert *tls.CertificateVerificationError
	var plain tls.RecordHeaderError
	var timed interface{ Timeout() bool }
	switch {
	case errors.Is(err, ErrNotPublic):
		return ErrNotPublic.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return timeout
	case errors.As(err, &dns):
		return "cannot resolve the host name"
	case errors.As(err, &cert):
		return "invalid certificate: " + cert.Err.Error()
	case errors.As(err, &plain):
		return "the server does not speak TLS"
	case errors.As(err, &timed) && timed.Timeout():
		return "the connection timed out"
	case errors.Is(err, syscall.ECONNREFUSED):
		return "the connection was refused"
	case errors.Is(err, syscall.ENETUNREACH), errors.Is(err, syscall.EHOSTUNREACH):
		return "the host is unreachable"
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, syscall.EPIPE):
		return "the connection was closed without a response"
	}
	return "the request failed"
}
