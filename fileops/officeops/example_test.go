package officeops_test

import (
	"context"
	"fmt"
	"log"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/officeops"
)

func Example() {
	ctx := context.Background()
	office, err := officeops.New(ctx, officeops.Options{Workers: 1})
	if err != nil {
		log.Fatal(err)
	}
	defer office.Close()

	table := fileops.Bytes("fruit.csv", []byte("name;price\nÄpfel;3,50\n"))
	show := fileops.SinkFunc(func(_ context.Context, f *fileops.File) error {
		head := make([]byte, 5)
		_, err := f.Reader().ReadAt(head, 0)
		fmt.Printf("%s begins with %s\n", f.Name(), head)
		return err
	})
	if err := fileops.Run(ctx, office.Convert(), fileops.Args{"convert_to": "pdf"}, show, table); err != nil {
		log.Fatal(err)
	}
	// Output: fruit.pdf begins with %PDF-
}
