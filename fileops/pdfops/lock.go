package pdfops

import (
	"bytes"
	"context"
	"encoding/hex"
	"errors"
	"io"
	"slices"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// Lock returns the action "lock". It encrypts a PDF file with AES-256 (revision
// 6 of the standard security handler).
//
// The user password permits everything, unless "permissions" restricts it.
// Without an "owner_password" a random owner password is set and discarded. A
// file that is encrypted and opens without a password is encrypted again; its
// restrictions stay, in addition to "permissions".
func (t Tools) Lock() fileops.Action {
	spec := t.lockSpec("lock", "Protects a PDF file with a password.", fileops.Schema{
		newPassword("password", "Password that will be needed to open the file.", true),
		newPassword("owner_password", "Password that lifts the restrictions; a random one if absent.", false),
		{
			Name: "permissions", Doc: "What those who open the file with the password may do.",
			Enum: []string{"all", "print", "none"}, Default: "all",
		},
	})
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		perm := pdf.PermitAll
		switch job.Params.Get("permissions") {
		case "print":
			perm &^= pdf.PermitKnown &^ (pdf.PermitPrint | pdf.PermitPrintWell)
		case "none":
			perm &^= pdf.PermitKnown
		}
		user, owner := pdf.NewPasswords(job.Params.Get("password"), job.Params.Get("owner_password"))
		if t.QPDF == nil {
			return lockPure(ctx, job, user, owner, perm)
		}
		if done, err := lockSmall(ctx, job, user, owner, perm); done || err != nil {
			return err
		}
		if maybe, err := mentions(job.Input().Reader(), "Encrypt"); err != nil {
			return err
		} else if !maybe {
			in, err := job.Path(job.Input())
			if err != nil {
				return err
			}
			if err := t.qpdf(ctx, job, "--show-npages", in); err != nil {
				return failed(err)
			}
			return t.encrypt(ctx, job, in, nil, encryptArgs(user, owner, perm))
		}
		in, state, err := t.state(ctx, job, nil)
		if errors.Is(err, errUnseen) {
			return lockPure(ctx, job, user, owner, perm)
		}
		if err != nil {
			return err
		}
		switch state {
		case lockClosed:
			return errLocked()
		case lockOpen:
			old, err := t.permissions(ctx, job, in, nil)
			if err != nil {
				return err
			}
			perm &= old
		}
		return t.encrypt(ctx, job, in, nil, encryptArgs(user, owner, perm))
	})
}

// maxSmall is the size of a file, in bytes, up to which encrypting it here takes less processor
// time than starting qpdf.
const maxSmall = 256 << 10

// maxSound is the size of a file, in bytes, up to which it is read here if it has no defect.
const maxSound = 16 << 20

// lockSmall locks a file without qpdf. It reports false if qpdf has to do it, because the file is large,
// encrypted or damaged.
func lockSmall(ctx context.Context, job *fileops.Job, user, owner []byte, perm pdf.Permissions) (done bool, err error) {
	if job.Input().Size() > maxSound {
		return false, nil
	}
	data, err := job.Input().ReadAll(maxSound)
	if err != nil {
		return false, err
	}
	var d *pdf.Document
	if len(data) <= maxSmall {
		d, err = pdf.ParseComplete(ctx, data, maxSmall)
	} else {
		d = pdf.ParseSound(ctx, data)
	}
	if err != nil || d == nil || d.Encrypted {
		return false, context.Cause(ctx)
	}
	return true, writeEncrypted(job, d, pdf.NewEncryption(user, owner, perm))
}

// mentions reports whether a PDF file has a name (ISO 32000-2, 7.3.5) that starts with prefix
// outside of compressed streams, even if characters of it are written as #xx. The keys of trailers
// are such names.
func mentions(r io.Reader, prefix string) (bool, error) {
	longest := 1 + 3*len(prefix)
	buf := make([]byte, 64<<10)
	for have := 0; ; {
		n, err := io.ReadFull(r, buf[have:])
		end := err != nil
		have += n
		at := 0
		for {
			i := bytes.IndexByte(buf[at:have], '/')
			if i < 0 {
				at = have
				break
			}
			if at += i; !end && have-at < longest {
				break // decided with the next part
			}
			if at++; startsName(buf[at:have], prefix) {
				return true, nil
			}
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return false, nil
		case err != nil:
			return false, err
		}
		have = copy(buf, buf[at:have])
	}
}

// startsName reports whether the name at the start of b, after its slash, starts with prefix.
func startsName(b []byte, prefix string) bool {
	for i := range len(prefix) {
		if len(b) >= 3 && b[0] == '#' {
			var c [1]byte
			if _, err := hex.Decode(c[:], b[1:3]); err == nil {
				if c[0] != prefix[i] {
					return false
				}
				b = b[3:]
				continue
			}
		}
		if len(b) == 0 || b[0] != prefix[i] {
			return false
		}
		b = b[1:]
	}
	return true
}

func (t Tools) lockSpec(name, summary string, params fileops.Schema) fileops.Spec {
	spec := t.spec(name, summary, params)
	spec.MaxBytes = pdf.MaxFile
	if t.QPDF != nil {
		spec.MaxBytes = 0
		spec.Engine = "qpdf " + t.QPDF.Version
	}
	return spec
}

func newPassword(name, doc string, required bool) fileops.Param {
	return fileops.Param{Name: name, Doc: doc, Required: required, Min: 1, Max: pdf.MaxPassword, Secret: true}
}

func oldPassword(name, doc string) fileops.Param {
	return fileops.Param{Name: name, Doc: doc, Required: true, Max: 1024, Secret: true}
}

func errLocked() error {
	return fileops.Fail(fileops.ErrPasswordRequired, nil, "the file is already protected by a password; unlock it or reset its password instead")
}

func errWrong() error {
	return fileops.Fail(fileops.ErrWrongPassword, nil, "the password is neither the user nor the owner password of the file")
}

func errPlain() error {
	return fileops.Fail(fileops.ErrNotEncrypted, nil, "the file is not protected by a password")
}

func lockPure(ctx context.Context, job *fileops.Job, user, owner []byte, perm pdf.Permissions) error {
	data, err := job.Input().ReadAll(pdf.MaxFile)
	if err != nil {
		return err
	}
	sec, err := securityOf(ctx, data)
	if err != nil {
		return err
	}
	var d *pdf.Document
	if sec == nil {
		d, err = pdf.Parse(ctx, data)
	} else {
		secret, ok := sec.Open(nil)
		if !ok {
			return errLocked()
		}
		perm &= sec.Permissions()
		d, err = sec.Decrypt(ctx, data, secret)
	}
	if d, err = whole(ctx, d, err); err != nil {
		return err
	}
	return writeEncrypted(job, d, pdf.NewEncryption(user, owner, perm))
}

func writeEncrypted(job *fileops.Job, d *pdf.Document, enc *pdf.Encryption) error {
	if d.Version < "2.0" {
		// Revision 6 was an extension of PDF 1.7 before it was part of 2.0.
		d.Version = "1.7"
		d.Catalog()["Extensions"] = types.Dict{"ADBE": types.Dict{
			"BaseVersion": types.Name("1.7"), "ExtensionLevel": types.Integer(8),
		}}
	}
	return writePure(job, d, false, enc)
}

func writePure(job *fileops.Job, d *pdf.Document, classic bool, enc *pdf.Encryption) error {
	if err := warnSigned(job); err != nil {
		return err
	}
	return job.Write(job.Input().Name(), func(w io.Writer) error { return d.Write(w, classic, enc) })
}

// warnSigned warns if the input has a signature: it covers the bytes of the
// file. Its dictionary has a fixed place, so it is not within a stream.
func warnSigned(job *fileops.Job) error {
	const mark = "/ByteRange"
	r := job.Input().Reader()
	buf := make([]byte, 64<<10)
	for have := 0; ; {
		n, err := io.ReadFull(r, buf[have:])
		if bytes.Contains(buf[:have+n], []byte(mark)) {
			job.Warn(fileops.WarnSignatureInvalid, "The signature of the file does not cover the result.")
			return nil
		}
		switch {
		case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
			return nil
		case err != nil:
			return err
		}
		have = copy(buf, buf[len(buf)-len(mark):])
	}
}

// whole returns a completely read document, or a user-facing error.
func whole(ctx context.Context, d *pdf.Document, err error) (*pdf.Document, error) {
	if err == nil && d.Incomplete() {
		err = pdf.ErrIncomplete
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fileops.Fail(fileops.ErrCorruptInput, err, "the file is damaged and could not be repaired")
	}
	return d, nil
}

// damagedSecurity describes a defect in the encryption of a file. For who, see
// [Tools.load].
func damagedSecurity(err error, who string) error {
	if errors.Is(err, pdf.ErrHandler) {
		return fileops.Fail(fileops.ErrUnsupportedInput, err, "%s is not protected by a password, but by certificates or by a system for digital rights", who)
	}
	return fileops.Fail(fileops.ErrCorruptInput, err, "the encryption of %s is damaged", who)
}

// securityOf is [pdf.FindSecurity] with user-facing errors.
func securityOf(ctx context.Context, data []byte) (*pdf.Security, error) {
	sec, err := pdf.FindSecurity(ctx, data)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, damagedSecurity(err, "the file")
	}
	return sec, nil
}

var errUnseen = errors.New("the file is encrypted, but qpdf does not see it")

// state returns the path of the input and qpdf's verdict on it with a password.
// It fails with errUnseen if qpdf takes the file for unencrypted and
// [pdf.FindSecurity] does not. In that case qpdf's output would contain streams
// that are still encrypted.
func (t Tools) state(ctx context.Context, job *fileops.Job, pw []byte) (in string, state lockState, err error) {
	if in, err = job.Path(job.Input()); err != nil {
		return "", 0, err
	}
	state, err = t.probe(ctx, job, in, pw)
	if err != nil && !errors.Is(err, fileops.ErrCorruptInput) || err == nil && state != lockNone {
		return in, state, err
	}
	data, rerr := job.Input().ReadAll(pdf.MaxFile)
	if rerr != nil {
		return in, state, err // only qpdf handles such a file
	}
	sec, serr := securityOf(ctx, data)
	switch {
	case err != nil && errors.Is(serr, pdf.ErrHandler): // the reason why qpdf rejected it
		return in, state, damagedSecurity(errors.Join(serr, err), "the file")
	case err != nil:
		return in, state, err
	case serr != nil: // the content of the file would be lost for good
		return in, state, serr
	case sec != nil:
		return in, state, errUnseen
	}
	return in, lockNone, nil
}

// Unlock returns the action "unlock". It removes the encryption of a PDF file.
//
// The password may be the user or the owner password. A password that is neither
// fails with [fileops.ErrWrongPassword], even if the file opens without a
// password; the empty password unlocks such files. An unencrypted file fails
// with [fileops.ErrNotEncrypted].
func (t Tools) Unlock() fileops.Action {
	spec := t.lockSpec("unlock", "Removes the password from a PDF file.", fileops.Schema{
		oldPassword("password", "User or owner password of the file; empty for a file that opens without one but is restricted."),
	})
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		if t.QPDF != nil {
			args := []string{"--password-mode=hex-bytes", "--decrypt"}
			done, err := t.encryptSound(ctx, job, job.Params.Get("password"), func(d *pdf.Document, _ pdf.Permissions) error {
				return writePure(job, d, d.IsPDFA1(), nil)
			}, func(pdf.Permissions) []string { return args })
			if done || err != nil {
				return err
			}
			in, pw, err := t.open(ctx, job, job.Params.Get("password"))
			if err == nil {
				return t.encrypt(ctx, job, in, pw, args)
			}
			if !errors.Is(err, errUnseen) {
				return err
			}
		}
		d, _, err := openPure(ctx, job, job.Params.Get("password"))
		if err != nil {
			return err
		}
		return writePure(job, d, d.IsPDFA1(), nil)
	})
}

// ResetPassword returns the action "reset_password". It replaces the password of
// a PDF file. "old_password" may be the user or the owner password and is
// checked as by [Tools.Unlock]. The file is encrypted again as by [Tools.Lock];
// its permissions stay the same. Without an "owner_password" the new owner
// password is random and discarded.
func (t Tools) ResetPassword() fileops.Action {
	spec := t.lockSpec("reset_password", "Replaces the password of a PDF file.", fileops.Schema{
		oldPassword("old_password", "Current user or owner password of the file."),
		newPassword("new_password", "Password that will be needed to open the file.", true),
		newPassword("owner_password", "New owner password, which lifts the restrictions; a random one if absent.", false),
	})
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		user, owner := pdf.NewPasswords(job.Params.Get("new_password"), job.Params.Get("owner_password"))
		write := func(d *pdf.Document, perm pdf.Permissions) error {
			return writeEncrypted(job, d, pdf.NewEncryption(user, owner, perm))
		}
		pure := func() error {
			d, sec, err := openPure(ctx, job, job.Params.Get("old_password"))
			if err != nil {
				return err
			}
			return write(d, sec.Permissions())
		}
		if t.QPDF == nil {
			return pure()
		}
		done, err := t.encryptSound(ctx, job, job.Params.Get("old_password"), write, func(perm pdf.Permissions) []string {
			return encryptArgs(user, owner, perm)
		})
		if done || err != nil {
			return err
		}
		in, pw, err := t.open(ctx, job, job.Params.Get("old_password"))
		if errors.Is(err, errUnseen) {
			return pure()
		}
		if err != nil {
			return err
		}
		perm, err := t.permissions(ctx, job, in, pw)
		if err != nil {
			return err
		}
		return t.encrypt(ctx, job, in, pw, encryptArgs(user, owner, perm))
	})
}

// open returns the byte form of the password that opens the input. It fails with
// errUnseen in the same case as [Tools.state].
func (t Tools) open(ctx context.Context, job *fileops.Job, pw string) (in string, form []byte, err error) {
	for _, c := range pdf.PasswordForms(pw) {
		in, state, err := t.state(ctx, job, c)
		switch {
		case err != nil:
			return "", nil, err
		case state == lockNone:
			return "", nil, errPlain()
		case state == lockOpen:
			return in, c, nil
		}
	}
	return "", nil, errWrong()
}

// maxEncrypted bounds the memory that [Tools.encryptSound] takes, in bytes.
const maxEncrypted = 64 << 20

// encryptSound is [Tools.open] and [Tools.encrypt] with a single run of qpdf, or none: write gets a
// document that was read here. args returns the arguments of qpdf for a file with the given permissions.
// encryptSound reports false unless the password opens the file and the file has no defect: this package
// reads the encryption from the newest trailer, and qpdf has no warning about the file, so it has read the
// same one. Then qpdf need not be asked before if it sees the encryption and what the permissions are.
func (t Tools) encryptSound(ctx context.Context, job *fileops.Job, pw string, write func(*pdf.Document, pdf.Permissions) error, args func(pdf.Permissions) []string) (done bool, err error) {
	if job.Input().Size() > maxEncrypted {
		return false, nil
	}
	data, err := job.Input().ReadAll(maxEncrypted)
	if err != nil {
		return false, err
	}
	sec, err := pdf.FindSecurity(ctx, data)
	if err != nil || sec == nil || !sec.Newest() {
		return false, context.Cause(ctx)
	}
	for _, c := range pdf.PasswordForms(pw) {
		secret, ok := sec.Open(c)
		if !ok {
			continue
		}
		if len(data) <= maxSound {
			if d := sec.DecryptSound(ctx, data, secret); d != nil {
				return true, write(d, sec.Permissions())
			}
		}
		in, err := job.Path(job.Input())
		if err != nil {
			return false, err
		}
		if err := t.encryptBy(ctx, job, in, c, args(sec.Permissions()), nil); err != nil {
			return false, context.Cause(ctx) // the usual way finds out why
		}
		return true, nil
	}
	return false, nil
}

// encrypt makes qpdf write the result: a copy of the input, which pw opens,
// encrypted or decrypted according to args.
func (t Tools) encrypt(ctx context.Context, job *fileops.Job, in string, pw []byte, args []string) error {
	return t.encryptBy(ctx, job, in, pw, args, []string{"--warning-exit-0"})
}

// encryptBy is encrypt with more arguments.
func (t Tools) encryptBy(ctx context.Context, job *fileops.Job, in string, pw []byte, args, more []string) error {
	if err := warnSigned(job); err != nil {
		return err
	}
	return job.WriteFile(job.Input().Name(), func(out string) error {
		args := slices.Concat(more, password(pw)[1:], args, []string{in, out})
		if err := t.qpdfOut(ctx, job, nil, args...); err != nil {
			var exit *engine.ExitError
			if errors.As(err, &exit) && exit.Which() == "space for results" && job.MaxOutput() > 0 {
				return job.TooMuch(err)
			}
			return failed(err)
		}
		return nil
	})
}

// openPure is [Tools.open] without qpdf. It returns the decrypted document.
func openPure(ctx context.Context, job *fileops.Job, pw string) (*pdf.Document, *pdf.Security, error) {
	data, err := job.Input().ReadAll(pdf.MaxFile)
	if err != nil {
		return nil, nil, err
	}
	sec, err := securityOf(ctx, data)
	if err != nil {
		return nil, nil, err
	}
	if sec == nil {
		d, err := pdf.Parse(ctx, data)
		if _, err = whole(ctx, d, err); err != nil {
			return nil, nil, err
		}
		return nil, nil, errPlain()
	}
	for _, c := range pdf.PasswordForms(pw) {
		if secret, ok := sec.Open(c); ok {
			d, err := sec.Decrypt(ctx, data, secret)
			d, err = whole(ctx, d, err)
			return d, sec, err
		}
	}
	return nil, nil, errWrong()
}
