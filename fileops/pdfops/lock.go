package pdfops

import (
	"context"
	"errors"
	"io"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// Lock returns the action "lock": it puts a PDF file under a password, with
// AES-256 (revision 6 of the standard security handler).
//
// Everything is allowed to those who open it with the password, unless
// "permissions" says otherwise; without an "owner_password" a random one that
// nobody knows is set. A file that is encrypted already is locked anew only if
// it opens without a password and forbids nothing.
func (t Tools) Lock() fileops.Action {
	spec := t.lockSpec("lock", "Puts a PDF file under a password.", fileops.Schema{
		newPassword("password", "Password that will be needed to open the file.", true),
		newPassword("owner_password", "Password that lifts the restrictions; a random one if absent.", false),
		{
			Name: "permissions", Doc: "What those who open the file with the password may do.",
			Enum: []string{"all", "print", "none"}, Default: "all",
		},
	})
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		perm := permitAll
		switch job.Params.Get("permissions") {
		case "print":
			perm &^= permitKnown &^ (permitPrint | permitPrintWell)
		case "none":
			perm &^= permitKnown
		}
		user, owner := stored(job.Params.Get("password"), job.Params.Get("owner_password"))
		if t.QPDF == nil {
			return lockPure(ctx, job, user, owner, perm)
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
			p, err := t.permissions(ctx, job, in, nil)
			if err != nil {
				return err
			}
			if p.restricted() {
				return errRestricted()
			}
		}
		return t.encrypt(ctx, job, in, nil, encryptArgs(user, owner, perm))
	})
}

func (t Tools) lockSpec(name, summary string, params fileops.Schema) fileops.Spec {
	spec := t.spec(name, summary, params)
	if t.QPDF != nil {
		spec.Engine = "qpdf " + t.QPDF.Version
	}
	return spec
}

func newPassword(name, doc string, required bool) fileops.Param {
	return fileops.Param{Name: name, Doc: doc, Required: required, Min: 1, Max: maxPassword, Secret: true}
}

func oldPassword(name, doc string) fileops.Param {
	return fileops.Param{Name: name, Doc: doc, Required: true, Max: 1024, Secret: true}
}

func errLocked() error {
	return fileops.Fail(fileops.ErrPasswordRequired, nil, "the file is already protected by a password; unlock it or reset its password instead")
}

func errRestricted() error {
	return fileops.Fail(fileops.ErrPasswordRequired, nil, "the owner of the file restricted what may be done with it; unlock it with the owner password first")
}

func errWrong() error {
	return fileops.Fail(fileops.ErrWrongPassword, nil, "the password is neither the user nor the owner password of the file")
}

func errPlain() error {
	return fileops.Fail(fileops.ErrNotEncrypted, nil, "the file is not protected by a password")
}

func lockPure(ctx context.Context, job *fileops.Job, user, owner []byte, perm permissions) error {
	data, err := job.Input().ReadAll(maxFile)
	if err != nil {
		return err
	}
	sec, err := securityOf(ctx, data)
	if err != nil {
		return err
	}
	var d *document
	if sec == nil {
		d, err = parsePure(ctx, data, nil)
	} else {
		secret, ok := sec.open(nil)
		if !ok {
			return errLocked()
		}
		if sec.p.restricted() {
			return errRestricted()
		}
		d, err = decrypt(ctx, data, sec, secret)
	}
	if err != nil {
		return err
	}
	return writeEncrypted(job, d, newEncryption(user, owner, perm))
}

func writeEncrypted(job *fileops.Job, d *document, enc *encryption) error {
	if d.version < "2.0" {
		// Revision 6 was an extension of PDF 1.7 before it was part of 2.0.
		d.version = "1.7"
		d.catalog()["Extensions"] = types.Dict{"ADBE": types.Dict{
			"BaseVersion": types.Name("1.7"), "ExtensionLevel": types.Integer(8),
		}}
	}
	return job.Write(job.Input().Name(), func(w io.Writer) error { return d.write(w, false, enc) })
}

// parsePure is parse with an error for people.
func parsePure(ctx context.Context, data []byte, password *string) (*document, error) {
	d, err := parse(ctx, data, password)
	if err == nil && d.incomplete() {
		err = errIncomplete
	}
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, fileops.Fail(fileops.ErrCorruptInput, err, "the file is damaged and could not be repaired")
	}
	return d, nil
}

// decrypt reads an encrypted file with what [security.open] returned.
func decrypt(ctx context.Context, data []byte, sec *security, secret []byte) (*document, error) {
	update, pw, err := sec.forPDFCPU(data, secret)
	if err != nil {
		return nil, fileops.Fail(fileops.ErrCorruptInput, err, "the file is damaged and could not be repaired")
	}
	return parsePure(ctx, update, &pw)
}

// damagedSecurity says what is wrong with the encryption of a file; for who, see
// [Tools.load].
func damagedSecurity(err error, who string) error {
	if errors.Is(err, errHandler) {
		return fileops.Fail(fileops.ErrUnsupportedInput, err, "%s is not protected by a password, but by certificates or by a system for digital rights", who)
	}
	return fileops.Fail(fileops.ErrCorruptInput, err, "the encryption of %s is damaged", who)
}

// securityOf is findSecurity with errors for people.
func securityOf(ctx context.Context, data []byte) (*security, error) {
	sec, err := findSecurity(ctx, data)
	switch {
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case err != nil:
		return nil, damagedSecurity(err, "the file")
	}
	return sec, nil
}

var errUnseen = errors.New("the file is encrypted, but qpdf does not see it")

// state returns the path of the input and what qpdf says of it and a password. It
// fails with errUnseen if qpdf takes the file for plain and [findSecurity] does
// not: what qpdf would write would have the encrypted content of streams.
func (t Tools) state(ctx context.Context, job *fileops.Job, pw []byte) (in string, state lockState, err error) {
	if in, err = job.Path(job.Input()); err != nil {
		return "", 0, err
	}
	state, err = t.probe(ctx, job, in, pw)
	if err != nil && !errors.Is(err, fileops.ErrCorruptInput) || err == nil && state != lockNone {
		return in, state, err
	}
	data, rerr := job.Input().ReadAll(maxFile)
	if rerr != nil {
		return in, state, err // such a file is qpdf's alone
	}
	sec, serr := securityOf(ctx, data)
	switch {
	case err != nil && errors.Is(serr, errHandler): // why qpdf refused it
		return in, state, damagedSecurity(errors.Join(serr, err), "the file")
	case err != nil:
		return in, state, err
	case serr != nil: // what is in the file would be lost for good
		return in, state, serr
	case sec != nil:
		return in, state, errUnseen
	}
	return in, lockNone, nil
}

// Unlock returns the action "unlock": it removes the encryption of a PDF file.
//
// The password may be that of the user or of the owner. One that is neither
// fails with [fileops.ErrWrongPassword] also if the file opens without; the
// empty password unlocks such files. A file that is not encrypted fails with
// [fileops.ErrNotEncrypted].
func (t Tools) Unlock() fileops.Action {
	spec := t.lockSpec("unlock", "Removes the password from a PDF file.", fileops.Schema{
		oldPassword("password", "User or owner password of the file; empty for a file that opens without one but is restricted."),
	})
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		if t.QPDF != nil {
			in, pw, err := t.open(ctx, job, job.Params.Get("password"))
			if err == nil {
				return t.encrypt(ctx, job, in, pw, []string{"--password-mode=hex-bytes", "--decrypt"})
			}
			if !errors.Is(err, errUnseen) {
				return err
			}
		}
		d, _, err := openPure(ctx, job, job.Params.Get("password"))
		if err != nil {
			return err
		}
		return job.Write(job.Input().Name(), func(w io.Writer) error { return d.write(w, d.isPDFA1(), nil) })
	})
}

// ResetPassword returns the action "reset_password": it replaces the password of
// a PDF file. "old_password" may be that of the user or of the owner and is
// checked as by [Tools.Unlock]. The file is encrypted anew as by [Tools.Lock];
// what it allows stays as it was. Without an "owner_password" nobody knows the
// new one of the owner.
func (t Tools) ResetPassword() fileops.Action {
	spec := t.lockSpec("reset_password", "Replaces the password of a PDF file.", fileops.Schema{
		oldPassword("old_password", "Present user or owner password of the file."),
		newPassword("new_password", "Password that will be needed to open the file.", true),
		newPassword("owner_password", "New owner password, which lifts the restrictions; a random one if absent.", false),
	})
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		user, owner := stored(job.Params.Get("new_password"), job.Params.Get("owner_password"))
		pure := func() error {
			d, sec, err := openPure(ctx, job, job.Params.Get("old_password"))
			if err != nil {
				return err
			}
			return writeEncrypted(job, d, newEncryption(user, owner, sec.allowed()))
		}
		if t.QPDF == nil {
			return pure()
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

// allowed returns the permissions in the meaning of later revisions: revision 2
// had only the first four (ISO 32000-2, table 22).
func (s *security) allowed() permissions {
	p := s.p
	if s.r == 2 {
		p |= permitAccess
		for from, to := range map[permissions]permissions{
			permitPrint: permitPrintWell, permitAnnotate: permitFill, permitModify: permitAssemble,
		} {
			p &^= to
			if p&from != 0 {
				p |= to
			}
		}
	}
	return p
}

// open finds the form of a password that opens the input. It fails with errUnseen
// as [Tools.state] does.
func (t Tools) open(ctx context.Context, job *fileops.Job, pw string) (in string, form []byte, err error) {
	for _, c := range candidates(pw) {
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

// encrypt lets qpdf write the result: a copy of the input, which pw opens,
// encrypted or decrypted as args say.
func (t Tools) encrypt(ctx context.Context, job *fileops.Job, in string, pw []byte, args []string) error {
	return job.WriteFile(job.Input().Name(), func(out string) error {
		args := append(password(pw)[1:], args...)
		if err := t.qpdf(ctx, job, append(args, in, out)...); err != nil {
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
func openPure(ctx context.Context, job *fileops.Job, pw string) (*document, *security, error) {
	data, err := job.Input().ReadAll(maxFile)
	if err != nil {
		return nil, nil, err
	}
	sec, err := securityOf(ctx, data)
	if err != nil {
		return nil, nil, err
	}
	if sec == nil {
		if _, err := parsePure(ctx, data, nil); err != nil {
			return nil, nil, err
		}
		return nil, nil, errPlain()
	}
	for _, c := range candidates(pw) {
		if secret, ok := sec.open(c); ok {
			d, err := decrypt(ctx, data, sec, secret)
			return d, sec, err
		}
	}
	return nil, nil, errWrong()
}
