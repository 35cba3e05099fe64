package webhook

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"syscall"
	"time"
)

// errNotPublic matches the error of dialling an address that is not allowed.
var errNotPublic = errors.New("the address is not public")

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

// allowed reports whether requests may go to an address: one that is public or in one
// of the given networks.
func allowed(ip netip.Addr, allow []netip.Prefix) bool {
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

// newTransport returns a transport that uses no proxy and connects only to allowed
// addresses. It checks every address right before dialling it, after name resolution,
// so DNS rebinding does not help an attacker.
func newTransport(allow []netip.Prefix, conf *tls.Config, idle int) http.RoundTripper {
	d := &net.Dialer{
		KeepAlive: -1, // connections are short-lived
		ControlContext: func(_ context.Context, network, address string, _ syscall.RawConn) error {
			ap, err := netip.ParseAddrPort(address)
			if err != nil || network != "tcp4" && network != "tcp6" || !allowed(ap.Addr(), allow) {
				return errNotPublic
			}
			return nil
		},
	}
	return &http.Transport{
		DialContext:            d.DialContext,
		TLSClientConfig:        conf.Clone(),
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConns:           100,
		MaxIdleConnsPerHost:    idle,
		IdleConnTimeout:        30 * time.Second,
		MaxResponseHeaderBytes: 16 << 10,
	}
}
