package httpapi

import (
	"fmt"
	"hash/maphash"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"time"
)

// A Rate is a token bucket: Burst requests may come at once, and PerSecond on the
// average. The zero Rate stands for a default; a negative PerSecond is no limit.
type Rate struct {
	PerSecond float64
	Burst     int // 0: as many as come in a second, at least 1
}

// Unlimited is the [Rate] that limits nothing.
func Unlimited() Rate { return Rate{PerSecond: -1} }

// An allowance is what a bucket says to a request.
type allowance struct {
	ok        bool
	limit     int           // requests that a full bucket has
	remaining int           // requests that could come now
	full      time.Duration // until the bucket is full again
	retry     time.Duration // until there are as many tokens as were asked for, if not ok
}

// Buckets are token buckets by name. Of each only one time is kept (the generic
// cell rate algorithm): that at which it will be full again. A bucket that is
// full need not be kept at all, so those that are not used go by themselves when
// room is needed. There are never more than bucketShards*shardSize.
type buckets struct {
	start  time.Time // where their times begin, which are monotonic therefore
	seed   maphash.Seed
	shards [bucketShards]bucketShard
}

type bucketShard struct {
	mu   sync.Mutex
	full map[string]time.Duration // since the start
}

const (
	bucketShards = 16
	shardSize    = 4096
)

func newBuckets() *buckets {
	b := &buckets{start: time.Now(), seed: maphash.MakeSeed()}
	for i := range b.shards {
		b.shards[i].full = make(map[string]time.Duration)
	}
	return b
}

func (b *buckets) now() time.Duration { return time.Since(b.start) }

// spacing is the time between two requests, and size that of a full bucket.
func (r Rate) spacing() (spacing, size time.Duration, burst int) {
	burst = r.Burst
	if burst <= 0 {
		burst = max(1, int(r.PerSecond))
	}
	// A bucket of more than a year is as good as one that is never filled.
	spacing = time.Duration(min(float64(time.Second)/r.PerSecond, float64(365*24*time.Hour)/float64(burst)))
	spacing = max(spacing, 1)
	return spacing, spacing * time.Duration(burst), burst
}

// take takes a token from the bucket of a name at a time since the start.
func (b *buckets) take(name string, r Rate, now time.Duration) allowance {
	return b.takeN(name, r, now, 1)
}

// takeN takes n tokens, or none if there are not as many. Of a bucket that never has as many
// it takes all.
func (b *buckets) takeN(name string, r Rate, now time.Duration, n int) allowance {
	spacing, size, burst := r.spacing()
	cost := spacing * time.Duration(max(1, min(n, burst)))
	s := &b.shards[maphash.String(b.seed, name)%bucketShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	full, known := s.full[name]
	full = max(full, now)
	if full > now+size { // it was emptied under another rate
		full = now + size
		s.full[name] = full
	}
	a := allowance{limit: burst}
	if a.ok = full+cost-now <= size; a.ok {
		full += cost
		if !known && len(s.full) >= shardSize {
			s.evict(now)
		}
		s.full[name] = full
	} else {
		a.retry = full + cost - now - size
	}
	a.full = full - now
	a.remaining = int((size - a.full) / spacing)
	return a
}

// giveBack returns a token.
func (b *buckets) giveBack(name string, r Rate, now time.Duration) {
	spacing, _, _ := r.spacing()
	s := &b.shards[maphash.String(b.seed, name)%bucketShards]
	s.mu.Lock()
	defer s.mu.Unlock()
	if full, ok := s.full[name]; ok {
		if full -= spacing; full <= now {
			delete(s.full, name)
		} else {
			s.full[name] = full
		}
	}
}

// evict makes room for another bucket. Of a few, the fullest goes: it has the
// least to forget.
func (s *bucketShard) evict(now time.Duration) {
	victim, least, n := "", time.Duration(math.MaxInt64), 0
	for name, full := range s.full { // begins anywhere
		if full <= now {
			delete(s.full, name)
		} else if full < least {
			victim, least = name, full
		}
		if n++; n == 8 {
			break
		}
	}
	if len(s.full) >= shardSize {
		delete(s.full, victim)
	}
}

// limit counts a request of who and refuses it if there were too many. It tells
// the client how many it may still send.
func (s *Service) limit(w http.ResponseWriter, who Principal) error { return s.limitBy(w, who, 1) }

// limitMore counts a request that has been counted once as n more, at most as a full bucket.
func (s *Service) limitMore(w http.ResponseWriter, who Principal, n int) error {
	_, _, burst := s.rateOf(who).spacing()
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

// limitBy counts n requests of who, or none if there were too many.
func (s *Service) limitBy(w http.ResponseWriter, who Principal, n int) error {
	rate := s.rateOf(who)
	if rate.PerSecond <= 0 {
		return nil
	}
	name := who.KeyID
	if name == "" {
		name = who.Account
	}
	a := s.rates.takeN(name, rate, s.rates.now(), n)
	h := w.Header()
	h.Set("RateLimit-Limit", strconv.Itoa(a.limit))
	h.Set("RateLimit-Remaining", strconv.Itoa(a.remaining))
	h.Set("RateLimit-Reset", strconv.Itoa(int(math.Ceil(a.full.Seconds()))))
	if a.ok {
		return nil
	}
	p := problem(http.StatusTooManyRequests, "rate_limit_exceeded", "too many requests with this API key; %d at once and %g per second are possible", a.limit, rate.PerSecond)
	if n > 1 {
		p.Detail += fmt.Sprintf("; an upload of so many parts counts as %d more", n)
	}
	p.RetryAfter = a.retry
	return p
}

// A guard keeps those who try keys from going on. Who has used a valid key is not
// asked where it comes from, so that nobody is locked out by a neighbour behind
// the same address.
type guard struct {
	rate  Rate
	fails *buckets // by address

	seed  maphash.Seed
	mu    sync.RWMutex
	known map[uint64]bool // hashes of credentials that were valid when last used
}

// maxKnown bounds the credentials that a guard remembers.
const maxKnown = 1 << 16

func newGuard(r Rate) *guard {
	return &guard{rate: r, fails: newBuckets(), seed: maphash.MakeSeed(), known: make(map[uint64]bool)}
}

// credential returns a hash of what a request identifies itself with, 0 if that
// is nothing. It differs from process to process.
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
		for old := range g.known { // any
			delete(g.known, old)
			break
		}
	}
	g.known[credential] = true
}

// clientNetwork returns the address that a request comes from.
func (s *Service) clientNetwork(r *http.Request) string { return ClientNetwork(r, s.cfg.TrustProxy) }

// ClientNetwork returns the address that a request comes from, as a text to count by:
// behind a proxy that is trusted, the one that it has added. Of IPv6 it is the /64
// network, which one host owns as a whole.
func ClientNetwork(r *http.Request, trustProxy bool) string {
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
			return "unknown" // one bucket for all that we do not understand
		}
		addr = ap.Addr()
	}
	addr = addr.Unmap().WithZone("")
	if addr.Is6() {
		if p, err := addr.Prefix(64); err == nil {
			addr = p.Addr()
		}
	}
	return addr.String()
}

func errWrongKeys(retry time.Duration) error {
	p := problem(http.StatusTooManyRequests, "rate_limit_exceeded", "too many requests with an API key that is not valid came from your address")
	p.RetryAfter = retry
	return p
}
