//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"slices"
)

// ratios are our measurements divided by those of a rival in the same run. Processor time is used
// in place of time: other work on the machine changes it less.
type ratios struct {
	CPU  float64 `json:"cpu,omitempty"`
	Size float64 `json:"size,omitempty"`
}

// A baseline has the ratios of earlier results, by task and rival.
type baseline map[string]map[string]ratios

// maxWorse is how much a ratio may grow.
const maxWorse = 0.10

// baselineOf returns the ratios of results. Rivals that are missing have none.
func baselineOf(results []result) baseline {
	all := make(baseline)
	for _, r := range results {
		if r.failed != nil {
			continue
		}
		_, cpuOurs, _ := r.scores[0].median(cpu)
		_, sizeOurs, _ := r.scores[0].median(size)
		for _, s := range r.scores[1:] {
			_, cpuTheirs, _ := s.median(cpu)
			_, sizeTheirs, _ := s.median(size)
			if cpuTheirs == 0 {
				continue
			}
			q := ratios{CPU: round(cpuOurs / cpuTheirs)}
			if sizeTheirs > 0 {
				q.Size = round(sizeOurs / sizeTheirs)
			}
			if all[r.task.name] == nil {
				all[r.task.name] = make(map[string]ratios)
			}
			all[r.task.name][s.name] = q
		}
	}
	return all
}

func round(x float64) float64 { return math.Round(x*1000) / 1000 }

// worse describes how the ratios of now are worse than those of b, one line for each. Tasks and
// rivals that were not measured are left out. compared is the number of rivals.
func (b baseline) worse(now baseline) (lines []string, compared int) {
	for _, task := range slices.Sorted(maps.Keys(b)) {
		for _, rival := range slices.Sorted(maps.Keys(b[task])) {
			before := b[task][rival]
			after, ok := now[task][rival]
			if !ok {
				continue
			}
			compared++
			for _, m := range []struct {
				name          string
				before, after float64
			}{{"processor time", before.CPU, after.CPU}, {"size", before.Size, after.Size}} {
				if m.before > 0 && m.after > m.before*(1+maxWorse) {
					lines = append(lines, fmt.Sprintf("%s: %s is %.3g × that of %s, and was %.3g × in the baseline", task, m.name, m.after, rival, m.before))
				}
			}
		}
	}
	return lines, compared
}

// suspects returns the names of the tasks whose ratios are worse.
func (b baseline) suspects(now baseline) map[string]bool {
	names := make(map[string]bool)
	for task := range b {
		if lines, _ := (baseline{task: b[task]}).worse(now); len(lines) > 0 {
			names[task] = true
		}
	}
	return names
}

func readBaseline(path string) (baseline, error) {
	raw, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var b baseline
	if err := json.Unmarshal(raw, &b); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return b, nil
}

// write writes b to a file. Tasks that b does not have stay as they are there.
func (b baseline) write(path string) error {
	all := b
	if old, err := readBaseline(path); err == nil {
		maps.Copy(old, b)
		all = old
	}
	raw, err := json.MarshalIndent(all, "", "\t")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(raw, '\n'), 0o644)
}
