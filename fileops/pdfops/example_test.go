package pdfops_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image"
	"image/png"
	"io"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfops"
)

// keep returns a sink that keeps the last result in memory.
func keep(to **fileops.File) fileops.Sink {
	return fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		b, err := io.ReadAll(f.Reader())
		*to = fileops.Bytes(f.Name(), b)
		return err
	})
}

func Example() {
	ctx := context.Background()
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 100, 100))); err != nil {
		fmt.Println(err)
	}
	var doc, locked, open *fileops.File
	err := fileops.Run(ctx, pdfops.FromImages(), fileops.Args{"convert_to": "pdf"}, keep(&doc), fileops.Bytes("square.png", picture.Bytes()))
	fmt.Println(doc.Name(), err)

	err = fileops.Run(ctx, pdfops.Lock(), fileops.Args{"password": "open sesame"}, keep(&locked), doc)
	fmt.Println(locked.Name(), err)

	err = fileops.Run(ctx, pdfops.Unlock(), fileops.Args{"password": "abracadabra"}, keep(&open), locked)
	fmt.Println(errors.Is(err, fileops.ErrWrongPassword), fileops.Message(err))

	err = fileops.Run(ctx, pdfops.Unlock(), fileops.Args{"password": "open sesame"}, keep(&open), locked)
	fmt.Println(open.Name(), err)
	// Output:
	// square.pdf <nil>
	// square.pdf <nil>
	// true the password is neither the user nor the owner password of the file
	// square.pdf <nil>
}

func ExampleMerge() {
	var gray bytes.Buffer
	if err := png.Encode(&gray, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		fmt.Println(err)
	}
	merge := pdfops.Merge(pdfops.FromImages())
	fmt.Println(merge.Spec().Accepts[0].Formats)
	var merged *fileops.File
	err := fileops.Run(context.Background(), merge, nil, keep(&merged),
		fileops.Bytes("one.png", gray.Bytes()), fileops.Bytes("two.png", gray.Bytes()))
	fmt.Println(merged.Name(), err)
	// Output:
	// [pdf jpg png]
	// merged.pdf <nil>
}

func ExampleSplit() {
	ctx := context.Background()
	var gray bytes.Buffer
	if err := png.Encode(&gray, image.NewGray(image.Rect(0, 0, 8, 8))); err != nil {
		fmt.Println(err)
	}
	var merged *fileops.File
	err := fileops.Run(ctx, pdfops.Merge(pdfops.FromImages()), nil, keep(&merged),
		fileops.Bytes("one.png", gray.Bytes()), fileops.Bytes("two.png", gray.Bytes()), fileops.Bytes("three.png", gray.Bytes()))
	fmt.Println(merged.Name(), err)

	print := fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		fmt.Println(f.Name())
		return nil
	})
	err = fileops.Run(ctx, pdfops.Split(), fileops.Args{"pages": "1-2;-1"}, print, merged)
	fmt.Println(err)
	// Output:
	// merged.pdf <nil>
	// merged-001.pdf
	// merged-002.pdf
	// <nil>
}
