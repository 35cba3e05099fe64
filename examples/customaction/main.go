// Command customaction is the service with a custom action beside the standard actions. Each file
// is read in its own confined process. An image with too many pixels is refused before it is
// decoded.
package main

import (
	"cmp"
	"context"
	"image"
	"image/draw"
	_ "image/jpeg"
	"image/png"
	"io"
	"log"
	"net/http"
	"os"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/httpapi"
)

// maxPixels is the largest image in pixels: decoded, each pixel takes 4 or 8 bytes.
const maxPixels = 50_000_000

// Grayscale returns an action that removes the colour from an image.
func Grayscale() fileops.Action {
	spec := fileops.Spec{
		Name: "grayscale", Engine: "go", Family: "image", Summary: "Removes the colour from an image.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.PNG, format.JPG}}},
	}
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		c, _, err := image.DecodeConfig(job.Input().Reader())
		if err != nil {
			return fileops.Fail(fileops.ErrCorruptInput, err, "")
		}
		if c.Width > maxPixels/max(c.Height, 1) {
			return fileops.Fail(fileops.ErrLimit, nil, "the picture has %d × %d pixels, more than the limit of %d", c.Width, c.Height, maxPixels)
		}
		src, _, err := image.Decode(job.Input().Reader())
		if err != nil {
			return fileops.Fail(fileops.ErrCorruptInput, err, "")
		}
		dst := image.NewGray(src.Bounds())
		draw.Draw(dst, dst.Bounds(), src, src.Bounds().Min, draw.Src)
		return job.Write(fileops.ResultName(job.Input(), format.PNG), func(w io.Writer) error { return png.Encode(w, dst) })
	})
}

func main() {
	gray := Grayscale()
	standard.Main(gray) // in a process for one file it does not return
	ctx := context.Background()
	set := standard.Probe(ctx, &standard.Options{Isolate: true, Limits: standard.Limits{Memory: 1 << 30}})
	svc, err := httpapi.New(httpapi.Config{
		Actions: append(set.Actions(), set.Isolate(gray)),
		Auth:    httpapi.StaticKeys(os.Getenv("API_KEY")),
	})
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(svc.Run(ctx)) }()
	log.Fatal(http.ListenAndServe(cmp.Or(os.Getenv("ADDR"), "127.0.0.1:8080"), svc))
}
