package safezip_test

import (
	stdzip "archive/zip"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/klauspost/compress/zip"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/safezip"
	"github.com/filewright/filewright/internal/systest"
)

func TestDense(t *testing.T) {
	t.Parallel()
	const from = 10 << 20
	l := safezip.Limits{Ratio: 100}
	for _, tt := range []struct {
		unpacked, packed uint64
		want             bool
	}{
		{0, 0, false}, {from, 1, false}, {from + 1, 1, true}, {from + 1, 0, true},
		{100_000_000, 1_000_000, false}, {100_000_001, 1_000_000, true},
		{1 << 63, 1 << 62, false}, {1<<64 - 1, 1 << 50, true},
	} {
		if got := l.Dense(tt.unpacked, tt.packed); got != tt.want {
			t.Errorf("%d from %d: %t", tt.unpacked, tt.packed, got)
		}
	}
}

func archive(t *testing.T, content map[string][]byte) []byte {
	t.Helper()
	var b bytes.Buffer
	z := stdzip.NewWriter(&b)
	for name, data := range content {
		w, err := z.Create(name)
		systest.NoError(t, err)
		if _, err := w.Write(data); err != nil {
			t.Fatal(err)
		}
	}
	systest.NoError(t, z.Close())
	return b.Bytes()
}

func check(t *testing.T, l safezip.Limits, b []byte) error {
	t.Helper()
	l = l.OrDefault(0)
	z, err := l.Open(bytes.NewReader(b), int64(len(b)))
	if err != nil {
		return err
	}
	return l.Check(z.File, int64(len(b)), nil)
}

// A log of similar lines compresses more than 200 times. Deflate cannot compress
// anything more than 1032 times, and zeros come close to that.
func TestLogsPassAndBombsFail(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	for i := 0; log.Len() < 12<<20; i++ {
		fmt.Fprintf(&log, "2026-11-23T23:%02d:00Z INFO  worker=7 request finished status=200 method=GET path=/api/v1/status bytes=%d %s\n", i/600%60, i/60%1000, strings.Repeat("-", 120))
	}
	b := archive(t, map[string][]byte{"a.log": log.Bytes()})
	if n := log.Len() / len(b); n < 201 || n > 450 {
		t.Errorf("the log compresses %d times", n)
	}
	if err := check(t, safezip.Limits{}, b); err != nil {
		t.Errorf("log: %v", err)
	}
	if err := check(t, safezip.Limits{}, archive(t, map[string][]byte{"a": make([]byte, 12<<20)})); !errors.Is(err, fileops.ErrLimit) {
		t.Errorf("bomb: %v", err)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	three := archive(t, map[string][]byte{"a": []byte("1"), "b": []byte("2"), "c": []byte("3")})
	for name, tt := range map[string]struct {
		limits safezip.Limits
		ok     bool
	}{
		"none": {safezip.Limits{}, true}, "entries": {safezip.Limits{Entries: 2}, false}, "enough entries": {safezip.Limits{Entries: 3}, true},
		"size": {safezip.Limits{Unpacked: 2}, false}, "enough size": {safezip.Limits{Unpacked: 3}, true},
	} {
		if err := check(t, tt.limits, three); (err == nil) != tt.ok || err != nil && !errors.Is(err, fileops.ErrLimit) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// All entries of the directory refer to the data of one.
	i := bytes.Index(three, []byte("PK\x01\x02"))
	for at := i; at >= 0 && at+46 < len(three) && string(three[at:at+4]) == "PK\x01\x02"; at += 46 + 1 {
		binary.LittleEndian.PutUint32(three[at+20:], uint32(len(three)/2))
	}
	if err := check(t, safezip.Limits{}, three); !errors.Is(err, safezip.ErrOverlap) {
		t.Errorf("overlap: %v", err)
	}
}

// A directory takes ten times its size in memory, so it is limited before it is
// read.
func TestDirectoryIsLimited(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i := range 200_000 {
		if _, err := z.CreateRaw(&zip.FileHeader{Name: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	systest.NoError(t, z.Close())
	if _, err := (safezip.Limits{}).OrDefault(0).Open(bytes.NewReader(b.Bytes()), int64(b.Len())); !errors.Is(err, fileops.ErrLimit) {
		t.Errorf("got %v", err)
	}
}

// The entries of an open archive may be read by several goroutines.
func TestOpenConcurrently(t *testing.T) {
	t.Parallel()
	var b bytes.Buffer
	z := stdzip.NewWriter(&b)
	for i := range 50 {
		w, err := z.Create(fmt.Sprint(i))
		if err == nil {
			_, err = w.Write([]byte("content"))
		}
		systest.NoError(t, err)
	}
	systest.NoError(t, z.Close())
	r, err := safezip.Limits{}.OrDefault(0).Open(bytes.NewReader(b.Bytes()), int64(b.Len()))
	systest.NoError(t, err)
	var wg sync.WaitGroup
	for _, f := range r.File {
		wg.Go(func() {
			rc, err := f.Open()
			if err != nil {
				t.Error(err)
				return
			}
			if got, err := io.ReadAll(rc); err != nil || string(got) != "content" {
				t.Errorf("%s: %q, %v", f.Name, got, err)
			}
		})
	}
	wg.Wait()
}
