package auth

import (
	"bytes"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
)

// A PasswordList is a file with the SHA-1 hashes of passwords that are known to attackers. Searching
// it reads a few blocks and needs no memory, so the file may have billions of lines. It is safe for
// concurrent use.
type PasswordList struct {
	file io.ReaderAt
	size int64
	io.Closer
}

// maxListLine bounds a line of the list: a hash, a colon, a count and the end of the line.
const maxListLine = 64

// OpenPasswordList opens a list. Each line is a SHA-1 hash in hexadecimal digits, which may be followed
// by a colon and a count; lines are sorted by hash. Have I Been Pwned publishes such a file.
func OpenPasswordList(path string) (*PasswordList, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	l := &PasswordList{file: f, Closer: f}
	st, err := f.Stat()
	if err == nil {
		l.size = st.Size()
		err = l.check()
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), f.Close())
	}
	return l, nil
}

// check looks at a few lines, so that a file of another kind or order is refused at once.
func (l *PasswordList) check() error {
	const samples = 16
	last := ""
	for i := range int64(samples) {
		hash, _, err := l.line(l.size / samples * i)
		if err != nil {
			return err
		}
		switch {
		case hash == "" && i == 0:
			return errors.New("there are no lines")
		case hash == "":
			return nil // in the last line
		case hash < last:
			return errors.New("the lines are not sorted by hash")
		}
		last = hash
	}
	return nil
}

// line returns the hash in the first line that starts at or after an offset, in upper case, and the
// offset of the next line. The hash is "" after the last line.
func (l *PasswordList) line(at int64) (hash string, next int64, err error) {
	if at > 0 {
		at-- // a line that starts at the offset has the end of another before it
	}
	buf := make([]byte, 2*maxListLine+1)
	n, err := l.file.ReadAt(buf, at)
	if err != nil && !errors.Is(err, io.EOF) {
		return "", 0, err
	}
	buf = buf[:n]
	if at > 0 {
		i := bytes.IndexByte(buf, '\n')
		if i < 0 {
			if at+int64(n) >= l.size {
				return "", l.size, nil // in the last line
			}
			return "", 0, errors.New("a line is too long")
		}
		buf, at = buf[i+1:], at+int64(i)+1
	}
	if len(buf) == 0 {
		return "", l.size, nil
	}
	text, _, whole := bytes.Cut(buf, []byte("\n"))
	if !whole && at+int64(len(buf)) < l.size {
		return "", 0, errors.New("a line is too long")
	}
	digits, _, _ := bytes.Cut(bytes.TrimRight(text, "\r"), []byte(":"))
	if len(digits) != hex.EncodedLen(sha1.Size) {
		return "", 0, errors.New("a line does not start with a SHA-1 hash")
	}
	digits = bytes.ToUpper(digits)
	if _, err := hex.Decode(make([]byte, sha1.Size), digits); err != nil {
		return "", 0, errors.New("a line does not start with a SHA-1 hash")
	}
	return string(digits), at + int64(len(text)) + 1, nil
}

// Contains reports whether the list has a password.
func (l *PasswordList) Contains(password string) (bool, error) {
	want := fmt.Sprintf("%X", sha1.Sum([]byte(password)))
	// The line, if there is one, starts in [low, high).
	low, high := int64(0), l.size
	for low < high {
		mid := low + (high-low)/2
		hash, next, err := l.line(mid)
		switch {
		case err != nil:
			return false, fmt.Errorf("list of passwords: %w", err)
		case hash == want:
			return true, nil
		case hash == "" || hash > want:
			high = mid
		default:
			low = next
		}
	}
	return false, nil
}
