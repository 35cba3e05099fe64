// Package gcra limits rates with token buckets. It stores one time for each bucket: when the bucket
// will be full again. This is the generic cell rate algorithm (ITU-T I.371).
//
//	limits := gcra.New()
//	a := limits.Take("name", gcra.Rate{PerSecond: 2, Burst: 10}, limits.Now(), 1)
//	if !a.OK {
//		// Try again after a.Retry.
//	}
package gcra

import (
	"hash/maphash"
	"math"
	"sync"
	"time"
)

// A Rate is the fill rate and size of a bucket. PerSecond must be positive.
type Rate struct {
	PerSecond float64
	Burst     int // tokens of a full bucket; 0: the tokens of one second, at least 1
}

// An Allowance is the result of [Buckets.Take].
type Allowance struct {
	OK        bool
	Limit     int           // tokens of a full bucket
	Remaining int           // remaining tokens
	Full      time.Duration // until the bucket is full again
	Retry     time.Duration // until there are enough tokens, if not OK
}

// Buckets are token buckets by name. They are safe for concurrent use. Create them with [New].
// There are at most shards*shardSize buckets; a new bucket replaces the fullest of a few.
type Buckets struct {
	start  time.Time // origin of all bucket times, so they are monotonic
	seed   maphash.Seed
	shards [shards]shard
}

type shard struct {
	mu   sync.Mutex
	full map[string]time.Duration // since the start
}

const (
	shards    = 16
	shardSize = 4096
)

// New returns an empty set of buckets. Every new bucket is full.
func New() *Buckets {
	b := &Buckets{start: time.Now(), seed: maphash.MakeSeed()}
	for i := range b.shards {
		b.shards[i].full = make(map[string]time.Duration)
	}
	return b
}

// Now returns the time for Take and GiveBack.
func (b *Buckets) Now() time.Duration { return time.Since(b.start) }

// Spacing returns the time between two tokens, the time that fills a bucket, and the size of a full
// bucket in tokens.
func (r Rate) Spacing() (spacing, size time.Duration, burst int) {
	burst = r.Burst
	if burst <= 0 {
		burst = max(1, int(r.PerSecond))
	}
	// A bucket that takes more than a year to fill is as good as one that never fills.
	spacing = time.Duration(min(float64(time.Second)/r.PerSecond, float64(365*24*time.Hour)/float64(burst)))
	spacing = max(spacing, 1)
	return spacing, spacing * time.Duration(burst), burst
}

// Take takes n tokens from the bucket of a name, or none if it has fewer. If n exceeds the size of
// the bucket, a full bucket suffices and Take empties it.
func (b *Buckets) Take(name string, r Rate, now time.Duration, n int) Allowance {
	spacing, size, burst := r.Spacing()
	cost := spacing * time.Duration(max(1, min(n, burst)))
	s := &b.shards[maphash.String(b.seed, name)%shards]
	s.mu.Lock()
	defer s.mu.Unlock()
	full, known := s.full[name]
	full = max(full, now)
	if full > now+size { // it was emptied under another rate
		full = now + size
		s.full[name] = full
	}
	a := Allowance{Limit: burst}
	if a.OK = full+cost-now <= size; a.OK {
		full += cost
		if !known && len(s.full) >= shardSize {
			s.evict(now)
		}
		s.full[name] = full
	} else {
		a.Retry = full + cost - now - size
	}
	a.Full = full - now
	a.Remaining = int((size - a.Full) / spacing)
	return a
}

// GiveBack returns a token to the bucket of a name.
func (b *Buckets) GiveBack(name string, r Rate, now time.Duration) {
	spacing, _, _ := r.Spacing()
	s := &b.shards[maphash.String(b.seed, name)%shards]
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

// evict makes room for a bucket. It removes the fullest of a few, which loses the least.
func (s *shard) evict(now time.Duration) {
	victim, least, n := "", time.Duration(math.MaxInt64), 0
	for name, full := range s.full { // the iteration order is random
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
