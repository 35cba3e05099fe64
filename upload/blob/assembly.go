package blob

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"strconv"
)

// An Assembly builds one object from parts that arrive in any order. A [Stager] writes
// each part to its place in the object at once, and finishing moves no bytes. In any
// other store parts are objects "parts/<ID>/<number>", which [Compose] joins at the
// end.
//
// A part that is sent again does not touch the earlier one until the caller has
// verified it: see [Assembly.ReplacePart].
//
// The client chooses the sizes of the parts, so only the usual layout is known in
// advance. It has equal parts, of which the last may be shorter and any after it empty.
// A part larger than its slot in this layout is a separate object in every store. A
// smaller part is moved at the end.
//
// An Assembly only names data in the store: another process can create an equal one
// later and continue. Different parts may be written concurrently. The caller must not
// write the same part twice at the same time, nor write during Commit.
type Assembly struct {
	Store Store
	ID    string // one element of a valid key
	Size  int64  // of the object in bytes
	Parts int    // number of parts, at least 1
}

// An AssembledPart describes where a part is stored.
type AssembledPart struct {
	Number   int
	Size     int64 // bytes
	Staged   bool  // in the staging area; else a separate object
	Revision int   // of that object; 0 unless it replaces another part
}

// Slot returns the offset and size of part n in the usual layout. size is 0 if the
// object ends before it.
func (a *Assembly) Slot(n int) (off, size int64) {
	parts := int64(a.Parts)
	chunk := a.Size / parts
	if a.Size%parts != 0 {
		chunk++
	}
	if chunk == 0 || int64(n-1) > a.Size/chunk {
		return a.Size, 0
	}
	off = int64(n-1) * chunk
	return off, min(chunk, a.Size-off)
}

// Begin reserves space for the object if the store can. It may be repeated.
func (a *Assembly) Begin(ctx context.Context) error {
	if s, ok := As[Stager](a.Store); ok {
		return s.Stage(ctx, a.ID, a.Size)
	}
	return nil
}

// WritePart stores part n, overwriting an earlier one. It reads at most size bytes of
// r, or at most the size of the part's slot if size is -1 (unknown). The part is
// durable when WritePart returns. If r ends early, either the part is smaller or the
// error matches io.ErrUnexpectedEOF.
func (a *Assembly) WritePart(ctx context.Context, n int, r io.Reader, size int64) (AssembledPart, error) {
	off, slot := a.Slot(n)
	if size < 0 {
		size = slot
	}
	s, ok := As[Stager](a.Store)
	if !ok || size > slot {
		return a.putPart(ctx, AssembledPart{Number: n, Size: size}, r)
	}
	size, err := s.WriteStaged(ctx, a.ID, off, r, size)
	return AssembledPart{Number: n, Size: size, Staged: true}, err
}

// ReplacePart is like WritePart, but does not change old, the earlier part of the same
// number. Either can be committed; the caller must drop the other. The new part is
// always a separate object with a random revision, so even a caller that has lost its
// lock overwrites nothing.
func (a *Assembly) ReplacePart(ctx context.Context, old AssembledPart, r io.Reader, size int64) (AssembledPart, error) {
	if size < 0 {
		_, size = a.Slot(old.Number)
	}
	return a.putPart(ctx, AssembledPart{Number: old.Number, Size: size, Revision: 1 + rand.IntN(math.MaxInt32)}, r)
}

func (a *Assembly) putPart(ctx context.Context, p AssembledPart, r io.Reader) (AssembledPart, error) {
	return p, a.Store.Put(ctx, a.object(p), r, p.Size)
}

// DropPart removes a part, unless it is in the staging area, which is removed as a
// whole. It is not an error if the part does not exist.
func (a *Assembly) DropPart(ctx context.Context, p AssembledPart) error {
	if p.Staged {
		return nil
	}
	return a.Store.Delete(ctx, a.object(p))
}

// StatPart describes a part that is not in the staging area.
func (a *Assembly) StatPart(ctx context.Context, p AssembledPart) (Info, error) {
	return Stat(ctx, a.Store, a.object(p))
}

// Commit creates the object from parts, which must be in order, and removes all other
// data of the assembly. The object appears completely and durably, or not at all; then
// Commit can be repeated.
func (a *Assembly) Commit(ctx context.Context, key string, parts []AssembledPart) error {
	if s, ok := As[Stager](a.Store); ok {
		pieces := make([]Piece, len(parts))
		for i, p := range parts {
			pieces[i] = Piece{Size: p.Size}
			if p.Staged {
				pieces[i].Off, _ = a.Slot(p.Number)
			} else {
				pieces[i].Key = a.object(p)
			}
		}
		return s.CommitStaged(ctx, a.ID, key, pieces)
	}
	keys := make([]string, len(parts))
	for i, p := range parts {
		if p.Staged {
			return fmt.Errorf("part %d is staged, but the store has no staging area: %w", p.Number, errors.ErrUnsupported)
		}
		keys[i] = a.object(p)
	}
	return Compose(ctx, a.Store, key, keys)
}

// Abort removes all data of the assembly from the store, except the object if it has
// been committed.
func (a *Assembly) Abort(ctx context.Context) error {
	var errs []error
	if s, ok := As[Stager](a.Store); ok {
		errs = append(errs, s.AbortStaged(ctx, a.ID))
	}
	var keys []string
	for i, err := range a.Store.List(ctx, PartsPrefix+a.ID+"/") {
		if err != nil {
			errs = append(errs, err)
			break
		}
		keys = append(keys, i.Key)
	}
	for _, k := range keys {
		errs = append(errs, a.Store.Delete(ctx, k))
	}
	return errors.Join(errs...)
}

// PartsPrefix is the prefix of the keys of objects that are parts of assemblies; the
// next element of the key is the ID.
const PartsPrefix = "parts/"

func (a *Assembly) object(p AssembledPart) string {
	key := PartsPrefix + a.ID + "/" + strconv.Itoa(p.Number)
	if p.Revision > 0 {
		key += "." + strconv.Itoa(p.Revision)
	}
	return key
}
