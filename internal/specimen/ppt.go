package specimen

import (
	"bytes"
	"crypto/rc4"
	"crypto/sha1"
	"encoding/binary"
	"fmt"
	"io"
	"unicode/utf16"

	"github.com/filewright/filewright/internal/compound"
)

// LockPPT encrypts a PowerPoint 97 presentation as PowerPoint does, with RC4 and
// CryptoAPI ([MS-PPT] 2.3.7, [MS-OFFCRYPTO] 2.3.5.1). The presentation must have one
// user edit.
func LockPPT(b []byte, password string) ([]byte, error) {
	c, err := compound.Open(bytes.NewReader(b), int64(len(b)), 0)
	if err != nil {
		return nil, err
	}
	user, err := pptStream(c, "current user")
	if err != nil {
		return nil, err
	}
	doc, err := pptStream(c, "powerpoint document")
	if err != nil {
		return nil, err
	}
	le := binary.LittleEndian
	salt := bytes.Repeat([]byte{7}, 16)
	secret := bytes.Clone(salt)
	for _, u := range utf16.Encode([]rune(password)) {
		secret = le.AppendUint16(secret, u)
	}
	h := sha1.Sum(secret)
	key := func(id uint32) *rc4.Cipher {
		k := sha1.Sum(le.AppendUint32(bytes.Clone(h[:]), id))
		c, err := rc4.NewCipher(k[:16])
		if err != nil {
			panic(err) // impossible: the key has a valid length
		}
		return c
	}
	edit := le.Uint32(user[16:])
	dir := le.Uint32(doc[edit+8+12:])
	list := bytes.Clone(doc[dir+8:][:le.Uint32(doc[dir+4:])])
	last := uint32(0)
	for rest := list; len(rest) > 0; {
		first, n := le.Uint32(rest)&0xfffff, le.Uint32(rest)>>20
		for i := range n {
			at := le.Uint32(rest[4+4*i:])
			size := le.Uint32(doc[at+4:])
			key(first+i).XORKeyStream(doc[at:at+8+size], doc[at:at+8+size])
			last = max(last, first+i)
		}
		rest = rest[4+4*n:]
	}
	verifier := bytes.Repeat([]byte{9}, 16)
	sum := sha1.Sum(verifier)
	k := key(0)
	k.XORKeyStream(verifier, verifier)
	k.XORKeyStream(sum[:], sum[:])
	numbers := func(all ...uint32) (b []byte) {
		for _, n := range all {
			b = le.AppendUint32(b, n)
		}
		return b
	}
	record := func(kind, version int, parts ...[]byte) []byte {
		b := bytes.Join(parts, nil)
		return append(append(le.AppendUint16(le.AppendUint16(nil, uint16(version)), uint16(kind)), numbers(uint32(len(b)))...), b...)
	}
	session := uint32(len(doc))
	doc = append(doc, record(0x2f14, 0xf, numbers(2|2<<16, 4, 34, 4, 0, 0x6801, 0x8004, 128, 1, 0, 0), []byte{0, 0},
		numbers(16), salt, verifier, numbers(20), sum[:])...)
	newDir := uint32(len(doc))
	doc = append(doc, record(0x1772, 0, list, numbers((last+1)|1<<20, session))...)
	newEdit := uint32(len(doc))
	d := bytes.Clone(doc[edit+8 : edit+8+28])
	le.PutUint32(d[8:], 0)
	le.PutUint32(d[12:], newDir)
	doc = append(doc, record(0xff5, 0, d, numbers(last+1))...)
	le.PutUint32(user[12:], 0xf3d1c4df)
	le.PutUint32(user[16:], newEdit)
	var nodes []*compound.Node
	for name, b := range map[string][]byte{"Current User": user, "PowerPoint Document": doc} {
		nodes = append(nodes, &compound.Node{Name: name, Size: int64(len(b)), Content: func(w io.Writer) error { _, err := w.Write(b); return err }})
	}
	var out bytes.Buffer
	err = compound.Write(&out, nodes)
	return out.Bytes(), err
}

func pptStream(c *compound.File, name string) ([]byte, error) {
	r, ok, err := c.Stream(name)
	if err != nil {
		return nil, err
	}
	if !ok {
		return nil, fmt.Errorf("the presentation has no stream %q", name)
	}
	return io.ReadAll(r)
}
