package officeops

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rc4"  //nolint:gosec // the format demands it
	"crypto/sha1" //nolint:gosec // the format demands it
	"encoding/binary"
	"errors"
	"io"
	"unicode/utf16"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/compound"
)

// Records of a presentation, and the header token of the current user of one that is not
// encrypted ([MS-PPT] 2.13.24, 2.3.2).
const (
	pptUserEdit  = 0x0ff5
	pptDirectory = 0x1772
	pptSession   = 0x2f14

	pptPlain = 0xe391c05f
)

var errPPT = errors.New("ppt: the encryption is damaged")

// decryptPPT writes a presentation without its encryption. It is RC4 with a key for each
// object that the directory lists ([MS-PPT] 2.3.7, [MS-OFFCRYPTO] 2.3.5).
func decryptPPT(ctx context.Context, _ Limits, f *fileops.File, password string, w io.Writer) error {
	c, err := compound.Open(f.Reader(), f.Size(), 0)
	if err != nil {
		return damaged(err)
	}
	streams := map[string][]byte{}
	for name := range c.Streams() {
		r, _, err := c.Stream(name)
		if err != nil {
			return damaged(err)
		}
		if streams[name], err = io.ReadAll(r); err != nil {
			return damaged(err)
		}
	}
	user, doc := streams["current user"], streams["powerpoint document"]
	if len(user) < 20 {
		return damaged(errPPT)
	}
	le := binary.LittleEndian
	edits, err := pptEdits(doc, le.Uint32(user[16:]))
	if err != nil {
		return damaged(err)
	}
	last := edits[0]
	session, ok := last.session(doc, edits)
	if !ok {
		return damaged(errPPT)
	}
	key, err := pptKey(session, password)
	if err != nil {
		return err
	}
	done := map[uint32]bool{}
	for _, e := range edits {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		for id, offset := range e.objects {
			if id == last.sessionID || done[offset] {
				continue
			}
			done[offset] = true
			if err := pptObject(doc, offset, key(id)); err != nil {
				return damaged(err)
			}
		}
		le.PutUint32(doc[e.at+4:], 28) // without the reference to the session
	}
	if err := pptPictures(streams["pictures"], key(0)); err != nil {
		return damaged(err)
	}
	delete(streams, "encryptedsummary")
	le.PutUint32(user[12:], pptPlain)
	var nodes []*compound.Node
	for name, b := range streams {
		nodes = append(nodes, &compound.Node{Name: pptStream(name), Size: int64(len(b)), Content: func(w io.Writer) error { _, err := w.Write(b); return err }})
	}
	return compound.Write(w, nodes)
}

// pptStream returns the name of a stream as PowerPoint writes it.
func pptStream(name string) string {
	switch name {
	case "current user":
		return "Current User"
	case "powerpoint document":
		return "PowerPoint Document"
	case "pictures":
		return "Pictures"
	}
	return name
}

// A pptEdit is a UserEditAtom ([MS-PPT] 2.3.3) with its directory of objects.
type pptEdit struct {
	at        uint32
	sessionID uint32
	objects   map[uint32]uint32 // offsets, by identifier
}

// pptEdits returns the edits of a presentation, the newest first. They are not encrypted.
func pptEdits(doc []byte, at uint32) (edits []pptEdit, err error) {
	le := binary.LittleEndian
	for len(edits) < 1000 {
		if int64(at)+8+32 > int64(len(doc)) || le.Uint16(doc[at+2:]) != pptUserEdit || le.Uint32(doc[at+4:]) != 32 {
			return nil, errPPT
		}
		d := doc[at+8:]
		e := pptEdit{at: at, sessionID: le.Uint32(d[28:]), objects: map[uint32]uint32{}}
		dir := le.Uint32(d[12:])
		if int64(dir)+8 > int64(len(doc)) || le.Uint16(doc[dir+2:]) != pptDirectory {
			return nil, errPPT
		}
		list := doc[dir+8:]
		list = list[:min(int64(len(list)), int64(le.Uint32(doc[dir+4:])))]
		for len(list) >= 4 {
			head := le.Uint32(list)
			list = list[4:]
			for i := uint32(0); i < head>>20 && len(list) >= 4; i++ {
				e.objects[head&0xfffff+i] = le.Uint32(list)
				list = list[4:]
			}
		}
		edits = append(edits, e)
		older := le.Uint32(d[8:])
		if older == 0 || older >= at {
			return edits, nil
		}
		at = older
	}
	return nil, errPPT
}

// session returns the content of the CryptSession10Container.
func (e pptEdit) session(doc []byte, edits []pptEdit) ([]byte, bool) {
	le := binary.LittleEndian
	for _, other := range edits {
		at, ok := other.objects[e.sessionID]
		if !ok || int64(at)+8 > int64(len(doc)) || le.Uint16(doc[at+2:]) != pptSession {
			continue
		}
		b := doc[at+8:]
		return b[:min(int64(len(b)), int64(le.Uint32(doc[at+4:])))], true
	}
	return nil, false
}

// pptKey returns a function that starts the cipher for an object. It fails if the password
// is wrong.
func pptKey(session []byte, password string) (func(id uint32) *rc4.Cipher, error) {
	le := binary.LittleEndian
	const verifier = 4 + 16 + 16 + 4 + 20
	if len(session) < 12 {
		return nil, damaged(errPPT)
	}
	size := int64(le.Uint32(session[8:]))
	if le.Uint16(session[2:]) != 2 || size < 32 || 12+size+verifier > int64(len(session)) {
		return nil, fileops.Fail(fileops.ErrUnsupportedInput, errPPT, "the presentation is encrypted by an unsupported method")
	}
	header, v := session[12:12+size], session[12+size:]
	bits := le.Uint32(header[16:])
	bits = cmp.Or(bits, 40)
	const rc4Algorithm, sha1Algorithm = 0x6801, 0x8004
	if le.Uint32(header[8:]) != rc4Algorithm || le.Uint32(header[12:]) != sha1Algorithm || bits%8 != 0 || bits < 40 || bits > 128 || le.Uint32(v) != 16 {
		return nil, fileops.Fail(fileops.ErrUnsupportedInput, errPPT, "the presentation is encrypted by an unsupported method")
	}
	secret := bytes.Clone(v[4:20])
	for _, u := range utf16.Encode([]rune(password)) {
		secret = le.AppendUint16(secret, u)
	}
	first := sha1.Sum(secret) //nolint:gosec // the format demands it
	key := func(id uint32) *rc4.Cipher {
		h := sha1.Sum(le.AppendUint32(first[:len(first):len(first)], id)) //nolint:gosec // the format demands it
		k := h[:bits/8]
		if bits == 40 { // [MS-OFFCRYPTO] 2.3.5.2
			k = append(bytes.Clone(k), make([]byte, 11)...)
		}
		c, err := rc4.NewCipher(k) //nolint:gosec // the format demands it
		if err != nil {
			panic(err) // only for a wrong length
		}
		return c
	}
	c := key(0)
	plain := make([]byte, 16)
	c.XORKeyStream(plain, v[20:36])
	sum := make([]byte, 20)
	c.XORKeyStream(sum, v[40:60])
	if got := sha1.Sum(plain); !bytes.Equal(got[:], sum) { //nolint:gosec // the format demands it
		return nil, fileops.Fail(fileops.ErrWrongPassword, nil, "the password is wrong")
	}
	return key, nil
}

// pptObject decrypts the record at offset.
func pptObject(doc []byte, offset uint32, c *rc4.Cipher) error {
	if int64(offset)+8 > int64(len(doc)) {
		return errPPT
	}
	b := doc[offset:]
	c.XORKeyStream(b[:8], b[:8])
	size := int64(binary.LittleEndian.Uint32(b[4:]))
	if size > int64(len(b)-8) {
		return errPPT
	}
	c.XORKeyStream(b[8:8+size], b[8:8+size])
	return nil
}

// pptPictures decrypts the stream of pictures. Each field of a picture is encrypted from
// the start of the key stream, which c has.
func pptPictures(b []byte, c *rc4.Cipher) error {
	part := func(n int) bool {
		if n < 0 || n > len(b) {
			return false
		}
		one := *c
		one.XORKeyStream(b[:n], b[:n])
		b = b[n:]
		return true
	}
	le := binary.LittleEndian
	for len(b) >= 8 {
		head := b
		part(8)
		instance, kind, size := le.Uint16(head)>>4, le.Uint16(head[2:]), int64(le.Uint32(head[4:]))
		if kind < 0xf01a || kind > 0xf117 || size > int64(len(b)) {
			return errPPT
		}
		left := int(size)
		fields := []int{16}
		switch instance { // with a second identifier ([MS-ODRAW] 2.2.24 to 2.2.31)
		case 0x217, 0x3d5, 0x46b, 0x543, 0x6e1, 0x6e3, 0x6e5, 0x7a9:
			fields = append(fields, 16)
		}
		if kind <= 0xf01c { // a metafile has a header
			fields = append(fields, 34)
		} else {
			fields = append(fields, 1)
		}
		for _, n := range fields {
			left -= n
			if !part(n) {
				return errPPT
			}
		}
		if !part(left) {
			return errPPT
		}
	}
	return nil
}
