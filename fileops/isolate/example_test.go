package isolate_test

import (
	"context"
	"fmt"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/isolate"
)

// The action crashes, and only its run fails. The program calls [isolate.Main] at its
// start, here in TestMain.
func Example() {
	pool, err := isolate.New("test", isolate.Options{Sandbox: engine.NewSandbox(), Spare: 1})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer pool.Close()
	action := pool.Wrap(work())
	in := fileops.Bytes("a.txt", []byte("text"))
	print := fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		fmt.Println(f.Name(), f.Size(), "bytes")
		return nil
	})
	err = fileops.Run(context.Background(), action, fileops.Args{"how": "crash"}, print, in)
	fmt.Println(fileops.Message(err))
	if err := fileops.Run(context.Background(), action, nil, print, in); err != nil {
		fmt.Println(err)
	}
	// Output:
	// the engine could not process the file
	// re-a.txt 4 bytes
}
