package uploadtest_test

import (
	"fmt"
	"testing"

	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/uploadtest"
)

// The test of a store is a call of Run.
func Example() {
	TestStore := func(t *testing.T) {
		uploadtest.Run(t, func(*testing.T) upload.Store { return new(upload.MemStore) })
	}
	fmt.Printf("%T\n", TestStore)
	// Output: func(*testing.T)
}
