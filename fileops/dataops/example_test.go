package dataops_test

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/dataops"
)

func ExampleConvert() {
	show := fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		fmt.Println(f.Name())
		_, err := io.Copy(os.Stdout, f.Reader())
		return err
	})
	people := fileops.Bytes("people.json", []byte(`[
		{"name": "Ada", "address": {"city": "London"}, "langs": ["en", "fr"]},
		{"name": "Emmy", "born": 1882}
	]`))
	if err := fileops.Run(context.Background(), dataops.Convert(), fileops.Args{"convert_to": "csv"}, show, people); err != nil {
		fmt.Println(err)
	}
	prices := fileops.Bytes("prices.csv", []byte("item;price\nTea;2.50\nCake;\n"))
	if err := fileops.Run(context.Background(), dataops.Convert(), fileops.Args{"convert_to": "json", "typed": true}, show, prices); err != nil {
		fmt.Println(err)
	}
	// Output:
	// people.csv
	// name,address.city,langs,born
	// Ada,London,"en; fr",
	// Emmy,,,1882
	// prices.json
	// [
	//   {"item": "Tea", "price": 2.50},
	//   {"item": "Cake", "price": null}
	// ]
}
