package httpapi

import (
	"cmp"
	"fmt"
	"hash/maphash"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/filewright/filewright/httpapi/internal/gcra"
)

// A Rate is a token bucket: at most Burst requests at once and PerSecond on average. The zero Rate
// stands for a default. A negative PerSecond means no limit.
type Rate struct {
	PerSecond float64
	Burst     int // 0: the requests of one second, at least 1
}

// Unlimited returns the [Rate] without a limit.
func Unlimited() Rate { return Rate{PerSecond: -1} }

// limit counts a request of who and returns an error if the limit is exceeded. It sets the headers
// that show the client its remaining requests.
func (s *Service) limit(w http.ResponseWriter, who Principal) error { return s.limitBy(w, who, 1) }

// limitMore counts n more requests for a request that was already counted, at most a full bucket.
func (s *Service) limitMore(w http.ResponseWriter, who Principal, n int) error {
	_, _, burst := gcra.Rate(s.rateOf(who)).Spacing()
	if n = min(n, burst-1); n <= 0 {
		return nil
	}
	return s.limitBy(w, who, n)
}

func (s *Service) rateOf(who Principal) Rate {
	if who.Rate != (Rate{}) {
		return who.Rate
	}
	return s.cfg.Limits.Rate
}

// limitBy counts n requests of who, or none if the limit is exceeded.
func (s *Service) limitBy(w http.ResponseWriter, who Principal, n int) error {
	rate := s.rateOf(who)
	if rate.PerSecond <= 0 {
		return nil
	}
	name := who.KeyID
	name = cmp.Or(name, who.Account)
	a := s.rates.Take(name, gcra.Rate(rate), s.rates.Now(), n)
	h := w.Header()
	// In canonical form, which HTTP/1.1 sends, so that Set need not make it.
	h.Set("Ratelimit-Limit", strconv.Itoa(a.Limit))
	h.Set("Ratelimit-Remaining", strconv.Itoa(a.Remaining))
	h.Set("Ratelimit-Reset", strconv.Itoa(int(math.Ceil(a.Full.Seconds()))))
	if a.OK {
		return nil
	}
	p := problem(http.StatusTooManyRequests, "rate_limit_exceeded", "too many requests with this API key; the limit is %d at once and %g per second", a.Limit, rate.PerSecond)
	if n > 1 {
		p.Detail += fmt.Sprintf("; an upload of so many parts counts as %d more", n)
	}
	p.RetryAfter = a.Retry
	return p
}

// A guard slows down clients that guess keys. The limit does not apply to a key that was valid
// before, so a neighbour behind the same address cannot lock anyone out.
type guard struct {
	rate  Rate
	fails *gcra.Buckets // by client address

	seed  maphash.Seed
	mu    sync.RWMutex
	known map[uint64]bool // hashes of credentials that were valid at their last use
}

// maxKnown bounds the credentials that a guard remembers.
const maxKnown = 1 << 16

func newGuard(r Rate) *guard {
	return &guard{rate: r, fails: gcra.New(), seed: maphash.MakeSeed(), known: make(map[uint64]bool)}
}

// credential returns a hash of the credentials in a request, or 0 without credentials. The hash
// differs between processes.
func (g *guard) credential(r *http.Request) uint64 {
	var h maphash.Hash
	h.SetSeed(g.seed)
	some := false
	for _, name := range [...]string{"Authorization", "X-D3-Api-Key", "Cookie"} {
		for _, v := range r.Header[name] {
			some = some || v != ""
			h.WriteString(v)
			h.WriteByte(0)
		}
		h.WriteByte(1)
	}
	if !some {
		return 0
	}
	return max(h.Sum64(), 1)
}

func (g *guard) isKnown(credential uint64) bool {
	g.mu.RLock()
	defer g.mu.RUnlock()
	return g.known[credential]
}

func (g *guard) learn(credential uint64, valid bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !valid {
		delete(g.known, credential)
		return
	}
	if len(g.known) >= maxKnown {
		for old := range g.known { // any entry
			delete(g.known, old)
			break
		}
	}
	g.known[credential] = true
}

// clientNetwork returns the client address of a request.
func (s *Service) clientNetwork(r *http.Request) string { return ClientNetwork(r, s.cfg.TrustProxy) }

// ClientNetwork returns the client address of a request as a key for counters. Behind a trusted
// proxy it is the address that the proxy added. For IPv6 it is the /64 network, which one host owns
// as a whole.
func ClientNetwork(r *http.Request, trustProxy bool) string {
	addr, ok := ClientAddr(r, trustProxy)
	if !ok {
		return "unknown" // one bucket for all addresses that cannot be parsed
	}
	return networkOf(addr)
}

// networkOf returns an address, for IPv6 that of its /64 network.
func networkOf(addr netip.Addr) string {
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			addr = p.Addr()
		}
	}
	return addr.String()
}

// ClientAddr returns the client address of a request, and whether it is known. Behind a trusted proxy it
// is the address that the proxy added.
func ClientAddr(r *http.Request, trustProxy bool) (addr netip.Addr, ok bool) {
	text := r.RemoteAddr
	if trustProxy {
		if all := r.Header.Values("X-Forwarded-For"); len(all) > 0 {
			last := all[len(all)-1]
			text = strings.TrimSpace(last[strings.LastIndexByte(last, ',')+1:])
		}
	}
	addr, err := netip.ParseAddr(text)
	if err != nil {
		ap, err := netip.ParseAddrPort(text)
		if err != nil {
			return addr, false
		}
		addr = ap.Addr()
	}
	return addr.Unmap().WithZone(""), true
}

func errInvalidKeys(retry time.Duration) error {
	p := problem(http.StatusTooManyRequests, "rate_limit_exceeded", "too many requests with an invalid API key from your address")
	p.RetryAfter = retry
	return p
}
