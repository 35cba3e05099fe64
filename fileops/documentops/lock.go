package documentops

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"os"
	"unicode/utf16"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/compound"
	"github.com/filewright/filewright/internal/safezip"
)

const (
	// maxPassword is the longest new password in bytes. Office accepts 255
	// characters.
	maxPassword = 255

	// maxLock is the largest document in bytes that can be encrypted: it becomes
	// one stream of a compound file.
	maxLock = compound.MaxStream - 4096

	maxInfo  = 1 << 20 // bytes of the stream EncryptionInfo
	maxNodes = 4096    // directory entries of an encrypted document
)

// lockable are the formats of Office Open XML.
var lockable = append(format.WithVariants(format.DOCX, format.XLSX, format.PPTX), format.XLSB)

func lockSpec(name, summary string, params ...fileops.Param) fileops.Spec {
	return fileops.Spec{
		Name: name, Engine: "documentops", Family: "office", Summary: summary, Encrypted: true,
		Accepts: []fileops.Accept{{Formats: lockable, Params: params}},
	}
}

func newPassword(name, doc string) fileops.Param {
	return fileops.Param{Name: name, Doc: doc, Required: true, Min: 1, Max: maxPassword, Secret: true}
}

func oldPassword(name, doc string) fileops.Param {
	return fileops.Param{Name: name, Doc: doc, Required: true, Max: 1024, Secret: true}
}

func errLocked() error {
	return fileops.Fail(fileops.ErrPasswordRequired, nil, "the file is already protected by a password; unlock it or reset its password instead")
}

func errWrong() error {
	return fileops.Fail(fileops.ErrWrongPassword, nil, "the password is wrong")
}

func errPlain() error {
	return fileops.Fail(fileops.ErrNotEncrypted, nil, "the file is not protected by a password")
}

// Lock returns the action "lock" for Office Open XML documents. It encrypts them
// with a password as Office does, with AES-256 and SHA-512 (agile encryption,
// [MS-OFFCRYPTO] 2.3.4.10). l may be nil.
func Lock(l *Limits) fileops.Action {
	limits := l.orDefault()
	spec := lockSpec("lock", "Protects a document with a password.", newPassword("password", "Password for opening the file."))
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		in := job.Input()
		if encrypted(in) {
			return errLocked()
		}
		if _, err := openArchive(in, limits); err != nil {
			return err
		}
		return lock(ctx, job, in, job.Params.Get("password"))
	})
}

// Unlock returns the action "unlock" for Office Open XML documents. It removes
// the encryption that Office has written since 2007 (standard and agile). A
// wrong password fails with [fileops.ErrWrongPassword], an unencrypted file with
// [fileops.ErrNotEncrypted]. l may be nil.
func Unlock(l *Limits) fileops.Action {
	limits := l.orDefault()
	spec := lockSpec("unlock", "Removes the password from a document.", oldPassword("password", "Password of the file."))
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		return job.WriteFile(job.Input().Name(), func(path string) error {
			return unlock(ctx, limits, job.Input(), job.Params.Get("password"), path)
		})
	})
}

// ResetPassword returns the action "reset_password" for Office Open XML
// documents. It checks the old password as [Unlock] does, and encrypts with the
// new one as [Lock] does. l may be nil.
func ResetPassword(l *Limits) fileops.Action {
	limits := l.orDefault()
	spec := lockSpec("reset_password", "Replaces the password of a document.",
		oldPassword("old_password", "Current password of the file."),
		newPassword("new_password", "Password for opening the file."))
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		dir, err := job.Dir()
		if err != nil {
			return err
		}
		plain, err := os.CreateTemp(dir, "plain-")
		if err != nil {
			return err
		}
		defer os.Remove(plain.Name())
		if err := plain.Close(); err != nil {
			return err
		}
		if err := unlock(ctx, limits, job.Input(), job.Params.Get("old_password"), plain.Name()); err != nil {
			return err
		}
		f, err := os.Open(plain.Name())
		if err != nil {
			return err
		}
		defer f.Close()
		st, err := f.Stat()
		if err != nil {
			return err
		}
		job.Progress(0.5)
		return lockFrom(ctx, job, f, st.Size(), job.Params.Get("new_password"))
	})
}

// encrypted reports whether a file is a compound file. No unencrypted document
// of these formats is one.
func encrypted(f *fileops.File) bool {
	head := make([]byte, len(compound.Magic))
	_, err := f.Reader().ReadAt(head, 0)
	return err == nil && string(head) == compound.Magic
}

func lock(ctx context.Context, job *fileops.Job, in *fileops.File, password string) error {
	return lockFrom(ctx, job, in.Reader(), in.Size(), password)
}

func lockFrom(ctx context.Context, job *fileops.Job, r io.Reader, size int64, password string) error {
	if size > maxLock {
		return fileops.Fail(fileops.ErrLimit, nil, "the document has %d bytes, more than the limit of %d bytes for encryption", size, maxLock)
	}
	return job.Write(job.Input().Name(), func(w io.Writer) error { return encrypt(ctx, r, size, password, w) })
}

// encrypt writes the package of size bytes in r as a document that password opens.
func encrypt(ctx context.Context, r io.Reader, size int64, password string, w io.Writer) error {
	a, info, err := newAgile(ctx, password)
	if err != nil {
		return err
	}
	return compound.Write(w, []*compound.Node{
		// The package comes first: the description contains its authentication code.
		{Name: "EncryptedPackage", Size: encryptedSize(size), Content: func(w io.Writer) error { return a.encrypt(ctx, r, size, w) }},
		{Name: "EncryptionInfo", Size: int64(len(info())), Content: func(w io.Writer) error {
			_, err := w.Write(info())
			return err
		}},
		dataSpaces(),
	})
}

// dataSpaces returns the storage that maps streams to their encryption
// ([MS-OFFCRYPTO] 2.1, 2.3.4.1 to 2.3.4.3).
func dataSpaces() *compound.Node {
	le := binary.LittleEndian
	number := func(n ...uint32) []byte {
		var b []byte
		for _, v := range n {
			b = le.AppendUint32(b, v)
		}
		return b
	}
	text := func(s string) []byte { // UNICODE-LP-P4
		u := utf16.Encode([]rune(s))
		b := number(uint32(2 * len(u)))
		for _, c := range u {
			b = le.AppendUint16(b, c)
		}
		for len(b)%4 != 0 {
			b = append(b, 0)
		}
		return b
	}
	stream := func(name string, parts ...[]byte) *compound.Node {
		b := bytes.Join(parts, nil)
		return &compound.Node{Name: name, Size: int64(len(b)), Content: func(w io.Writer) error {
			_, err := w.Write(b)
			return err
		}}
	}
	storage := func(name string, children ...*compound.Node) *compound.Node {
		return &compound.Node{Name: name, Children: children}
	}
	versions := number(1, 1, 1) // of reader, updater and writer: 1.0
	const space, transform = "StrongEncryptionDataSpace", "StrongEncryptionTransform"
	entry := bytes.Join([][]byte{number(1, 0), text("EncryptedPackage"), text(space)}, nil)
	id := text("{FF9A3F03-56EF-4613-BDD5-5A41C1D07246}")
	return storage("\x06DataSpaces",
		stream("Version", text("Microsoft.Container.DataSpaces"), versions),
		stream("DataSpaceMap", number(8, 1, uint32(4+len(entry))), entry),
		storage("DataSpaceInfo", stream(space, number(8, 1), text(transform))),
		storage("TransformInfo", storage(transform, stream("\x06Primary",
			number(uint32(8+len(id)), 1), id, text("Microsoft.Container.EncryptionTransform"), versions, number(0, 0, 0, 4)))),
	)
}

// A decrypter decrypts the stream EncryptedPackage and writes the package.
type decrypter interface {
	decrypt(ctx context.Context, r io.Reader, w io.Writer) error
}

// unlock decrypts a document to a new file.
func unlock(ctx context.Context, limits safezip.Limits, in *fileops.File, password, path string) error {
	if !encrypted(in) {
		if _, err := openArchive(in, limits); err != nil {
			return err
		}
		return errPlain()
	}
	c, err := compound.Open(in.Reader(), in.Size(), maxNodes)
	if err != nil {
		return damaged(err)
	}
	d, err := openEncryption(ctx, c, password)
	switch {
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case errors.Is(err, errCipher):
		return fileops.Fail(fileops.ErrUnsupportedInput, err, "the file is encrypted with a certificate or by an unsupported method")
	case err != nil:
		return fileops.Fail(fileops.ErrCorruptInput, err, "the encryption header of the file is damaged")
	case d == nil:
		return errWrong()
	}
	r, ok, err := c.Stream("EncryptedPackage")
	if err != nil || !ok {
		return damaged(errors.Join(err, compound.ErrDamaged))
	}
	w, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	err = d.decrypt(ctx, r, w)
	if err == nil {
		err = checkPlain(in, w)
	}
	err = errors.Join(err, w.Close())
	if errors.Is(err, compound.ErrDamaged) {
		return damaged(err)
	}
	return err
}

// checkPlain checks that the format of a decrypted document matches the name of the
// encrypted file.
func checkPlain(in *fileops.File, f *os.File) error {
	st, err := f.Stat()
	if err != nil {
		return err
	}
	err = format.Check(in.Format(), f, st.Size())
	var m *format.MismatchError
	if errors.As(err, &m) && m.Got != "" {
		return fileops.Mismatch(m.Want, m.Got)
	}
	if err != nil {
		return damaged(err)
	}
	return nil
}

// openEncryption reads the stream EncryptionInfo ([MS-OFFCRYPTO] 2.3.4.5,
// 2.3.4.10). It returns nil for a wrong password.
func openEncryption(ctx context.Context, c *compound.File, password string) (decrypter, error) {
	r, ok, err := c.Stream("EncryptionInfo")
	if err != nil || !ok {
		return nil, errors.Join(err, compound.ErrDamaged)
	}
	b, err := io.ReadAll(io.LimitReader(r, maxInfo))
	if err != nil {
		return nil, err
	}
	return parseEncryption(ctx, b, password)
}

func parseEncryption(ctx context.Context, b []byte, password string) (decrypter, error) {
	if len(b) < 8 {
		return nil, errEncryption
	}
	major, minor := binary.LittleEndian.Uint16(b), binary.LittleEndian.Uint16(b[2:])
	switch {
	case major == 4 && minor == 4:
		if a, err := openAgile(ctx, b[8:], password); a != nil || err != nil {
			return a, err
		}
		return nil, nil
	case major >= 2 && major <= 4 && minor == 2:
		if s, err := openStandard(ctx, b[4:], password); s != nil || err != nil {
			return s, err
		}
		return nil, nil
	}
	return nil, errCipher
}
