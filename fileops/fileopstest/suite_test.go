package fileopstest_test

import (
	"context"
	"fmt"
	"image/png"
	"io"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/fileopstest"
	"github.com/filewright/filewright/fileops/format"
)

// copyPNG returns a correct action to test the suite with.
func copyPNG() fileops.Action {
	spec := fileops.Spec{
		Name: "copy", Engine: "go", Family: "image", Summary: "Decodes a picture and encodes it again.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.PNG}, Params: fileops.Schema{
			fileops.Enum("convert_to", "Target.", "png"), fileops.Secret("password", "Not used."),
		}}},
	}
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		m, err := png.Decode(job.Input().Reader())
		if err != nil {
			return fileops.Fail(fileops.ErrCorruptInput, err, "")
		}
		job.Log.Info("decoded", "params", job.Params)
		return job.Write("x.png", func(w io.Writer) error { return png.Encode(w, m) })
	})
}

func TestRun(t *testing.T) {
	t.Parallel()
	checked := 0
	fileopstest.Run(t, fileopstest.Suite{
		Action: copyPNG(),
		Args:   fileops.Args{"password": "s3cret"},
		Check:  func(*testing.T, []*fileops.File, fileops.Args, []*fileops.File) { checked++ },
	})
	if checked != 3 {
		t.Errorf("Check was called %d times, want 3: once for the combination and once for each backing", checked)
	}
}

func Example() {
	// In your own test:
	_ = func(t *testing.T) {
		fileopstest.Run(t, fileopstest.Suite{Action: copyPNG()})
	}
	fmt.Println(len(fileopstest.Picture(4, 3).Pix))
	// Output: 48
}
