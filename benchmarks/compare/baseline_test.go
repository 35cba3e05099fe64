//go:build linux

package main

import (
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
)

// measured returns a result of a task: our measurements, and those of a rival called qpdf.
func measured(name string, ours, theirs time.Duration, sizes ...int64) result {
	at := func(i int) int64 {
		if i < len(sizes) {
			return sizes[i]
		}
		return 0
	}
	return result{task: &task{name: name}, scores: []score{
		{name: ourName, runs: []sample{{cpu: ours, size: at(0)}}}, {name: "qpdf", runs: []sample{{cpu: theirs, size: at(1)}}}, {name: "missing", missing: errMissing},
	}}
}

// Only what grew beside its rival in the same run by more than a tenth is worse.
func TestBaseline(t *testing.T) {
	path := filepath.Join(t.TempDir(), "baseline.json")
	systest.NoError(t, baselineOf([]result{measured("merge", 100, 200, 50, 100), measured("lock", 100, 100), measured("zip", 100, 100)}).write(path))
	systest.NoError(t, baselineOf([]result{measured("zip", 50, 100)}).write(path))
	base, err := readBaseline(path)
	systest.NoError(t, err)
	if want := (baseline{"merge": {"qpdf": {0.5, 0.5}}, "lock": {"qpdf": {CPU: 1}}, "zip": {"qpdf": {CPU: 0.5}}}); !reflect.DeepEqual(base, want) {
		t.Errorf("read %v, want %v", base, want)
	}
	for name, tt := range map[string]struct {
		now      []result
		worse    []string
		compared int
	}{
		"a slower machine":       {[]result{measured("merge", 1000, 2000, 50, 100), measured("lock", 1050, 1000)}, nil, 2},
		"more processor time":    {[]result{measured("merge", 115, 200, 50, 100), measured("lock", 90, 100)}, []string{"merge: processor time"}, 2},
		"larger":                 {[]result{measured("merge", 100, 200, 60, 100)}, []string{"merge: size"}, 1},
		"everything":             {[]result{measured("merge", 200, 200, 60, 100), measured("lock", 112, 100)}, []string{"lock: processor time", "merge: processor time", "merge: size"}, 2},
		"a task that was failed": {[]result{{task: &task{name: "lock"}, failed: errMissing}}, nil, 0},
		"another task":           {[]result{measured("unlock", 900, 100)}, nil, 0},
	} {
		lines, compared := base.worse(baselineOf(tt.now))
		if len(lines) != len(tt.worse) || compared != tt.compared {
			t.Errorf("%s: %q of %d, want %q of %d", name, lines, compared, tt.worse, tt.compared)
			continue
		}
		for i, want := range tt.worse {
			if !strings.HasPrefix(lines[i], want) {
				t.Errorf("%s: %q, want %q", name, lines[i], want)
			}
		}
		for _, r := range tt.now {
			if got, want := base.suspects(baselineOf(tt.now))[r.task.name], strings.Contains(strings.Join(lines, "\n"), r.task.name+":"); got != want {
				t.Errorf("%s: %s is measured again: %v, want %v", name, r.task.name, got, want)
			}
		}
	}
}
