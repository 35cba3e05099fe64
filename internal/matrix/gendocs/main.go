// Gendocs writes docs/formats.md: the capabilities of the module on a host with all engines.
//
//	go run ./internal/matrix/gendocs        # what "make docs" runs
package main

import (
	"context"
	"fmt"
	"os"

	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/internal/matrix"
)

func main() {
	if err := run("docs/formats.md"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(path string) error {
	set := standard.Probe(context.Background(), nil)
	defer set.Close()
	for _, e := range set.Dependencies() {
		if e.Err != nil {
			return fmt.Errorf("%s is not here, and the document is about everything: %s", e.Name, e.Hint)
		}
	}
	return os.WriteFile(path, matrix.Document(set.Actions()), 0o644)
}
