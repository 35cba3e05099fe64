//go:build linux

package main

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
)

// The test binary also serves as the measured worker, like the program itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "-worker" {
		if err := newWorker().Run(context.Background(), os.Stdin, os.Stdout); err != nil {
			panic(err)
		}
		return
	}
	os.Exit(m.Run())
}

// The program measures an action and requests, and writes a page and plots.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	report := filepath.Join(dir, "growth.md")
	var out bytes.Buffer
	args := []string{"-run", "CSV → JSON|status of", "-most", "100", "-budget", "100ms", "-o", report, "-images", dir}
	if err := run(t.Context(), args, &out); err != nil {
		t.Fatalf("%v\n%s", err, out.Bytes())
	}
	text, err := os.ReadFile(report)
	systest.NoError(t, err)
	for _, want := range []string{"## Rows of a table", "This run did not measure: PDF: merge with itself; ", "| Rows | 10 | 100 | Exponent |", "| CSV → JSON | ", "images/growth-rows.svg", "| Clients | 1 | 2 | 4 | 8 | 16 | 32 | 64 |", "| – p50, p99 | "} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("%q is missing in\n%s", want, text)
		}
	}
	for _, name := range []string{"growth-rows.svg", "growth-clients.svg"} {
		svg, err := os.ReadFile(filepath.Join(dir, name))
		systest.NoError(t, err)
		wellFormed(t, svg)
		if n := bytes.Count(svg, []byte("<polyline ")); n != 2 {
			t.Errorf("%s has %d lines", name, n)
		}
	}
}

func wellFormed(t *testing.T, svg []byte) {
	t.Helper()
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v\n%s", err, svg)
		}
	}
}

func TestExponent(t *testing.T) {
	t.Parallel()
	of := func(power float64, sizes ...int) *series {
		s := new(series)
		for _, n := range sizes {
			s.points = append(s.points, point{size: n, cpu: 40*time.Millisecond + time.Duration(math.Pow(float64(n), power)*float64(time.Millisecond))})
		}
		return s
	}
	for _, power := range []float64{0.5, 1, 2} {
		if k := of(power, 1, 10_000, 100_000).exponent(); math.Abs(k-power) > 0.02 {
			t.Errorf("power %v: exponent %v", power, k)
		}
	}
	if k := of(1, 1000, 2000, 5000).exponent(); math.Abs(k-1) > 0.01 {
		t.Errorf("sizes that are close: exponent %v", k)
	}
	cliff := of(1, 100, 3600, 6400, 10_000)
	cliff.points[3].cpu *= 6
	if k := cliff.exponent(); k < superlinear {
		t.Errorf("a cliff at the end: exponent %v", k)
	}
	noise := of(1, 100, 3600, 6400, 10_000)
	noise.points[2].cpu = noise.points[2].cpu * 4 / 5
	if k := noise.exponent(); math.Abs(k-1) > 0.01 {
		t.Errorf("noise: exponent %v", k)
	}
	if k := of(2, 1, 10).exponent(); k != 0 {
		t.Errorf("two points: exponent %v", k)
	}
	if k := of(1, 1, 10, 100).exponent(); k != 0 {
		t.Errorf("a cost that is too small: exponent %v", k)
	}
	steep := group{name: "x", title: "X", unit: "pages", series: []series{*of(2, 1, 1000, 10_000)}}
	steep.series[0].name = "slow"
	if text := string(page([]group{steep}, nil)); !strings.Contains(text, "- slow: exponent 2.0") {
		t.Errorf("a steep series is not named:\n%s", text)
	}
	steep.series[0] = *of(1, 1, 1000, 10_000)
	if text := string(page([]group{steep}, nil)); !strings.Contains(text, "No series grows faster") {
		t.Errorf("a linear series is named:\n%s", text)
	}
}

// The generated inputs are valid and have their size.
func TestInputs(t *testing.T) {
	t.Parallel()
	b := pdf(3, 0)
	if n := bytes.Count(b, []byte("/Type/Page/")); n != 3 || !bytes.Contains(b, []byte("%%EOF")) {
		t.Errorf("%d pages", n)
	}
	if n := len(prose(1, 200)); n != 200 {
		t.Errorf("%d bytes of prose", n)
	}
	for n, want := range map[int]string{1: "1", 1000: "1,000", 1_000_000: "1,000,000"} {
		if got := number(n); got != want {
			t.Errorf("%d is written %s", n, got)
		}
	}
	for d, want := range map[time.Duration]string{900: "1 µs", 1500 * time.Microsecond: "1.5 ms", 12 * time.Second: "12 s", 1500 * time.Millisecond: "1.5 s", 100 * time.Millisecond: "100 ms"} {
		if got := duration(d); got != want {
			t.Errorf("%v is written %s", d, got)
		}
	}
}
