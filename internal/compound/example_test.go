package compound_test

import (
	"bytes"
	"fmt"
	"io"
	"log"

	"github.com/filewright/filewright/internal/compound"
)

func Example() {
	const text = "what is in the stream"
	var b bytes.Buffer
	err := compound.Write(&b, []*compound.Node{{
		Name: "Contents", Size: int64(len(text)),
		Content: func(w io.Writer) error { _, err := io.WriteString(w, text); return err },
	}})
	if err != nil {
		log.Fatal(err)
	}

	f, err := compound.Open(bytes.NewReader(b.Bytes()), int64(b.Len()), 100)
	if err != nil {
		log.Fatal(err)
	}
	r, ok, err := f.Stream("contents")
	if err != nil || !ok {
		log.Fatal(ok, err)
	}
	got, err := io.ReadAll(r)
	fmt.Printf("%s %v\n", got, err)
	// Output: what is in the stream <nil>
}
