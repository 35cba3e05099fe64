package webops_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/webops"
)

func Example() {
	ctx := context.Background()
	web, err := webops.New(ctx, webops.Options{NoSandbox: os.Geteuid() == 0})
	if errors.Is(err, exec.ErrNotFound) {
		fmt.Println("please install Chromium")
		return
	}
	if err != nil {
		panic(err)
	}
	defer web.Close()
	page := fileops.Bytes("hello.md", []byte("# Hello 👋\n\nThis is **Markdown**.\n"))
	err = fileops.Run(ctx, web.Convert(), fileops.Args{"convert_to": "pdf", "page_size": "letter"},
		fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
			fmt.Println(f.Name(), f.Size() > 1000)
			return nil
		}), page)
	fmt.Println(err)
	// Output:
	// hello.pdf true
	// <nil>
}
