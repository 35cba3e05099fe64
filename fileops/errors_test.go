package fileops_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

func TestErrorKinds(t *testing.T) {
	t.Parallel()
	cause := errors.New("/secret/path: parser broke at 17")
	for _, tt := range []struct {
		name      string
		err       error
		code      string
		message   string
		retryable bool
	}{
		{"corrupt", fileops.Fail(fileops.ErrCorruptInput, cause, ""), "corrupt_input", "the file is damaged", false},
		{"own message", fileops.Fail(fileops.ErrCorruptInput, cause, "page %d of %d is damaged", 3, 9), "corrupt_input", "page 3 of 9 is damaged", false},
		{"mismatch", fileops.Fail(fileops.ErrFormatMismatch, nil, ""), "format_mismatch", "the content of the file is not what its extension says", false},
		{"unsupported input", fileops.Fail(fileops.ErrUnsupportedInput, nil, ""), "unsupported_input", "the file has content that this operation cannot process", false},
		{"password required", fileops.Fail(fileops.ErrPasswordRequired, nil, ""), "password_required", "the file is protected by a password", false},
		{"wrong password", fileops.Fail(fileops.ErrWrongPassword, nil, ""), "wrong_password", "the password is wrong", false},
		{"not encrypted", fileops.Fail(fileops.ErrNotEncrypted, nil, ""), "not_encrypted", "the file is not protected by a password", false},
		{"limit", fileops.Fail(fileops.ErrLimit, nil, ""), "limit_exceeded", "the file exceeds a limit", false},
		{"engine", fileops.Fail(fileops.ErrEngine, cause, ""), "engine_failed", "the engine could not process the file", false},
		{"unavailable", fileops.Fail(fileops.ErrUnavailable, cause, ""), "engine_unavailable", "the engine is not available at the moment", true},
		{"kind without a failure", fmt.Errorf("%w: %w", fileops.ErrWrongPassword, cause), "wrong_password", "the password is wrong", false},
		{"wrapped", fmt.Errorf("step 1: %w", fileops.Fail(fileops.ErrLimit, cause, "too many pages")), "limit_exceeded", "too many pages", false},
		{"joined", errors.Join(cause, fileops.Fail(fileops.ErrNotEncrypted, nil, "")), "not_encrypted", "the file is not protected by a password", false},
		{"engine because of the input", fileops.Fail(fileops.ErrEngine, fileops.Fail(fileops.ErrCorruptInput, nil, "x"), "y"), "corrupt_input", "y", false},
		{"timeout", fmt.Errorf("convert: %w", context.DeadlineExceeded), "timeout", "the operation took too long and was stopped", false},
		{"timeout seen by an engine", fileops.Fail(fileops.ErrEngine, context.DeadlineExceeded, "it broke"), "timeout", "the operation took too long and was stopped", false},
		{"cancelled", context.Canceled, "cancelled", "the operation was cancelled", false},
		{"parameter", &fileops.ParamError{Param: "dpi", Reason: "is required"}, "invalid_parameter", `parameter "dpi" is required`, false},
		{"unsupported", &fileops.UnsupportedError{Action: "lock", Inputs: []format.Format{"png"}}, "unsupported_input", `the action "lock" is not supported for png`, false},
		{"disk full", &fs.PathError{Op: "write", Path: "/secret/path", Err: syscall.ENOSPC}, "internal_error", "the file could not be processed because of an internal error", true},
		{"disk full for the engine", fileops.Fail(fileops.ErrEngine, syscall.ENOSPC, ""), "engine_failed", "the engine could not process the file", true},
		{"anything", cause, "internal_error", "the file could not be processed because of an internal error", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if got := fileops.Code(tt.err); got != tt.code {
				t.Errorf("code %s, want %s", got, tt.code)
			}
			if got := fileops.Message(tt.err); got != tt.message {
				t.Errorf("message %q, want %q", got, tt.message)
			}
			if got := fileops.Retryable(tt.err); got != tt.retryable {
				t.Errorf("retryable %v", got)
			}
			if strings.Contains(fileops.Message(tt.err), "secret") {
				t.Error("the message contains the cause")
			}
		})
	}
}

func TestFailure(t *testing.T) {
	t.Parallel()
	cause := errors.New("exit status 3")
	err := fileops.Fail(fileops.ErrEngine, cause, "it broke")
	var f *fileops.Failure
	if !errors.As(err, &f) || !errors.Is(f.Kind, fileops.ErrEngine) || f.Message != "it broke" || !errors.Is(f.Err, cause) {
		t.Errorf("got %#v", err)
	}
	if !errors.Is(err, fileops.ErrEngine) || !errors.Is(err, cause) || errors.Is(err, fileops.ErrLimit) {
		t.Error("Is finds the wrong kinds")
	}
	if err.Error() != "it broke: exit status 3" {
		t.Errorf("got %q", err)
	}
	if err := fileops.Fail(fileops.ErrLimit, nil, ""); err.Error() != "the file exceeds a limit" || !errors.Is(err, fileops.ErrLimit) {
		t.Errorf("without a cause: %q", err)
	}
}

func TestUnsupportedError(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  *fileops.UnsupportedError
		want string
	}{
		{&fileops.UnsupportedError{Action: "fold"}, `the action "fold" is not supported`},
		{&fileops.UnsupportedError{Action: "lock", Inputs: []format.Format{"png", ""}}, `the action "lock" is not supported for png, files without extension`},
	} {
		if tt.err.Error() != tt.want || !errors.Is(tt.err, errors.ErrUnsupported) || errors.Is(tt.err, fs.ErrNotExist) {
			t.Errorf("got %q", tt.err)
		}
	}
}
