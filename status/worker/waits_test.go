package worker

import (
	"errors"
	"fmt"
	"io/fs"
	"syscall"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload/blob"
)

// stopped is the error of an engine that somebody stopped.
type stopped struct{}

func (stopped) Error() string { return "ended by SIGTERM" }
func (stopped) Stopped() bool { return true }

func TestWaitReason(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		want string
	}{
		{errNoSpace{errors.New("short write")}, status.WaitDisk},
		{fileops.Fail(fileops.ErrCorruptInput, &fs.PathError{Op: "write", Err: syscall.EDQUOT}, ""), status.WaitDisk},
		{fmt.Errorf("full bucket: %w: %w", syscall.ENOSPC, blob.ErrUnavailable), status.WaitDisk},
		{fmt.Errorf("get: %w", blob.ErrUnavailable), status.WaitStorage},
		{fileops.Fail(fileops.ErrCorruptInput, &fs.PathError{Op: "read", Err: syscall.EIO}, ""), status.WaitStorage},
		{fmt.Errorf("record: %w", status.ErrUnavailable), status.WaitDatabase},
		{fileops.Fail(fileops.ErrUnavailable, nil, ""), status.WaitEngine},
		{fmt.Errorf("start ffmpeg: %w", &fs.PathError{Op: "fork/exec", Err: syscall.EACCES}), status.WaitEngine},
		{fmt.Errorf("pipe: %w", syscall.EMFILE), status.WaitEngine},
		{fileops.Fail(fileops.ErrEngine, stopped{}, ""), status.WaitEngine},

		{fileops.Fail(fileops.ErrEngine, errors.New("exit code 1"), ""), ""},
		{fileops.Fail(fileops.ErrCorruptInput, stopped{}, ""), ""},
		{fileops.Fail(fileops.ErrLimit, syscall.ENOMEM, ""), ""},
		{fileops.Fail(fileops.ErrPasswordRequired, nil, ""), ""},
		{ErrInputGone, ""},
		{errors.New("a bug"), ""},
	} {
		if got := waitReason(tt.err); got != tt.want {
			t.Errorf("%v: it waits for %q, want %q", tt.err, got, tt.want)
		}
	}
}
