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

func TestMemStoreParallel(t *testing.T) {
	t.Parallel()
	statustest.RunParallel(t, func(*testing.T) (status.Store, func(string, int)) {
		s := status.NewMemStore()
		return s, s.SetParallel
	})
}
