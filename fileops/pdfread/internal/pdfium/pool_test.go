package pdfium

import (
	"context"
	"errors"
	"log/slog"
	"testing"
)

// A cancelled caller does not wait for the compiler, which may take a minute on
// a busy machine.
func TestCloseStopsTheCompiler(t *testing.T) {
	t.Parallel()
	p, err := NewPool(t.TempDir(), nil, 1, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := p.Warm(ctx); !errors.Is(err, context.Canceled) {
		t.Fatalf("Warm with a context that is done: %v", err)
	}
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	<-p.starter.ready
	if p.starter.lib != nil {
		t.Error("Close waited until pdfium was compiled")
	}
}
