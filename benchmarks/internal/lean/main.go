//go:build unix

// Lean is a worker of the comparison that has package archiveops and nothing
// else, as a program that only makes archives would. Its memory is what that
// takes: a process with all engines has 50 MiB of libraries mapped before it
// does anything.
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
