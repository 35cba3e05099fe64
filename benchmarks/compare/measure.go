//go:build linux

package main

import (
	"os"
	"path/filepath"
	"time"

	"github.com/filewright/filewright/benchmarks/internal/proc"
)

// A sample holds the measurements of one run.
type sample struct {
	wall   time.Duration
	cpu    time.Duration // user and system time of all processes of the run
	memory int64         // peak resident memory of all these processes, bytes
	size   int64         // of the results, bytes
}

// sampleOf returns the measurements of a program that keeps running.
func sampleOf(s proc.Sample) sample { return sample{wall: s.Wall, cpu: s.CPU, memory: s.Memory} }

// sizeOf returns the bytes of all files in a directory.
func sizeOf(dir string) (int64, error) {
	var sum int64
	err := filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		st, err := d.Info()
		sum += st.Size()
		return err
	})
	return sum, err
}
