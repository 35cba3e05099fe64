// Package trace records what the service does as spans: the work on a request and on its files, in
// all processes that take part.
//
// The package only defines the interface of a [Tracer] and carries spans in contexts. Package
// trace/otlp sends spans to an OpenTelemetry collector. Without a Tracer no span exists: all
// functions and methods then return at once and allocate nothing.
//
// A span is named in text form by the traceparent header of W3C Trace Context. An operation stores
// this text, so that the process that runs it continues the trace.
//
// Attributes must not contain file names, keys, passwords or URLs.
package trace

import (
	"context"
	"time"
)

// A Kind is the role of a span in a trace.
type Kind int

// The kinds of spans.
const (
	Internal Kind = iota
	Server        // answers a request
	Client        // sends a request
	Consumer      // processes an item of a queue
)

// A Tracer starts spans. It must be safe for concurrent use and must not block.
type Tracer interface {
	// Start starts a span. parent is the traceparent of the parent, which may be in another process;
	// "" starts a new trace.
	Start(parent, name string, kind Kind, at time.Time) Recorder
}

// A Recorder is a span of a [Tracer]. One goroutine at a time uses it.
type Recorder interface {
	// Traceparent returns the text form of the span.
	Traceparent() string

	// Rename replaces the name of the span.
	Rename(name string)

	// Set adds an attribute. The value is a string, an int64 or a bool.
	Set(key string, value any)

	// End ends the span. code is the error code of a failure, or "".
	End(code string)
}

// A Span is a period of work. A nil *Span is valid and does nothing.
type Span struct {
	tracer Tracer
	rec    Recorder
	parent string // text form, for the children
}

type contextKey struct{}

// Root starts a span whose parent is in another process or in the past: parent is its traceparent, or
// "" for a new trace. The zero at means now. If t is nil, Root returns ctx and nil.
func Root(ctx context.Context, t Tracer, parent, name string, kind Kind, at time.Time) (context.Context, *Span) {
	if t == nil {
		return ctx, nil
	}
	s := start(t, parent, name, kind, at)
	return context.WithValue(ctx, contextKey{}, s), s
}

// Start starts a span whose parent is the span of ctx. If ctx has no span, Start returns ctx and nil.
func Start(ctx context.Context, name string, kind Kind) (context.Context, *Span) {
	parent := Of(ctx)
	if parent == nil {
		return ctx, nil
	}
	return Root(ctx, parent.tracer, parent.parent, name, kind, time.Time{})
}

func start(t Tracer, parent, name string, kind Kind, at time.Time) *Span {
	if at.IsZero() {
		at = time.Now()
	}
	rec := t.Start(parent, name, kind, at)
	return &Span{tracer: t, rec: rec, parent: rec.Traceparent()}
}

// Of returns the span of ctx, or nil.
func Of(ctx context.Context) *Span {
	s, _ := ctx.Value(contextKey{}).(*Span)
	return s
}

// Traceparent returns the text form of the span, "" for nil.
func (s *Span) Traceparent() string {
	if s == nil {
		return ""
	}
	return s.parent
}

// Rename replaces the name of the span, for a name that is not known at its start.
func (s *Span) Rename(name string) {
	if s != nil {
		s.rec.Rename(name)
	}
}

// String sets an attribute.
func (s *Span) String(key, value string) {
	if s != nil {
		s.rec.Set(key, value)
	}
}

// Int sets an attribute.
func (s *Span) Int(key string, value int64) {
	if s != nil {
		s.rec.Set(key, value)
	}
}

// Bool sets an attribute.
func (s *Span) Bool(key string, value bool) {
	if s != nil {
		s.rec.Set(key, value)
	}
}

// End ends the span. code is the stable error code of a failure, or "". Call End once.
func (s *Span) End(code string) {
	if s != nil {
		s.rec.End(code)
	}
}

// size is the length of a traceparent of version 00.
const size = 55

// Valid reports whether text is a traceparent (W3C Trace Context, 3.2). It accepts later versions,
// of which it checks the known part.
func Valid(text string) bool {
	if len(text) < size || text[2] != '-' || text[35] != '-' || text[52] != '-' || text[:2] == "ff" {
		return false
	}
	if len(text) > size && (text[:2] == "00" || text[size] != '-') {
		return false
	}
	return hex(text[:2]) && hex(text[53:55]) && hex(text[3:35]) && hex(text[36:52]) && !zero(text[3:35]) && !zero(text[36:52])
}

// ID returns the trace ID in a valid traceparent: 32 hexadecimal digits. It returns "" if text is
// not valid.
func ID(text string) string {
	if !Valid(text) {
		return ""
	}
	return text[3:35]
}

// Sampled reports whether text is a valid traceparent of a recorded trace: the lowest bit of its flags
// is set (W3C Trace Context, 3.2.2.5).
func Sampled(text string) bool {
	if !Valid(text) {
		return false
	}
	c := text[size-1]
	return c <= '9' && c&1 == 1 || c > '9' && c&1 == 0 // 'b' is even and stands for 11
}

// hex reports whether s has only lower-case hexadecimal digits.
func hex(s string) bool {
	for _, c := range []byte(s) {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func zero(s string) bool {
	for _, c := range []byte(s) {
		if c != '0' {
			return false
		}
	}
	return true
}
