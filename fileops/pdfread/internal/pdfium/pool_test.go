package pdfium

import (
	"context"
	"errors"
	"log/slog"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// A cancelled caller does not wait for the compiler, which may take a minute on
// a busy machine.
func TestCloseStopsTheCompiler(t *testing.T) {
	t.Parallel()
	p, err := NewPool(t.TempDir(), nil, 1, slog.New(slog.DiscardHandler))
	systest.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Warm(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("Warm with a context that is done: %v", err)
	}
	systest.NoError(t, p.Close())
	<-p.starter.ready
	if p.starter.lib != nil {
		t.Error("Close waited until pdfium was compiled")
	}
}
