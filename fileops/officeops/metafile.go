package officeops

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

var errMetafile = errors.New("the records of the metafile end too early")

// checkMetafile returns an error if the records of a metafile do not reach the last one
// ([MS-EMF] 2.3.4.1, [MS-WMF] 2.3.2.1).
func checkMetafile(ctx context.Context, f *fileops.File) error {
	r := bufio.NewReader(fileops.ContextReader(ctx, f.Reader()))
	err := eachRecord(r, f.Format() == format.EMF)
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return damaged(err)
	}
	return nil
}

// eachRecord reads records up to the last one.
func eachRecord(r *bufio.Reader, enhanced bool) error {
	le := binary.LittleEndian
	if !enhanced {
		if head, err := r.Peek(4); err == nil && bytes.Equal(head, []byte("\xd7\xcd\xc6\x9a")) {
			if _, err := r.Discard(22); err != nil {
				return errMetafile
			}
		}
		if _, err := r.Discard(18); err != nil {
			return errMetafile
		}
	}
	for {
		head := make([]byte, 8)
		if !enhanced {
			head = head[:6]
		}
		if _, err := io.ReadFull(r, head); err != nil {
			return errMetafile
		}
		size, last := int64(le.Uint32(head))*2, false
		if enhanced {
			size, last = int64(le.Uint32(head[4:])), le.Uint32(head) == 14
		} else {
			last = le.Uint16(head[4:]) == 0
		}
		if last {
			return nil
		}
		if size < int64(len(head)) {
			return errMetafile
		}
		if _, err := io.CopyN(io.Discard, r, size-int64(len(head))); err != nil {
			return errMetafile
		}
	}
}
