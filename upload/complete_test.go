package upload_test

import (
	"errors"
	"io/fs"
	"strings"
	"testing"

	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
)

func TestComplete(t *testing.T) {
	t.Parallel()
	each(t, upload.Options{}, func(t *testing.T, e *env) {
		ctx := t.Context()
		f, urls := e.start(12, 3)
		a, b, c := e.put(urls[0], []byte("aaaa")), e.put(urls[1], []byte("bbbb")), ""
		complete := func(parts []blob.Part) error {
			_, _, err := e.Complete(ctx, "alice", f.Key, f.Object, f.UploadID, parts)
			return err
		}
		wantPart := func(name string, parts []blob.Part, kind error, part int) {
			t.Helper()
			err := complete(parts)
			wantKind(t, name, err, kind)
			var e *upload.Error
			if errors.As(err, &e) && e.Part != part {
				t.Errorf("%s: %v is about part %d, want %d", name, err, e.Part, part)
			}
			if errors.Is(kind, blob.ErrPart) && !errors.Is(err, blob.ErrPart) {
				t.Errorf("%s: %v does not match blob.ErrPart", name, err)
			}
		}
		wantPart("part 3 not there, listed", list(a, b, a), upload.ErrMissingPart, 3)
		wantPart("part 3 not there, not listed", list(a, b), upload.ErrMissingPart, 3)
		c = e.put(urls[2], []byte("cc"))
		wantPart("too small", list(a, b, c), upload.ErrSizeMismatch, 0)
		c = e.put(urls[2], []byte("cccc"))
		p := func(n int, etag string) blob.Part { return blob.Part{Number: n, ETag: etag} }
		wantPart("empty list", nil, upload.ErrMissingPart, 1)
		wantPart("first not listed", []blob.Part{p(2, b), p(3, c)}, upload.ErrMissingPart, 1)
		wantPart("middle not listed", []blob.Part{p(1, a), p(3, c)}, upload.ErrMissingPart, 2)
		wantPart("last not listed", list(a, b), upload.ErrMissingPart, 3)
		wantPart("unknown", list(a, b, c, c), upload.ErrMissingPart, 4)
		wantPart("order", []blob.Part{p(2, b), p(1, a), p(3, c)}, upload.ErrPartOrder, 1)
		wantPart("twice", []blob.Part{p(1, a), p(1, a), p(2, b), p(3, c)}, upload.ErrPartOrder, 1)
		wantPart("from zero", []blob.Part{p(0, a), p(1, b), p(2, c)}, upload.ErrPartOrder, 0)
		wantPart("negative", []blob.Part{p(-1, a), p(2, b), p(3, c)}, upload.ErrPartOrder, -1)
		wantPart("ETag of another", list(a, a, c), upload.ErrPartETag, 2)
		wantPart("no ETag", list(a, b, ""), upload.ErrPartETag, 3)
		wantPart("strange ETag", list("\xff", b, c), upload.ErrPartETag, 1)
		old := b
		b = e.put(urls[1], []byte("BBBB"))
		wantPart("ETag of before", list(a, old, c), upload.ErrPartETag, 2)

		for name, err := range map[string]error{
			"object_name": second(e.Complete(ctx, "alice", f.Key, "files/x", f.UploadID, list(a, b, c))),
			"upload_id":   second(e.Complete(ctx, "alice", f.Key, f.Object, "x", list(a, b, c))),
		} {
			wantKind(t, name, err, upload.ErrInvalid)
		}
		for name, err := range map[string]error{
			"other owner": second(e.Complete(ctx, "bob", f.Key, f.Object, f.UploadID, list(a, b, c))),
			"unknown key": second(e.Complete(ctx, "alice", strings.Repeat("a", 26), "", "", list(a, b, c))),
			"strange key": second(e.Complete(ctx, "alice", "../../etc/passwd", "", "", list(a, b, c))),
		} {
			wantKind(t, name, err, fs.ErrNotExist)
		}
		_, _, err := e.Open(ctx, "alice", f.Key)
		wantKind(t, "Open before completion", err, upload.ErrIncomplete)

		lenient := list(`"`+strings.ToUpper(a)+`"`, b, " "+c)
		done, again, err := e.Complete(ctx, "alice", f.Key, "", "", lenient)
		if err != nil || again {
			t.Fatalf("Complete = %v, %v", again, err)
		}
		if string(e.content(done)) != "aaaaBBBBcccc" {
			t.Errorf("content is %q", e.content(done))
		}
		// Completing again succeeds with any list, but only for the same upload.
		for _, parts := range [][]blob.Part{list(a, b, c), nil} {
			f2, again, err := e.Complete(ctx, "alice", f.Key, f.Object, f.UploadID, parts)
			if err != nil || !again || f2.ETag != done.ETag {
				t.Errorf("Complete again = %+v, %v, %v", f2, again, err)
			}
		}
		wantKind(t, "upload_id", second(e.Complete(ctx, "alice", f.Key, f.Object, "x", nil)), upload.ErrInvalid)
		wantKind(t, "other owner", second(e.Complete(ctx, "bob", f.Key, "", "", nil)), fs.ErrNotExist)
	})
}

func second(_ *upload.File, _ bool, err error) error { return err }
