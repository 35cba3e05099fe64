package pdf

import "errors"

// MaxMapped is the size of the largest file that can be read, in bytes.
const MaxMapped = MaxFile

func mapFile(string) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapFile([]byte) error { return nil }

func releaseMapped([]byte) {}
