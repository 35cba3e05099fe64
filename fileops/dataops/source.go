package dataops

import (
	"bytes"
	"context"
	"errors"
	"io"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"
	"golang.org/x/text/encoding/unicode"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/charset"
)

// chunk is the number of bytes to read at once.
const chunk = 64 << 10

// A source is an input whose text can be read several times.
type source struct {
	ctx    context.Context // context of the run, which the source does not outlive
	job    *fileops.Job
	enc    encoding.Encoding // nil if the bytes are valid UTF-8
	skip   int64             // bytes of a byte order mark
	passes int               // expected number of reads of the text, for the progress
	read   int64
}

// newSource detects the encoding of the only input of job.
func newSource(ctx context.Context, job *fileops.Job) (*source, error) {
	s := &source{ctx: ctx, job: job, passes: 1}
	r := job.Input().Reader()
	buf := make([]byte, chunk)
	n, err := io.ReadFull(r, buf[:4])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, err
	}
	chosen, err := charset.Encoding(job.Params)
	if err != nil {
		return nil, err
	}
	switch head := buf[:n]; {
	case bytes.HasPrefix(head, []byte("\xef\xbb\xbf")):
		s.skip = 3
	case chosen != nil:
		s.enc = chosen
		if mark := string(head[:min(n, 2)]); charset.Name(chosen) == "utf-16le" && mark == "\xff\xfe" || charset.Name(chosen) == "utf-16be" && mark == "\xfe\xff" {
			s.skip = 2
		}
		return s, nil
	case len(head) > 0 && head[0] >= 0xfe, bytes.HasPrefix(head, []byte("\x00\x00\xfe\xff")):
		// A byte order mark of UTF-16 or UTF-32; 0xfe and 0xff do not occur in UTF-8.
		if s.enc = charset.Detect(head); s.enc != charmap.Windows1252 {
			return s, nil
		}
	}
	if err := s.detect(r, buf, n); err != nil {
		return nil, err
	}
	return s, nil
}

// detect finds the encoding of a text without a byte order mark of UTF-16 or UTF-32. The first n bytes
// of buf were read from r.
func (s *source) detect(r io.Reader, buf []byte, n int) error {
	// An invalid character among thousands of valid characters does not indicate another
	// encoding. In other encodings, valid UTF-8 sequences are rare.
	good, bad := 0, 0
	var strange []byte // the first chunk that is not UTF-8
	first := true
	for eof := false; !eof; {
		if err := s.ctx.Err(); err != nil {
			return err
		}
		m, err := r.Read(buf[n:])
		if eof = errors.Is(err, io.EOF); err != nil && !eof {
			return err
		}
		rest := buf[:n+m]
		if !eof {
			// A character may continue in the next chunk.
			rest = rest[:len(rest)-unfinished(rest)]
		}
		if first && bytes.IndexByte(rest, 0) >= 0 && s.skip == 0 {
			if enc := charset.Detect(rest); charset.IsUTF16(enc) { // without a mark
				s.enc = enc
				s.warn()
				return nil
			}
		}
		first = false
		kept := bytes.Clone(buf[len(rest) : n+m])
		if !utf8.Valid(rest) {
			if bad == 0 {
				strange = bytes.Clone(rest)
			}
			g, b := count(rest)
			good, bad = good+g, bad+b
		} else if bad > 0 || !ascii(rest) {
			g, _ := count(rest)
			good += g
		}
		n = copy(buf, kept)
	}
	switch {
	case bad == 0:
		s.enc = nil
	case s.skip > 0 || good > bad:
		s.enc = unicode.UTF8 // broken bytes become U+FFFD
	default:
		s.enc = charset.Detect(strange)
		s.warn()
	}
	return nil
}

// warn warns that the encoding was guessed.
func (s *source) warn() {
	s.job.Warn(fileops.WarnEncodingGuessed, "The text is not UTF-8; it was read as %s.", charset.Name(s.enc))
}

func ascii(b []byte) bool {
	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// count returns the number of non-ASCII characters and of invalid bytes.
func count(b []byte) (good, bad int) {
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			bad++
		} else {
			good++
		}
		i += n
	}
	return good, bad
}

// unfinished returns the length of an incomplete character at the end of b.
func unfinished(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if c := b[len(b)-n]; utf8.RuneStart(c) {
			if utf8.FullRune(b[len(b)-n:]) {
				return 0
			}
			return n
		}
	}
	return 0
}

// text returns a reader of the whole text in valid UTF-8, without a byte order
// mark.
func (s *source) text() io.Reader {
	r := s.job.Input().Reader()
	if _, err := r.Seek(s.skip, io.SeekStart); err != nil {
		return errorReader{err}
	}
	in := &sourceReader{s, r}
	if s.enc == nil {
		return in
	}
	return s.enc.NewDecoder().Reader(in)
}

// A sourceReader stops when the context is done, and reports progress.
type sourceReader struct {
	s *source
	r io.Reader
}

func (r *sourceReader) Read(p []byte) (int, error) {
	if err := r.s.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := r.r.Read(p)
	r.s.read += int64(n)
	if total := r.s.job.Input().Size() * int64(r.s.passes); total > 0 {
		r.s.job.Progress(0.99 * min(1, float64(r.s.read)/float64(total)))
	}
	return n, err
}

type errorReader struct{ err error }

func (r errorReader) Read([]byte) (int, error) { return 0, r.err }
