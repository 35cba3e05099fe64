package gcra

import (
	"fmt"
	"testing"
	"time"
)

func TestBuckets(t *testing.T) {
	t.Parallel()
	b := New()
	r := Rate{PerSecond: 2, Burst: 3}
	at := func(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }
	for i, tt := range []struct {
		name      string
		now       float64
		ok        bool
		remaining int
		full      float64
		retry     float64
	}{
		{"a", 0, true, 2, 0.5, 0},
		{"a", 0, true, 1, 1, 0},
		{"a", 0, true, 0, 1.5, 0},
		{"a", 0, false, 0, 1.5, 0.5},
		{"a", 0.25, false, 0, 1.25, 0.25},
		{"b", 0.25, true, 2, 0.5, 0}, // buckets are independent
		{"a", 0.5, true, 0, 1.5, 0},
		{"a", 0.5, false, 0, 1.5, 0.5}, // a refusal costs nothing
		{"a", 100, true, 2, 0.5, 0},    // never more than a full bucket
	} {
		got := b.Take(tt.name, r, at(tt.now), 1)
		want := Allowance{tt.ok, 3, tt.remaining, at(tt.full), at(tt.retry)}
		if got != want {
			t.Errorf("%d: %+v, want %+v", i, got, want)
		}
	}
	b.GiveBack("a", r, at(100))
	if got := b.Take("a", r, at(100), 1); got.Remaining != 2 {
		t.Errorf("after a token was given back: %+v", got)
	}
	b.GiveBack("nobody", r, at(100))

	// Over a long time exactly the rate passes, for any load.
	n := 0
	for i := range 100_000 {
		if b.Take("c", Rate{PerSecond: 10, Burst: 5}, at(200+float64(i)/1000), 1).OK {
			n++
		}
	}
	if n < 1004 || n > 1005 {
		t.Errorf("%d requests in 100 seconds, want 1000 and a burst of 5", n)
	}
	for _, r := range []Rate{{PerSecond: 1e-9}, {PerSecond: 1e12, Burst: 1}, {PerSecond: 0.5}, {PerSecond: 1e-12, Burst: 1 << 30}} {
		if a := New().Take("x", r, at(1), 1); !a.OK || a.Limit < 1 || a.Full < 0 || a.Remaining < 0 {
			t.Errorf("%+v: %+v", r, a)
		}
	}
}

// Many names, such as addresses of an attacker's network, take bounded memory. They do not evict
// the buckets of clients at their limit.
func TestBucketsAreBounded(t *testing.T) {
	t.Parallel()
	b := New()
	r := Rate{PerSecond: 0.01, Burst: 10}
	for range 10 {
		b.Take("busy", r, 0, 1)
	}
	for i := range 300_000 {
		b.Take(fmt.Sprint(i), r, time.Duration(i), 1)
	}
	total := 0
	for i := range b.shards {
		if n := len(b.shards[i].full); n > shardSize {
			t.Errorf("shard %d has %d buckets", i, n)
		}
		total += len(b.shards[i].full)
	}
	if total < shards*shardSize/2 {
		t.Errorf("only %d buckets are kept", total)
	}
	if b.Take("busy", r, time.Second, 1).OK {
		t.Error("the bucket that was empty has been forgotten")
	}
}

// Takes one token from each of ten thousand buckets.
func BenchmarkTake(b *testing.B) {
	names := make([]string, 10_000)
	for i := range names {
		names[i] = fmt.Sprintf("9f1c7e3d-5a86-4a4e-%04d-5f0f3f1b7c20", i)
	}
	buckets := New()
	r := Rate{PerSecond: 100, Burst: 1000}
	b.Run("serial", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			buckets.Take(names[i%len(names)], r, buckets.Now(), 1)
		}
	})
	b.Run("parallel", func(b *testing.B) {
		b.RunParallel(func(pb *testing.PB) {
			for i := 0; pb.Next(); i++ {
				buckets.Take(names[i%len(names)], r, buckets.Now(), 1)
			}
		})
	})
}
