package batch_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/batch"
)

func Example() {
	dir, err := os.MkdirTemp("", "example-")
	if err != nil {
		log.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "a.txt")
	if err := os.WriteFile(path, []byte("hello"), 0o600); err != nil {
		log.Fatal(err)
	}
	reg, err := fileops.NewRegistry(actions()...)
	if err != nil {
		log.Fatal(err)
	}
	b := batch.Batch{
		Processor: &batch.Local{Registry: reg}, Action: "convert", Args: fileops.Args{"convert_to": "md"},
		Report: func(e batch.Event) {
			for _, out := range e.Outputs {
				fmt.Println(filepath.Base(out))
			}
		},
	}
	if err := b.Run(context.Background(), []string{path}); err != nil {
		log.Fatal(err)
	}
	// Output: a.md
}
