package s3blob

import (
	"fmt"
	"io/fs"
	"strings"

	"github.com/filewright/filewright/upload/blob"
)

// S3 permits both "a" and "a/b", but servers that keep objects in files do not: there
// "a" would be a directory. So the name of an object ends with endMark, which no
// directory name does. Names must also sort like keys. endMark sorts before every byte
// that can follow in a name, because bytes up to escapeMark are written as escapeMark
// and two hexadecimal digits. escapeMark in turn sorts before every unescaped byte.
//
//	files/abc  →  files/abc-
//	a.txt      →  a.2Etxt-
const (
	endMark    = '-'
	escapeMark = '.' // endMark + 1
)

// maxName is the maximum length of the name of an S3 object in bytes.
const maxName = 1024

// name returns the name of the S3 object for a key.
func (s *Store) name(key string) (string, error) {
	if !blob.ValidKey(key) {
		return "", fmt.Errorf("blob key %.40q: %w", key, fs.ErrInvalid)
	}
	n := s.prefix + escape(key) + string(endMark)
	if len(n) > maxName {
		return "", fmt.Errorf("blob key %.40q… is too long for S3: %w", key, fs.ErrInvalid)
	}
	return n, nil
}

// key returns the key of an S3 object. ok is false if the name is not one of this
// store.
func (s *Store) key(name string) (key string, ok bool) {
	n, ok := strings.CutPrefix(name, s.prefix)
	if !ok {
		return "", false
	}
	if n, ok = strings.CutSuffix(n, string(endMark)); !ok {
		return "", false
	}
	if key, ok = unescape(n); !ok || !blob.ValidKey(key) {
		return "", false
	}
	return key, true
}

const hexDigits = "0123456789ABCDEF"

func escape(key string) string {
	var b strings.Builder
	for i := range len(key) {
		if c := key[i]; c > escapeMark {
			b.WriteByte(c)
		} else {
			b.Write([]byte{escapeMark, hexDigits[c>>4], hexDigits[c&15]})
		}
	}
	return b.String()
}

// unescape reverses escape. ok is false for a string that escape does not return.
func unescape(s string) (string, bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c < escapeMark {
			return "", false
		}
		if c == escapeMark {
			if i+2 >= len(s) {
				return "", false
			}
			hi, lo := strings.IndexByte(hexDigits, s[i+1]), strings.IndexByte(hexDigits, s[i+2])
			if hi < 0 || lo < 0 || hi<<4|lo > escapeMark {
				return "", false
			}
			c = byte(hi<<4 | lo)
			i += 2
		}
		b.WriteByte(c)
	}
	return b.String(), true
}
