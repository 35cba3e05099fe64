package blob

import (
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// ErrPart matches all errors about a list of parts.
var ErrPart = errors.New("the parts do not form the object")

// Errors about a list of parts. All of them match [ErrPart].
var (
	ErrMissingPart = fmt.Errorf("part is missing: %w", ErrPart)
	ErrPartOrder   = fmt.Errorf("part numbers do not ascend: %w", ErrPart)
	ErrPartETag    = fmt.Errorf("wrong ETag of part: %w", ErrPart)
)

// A Part identifies one part of an object by its content.
type Part struct {
	Number int    // from 1
	ETag   string // hex MD5 of the bytes; see [Part.Sum]
}

// Sum returns the MD5 in the ETag of p. It is lenient, because clients copy ETags from
// response headers: it ignores surrounding quotes and spaces, and case. If the ETag is
// not an MD5, the error matches [ErrPartETag].
func (p Part) Sum() (sum [md5.Size]byte, err error) {
	s := strings.Trim(p.ETag, "\" \t")
	if len(s) != hex.EncodedLen(md5.Size) {
		return sum, fmt.Errorf("part %d: %w", p.Number, ErrPartETag)
	}
	if _, err := hex.Decode(sum[:], []byte(s)); err != nil {
		return sum, fmt.Errorf("part %d: %w", p.Number, ErrPartETag)
	}
	return sum, nil
}

// ETag returns the ETag of an object made of parts, without quotes. For one part it is
// the hex MD5 of its bytes. For n parts it is, as in S3, the hex MD5 of their
// concatenated binary MD5s, "-", and n.
//
// It fails with an error that matches [ErrPart] if there are no parts, if their numbers
// are not positive and ascending, or if an ETag is not an MD5.
func ETag(parts []Part) (string, error) {
	if len(parts) == 0 {
		return "", fmt.Errorf("no parts: %w", ErrMissingPart)
	}
	all := md5.New()
	last := 0
	var sum [md5.Size]byte
	for _, p := range parts {
		if p.Number <= last {
			return "", fmt.Errorf("part %d: %w", p.Number, ErrPartOrder)
		}
		last = p.Number
		var err error
		if sum, err = p.Sum(); err != nil {
			return "", err
		}
		all.Write(sum[:])
	}
	if len(parts) == 1 {
		return hex.EncodeToString(sum[:]), nil
	}
	return fmt.Sprintf("%x-%d", all.Sum(nil), len(parts)), nil
}
