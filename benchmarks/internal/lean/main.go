//go:build unix

// Lean is a worker of the comparison with only package archiveops, like a program that only creates
// archives. It shows the memory of the archive actions alone: a process with all engines maps 50
// MiB of libraries before it does anything.
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/filewright/filewright/benchmarks/internal/worker"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/archiveops"
)

func main() {
	w := worker.Worker{Actions: func(context.Context, string) ([]fileops.Action, func() error) {
		return []fileops.Action{archiveops.Zip()}, func() error { return nil }
	}}
	if err := w.Run(context.Background(), os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "lean:", err)
		os.Exit(1)
	}
}
