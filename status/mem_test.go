package status_test

import (
	"testing"

	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/statustest"
)

func TestMemStore(t *testing.T) {
	t.Parallel()
	statustest.Run(t, func(*testing.T) status.Store { return status.NewMemStore() })
}
