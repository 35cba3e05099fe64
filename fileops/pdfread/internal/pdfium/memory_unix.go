//go:build unix

package pdfium

import "golang.org/x/sys/unix"

func reserve(n int) ([]byte, error) {
	return unix.Mmap(-1, 0, n, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
}

func unreserve(b []byte) error { return unix.Munmap(b) }
