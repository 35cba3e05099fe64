package auth

import (
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"unicode"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
)

// maxAddresses is the number of networks that a key can be limited to.
const maxAddresses = 50

var errNoAddress = errors.New("the addresses of an API key are not valid")

// ParseAddresses parses addresses and networks such as "192.0.2.1 2001:db8::/32", separated by spaces,
// commas or lines. The result is sorted and has no network that another one contains. An empty text is
// no error.
func ParseAddresses(text string) ([]netip.Prefix, error) {
	var all []netip.Prefix
	for one := range strings.FieldsFuncSeq(text, func(r rune) bool { return r == ',' || unicode.IsSpace(r) }) {
		p, err := parseAddress(one)
		if err != nil {
			return nil, httpapi.Invalid("addresses", "%q is neither an IP address nor a network such as 192.0.2.0/24 or 2001:db8::/32", one)
		}
		all = append(all, p)
	}
	return cleanAddresses(all)
}

func parseAddress(text string) (netip.Prefix, error) {
	if addr, err := netip.ParseAddr(text); err == nil && addr.Zone() == "" {
		addr = addr.Unmap()
		return netip.PrefixFrom(addr, addr.BitLen()), nil
	}
	p, err := netip.ParsePrefix(text)
	if err == nil && p.Addr().Is4In6() && p.Bits() >= 96 {
		p = netip.PrefixFrom(p.Addr().Unmap(), p.Bits()-96)
	}
	return p.Masked(), err
}

// cleanAddresses sorts networks and removes those that others contain.
func cleanAddresses(all []netip.Prefix) (list []netip.Prefix, err error) {
	all = slices.Clone(all)
	slices.SortFunc(all, func(x, y netip.Prefix) int {
		if c := x.Addr().Compare(y.Addr()); c != 0 {
			return c
		}
		return x.Bits() - y.Bits()
	})
	for _, p := range all {
		if !p.IsValid() {
			return nil, httpapi.Invalid("addresses", "an address is not valid")
		}
		if n := len(list); n == 0 || !(list[n-1].Contains(p.Addr()) && list[n-1].Bits() <= p.Bits()) {
			list = append(list, p.Masked())
		}
	}
	if len(list) > maxAddresses {
		return nil, httpapi.Invalid("addresses", "a key can have at most %d addresses and networks", maxAddresses)
	}
	return list, nil
}

// FormatAddresses returns networks separated by spaces; those of one address without a length.
func FormatAddresses(list []netip.Prefix) string {
	var texts []string
	for _, p := range list {
		if p.IsSingleIP() {
			texts = append(texts, p.Addr().String())
		} else {
			texts = append(texts, p.String())
		}
	}
	return strings.Join(texts, " ")
}

// checkAddress returns an error if a key that is limited to networks may not be used by the client of a
// request.
func (k *Keys) checkAddress(r *http.Request, key *account.Key) error {
	if key.Addresses == "" {
		return nil
	}
	allowed, err := ParseAddresses(key.Addresses)
	if err != nil || len(allowed) == 0 { // no address must not mean all of them
		return fmt.Errorf("key %s: addresses %q: %w", key.ID, key.Addresses, errNoAddress)
	}
	from, ok := httpapi.ClientAddr(r, k.trustProxy)
	if ok && slices.ContainsFunc(allowed, func(p netip.Prefix) bool { return p.Contains(from) }) {
		return nil
	}
	name := "an unknown address"
	if ok {
		name = from.String()
	}
	return httpapi.NewProblem(http.StatusForbidden, "address_not_allowed", "this API key may not be used from %s; the account can change the addresses of the key", name)
}
