package imageops_test

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/png"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/imageops"
)

func Example() {
	e, err := imageops.New(context.Background(), imageops.Options{}) // once per program
	if err != nil {
		fmt.Println(err)
		return
	}
	var in bytes.Buffer
	if err := png.Encode(&in, image.NewNRGBA(image.Rect(0, 0, 400, 300))); err != nil {
		fmt.Println(err)
		return
	}
	show := fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		c, kind, err := image.DecodeConfig(f.Reader())
		fmt.Println(f.Name(), kind, c.Width, c.Height)
		return err
	})
	args := fileops.Args{"convert_to": "jpg", "width": 100}
	if err := fileops.Run(context.Background(), e.Convert(), args, show, fileops.Bytes("logo.png", in.Bytes())); err != nil {
		fmt.Println(err)
	}
	// Output: logo.jpg jpeg 100 75
}

func ExampleEngine_Encode() {
	e, err := imageops.New(context.Background(), imageops.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	var out bytes.Buffer
	if err := e.Encode(context.Background(), image.NewRGBA(image.Rect(0, 0, 20, 10)), format.TIFF, 0, 150, &out); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(format.Sniff(bytes.NewReader(out.Bytes()), int64(out.Len())))
	// Output: tiff
}
