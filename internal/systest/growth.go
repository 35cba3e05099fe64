package systest

import (
	"flag"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/worktime"
)

// A Growing is an input that can be made longer: Head, many times Unit, and Tail. Kind is
// passed on to the test.
type Growing struct{ Kind, Head, Unit, Tail string }

// FuzzGrowth fuzzes inputs that repeat a text: the processor time of work, in the thread
// that calls it, must not grow much faster than the input. It measures only while
// fuzzing; in other test runs it just runs work on the seeds, with few repetitions.
//
// An input that is eight times as long may take 24 times as long, where work that is
// quadratic takes 64 times.
func FuzzGrowth(f *testing.F, work func(t testing.TB, kind string, input []byte), seeds ...Growing) {
	f.Helper()
	for _, s := range seeds {
		f.Add(s.Kind, s.Head, s.Unit, s.Tail)
	}
	fuzzing := flag.Lookup("test.fuzz").Value.String() != ""
	f.Fuzz(func(t *testing.T, kind, head, unit, tail string) {
		if len(head)+len(unit)+len(tail) > 4000 || unit == "" {
			return // longer texts only take longer
		}
		spent := func(bytes int) time.Duration {
			n := max(1, bytes/len(unit))
			input := []byte(head + strings.Repeat(unit, n) + tail)
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			meter := worktime.Thread()
			start := meter().Worked
			work(t, kind, input)
			return meter().Worked - start
		}
		const short, factor, most = 40_000, 8, 24
		if !fuzzing {
			spent(short / 10)
			return
		}
		small := max(min(spent(short), spent(short)), 2*time.Millisecond)
		if large := spent(factor * short); large > most*small {
			if large = min(large, spent(factor*short)); large > most*small {
				t.Errorf("%v for %d KB, %v for %d KB", small, short/1000, large, factor*short/1000)
			}
		}
	})
}
