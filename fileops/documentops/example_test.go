package documentops_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/documentops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
)

// Encrypt a document with a password, then open it with the password.
func Example() {
	ctx := context.Background()
	var locked *fileops.File
	keep := fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := io.ReadAll(f.Reader())
		locked = fileops.Bytes(f.Name(), b)
		return err
	})
	report := fileopstest.Sample(new(testing.T), format.DOCX)
	if err := fileops.Run(ctx, documentops.Lock(nil), fileops.Args{"password": "s3cret"}, keep, report); err != nil {
		fmt.Println(err)
		return
	}
	err := fileops.Run(ctx, documentops.Unlock(nil), fileops.Args{"password": "guess"}, keep, locked)
	fmt.Println(errors.Is(err, fileops.ErrWrongPassword))
	// Output: true
}
