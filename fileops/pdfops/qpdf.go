package pdfops

import (
	"bytes"
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"

	"github.com/filewright/filewright/fileops/pdfops/internal/pdf"
)

// qpdf runs qpdf. All arguments go to its standard input, where no other process
// can see them. Warnings about the file are not failures.
func (t Tools) qpdf(ctx context.Context, job *fileops.Job, args ...string) error {
	return t.qpdfOut(ctx, job, nil, append([]string{"--warning-exit-0"}, args...)...)
}

// qpdfOut is qpdf with its standard output in out, unless that is nil. Without the argument
// --warning-exit-0, warnings are failures.
func (t Tools) qpdfOut(ctx context.Context, job *fileops.Job, out *bytes.Buffer, args ...string) error {
	dir, err := job.Dir()
	if err != nil {
		return err
	}
	inputs, err := job.InputDir()
	if err != nil {
		return err
	}
	var size int64
	for _, f := range job.Inputs {
		size += f.Size()
	}
	largest := 2*size + pdf.MaxFile
	if most := job.MaxOutput(); most > 0 {
		largest = min(largest, most+1) // one more, to detect an overflow
	}
	cmd := engine.Cmd{
		Access: engine.Access{Read: []string{inputs}},
		Args:   []string{"@-"},
		Dir:    dir,
		Stdin:  strings.NewReader("--no-warn\n" + strings.Join(args, "\n") + "\n"),
		Limits: t.Run.Or(engine.Limits{CPU: time.Minute + time.Duration(size/qpdfSpeed)*time.Second, Memory: 4 << 30, FileSize: largest}),
	}
	if out != nil {
		cmd.Stdout = out
	}
	return t.QPDF.Run(ctx, cmd)
}

// qpdfSpeed is the number of bytes that qpdf copies or encrypts at least in a second.
const qpdfSpeed = 8 << 20

// password returns qpdf's argument for a password, in hexadecimal. Any byte is
// allowed and qpdf interprets none of them.
func password(b []byte) []string {
	return []string{"--password-mode=hex-bytes", "--password=" + hex.EncodeToString(b)}
}

// A lockState is qpdf's verdict on a file and a password.
type lockState int

const (
	lockClosed lockState = iota // encrypted, and the password does not open it
	lockOpen                    // encrypted, and the password opens it
	lockNone                    // not encrypted
)

// probe tries a password on a file.
func (t Tools) probe(ctx context.Context, job *fileops.Job, in string, pw []byte) (lockState, error) {
	err := t.qpdf(ctx, job, append(password(pw), "--requires-password", in)...)
	var exit *engine.ExitError
	switch {
	case err == nil:
		return lockClosed, nil
	case !errors.As(err, &exit):
		return 0, err
	case exit.Code == 3:
		return lockOpen, nil
	case exit.Code != 2:
		return 0, failed(err)
	}
	// The file is not encrypted, or unreadable.
	if err := t.qpdf(ctx, job, "--show-npages", in); err != nil {
		return 0, failed(err)
	}
	return lockNone, nil
}

// failed turns an error of qpdf into an error of the input file.
func failed(err error) error {
	var exit *engine.ExitError
	if !errors.As(err, &exit) {
		return err
	}
	switch {
	case exit.Limit():
		return fileops.Fail(fileops.ErrLimit, err, "the file takes more %s than is allowed; try a smaller one", exit.Which())
	case exit.Signal != 0:
		return fileops.Fail(fileops.ErrLimit, err, "the file takes more time or memory than is allowed; try a smaller one")
	}
	return fileops.Fail(fileops.ErrCorruptInput, err, "the file is damaged and could not be repaired")
}

// permissions returns the permissions of a file.
func (t Tools) permissions(ctx context.Context, job *fileops.Job, in string, pw []byte) (pdf.Permissions, error) {
	var out bytes.Buffer
	err := t.qpdfOut(ctx, job, &out, append(password(pw), "--warning-exit-0", "--json", "--json-key=encrypt", in)...)
	if err != nil {
		return 0, failed(err)
	}
	var v struct {
		Encrypt struct {
			Parameters struct {
				P int64
				R int
			}
		}
	}
	if err := json.Unmarshal(out.Bytes(), &v); err != nil {
		return 0, err
	}
	return pdf.AllowedBy(pdf.Permissions(v.Encrypt.Parameters.P), v.Encrypt.Parameters.R), nil
}

// encryptArgs returns the arguments that encrypt the output.
func encryptArgs(user, owner []byte, perm pdf.Permissions) []string {
	yes := func(p pdf.Permissions) string {
		if perm&p == p {
			return "y"
		}
		return "n"
	}
	print := "none"
	if perm&pdf.PermitPrint != 0 {
		if print = "low"; perm&pdf.PermitPrintWell != 0 {
			print = "full"
		}
	}
	return []string{
		"--password-mode=hex-bytes", "--encrypt", hex.EncodeToString(user), hex.EncodeToString(owner), "256",
		"--print=" + print, "--extract=" + yes(pdf.PermitCopy), "--annotate=" + yes(pdf.PermitAnnotate),
		"--assemble=" + yes(pdf.PermitAssemble), "--form=" + yes(pdf.PermitFill), "--modify-other=" + yes(pdf.PermitModify), "--",
	}
}
