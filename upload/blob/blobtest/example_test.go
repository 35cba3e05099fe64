package blobtest_test

import (
	"fmt"
	"testing"

	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/blobtest"
	"github.com/filewright/filewright/upload/blob/memblob"
)

// A call of Run tests a backend.
func Example() {
	TestStore := func(t *testing.T) {
		blobtest.Run(t, func(*testing.T) blob.Store { return memblob.New() })
	}
	fmt.Printf("%T\n", TestStore)
	// Output: func(*testing.T)
}
