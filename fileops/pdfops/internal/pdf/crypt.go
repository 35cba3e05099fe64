package pdf

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/md5"
	"crypto/rand"
	"crypto/rc4"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"unicode"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/unicode/norm"
)

// MaxPassword is the number of significant bytes of a password (ISO 32000-2,
// 7.6.4.3.3).
const MaxPassword = 127

// Permissions are the bits of /P (ISO 32000-2, table 22). A set bit permits.
type Permissions uint32

// The permissions.
const (
	PermitPrint Permissions = 1 << (iota + 2)
	PermitModify
	PermitCopy
	PermitAnnotate
	_
	_
	PermitFill
	permitAccess
	PermitAssemble
	PermitPrintWell

	PermitAll Permissions = 0xfffffffc // the two lowest bits are 0
	// PermitKnown is the set of bits with a meaning. permitAccess no longer has
	// one; readers must always allow it.
	PermitKnown = PermitPrint | PermitModify | PermitCopy | PermitAnnotate | PermitFill | PermitAssemble | PermitPrintWell
)

// AllowedBy converts /P of a revision to the meaning in later revisions.
// Revision 2 has only the first four permissions (ISO 32000-2, table 22).
func AllowedBy(p Permissions, revision int) Permissions {
	if revision == 2 {
		p |= permitAccess
		for from, to := range map[Permissions]Permissions{
			PermitPrint: PermitPrintWell, PermitAnnotate: PermitFill, PermitModify: PermitAssemble,
		} {
			p &^= to
			if p&from != 0 {
				p |= to
			}
		}
	}
	return p
}

// saslprep prepares a password as the standard security handler of revision 6
// requires (RFC 4013, stored strings). It rejects nothing: a prohibited
// character must not lock users out of existing files.
func saslprep(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r == 0xad, r == 0x34f, r == 0x1806, r >= 0x180b && r <= 0x180d,
			r >= 0x200b && r <= 0x200d, r == 0x2060, r >= 0xfe00 && r <= 0xfe0f, r == 0xfeff:
			return -1 // mapped to nothing (RFC 3454, B.1)
		case r != ' ' && unicode.Is(unicode.Zs, r):
			return ' '
		}
		return r
	}, s)
	return norm.NFKC.String(s)
}

// PasswordForms returns the byte strings that a password can stand for:
// unchanged, prepared for revision 6, and in the encodings of older programs.
func PasswordForms(password string) [][]byte {
	var out [][]byte
	add := func(b []byte) {
		for _, c := range out {
			if bytes.Equal(b, c) {
				return
			}
		}
		out = append(out, b)
	}
	for _, s := range []string{password, saslprep(password), norm.NFC.String(password)} {
		add([]byte(s))
	}
	nfc := norm.NFC.String(password)
	if b, ok := docEncoding(nfc); ok {
		add(b)
	}
	for _, cm := range []*charmap.Charmap{charmap.ISO8859_1, charmap.Windows1252, charmap.Macintosh} {
		if b, err := cm.NewEncoder().Bytes([]byte(nfc)); err == nil {
			add(b)
		}
	}
	return out
}

// The characters of PDFDocEncoding from 0x18 and from 0x80 on.
const (
	from18 = "˘ˇˆ˙˝˛˚˜"
	from80 = "•†‡…—–ƒ⁄‹›−‰„“”‘’‚™\ufb01\ufb02ŁŒŠŸŽıłœšž\u0000€"
)

// docEncoding encodes s in PDFDocEncoding (ISO 32000-2, annex D.2).
func docEncoding(s string) ([]byte, bool) {
	var out []byte
	for _, r := range s {
		i18 := strings.IndexRune(from18, r)
		i80 := strings.IndexRune(from80, r)
		switch {
		case r >= 0x20 && r < 0x7f, r >= 0xa1 && r <= 0xff, r == '\t', r == '\n', r == '\r':
			out = append(out, byte(r))
		case i18 >= 0:
			out = append(out, 0x18+byte(len([]rune(from18[:i18]))))
		case r != 0 && i80 >= 0:
			out = append(out, 0x80+byte(len([]rune(from80[:i80]))))
		default:
			return nil, false
		}
	}
	return out, true
}

// NewPasswords returns the byte forms of a new user and owner password. If owner
// is empty, the owner password is random. Exception: if saslprep changes the user
// password, the unprepared form becomes the owner password. Then programs that
// skip this step can open the file too.
func NewPasswords(user, owner string) (u, o []byte) {
	u = []byte(saslprep(user))
	switch {
	case owner != "":
		o = []byte(saslprep(owner))
	case string(u) != user:
		o = []byte(user)
	default:
		o = []byte(rand.Text() + rand.Text())
	}
	return cut(u), cut(o)
}

func cut(b []byte) []byte { return b[:min(len(b), MaxPassword)] }

// An Encryption encrypts a document with AES-256 by the standard security
// handler of revision 6 (ISO 32000-2, 7.6.4).
type Encryption struct {
	key  []byte
	dict types.Dict
}

// NewEncryption returns an encryption with a random key.
func NewEncryption(user, owner []byte, perm Permissions) *Encryption {
	key := random(32)
	e := &Encryption{key: key}
	u, ue := wrapKey(user, nil, key)
	o, oe := wrapKey(owner, u, key)
	perm |= permitAccess | ^Permissions(0xf3f)&^3 // unused bits are 1
	e.dict = types.Dict{
		"Filter": types.Name("Standard"), "V": types.Integer(5), "R": types.Integer(6), "Length": types.Integer(256),
		"CF": types.Dict{"StdCF": types.Dict{
			"CFM": types.Name("AESV3"), "AuthEvent": types.Name("DocOpen"), "Length": types.Integer(32),
		}},
		"StmF": types.Name("StdCF"), "StrF": types.Name("StdCF"),
		"P": types.Integer(int32(perm)),
		"U": types.NewHexLiteral(u), "UE": types.NewHexLiteral(ue),
		"O": types.NewHexLiteral(o), "OE": types.NewHexLiteral(oe),
		"Perms": types.NewHexLiteral(permsEntry(key, perm)),
	}
	return e
}

// wrapKey returns the entries U and UE for a password, or O and OE if u is given
// (algorithms 8 and 9).
func wrapKey(password, u, key []byte) (verifier, wrapped []byte) {
	salts := random(16)
	verifier = append(hash6(password, salts[:8], u), salts...)
	return verifier, cbc(hash6(password, salts[8:], u), make([]byte, 16), key, true)
}

// permsEntry returns the entry Perms (algorithm 10).
func permsEntry(key []byte, perm Permissions) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(perm))
	b = append(b, 0xff, 0xff, 0xff, 0xff, 'T', 'a', 'd', 'b')
	b = append(b, random(4)...)
	c := newAES(key)
	c.Encrypt(b, b)
	return b
}

// seal encrypts a string or a stream.
func (e *Encryption) seal(b []byte) []byte {
	pad := 16 - len(b)%16
	padded := append(bytes.Clone(b), bytes.Repeat([]byte{byte(pad)}, pad)...)
	iv := random(16)
	return append(iv, cbc(e.key, iv, padded, true)...)
}

func random(n int) []byte {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return b
}

func newAES(key []byte) cipher.Block {
	c, err := aes.NewCipher(key)
	if err != nil { // impossible: keys have a fixed length
		panic(err)
	}
	return c
}

func cbc(key, iv, b []byte, encrypt bool) []byte {
	out := make([]byte, len(b))
	if encrypt {
		cipher.NewCBCEncrypter(newAES(key), iv).CryptBlocks(out, b)
	} else {
		cipher.NewCBCDecrypter(newAES(key), iv).CryptBlocks(out, b)
	}
	return out
}

// hash6 is the password hash of revision 6 (algorithm 2.B).
func hash6(password, salt, u []byte) []byte {
	first := sha256.Sum256(bytes.Join([][]byte{password, salt, u}, nil))
	k := first[:]
	const repeats = 64
	e := make([]byte, 0, repeats*(len(password)+sha512.Size+len(u)))
	for i, last := 0, 0; i < 64 || last > i-32; i++ {
		e = append(append(append(e[:0], password...), k...), u...)
		n := len(e)
		e = e[:repeats*n]
		for at := n; at < len(e); at *= 2 {
			copy(e[at:], e[:at])
		}
		cipher.NewCBCEncrypter(newAES(k[:16]), k[16:32]).CryptBlocks(e, e)
		sum := 0
		for _, c := range e[:16] {
			sum += int(c)
		}
		switch sum % 3 { // 256 mod 3 is 1
		case 0:
			h := sha256.Sum256(e)
			k = h[:]
		case 1:
			h := sha512.Sum384(e)
			k = h[:]
		default:
			h := sha512.Sum512(e)
			k = h[:]
		}
		last = int(e[len(e)-1])
	}
	return k[:32]
}

// hash5 is the counterpart of hash6 in revision 5, an extension by Adobe.
func hash5(password, salt, u []byte) []byte {
	h := sha256.Sum256(bytes.Join([][]byte{password, salt, u}, nil))
	return h[:]
}

// A Security is the encryption of an existing file, as described in its trailer.
type Security struct {
	dict     types.Dict
	trailer  types.Dict
	v, r     int
	length   int // bytes of the key
	p        Permissions
	o, u     []byte
	oe, ue   []byte
	id       []byte
	metadata bool // the metadata is encrypted too
	base     int  // offset of the document in its file
	newest   bool // see Newest
}

// ErrHandler reports that a file is encrypted, but not with a password.
var ErrHandler = errors.New("the security handler is not the standard one")

// newSecurity reads an encryption dictionary. Its strings and those of the
// trailer are never encrypted. With an error it may also return a Security,
// which cannot be opened.
func newSecurity(dict, trailer types.Dict) (*Security, error) {
	var d Document
	if dict == nil {
		return nil, errors.New("no encryption dictionary")
	}
	s := &Security{
		dict: dict, trailer: trailer,
		v: d.Integer(dict["V"]), r: d.Integer(dict["R"]), p: Permissions(int32(d.Integer(dict["P"]))),
		o: d.Text(dict["O"]), u: d.Text(dict["U"]), oe: d.Text(dict["OE"]), ue: d.Text(dict["UE"]),
		length: 5, metadata: true,
	}
	if d.Name(dict["Filter"]) != "Standard" {
		return s, ErrHandler
	}
	if n := d.Integer(dict["Length"]); n >= 40 && n <= 128 && s.v > 1 {
		s.length = n / 8
	}
	if s.v == 4 {
		s.length = 16
	}
	if m, ok := dict["EncryptMetadata"].(types.Boolean); ok {
		s.metadata = bool(m)
	}
	if id := d.Array(trailer["ID"]); len(id) > 0 {
		s.id = d.Text(id[0])
	}
	least := 32
	if s.r >= 5 {
		least = 48
		if len(s.oe) < 32 || len(s.ue) < 32 {
			least = 1 << 20
		}
	}
	if s.r < 2 || s.r > 6 || len(s.o) < least || len(s.u) < least {
		return s, errors.New("the encryption dictionary is damaged")
	}
	return s, nil
}

// Permissions returns the permissions of the file, in the meaning of the latest
// revision.
func (s *Security) Permissions() Permissions { return AllowedBy(s.p, s.r) }

// Newest reports whether the newest trailer of the file names the encryption, and that trailer is
// where the end of the file says. Then every reader that finds no defect sees this encryption.
func (s *Security) Newest() bool { return s.newest }

// Open reports whether password is the user or owner password. secret is the
// file key since revision 5, and the user password in older revisions.
func (s *Security) Open(password []byte) (secret []byte, ok bool) {
	if s.r >= 5 {
		hash := hash6
		if s.r == 5 {
			hash = hash5
		}
		password = cut(password)
		u := s.u[:48]
		zero := make([]byte, 16)
		if bytes.Equal(hash(password, s.u[32:40], nil), s.u[:32]) {
			return cbc(hash(password, s.u[40:48], nil), zero, s.ue[:32], false), true
		}
		if bytes.Equal(hash(password, s.o[32:40], u), s.o[:32]) {
			return cbc(hash(password, s.o[40:48], u), zero, s.oe[:32], false), true
		}
		return nil, false
	}
	if s.isUser(password) {
		return password, true
	}
	if user := s.userPassword(password); s.isUser(user) {
		return user, true
	}
	return nil, false
}

// padding pads passwords to 32 bytes (ISO 32000-2, algorithm 2).
const padding = "\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08\x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A"

func padded(password []byte) []byte {
	return append(bytes.Clone(password), padding...)[:32]
}

// fileKey derives the file key from the user password (algorithm 2).
func (s *Security) fileKey(password []byte) []byte {
	h := md5.New()
	h.Write(padded(password))
	h.Write(s.o[:32])
	h.Write(binary.LittleEndian.AppendUint32(nil, uint32(s.p)))
	h.Write(s.id)
	if s.r >= 4 && !s.metadata {
		h.Write([]byte{0xff, 0xff, 0xff, 0xff})
	}
	k := h.Sum(nil)
	if s.r >= 3 {
		for range 50 {
			sum := md5.Sum(k[:s.length])
			k = sum[:]
		}
	}
	return k[:s.length]
}

// isUser reports whether password is the user password (algorithm 6).
func (s *Security) isUser(password []byte) bool {
	k := s.fileKey(password)
	if s.r == 2 {
		return bytes.Equal(arc4(k, []byte(padding)), s.u[:32])
	}
	sum := md5.Sum(append([]byte(padding), s.id...))
	return bytes.Equal(arc4Rounds(k, sum[:], false), s.u[:16])
}

// userPassword decrypts the user password with the owner password (algorithm 7).
func (s *Security) userPassword(owner []byte) []byte {
	sum := md5.Sum(padded(owner))
	k := sum[:]
	if s.r >= 3 {
		for range 50 {
			sum = md5.Sum(k)
			k = sum[:]
		}
	}
	k = k[:s.length]
	if s.r == 2 {
		return arc4(k, s.o[:32])
	}
	return arc4Rounds(k, s.o[:32], true)
}

func arc4(key, b []byte) []byte {
	out := make([]byte, len(b))
	c, err := rc4.NewCipher(key)
	if err != nil { // impossible: keys have 5 to 16 bytes
		panic(err)
	}
	c.XORKeyStream(out, b)
	return out
}

func arc4Rounds(key, b []byte, down bool) []byte {
	for i := range 20 {
		if down {
			i = 19 - i
		}
		k := bytes.Clone(key)
		for j := range k {
			k[j] ^= byte(i)
		}
		b = arc4(k, b)
	}
	return b
}

// plain reports whether the newest trailer says that all strings and streams are encrypted with AES-256.
// Then the secret is the key of all.
func (s *Security) plain() bool {
	var d Document
	name := d.Name(s.dict["StmF"])
	filters := d.Dict(s.dict["CF"])
	return s.newest && s.v == 5 && s.metadata && s.dict["EFF"] == nil && name != "" && d.Name(s.dict["StrF"]) == name &&
		d.Name(d.Dict(filters[name])["CFM"]) == "AESV3"
}

// forPDFCPU returns an incremental update of the file, and a password that
// pdfcpu accepts for it. In the update the encryption dictionary is an indirect
// object. Since revision 5 it also wraps the file key with a plain password.
// Otherwise pdfcpu rejects passwords with a space or a letter that is not in
// normal form.
func (s *Security) forPDFCPU(data, secret []byte) (update []byte, password string, err error) {
	data = data[s.base:]
	previous, ok := lastTable(data)
	if !ok {
		return nil, "", errors.New("no startxref")
	}
	dict := s.dict.Clone().(types.Dict)
	if s.v > 1 && s.r < 5 {
		dict["Length"] = types.Integer(8 * s.length) // pdfcpu needs it from version 4 on too
	}
	password = string(secret)
	if s.r >= 5 {
		password = "filewright"
		u, ue := wrapKey([]byte(password), nil, secret)
		o, oe := random(len(u)), random(len(ue)) // no password opens them
		dict["R"] = types.Integer(6)
		for k, v := range map[string][]byte{"U": u, "UE": ue, "O": o, "OE": oe} {
			dict[k] = types.NewHexLiteral(v)
		}
	}
	var d Document
	// pdfcpu uses the oldest trailer that has a reference, so the object must keep
	// its number.
	nr := d.Integer(s.trailer["Size"]) + 1
	if ref, ok := s.trailer["Encrypt"].(types.IndirectRef); ok {
		nr = ref.ObjectNumber.Value()
	}
	update = make([]byte, 0, len(data)+1<<10+2*dictWindow) // the data may be large
	update = append(append(update, data...), '\n')
	object := len(update)
	update = fmt.Appendf(update, "%d 0 obj\n", nr)
	update = AppendObject(update, dict)
	update = append(update, "\nendobj\n"...)
	table := len(update)
	trailer := types.Dict{"Size": types.Integer(max(nr+1, d.Integer(s.trailer["Size"]))), "Root": s.trailer["Root"], "Encrypt": Ref(nr)}
	for _, k := range []string{"ID", "Info"} {
		if v := s.trailer[k]; v != nil {
			trailer[k] = v
		}
	}
	update = fmt.Appendf(update, "xref\n%d 1\n%010d 00000 n \ntrailer\n", nr, object)
	text := AppendObject(nil, trailer)
	update = append(update, text[:len(text)-2]...)
	update = fmt.Appendf(update, "/Prev %d>>\nstartxref\n%d\n%%%%EOF\n", previous, table)
	return update, password, nil
}
