package raster_test

import (
	"context"
	"fmt"

	"github.com/filewright/filewright/fileops/documentops"
	"github.com/filewright/filewright/fileops/imageops"
	"github.com/filewright/filewright/fileops/pdfops"
	"github.com/filewright/filewright/fileops/pdfread"
	"github.com/filewright/filewright/fileops/raster"
)

// The engines fit together without adapters.
var (
	_ pdfops.ImageCodec        = (*imageops.Engine)(nil)
	_ documentops.PictureCodec = (*imageops.Engine)(nil)
	_ pdfread.Encoder          = (*imageops.Engine)(nil)
	_ pdfops.Renderer          = (*pdfread.Engine)(nil)
	_ pdfops.TextReader        = (*pdfread.Engine)(nil)
)

func Example() {
	images, err := imageops.New(context.Background(), imageops.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	tools := pdfops.Tools{Images: images}
	fmt.Println(tools.Compress().Spec().Name)

	gray := raster.Samples{Width: 4, Height: 2, Components: 1, Pix: make([]byte, 8)}
	small, err := images.ScalePixels(context.Background(), gray, 2, 1)
	fmt.Println(small.Width, small.Height, len(small.Pix), err)
	// Output:
	// compress
	// 2 1 2 <nil>
}
