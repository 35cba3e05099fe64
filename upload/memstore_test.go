package upload_test

import (
	"testing"

	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/uploadtest"
)

func TestMemStore(t *testing.T) {
	t.Parallel()
	uploadtest.Run(t, func(*testing.T) upload.Store { return new(upload.MemStore) })
}
