package odfcrypt

import (
	enc "encoding/base64"
)

// base64 is binary data in an attribute.
type base64 []byte

// UnmarshalText implements encoding.TextUnmarshaler.
func (b *base64) UnmarshalText(text []byte) (err error) {
	*b, err = enc.StdEncoding.DecodeString(string(text))
	return err
}
