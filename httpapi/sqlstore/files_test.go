package sqlstore_test

import (
	"testing"

	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/uploadtest"
)

func TestFiles(t *testing.T) {
	t.Parallel()
	uploadtest.Run(t, func(t *testing.T) upload.Store { return open(t).Files() })
}
