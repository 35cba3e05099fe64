//go:build unix

package pdf

import (
	"errors"
	"fmt"
	"math"
	"os"

	"golang.org/x/sys/unix"
)

// MaxMapped is the size of the largest file that can be read, in bytes.
const MaxMapped = 4 << 30

func mapFile(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if st.Size() <= 0 || st.Size() > math.MaxInt {
		return nil, errors.ErrUnsupported
	}
	b, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errors.ErrUnsupported, err)
	}
	return b, nil
}

func unmapFile(b []byte) error { return unix.Munmap(b) }

// releaseMapped drops the pages of a mapping from the memory of the process. They are
// read again when they are needed.
func releaseMapped(b []byte) { _ = unix.Madvise(b, unix.MADV_DONTNEED) } // only advice
