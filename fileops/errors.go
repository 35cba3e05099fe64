package fileops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"syscall"

	"github.com/filewright/filewright/fileops/format"
)

// Kinds of failures of a run. Test for them with errors.Is. [Code] returns their names
// for clients in other languages.
var (
	ErrCorruptInput     = errors.New("the file is damaged")
	ErrFormatMismatch   = errors.New("the content of the file is not what its extension says")
	ErrUnsupportedInput = errors.New("the file has content that this operation cannot process")
	ErrPasswordRequired = errors.New("the file is protected by a password")
	ErrWrongPassword    = errors.New("the password is wrong")
	ErrNotEncrypted     = errors.New("the file is not protected by a password")
	ErrLimit            = errors.New("the file exceeds a limit")
	ErrParameter        = errors.New("a parameter does not fit the file")
	ErrEngine           = errors.New("the engine could not process the file")
	ErrUnavailable      = errors.New("the engine is not available at the moment")
)

// A Failure is an error whose message is safe to show to the person who sent the file.
type Failure struct {
	Kind    error  // one of the Err variables of this package
	Message string // for users: what is wrong and what to do; no path, no engine output
	Err     error  // the cause, for the log; may be nil
}

// Error implements error. It includes the cause.
func (f *Failure) Error() string {
	if f.Err == nil {
		return f.Message
	}
	return f.Message + ": " + f.Err.Error()
}

// Unwrap makes errors.Is find both the kind and the cause.
func (f *Failure) Unwrap() []error {
	if f.Err == nil {
		return []error{f.Kind}
	}
	return []error{f.Kind, f.Err}
}

// Fail returns a *[Failure] of the given kind. If message is empty, the text of kind is
// the message. cause may be nil.
func Fail(kind, cause error, message string, args ...any) error {
	msg := kind.Error()
	if message != "" {
		msg = fmt.Sprintf(message, args...)
	}
	return &Failure{Kind: kind, Message: msg, Err: cause}
}

// Code returns the stable name of the kind of err that clients of the service see:
// "corrupt_input", "wrong_password", and so on. It returns "timeout" or "cancelled" for
// a context error, and "internal_error" for an error of no known kind.
func Code(err error) string {
	for _, k := range kinds {
		if errors.Is(err, k.kind) {
			return k.code
		}
	}
	return "internal_error"
}

// kinds is in order of precedence: the reason why a run was stopped takes precedence
// over the engine's error. It is read-only.
var kinds = [...]struct {
	kind error
	code string
}{
	{context.DeadlineExceeded, "timeout"},
	{context.Canceled, "cancelled"},
	{ErrPasswordRequired, "password_required"},
	{ErrWrongPassword, "wrong_password"},
	{ErrNotEncrypted, "not_encrypted"},
	{ErrFormatMismatch, "format_mismatch"},
	{ErrLimit, "limit_exceeded"},
	{ErrParameter, "invalid_parameter"},
	{ErrUnsupportedInput, "unsupported_input"},
	{ErrCorruptInput, "corrupt_input"},
	{ErrUnavailable, "engine_unavailable"},
	{ErrEngine, "engine_failed"},
	{errors.ErrUnsupported, "unsupported_input"},
}

// Message returns the text for users that goes with [Code]: the message of a [Failure],
// the text of a [ParamError] or [UnsupportedError], or a fixed text for other errors. It
// contains a path only if the caller of the run supplied it: an input made by [Path] and
// not renamed by [File.Named], or the directory of [ToDir].
func Message(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "the operation took too long and was stopped"
	}
	if errors.Is(err, context.Canceled) {
		return "the operation was cancelled"
	}
	var f *Failure
	if errors.As(err, &f) {
		return f.Message
	}
	var p *ParamError
	if errors.As(err, &p) {
		return p.Error()
	}
	var u *UnsupportedError
	if errors.As(err, &u) {
		return u.Error()
	}
	var own *pathError
	if errors.As(err, &own) {
		return own.message()
	}
	for _, k := range kinds {
		if errors.Is(err, k.kind) {
			return k.kind.Error()
		}
	}
	return "the file could not be processed because of an internal error"
}

// Retryable reports whether a retry may help: the engine was unavailable, or the error
// is unrelated to the file.
func Retryable(err error) bool {
	if errors.Is(err, ErrUnavailable) || errors.Is(err, syscall.ENOSPC) {
		return true
	}
	return Code(err) == "internal_error"
}

// A ParamError reports a parameter that failed validation. It matches [ErrParameter].
type ParamError struct {
	Param   string
	Reason  string
	Allowed []string // accepted values, if they can be listed
	Missing bool     // the parameter is required, but absent
}

// Error implements error.
func (e *ParamError) Error() string { return fmt.Sprintf("parameter %q %s", e.Param, e.Reason) }

// Is makes errors.Is(err, ErrParameter) true.
func (e *ParamError) Is(target error) bool { return target == ErrParameter }

// A pathError is an error of the operating system about a path that the caller of a run
// supplied.
type pathError struct {
	what string // the failed operation and its path
	err  error
}

func (e *pathError) Error() string { return e.err.Error() }
func (e *pathError) Unwrap() error { return e.err }

// message describes the error without other paths that are in its text.
func (e *pathError) message() string {
	var errno syscall.Errno
	switch {
	case errors.As(e.err, &errno):
		return e.what + ": " + errno.Error()
	case errors.Is(e.err, errNotRegular):
		return e.what + ": " + errNotRegular.Error()
	}
	return e.what
}

// An UnsupportedError reports that no registered action fits a request. It
// matches errors.ErrUnsupported.
type UnsupportedError struct {
	Action  string
	Inputs  []format.Format
	Actions []string // names of the actions that accept the inputs, sorted; without inputs, of all actions
}

// Error implements error.
func (e *UnsupportedError) Error() string {
	var names []string
	for _, f := range e.Inputs {
		f = cmp.Or(f, "files without extension")
		names = append(names, string(f))
	}
	if len(names) == 0 {
		return fmt.Sprintf("the action %q is not supported", e.Action)
	}
	return fmt.Sprintf("the action %q is not supported for %s", e.Action, strings.Join(names, ", "))
}

// Is makes errors.Is(err, errors.ErrUnsupported) true.
func (e *UnsupportedError) Is(target error) bool { return target == errors.ErrUnsupported }

// Mismatch returns the [Failure] of a file whose name says want and whose content is
// got.
func Mismatch(want, got format.Format) error {
	return Fail(ErrFormatMismatch, nil, "the file is named .%s, but its content is %s (.%s)", want, got.Title(), got)
}

// checkInput returns a [Failure] if the content of an input does not match its name.
func checkInput(f *File) error {
	err := format.Check(f.Format(), f.Reader(), f.Size())
	var m *format.MismatchError
	switch {
	case err == nil:
		return nil
	case errors.Is(err, format.ErrEncrypted):
		return Fail(ErrPasswordRequired, err, "the document is protected by a password; remove it before uploading")
	case errors.As(err, &m) && m.Got != "":
		return Mismatch(m.Want, m.Got)
	case f.Size() == 0:
		return Fail(ErrCorruptInput, nil, "the file is empty")
	}
	return Fail(ErrCorruptInput, err, "the file is damaged or is not a %s file", f.Format())
}
