package blobtest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/url"
	"slices"
	"testing"
	"time"

	"github.com/filewright/filewright/upload/blob"
	"github.com/filewright/filewright/upload/blob/memblob"
)

// RunDecorator tests a decorator: a store returned by decorate must fulfil the contract
// of blob.Store and keep the roles of the inner store.
func RunDecorator(t *testing.T, decorate func(blob.Store) blob.Store) {
	t.Run("Store", func(t *testing.T) {
		Run(t, func(*testing.T) blob.Store { return decorate(memblob.New()) })
	})
	t.Run("Roles", func(t *testing.T) { testRoles(t, decorate) })
}

// testRoles calls all optional roles of a decorated store.
func testRoles(t *testing.T, decorate func(blob.Store) blob.Store) {
	ctx := t.Context()
	inner := &able{Store: memblob.New()}
	s := decorate(inner)
	a := &blob.Assembly{Store: s, ID: "a", Size: 1, Parts: 1}
	direct, isDirect := blob.As[blob.DirectUploader](s)
	linker, isLinker := blob.As[blob.Linker](s)
	if !isDirect || !isLinker {
		t.Fatalf("a DirectUploader: %v, a Linker: %v", isDirect, isLinker)
	}
	stager, ok := blob.As[blob.Stager](s)
	if !ok {
		t.Fatal("not a Stager")
	}
	var got []string
	for _, call := range []struct {
		name string
		err  error
	}{
		{"Compose", blob.Compose(ctx, s, "k", nil)},
		{"PutFile", blob.PutFile(ctx, s, "k", "")},
		{"Move", blob.Move(ctx, s, "k", "l")},
		{"FreeSpace", second(blob.FreeSpace(ctx, s))},
		{"Sweep", second(blob.Sweep(ctx, s, time.Now()))},
		{"Stat", second(blob.Stat(ctx, s, "k"))},
		{"DeleteAll", blob.DeleteAll(ctx, s, []string{"k"})["k"]},
		{"Check", blob.Check(ctx, s)},
		{"Stage", a.Begin(ctx)},
		{"WriteStaged", second(a.WritePart(ctx, 1, nil, 1))},
		{"CommitStaged", a.Commit(ctx, "k", nil)},
		{"AbortStaged", a.Abort(ctx)},
		{"ListStaged", last(stager.ListStaged(ctx))},
		{"BeginDirect", second(direct.BeginDirect(ctx, "k", 1, 1))},
		{"PresignPart", second(direct.PresignPart(ctx, blob.DirectUpload{}, 1, 1, 0))},
		{"DirectParts", second(direct.DirectParts(ctx, blob.DirectUpload{}))},
		{"CommitDirect", direct.CommitDirect(ctx, blob.DirectUpload{}, nil)},
		{"AbortDirect", direct.AbortDirect(ctx, blob.DirectUpload{})},
		{"ListDirect", last(direct.ListDirect(ctx))},
		{"Link", second(linker.Link(ctx, "k", blob.LinkOptions{}))},
		{"Origin", second(linker.Origin(ctx))},
	} {
		if !errors.Is(call.err, errAble) {
			t.Errorf("%s does not reach the inner store: %v", call.name, call.err)
		}
		got = append(got, call.name)
	}
	if !slices.Equal(inner.calls, got) {
		t.Errorf("the inner store was called for %q, want %q", inner.calls, got)
	}
}

func second[T any](_ T, err error) error { return err }

func last[T any](seq iter.Seq2[T, error]) (err error) {
	for _, err = range seq {
	}
	return err
}

// An able store has every role. All of its own methods fail with errAble.
type able struct {
	blob.Store
	calls []string
}

var errAble = errors.New("the inner store was called")

func (s *able) called(name string) error {
	s.calls = append(s.calls, name)
	return fmt.Errorf("%s: %w", name, errAble)
}

func (s *able) Compose(context.Context, string, []string) error      { return s.called("Compose") }
func (s *able) PutFile(context.Context, string, string) error        { return s.called("PutFile") }
func (s *able) Move(context.Context, string, string) error           { return s.called("Move") }
func (s *able) FreeSpace(context.Context) (int64, error)             { return 0, s.called("FreeSpace") }
func (s *able) Sweep(context.Context, time.Time) (int, error)        { return 0, s.called("Sweep") }
func (s *able) Check(context.Context) error                          { return s.called("Check") }
func (s *able) Stage(context.Context, string, int64) error           { return s.called("Stage") }
func (s *able) AbortStaged(context.Context, string) error            { return s.called("AbortStaged") }
func (s *able) Origin(context.Context) (string, error)               { return "", s.called("Origin") }
func (s *able) Stat(context.Context, string) (blob.Info, error)      { return blob.Info{}, s.called("Stat") }
func (s *able) AbortDirect(context.Context, blob.DirectUpload) error { return s.called("AbortDirect") }

func (s *able) DeleteAll(context.Context, []string) map[string]error {
	return map[string]error{"k": s.called("DeleteAll")}
}

func (s *able) WriteStaged(context.Context, string, int64, io.Reader, int64) (int64, error) {
	return 0, s.called("WriteStaged")
}

func (s *able) CommitStaged(context.Context, string, string, []blob.Piece) error {
	return s.called("CommitStaged")
}

func (s *able) ListStaged(context.Context) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) { yield(blob.Info{}, s.called("ListStaged")) }
}

func (s *able) BeginDirect(context.Context, string, int64, int) (blob.DirectUpload, error) {
	return blob.DirectUpload{}, s.called("BeginDirect")
}

func (s *able) PresignPart(context.Context, blob.DirectUpload, int, int64, time.Duration) (*url.URL, error) {
	return nil, s.called("PresignPart")
}

func (s *able) DirectParts(context.Context, blob.DirectUpload) ([]blob.DirectPart, error) {
	return nil, s.called("DirectParts")
}

func (s *able) CommitDirect(context.Context, blob.DirectUpload, []blob.DirectPart) error {
	return s.called("CommitDirect")
}

func (s *able) ListDirect(context.Context) iter.Seq2[blob.DirectUpload, error] {
	return func(yield func(blob.DirectUpload, error) bool) {
		yield(blob.DirectUpload{}, s.called("ListDirect"))
	}
}

func (s *able) Link(context.Context, string, blob.LinkOptions) (*url.URL, error) {
	return nil, s.called("Link")
}
