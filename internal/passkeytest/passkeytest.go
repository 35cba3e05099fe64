// Package passkeytest has an authenticator for tests of passkeys (WebAuthn): what a browser and a
// device do, without their user.
package passkeytest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

// Flags of authenticator data (WebAuthn, section 6.1).
const (
	present  = 1 << 0
	verified = 1 << 2
	attested = 1 << 6
)

// An Authenticator holds one passkey.
type Authenticator struct {
	Origin     string // of the page, as the browser reports it
	Domain     string // RP ID
	Count      uint32 // signature counter; each response increments it
	Uncounted  bool   // the counter stays 0, as that of synchronised passkeys does
	Unverified bool   // the user is present but did not unlock the device

	t    testing.TB
	key  *ecdsa.PrivateKey
	ID   []byte
	user []byte
}

// New returns an authenticator in a browser that shows a page of origin.
func New(t testing.TB, origin, domain string) *Authenticator {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	systest.NoError(t, err)
	id := make([]byte, 32)
	rand.Read(id) // never fails (crypto/rand)
	return &Authenticator{Origin: origin, Domain: domain, t: t, key: key, ID: id}
}

var b64 = base64.RawURLEncoding

func (a *Authenticator) clientData(kind, challenge string) []byte {
	b, err := json.Marshal(map[string]any{"type": kind, "challenge": challenge, "origin": a.Origin, "crossOrigin": false})
	systest.NoError(a.t, err)
	return b
}

// data returns authenticator data without extensions.
func (a *Authenticator) data(flags byte, more ...byte) []byte {
	if !a.Uncounted {
		a.Count++
	}
	sum := sha256.Sum256([]byte(a.Domain))
	flags |= present
	if !a.Unverified {
		flags |= verified
	}
	return append(binary.BigEndian.AppendUint32(append(sum[:], flags), a.Count), more...)
}

func (a *Authenticator) response(fields map[string]any) []byte {
	b, err := json.Marshal(map[string]any{
		"id": b64.EncodeToString(a.ID), "rawId": b64.EncodeToString(a.ID), "type": "public-key",
		"response": fields, "clientExtensionResults": map[string]any{},
	})
	systest.NoError(a.t, err)
	return b
}

// Create returns the response to the options of a new passkey.
func (a *Authenticator) Create(options []byte) []byte {
	a.t.Helper()
	var o struct {
		Challenge string
		User      struct{ ID string }
	}
	systest.NoError(a.t, json.Unmarshal(options, &o))
	var err error
	a.user, err = b64.DecodeString(o.User.ID)
	systest.NoError(a.t, err)
	point, err := a.key.PublicKey.Bytes()
	systest.NoError(a.t, err)
	// A COSE_Key of ES256 in CBOR: {1: 2, 3: -7, -1: 1, -2: x, -3: y}.
	cose := append([]byte{0xa5, 1, 2, 3, 0x26, 0x20, 1, 0x21, 0x58, 32}, point[1:33]...)
	cose = append(append(cose, 0x22, 0x58, 32), point[33:]...)
	credential := append(append(append(make([]byte, 16), 0, byte(len(a.ID))), a.ID...), cose...)
	data := a.data(attested, credential...)
	object := []byte("\xa3\x63fmt\x64none\x67attStmt\xa0\x68authData\x59")
	object = append(binary.BigEndian.AppendUint16(object, uint16(len(data))), data...)
	return a.response(map[string]any{
		"clientDataJSON":    b64.EncodeToString(a.clientData("webauthn.create", o.Challenge)),
		"attestationObject": b64.EncodeToString(object),
		"transports":        []string{"internal"},
	})
}

// Get returns the response to the options of a login.
func (a *Authenticator) Get(options []byte) []byte {
	a.t.Helper()
	var o struct{ Challenge string }
	systest.NoError(a.t, json.Unmarshal(options, &o))
	client, data := a.clientData("webauthn.get", o.Challenge), a.data(0)
	sum := sha256.Sum256(client)
	signed := sha256.Sum256(append(append([]byte{}, data...), sum[:]...))
	signature, err := ecdsa.SignASN1(rand.Reader, a.key, signed[:])
	systest.NoError(a.t, err)
	return a.response(map[string]any{
		"clientDataJSON": b64.EncodeToString(client), "authenticatorData": b64.EncodeToString(data),
		"signature": b64.EncodeToString(signature), "userHandle": b64.EncodeToString(a.user),
	})
}
