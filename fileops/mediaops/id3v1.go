package mediaops

import (
	"bytes"
	"errors"
	"io"
	"os"
)

// id3v1Size is the size of an ID3v1 tag, the last bytes of a file, which begin with "TAG".
const id3v1Size = 128

// dropID3v1 removes the ID3v1 tag of an MP3 file from its copy. ffmpeg takes the tag for sound, so
// old values would stay in the file, perhaps before a new tag.
func dropID3v1(input, copied string) (err error) {
	in, err := os.Open(input)
	if err != nil {
		return err
	}
	defer in.Close()
	old, err := tail(in, id3v1Size)
	if err != nil || !isID3v1(old) {
		return err
	}
	out, err := os.OpenFile(copied, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	end, err := tail(out, 2*id3v1Size)
	if err != nil || len(end) < 2*id3v1Size {
		return err
	}
	st, err := out.Stat()
	if err != nil {
		return err
	}
	switch before, last := end[:id3v1Size], end[id3v1Size:]; {
	case bytes.Equal(before, old) && isID3v1(last):
		if _, err := out.WriteAt(last, st.Size()-2*id3v1Size); err != nil {
			return err
		}
	case !bytes.Equal(last, old):
		return nil
	}
	return out.Truncate(st.Size() - id3v1Size)
}

func isID3v1(b []byte) bool { return len(b) == id3v1Size && bytes.HasPrefix(b, []byte("TAG")) }

// tail returns the last n bytes of a file, or all if it is shorter.
func tail(f *os.File, n int64) ([]byte, error) {
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	return io.ReadAll(io.NewSectionReader(f, max(0, st.Size()-n), n))
}
