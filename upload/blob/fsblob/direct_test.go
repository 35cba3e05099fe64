package fsblob_test

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"testing/iotest"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload/blob"
)

// Data large enough for direct writes arrives intact, wherever its ranges start and
// end, and does not damage adjacent ranges that are written at the same time.
func TestLargeRanges(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	s := open(t, dir)
	sizes := []int64{5, 64<<20 + 1, 4091, 99 << 20, 4<<20 + 4097, 4 << 20, 100, 85 << 20}
	var total int64
	for _, n := range sizes {
		total += n
	}
	data := make([]byte, total)
	rand.NewChaCha8([32]byte{1}).Read(data)
	systest.NoError(t, s.Stage(ctx, "a", total))
	var wg sync.WaitGroup
	var off int64
	var pieces []blob.Piece
	for i, n := range sizes {
		at := off
		wg.Go(func() {
			r := io.Reader(bytes.NewReader(data[at : at+n]))
			if i == 3 {
				r = iotest.HalfReader(r)
			}
			if k, err := s.WriteStaged(ctx, "a", at, r, n); k != n || err != nil {
				t.Errorf("%d bytes at %d: %d, %v", n, at, k, err)
			}
		})
		pieces = append(pieces, blob.Piece{Off: at, Size: n})
		off += n
	}
	wg.Wait()
	// Rewriting a range changes nothing else.
	if k, err := s.WriteStaged(ctx, "a", 5, bytes.NewReader(data[5:]), 64<<20+1); k != 64<<20+1 || err != nil {
		t.Errorf("again: %d, %v", k, err)
	}
	systest.NoError(t, s.CommitStaged(ctx, "a", "k", pieces))
	b := systest.ReadFile(t, filepath.Join(dir, "obj", "-k", "k"))
	if !bytes.Equal(b, data) {
		t.Error("it is not what was written")
	}
}

// A large range may end early, or fail.
func TestLargeRangeEnds(t *testing.T) {
	t.Parallel()
	ctx, dir := t.Context(), t.TempDir()
	s := open(t, dir)
	const size = 256 << 20
	systest.NoError(t, s.Stage(ctx, "a", size))
	for _, n := range []int64{0, 1, 4096, 3<<20 + 5} {
		data := bytes.Repeat([]byte{byte(n + 1)}, int(n))
		if k, err := s.WriteStaged(ctx, "a", 7, bytes.NewReader(data), size-7); k != n || err != nil {
			t.Errorf("of %d bytes: %d, %v", n, k, err)
		}
		f, err := os.Open(filepath.Join(dir, "stage", "a"))
		systest.NoError(t, err)
		got := make([]byte, n)
		_, err = f.ReadAt(got, 7)
		if st, serr := f.Stat(); err != nil || serr != nil || st.Size() != size || !bytes.Equal(got, data) {
			t.Errorf("%d bytes are not there: %v, %v", n, err, serr)
		}
		f.Close()
	}
	broken := errors.New("broken")
	r := io.MultiReader(bytes.NewReader(make([]byte, 2<<20+9)), iotest.ErrReader(broken))
	if k, err := s.WriteStaged(ctx, "a", 0, r, size); k != 2<<20+9 || !errors.Is(err, broken) {
		t.Errorf("a broken reader: %d, %v", k, err)
	}
}
