// Command customaction is the service with an action of its own beside the
// standard ones. As soon as it is in the list, supported-operation knows it.
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

// Grayscale returns an action that removes the colour from an image.
func Grayscale() fileops.Action {
	spec := fileops.Spec{
		Name: "grayscale", Engine: "go", Family: "image", Summary: "Removes the colour from an image.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.PNG, format.JPG}}},
	}
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
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
	ctx := context.Background()
	svc, err := httpapi.New(httpapi.Config{
		Actions: append(standard.Probe(ctx, nil).Actions(), Grayscale()),
		Auth:    httpapi.StaticKeys(os.Getenv("API_KEY")),
	})
	if err != nil {
		log.Fatal(err)
	}
	go svc.Run(ctx)
	log.Fatal(http.ListenAndServe(cmp.Or(os.Getenv("ADDR"), "127.0.0.1:8080"), svc))
}
