package pdfops_test

import (
	"bytes"
	"crypto/md5"
	"crypto/rc4"
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// shortKey returns a document with encryption of version 4, revision 4, and a key of 6 bytes, as
// Acrobat can make it (ISO 32000-2, 7.6.4). qpdf does not open it.
func shortKey(t testing.TB, user string) []byte {
	t.Helper()
	const (
		length  = 6
		padding = "\x28\xBF\x4E\x5E\x4E\x75\x8A\x41\x64\x00\x4E\x56\xFF\xFA\x01\x08\x2E\x2E\x00\xB6\xD0\x68\x3E\x80\x2F\x0C\xA9\xFE\x64\x53\x69\x7A"
		id      = "0123456789abcdef"
	)
	crypt := func(key []byte, in string) []byte {
		c, err := rc4.NewCipher(key)
		systest.NoError(t, err)
		out := make([]byte, len(in))
		c.XORKeyStream(out, []byte(in))
		return out
	}
	owner := strings.Repeat("o", 32) // of an unknown password
	p := int32(-3392)
	sum := md5.Sum([]byte((user + padding)[:32] + owner + string(binary.LittleEndian.AppendUint32(nil, uint32(p))) + id + "\xff\xff\xff\xff"))
	for range 50 {
		sum = md5.Sum(sum[:length])
	}
	key := sum[:length]
	check := md5.Sum([]byte(padding + id))
	u := check[:]
	for i := range 20 {
		k := bytes.Clone(key)
		for j := range k {
			k[j] ^= byte(i)
		}
		u = crypt(k, string(u))
	}
	forStream := md5.Sum(append(bytes.Clone(key), 4, 0, 0, 0, 0)) // object 4, generation 0
	content := crypt(forStream[:length+5], "BT /F 24 Tf 20 100 Td (hello) Tj ET")
	b := handmade("1.6", "<</Type/Catalog/Pages 2 0 R>>", "<</Type/Pages/Kids[3 0 R]/Count 1>>",
		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R/Resources<</Font<</F 5 0 R>>>>>>",
		stream("", string(content)), "<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
		fmt.Sprintf("<</Filter/Standard/V 4/R 4/Length 48/P %d/EncryptMetadata false/O<%x>/U<%x%032x>/StmF/StdCF/StrF/StdCF/CF<</StdCF<</CFM/V2/AuthEvent/DocOpen/Length 6>>>>>>", p, owner, u, 0))
	return bytes.Replace(b, []byte("/Root 1 0 R"), fmt.Appendf(nil, "/Root 1 0 R/Encrypt 6 0 R/ID[<%x><%x>]", id, id), 1)
}

// Files with a short key open with their password, or without one if they have none.
func TestShortKey(t *testing.T) {
	t.Parallel()
	for name, tools := range variants(t) {
		for _, user := range []string{"", "sesame"} {
			in := pdf("in.pdf", shortKey(t, user))
			if user == "" {
				for _, a := range []fileops.Action{tools.Rotate(), tools.Compress()} {
					args := fileops.Args{}
					if a.Spec().Name == "rotate" {
						args["angle"] = 90
					}
					if out := run(t, a, args, in); !strings.Contains(plainly(t, out), "hello") {
						t.Errorf("%s, %s: no text", name, a.Spec().Name)
					}
				}
				run(t, tools.Lock(), fileops.Args{"password": "new"}, in)
			} else {
				fails(t, fileops.ErrPasswordRequired, tools.Rotate(), fileops.Args{"angle": 90}, in)
				fails(t, fileops.ErrWrongPassword, tools.Unlock(), fileops.Args{"password": "wrong"}, in)
			}
			if out := run(t, tools.Unlock(), fileops.Args{"password": user}, in); !strings.Contains(plainly(t, out), "hello") {
				t.Errorf("%s: unlocked with %q: no text", name, user)
			}
			run(t, tools.ResetPassword(), fileops.Args{"old_password": user, "new_password": "new"}, in)
		}
	}
}
