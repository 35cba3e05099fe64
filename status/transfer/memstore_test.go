package transfer_test

import (
	"testing"

	"github.com/filewright/filewright/status/transfer"
	"github.com/filewright/filewright/status/transfer/transfertest"
)

func TestMemStore(t *testing.T) {
	t.Parallel()
	transfertest.Run(t, func(*testing.T) transfer.Store { return new(transfer.MemStore) })
}
