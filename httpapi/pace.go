package httpapi

import (
	"io"
	"math"
	"net/http"
	"time"
)

// A pace is how slow a client may be, in sending a body and in taking one. It
// may stand still for stall, and be slower than rate for as long as it is ahead
// of it by the same time at most: so what counts is the average over stall,
// however large the body is.
type pace struct {
	rate  float64 // bytes per second; 0: any that is not nothing
	stall time.Duration
}

// A credit is for how long a client may go on without a byte.
type credit struct {
	pace
	left time.Duration
}

// spend records that n bytes have taken d.
func (c *credit) spend(n int64, d time.Duration) {
	switch {
	case c.rate > 0:
		c.left = min(c.stall, c.left-d+c.worth(n))
	case n > 0:
		c.left = c.stall
	default:
		c.left -= d
	}
}

// worth is how long n bytes may take at the least rate.
func (c *credit) worth(n int64) time.Duration {
	if c.rate <= 0 {
		return 0
	}
	return time.Duration(min(float64(n)/c.rate, 1e6) * float64(time.Second))
}

// slack is by how much a deadline may differ from what it should be, as a part
// of the credit: it is not set anew for every few bytes.
const slack = 32

// A pacedBody is the body of a request whose sender must keep up a pace. Only the
// time in which we wait for the client counts. The deadline is that of the
// connection, or of the stream; not every connection has one.
type pacedBody struct {
	io.ReadCloser
	rc     *http.ResponseController
	credit credit
	until  time.Time // the deadline that is set; zero: none
	sticky bool      // a deadline that passes while nobody reads ends the body (HTTP/2)
	ended  bool      // everything was read, or it failed
}

func (b *pacedBody) Read(p []byte) (int, error) {
	if b.ended {
		return b.ReadCloser.Read(p)
	}
	start := time.Now()
	want := start.Add(max(b.credit.left, 0))
	if d := want.Sub(b.until); d.Abs() > b.credit.stall/slack {
		b.until = want
		b.rc.SetReadDeadline(want)
	}
	n, err := b.ReadCloser.Read(p)
	b.credit.spend(int64(n), time.Since(start))
	switch {
	case err != nil:
		b.ended = true
		if err == io.EOF {
			// The server goes on reading, to notice when the client leaves.
			b.rc.SetReadDeadline(time.Time{})
		}
	case b.sticky:
		b.until = time.Time{}
		b.rc.SetReadDeadline(time.Time{})
	}
	return n, err
}

// finish is called when the request is answered. The server reads a short rest
// of a body that nobody wanted, so as to go on with the connection; it must not
// wait for it for ever.
func (b *pacedBody) finish() {
	if !b.ended {
		b.rc.SetReadDeadline(time.Now().Add(min(b.credit.stall, 5*time.Second)))
	}
}

// Sizes of the pieces in which responses are sent, between two looks at the pace.
const (
	mostSent  = 256 << 10
	leastSent = 4 << 10
)

// piece is how many bytes to send at a time: what the slowest client takes a
// quarter of stall for.
func (p pace) piece() int64 {
	if p.rate <= 0 {
		return 4 * leastSent
	}
	return min(max(int64(p.rate*p.stall.Seconds()/4), leastSent), mostSent)
}

// A pacedWriter has the deadline of a response follow the pace of the client.
type pacedWriter struct {
	http.ResponseWriter
	rc     *http.ResponseController
	credit credit
	until  time.Time // the deadline that is set; zero: none was set
}

// before gives the client the time that n bytes may take.
func (w *pacedWriter) before(n int64) time.Time {
	now := time.Now()
	want := now.Add(max(w.credit.left, 0) + w.credit.worth(n))
	if d := want.Sub(w.until); d.Abs() > w.credit.stall/slack {
		w.until = want
		w.rc.SetWriteDeadline(want)
	}
	return now
}

func (w *pacedWriter) Write(p []byte) (total int, err error) {
	for step := int(w.credit.piece()); ; {
		n := min(len(p), step)
		start := w.before(int64(n))
		k, err := w.ResponseWriter.Write(p[:n])
		w.credit.spend(int64(k), time.Since(start))
		total += k
		if p = p[n:]; err != nil || len(p) == 0 {
			return total, err
		}
	}
}

// ReadFrom passes files on in pieces, so that they still go out by sendfile.
func (w *pacedWriter) ReadFrom(src io.Reader) (total int64, err error) {
	all, ok := src.(*io.LimitedReader)
	if !ok {
		all = &io.LimitedReader{R: src, N: math.MaxInt64}
	}
	step := w.credit.piece()
	for all.N > 0 {
		// A limit around a limit would hide the file from the kernel.
		piece := &io.LimitedReader{R: all.R, N: min(all.N, step)}
		want := piece.N
		start := w.before(want)
		n, err := io.Copy(w.ResponseWriter, piece)
		w.credit.spend(n, time.Since(start))
		all.N -= n
		total += n
		if err != nil || n < want {
			return total, err
		}
	}
	return total, nil
}

// idle ends the deadline while there is nothing to write, because with HTTP/2 it
// would end the response.
func (w *pacedWriter) idle() {
	w.until = time.Time{}
	w.rc.SetWriteDeadline(time.Time{})
}

// finish is called when the request is answered. What the server still holds
// back of the response goes out after that. Only a server that gives every
// response a deadline of its own forgets ours before the next one.
func (w *pacedWriter) finish(r *http.Request) {
	if w.until.IsZero() {
		return
	}
	if srv, ok := r.Context().Value(http.ServerContextKey).(*http.Server); !ok || srv.WriteTimeout <= 0 {
		w.rc.SetWriteDeadline(time.Time{})
	}
}

// Unwrap is for http.ResponseController.
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
