package systest

import (
	"bytes"
	"fmt"
	"runtime/pprof"
	"strconv"
	"strings"
	"testing"
)

// Goroutines returns the number of goroutines whose profiler label "test" has the given value, and
// where they are, for a message. A goroutine inherits the labels of its creator, so concurrent tests
// do not affect the number.
func Goroutines(t testing.TB, label string) (n int, profile string) {
	t.Helper()
	var all bytes.Buffer
	NoError(t, pprof.Lookup("goroutine").WriteTo(&all, 1))
	// A record is "<count> @ <addresses>", the line `# labels: {"test":"<value>"}` if there are
	// labels, and the stack. An empty line ends it.
	want := fmt.Sprintf("%q:%q", "test", label)
	var found []string
	for record := range strings.SplitSeq(all.String(), "\n\n") {
		_, labels, ok := strings.Cut(record, "\n# labels:")
		if labels, _, _ = strings.Cut(labels, "\n"); !ok || !strings.Contains(labels, want) {
			continue
		}
		before, _, _ := strings.Cut(record, " @ ")
		count, err := strconv.Atoi(before[strings.LastIndexByte(before, '\n')+1:]) // the first record follows a header
		NoError(t, err)
		n += count
		found = append(found, record)
	}
	return n, strings.Join(found, "\n\n")
}
