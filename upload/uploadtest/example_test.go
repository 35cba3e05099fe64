package uploadtest_test

import (
	"fmt"
	"testing"

	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/uploadtest"
)

// A call of Run tests a store.
func Example() {
	TestStore := func(t *testing.T) {
		uploadtest.Run(t, func(*testing.T) upload.Store { return new(upload.MemStore) })
	}
	fmt.Printf("%T\n", TestStore)
	// Output: func(*testing.T)
}
