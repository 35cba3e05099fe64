package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/filewright/filewright/status"
)

// Limits of the lines that an attempt keeps.
const (
	maxLines     = 20
	maxLineBytes = 400
)

// lines keeps what an engine logs during an attempt, for the owner of the file. It leaves out
// secrets and the directories of this host.
type lines struct {
	mu      sync.Mutex
	list    []status.LogLine
	secrets []string
}

// hide makes l leave out lines with these texts.
func (l *lines) hide(secrets []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, s := range secrets {
		if quoted, err := json.Marshal(s); err == nil { // as in a log or in the output of a program
			l.secrets = append(l.secrets, s, strings.Trim(string(quoted), `"`))
		}
	}
}

// absolute matches the absolute path of a file, up to its name.
var absolute = regexp.MustCompile(`(^|[\s"'=(:\[,<])(?:file://)?/(?:[^\s/"':]+/)+`)

// add adds a line.
func (l *lines) add(level slog.Level, text string) {
	text = strings.TrimSpace(strings.Map(func(c rune) rune {
		if unicode.IsControl(c) {
			return ' '
		}
		return c
	}, strings.ToValidUTF8(text, "")))
	l.mu.Lock()
	defer l.mu.Unlock()
	if text == "" || len(l.list) == maxLines {
		return
	}
	for _, s := range l.secrets {
		if s != "" && strings.Contains(text, s) {
			return
		}
	}
	text = absolute.ReplaceAllString(text, "$1…/")
	if len(text) > maxLineBytes {
		text = strings.ToValidUTF8(text[:maxLineBytes], "") + "…"
	}
	name := "info"
	switch {
	case level >= slog.LevelError:
		name = "error"
	case level >= slog.LevelWarn:
		name = "warn"
	}
	l.list = append(l.list, status.LogLine{Time: time.Now().Truncate(time.Millisecond), Level: name, Text: text})
}

// output adds the last lines that a program wrote to its standard error.
func (l *lines) output(text string) {
	const last = 10
	all := strings.FieldsFunc(text, func(c rune) bool { return c == '\n' || c == '\r' })
	for _, line := range all[max(0, len(all)-last):] {
		l.add(slog.LevelWarn, line)
	}
}

// taken returns the lines.
func (l *lines) taken() []status.LogLine {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.list
}

// logger returns a logger that also adds lines to l.
func (l *lines) logger(log *slog.Logger) *slog.Logger { return slog.New(tee{log.Handler(), l}) }

// A tee passes records on and keeps lines of those that are not for developers.
type tee struct {
	slog.Handler
	lines *lines
}

// Enabled implements slog.Handler.
func (t tee) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo || t.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (t tee) Handle(ctx context.Context, r slog.Record) error {
	if r.Level >= slog.LevelInfo {
		var b strings.Builder
		b.WriteString(r.Message)
		var output string
		r.Attrs(func(a slog.Attr) bool {
			switch a.Key {
			case "stderr":
				output = a.Value.String()
			case "stack", "panic", "pid": // about this program
			default:
				fmt.Fprintf(&b, " %s=%v", a.Key, a.Value)
			}
			return true
		})
		t.lines.add(r.Level, b.String())
		t.lines.output(output)
	}
	if !t.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return t.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler. The attributes of all lines of an attempt are known from its
// operation.
func (t tee) WithAttrs(attrs []slog.Attr) slog.Handler {
	return tee{t.Handler.WithAttrs(attrs), t.lines}
}

// WithGroup implements slog.Handler.
func (t tee) WithGroup(name string) slog.Handler { return tee{t.Handler.WithGroup(name), t.lines} }
