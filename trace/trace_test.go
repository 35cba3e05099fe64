package trace_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/trace"
)

func TestValid(t *testing.T) {
	t.Parallel()
	const id = "0af7651916cd43dd8448eb211c80319c"
	const good = "00-" + id + "-b7ad6b7169203331-01"
	for text, want := range map[string]string{
		"":                        "",
		good:                      id,
		good[:53] + "ff":          id, // unknown flags
		"cc" + good[2:]:           id, // a later version
		good + "-more":            "", // version 00 has a fixed length
		good[:54]:                 "",
		"ff" + good[2:]:           "",
		"cc" + good[2:] + "-more": id,
		"cc" + good[2:] + "more":  "",
		strings.ToUpper(good):     "",
		strings.Replace(good, id, strings.Repeat("0", 32), 1):                 "",
		strings.Replace(good, "b7ad6b7169203331", strings.Repeat("0", 16), 1): "",
		strings.Replace(good, "-b7", "_b7", 1):                                "",
		strings.Replace(good, "0af", "0\xc3\xa4", 1):                          "",
	} {
		if got := trace.ID(text); got != want {
			t.Errorf("the trace of %q is %q, want %q", text, got, want)
		}
	}
}

func TestSampled(t *testing.T) {
	t.Parallel()
	const parent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"
	for flags, want := range map[string]bool{"00": false, "01": true, "02": false, "09": true, "0a": false, "0b": true, "0e": false, "ff": true, "f0": false, "1": false} {
		if got := trace.Sampled(parent + flags); got != want {
			t.Errorf("flags %s: %v", flags, got)
		}
	}
}

// span is a Recorder that keeps its calls.
type span struct {
	parent, name, code string
	text               string
	set                map[string]any
}

func (s *span) Traceparent() string       { return s.text }
func (s *span) Rename(name string)        { s.name = name }
func (s *span) Set(key string, value any) { s.set[key] = value }
func (s *span) End(code string)           { s.code = code }

type tracer struct{ spans []*span }

func (t *tracer) Start(parent, name string, _ trace.Kind, _ time.Time) trace.Recorder {
	s := &span{parent: parent, name: name, text: "of " + name, set: make(map[string]any)}
	t.spans = append(t.spans, s)
	return s
}

func TestSpans(t *testing.T) {
	t.Parallel()
	var tr tracer
	ctx, root := trace.Root(t.Context(), &tr, "remote", "root", trace.Server, time.Time{})
	ctx, child := trace.Start(ctx, "child", trace.Internal)
	child.Rename("renamed")
	child.String("s", "x")
	child.Int("i", 1)
	child.Bool("b", true)
	child.End("too_large")
	root.End("")
	if trace.Of(ctx) != child || len(tr.spans) != 2 || tr.spans[0].parent != "remote" || tr.spans[1].parent != "of root" || root.Traceparent() != "of root" {
		t.Errorf("spans %+v %+v", tr.spans[0], tr.spans[1])
	}
	if s := tr.spans[1]; s.name != "renamed" || s.code != "too_large" || s.set["s"] != "x" || s.set["i"] != int64(1) || s.set["b"] != true {
		t.Errorf("span %+v", s)
	}
}

// work uses all functions and methods.
func work(ctx context.Context) {
	ctx, root := trace.Root(ctx, nil, "", "root", trace.Server, time.Time{})
	_, s := trace.Start(ctx, "child", trace.Internal)
	s.Rename("name")
	s.String("key", "value")
	s.Int("n", 1<<40)
	s.Bool("b", true)
	s.End("code")
	root.End(s.Traceparent())
}

func TestOff(t *testing.T) {
	ctx := t.Context()
	if n := testing.AllocsPerRun(100, func() { work(ctx) }); n != 0 {
		t.Errorf("without a tracer there are %v allocations", n)
	}
}

func BenchmarkOff(b *testing.B) {
	ctx := b.Context()
	b.ReportAllocs()
	for b.Loop() {
		work(ctx)
	}
}
