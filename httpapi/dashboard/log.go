package dashboard

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/filewright/filewright/status"
)

// maxLogLines bounds the log of an operation: its latest lines.
const maxLogLines = 300

// logText returns the log of an operation as text, oldest line first. key is the name of the API key.
// The names of nodes are for administrators.
func logText(op *status.Operation, key string, nodes bool) string {
	var log logBuilder
	submitted := "submitted"
	for _, part := range []struct{ name, value string }{
		{"request", op.Origin.Request}, {"key", key}, {"client", op.Origin.Client}, {"address", op.Origin.Address},
	} {
		submitted += pair(part.name, part.value)
	}
	log.add(op.Created, "info", "", submitted)
	for i, it := range op.Items {
		file := ""
		if len(op.Items) > 1 {
			file = fmt.Sprintf("file %d: ", i+1)
			if len(op.Steps) > 0 {
				first, n := op.ItemsOf(op.StepOf(i))
				file = fmt.Sprintf("step %d: ", op.StepOf(i)+1)
				if len(first) > 1 {
					file += fmt.Sprintf("file %d: ", i-n+1)
				}
			}
		}
		for n, a := range it.Attempts {
			started := "started" + pair("engine", a.Engine)
			if nodes {
				started += pair("node", a.Node)
			}
			log.add(a.Started, "info", file, started)
			for _, line := range a.Log {
				log.add(line.Time, line.Level, file, line.Text)
			}
			took := " duration=" + a.Ended.Sub(a.Started).Round(time.Millisecond).String()
			last := n == len(it.Attempts)-1 && it.State.Final()
			switch {
			case a.Code == "":
				log.add(a.Ended, "info", file, fmt.Sprintf("completed results=%d", len(it.Results))+took)
			case last && it.Error != nil:
				log.add(a.Ended, "error", file, "failed"+pair("code", it.Error.Code)+pair("message", it.Error.Message)+took)
			default:
				log.add(a.Ended, "warn", file, "attempt ended"+pair("code", a.Code)+took)
			}
		}
		if it.State == status.Running {
			log.add(it.Started, "info", file, "started")
		}
		if it.Error != nil && len(it.Attempts) == 0 {
			log.add(it.Finished, "error", file, "failed"+pair("code", it.Error.Code)+pair("message", it.Error.Message))
		}
		for _, w := range it.Warnings {
			log.add(it.Finished, "warn", file, "warning"+pair("code", w.Code)+pair("message", w.Message))
		}
		if it.Waiting != nil && it.State == status.Queued {
			log.add(it.Waiting.Since, "warn", file, "waiting"+pair("reason", it.Waiting.Reason))
		}
	}
	if op.State.Final() {
		log.add(op.Finished, "info", "", "finished"+pair("state", string(op.Condition())))
	}
	return log.String()
}

// pair returns a name and a value as in a log line, or "" without a value.
func pair(name, value string) string {
	switch {
	case value == "":
		return ""
	case strings.ContainsAny(value, " =\"\t\n"):
		value = fmt.Sprintf("%q", value)
	}
	return " " + name + "=" + value
}

// A logBuilder collects lines.
type logBuilder struct{ lines []status.LogLine }

func (b *logBuilder) add(t time.Time, level, file, text string) {
	b.lines = append(b.lines, status.LogLine{Time: t, Level: level, Text: file + text})
}

func (b *logBuilder) String() string {
	slices.SortStableFunc(b.lines, func(x, y status.LogLine) int { return cmp.Compare(x.Time.UnixMilli(), y.Time.UnixMilli()) })
	var text strings.Builder
	if more := len(b.lines) - maxLogLines; more > 0 {
		b.lines = b.lines[more:]
		fmt.Fprintf(&text, "(%s left out)\n", plural(more, "earlier line", "earlier lines"))
	}
	for i, l := range b.lines {
		if i > 0 {
			text.WriteByte('\n')
		}
		fmt.Fprintf(&text, "%s %-5s %s", l.Time.UTC().Format("2006-01-02T15:04:05.000Z"), strings.ToUpper(l.Level), l.Text)
	}
	return text.String()
}
