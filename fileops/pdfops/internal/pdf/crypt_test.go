package pdf

import (
	"bytes"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// FuzzSecurity searches damaged files for their encryption and tries a password.
func FuzzSecurity(f *testing.F) {
	enc := NewEncryption([]byte("user"), []byte("owner"), PermitAll)
	d := New()
	root := d.Add(nil)
	d.Root = root.ObjectNumber.Value()
	var b bytes.Buffer
	systest.NoError(f, d.Write(&b, false, enc))
	f.Add(b.Bytes(), "user")
	f.Add([]byte("trailer<</Root 1 0 R/ID[<00><00>]/Encrypt<</Filter/Standard/V 2/R 3/Length 128/P -4/O<"+
		"28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A>/U<28BF4E5E4E758A4164004E56FFFA01082E2E00B6D0683E802F0CA9FE6453697A>>>>>startxref 0"), "é")
	f.Add([]byte("9 0 obj<</Filter/Adobe.PubSec>>trailer<</Root 1 0 R/Encrypt 9 0 R>>"), "")
	f.Fuzz(func(t *testing.T, data []byte, password string) {
		source{data: data}.hasHugeNumber()
		sec, err := FindSecurity(t.Context(), data)
		if sec == nil || err != nil {
			return
		}
		for _, c := range PasswordForms(password) {
			if secret, ok := sec.Open(c); ok {
				sec.forPDFCPU(data, secret)
			}
		}
		sec.Permissions()
	})
}
