package httpapi

import (
	"io"
	"math"
	"net/http"
	"time"
)

// A pace is the slowest permitted client, when it sends a body and when it reads a response. A
// client may pause for at most stall. It may be slower than rate while its credit lasts, which is
// at most stall. So the average over stall counts, whatever the size of the body.
type pace struct {
	rate  float64 // bytes per second; 0: any progress
	stall time.Duration
}

// A credit is the time that a client may continue without a byte.
type credit struct {
	pace
	left time.Duration
}

// spend records that n bytes took d.
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

// worth returns the time in which n bytes pass at the least rate.
func (c *credit) worth(n int64) time.Duration {
	if c.rate <= 0 {
		return 0
	}
	return time.Duration(min(float64(n)/c.rate, 1e6) * float64(time.Second))
}

// slack is the tolerated error of a deadline, as a fraction of the credit. It avoids setting the
// deadline again for every few bytes.
const slack = 32

// A pacedBody is the body of a request whose sender must keep a pace. Only the time spent waiting
// for the client counts. The deadline is that of the connection or stream; some connections have no
// deadline.
type pacedBody struct {
	io.ReadCloser
	rc     *http.ResponseController
	credit credit
	until  time.Time // the current deadline; zero: none
	sticky bool      // a deadline that expires between two reads fails the body (HTTP/2)
	ended  bool      // everything was read, or a read failed
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
			// The server keeps reading, to detect that the client disconnects.
			b.rc.SetReadDeadline(time.Time{})
		}
	case b.sticky:
		b.until = time.Time{}
		b.rc.SetReadDeadline(time.Time{})
	}
	return n, err
}

// finish runs after the response. The server discards a short rest of an unread body in order to
// reuse the connection. It must not wait for the rest forever.
func (b *pacedBody) finish() {
	if !b.ended {
		b.rc.SetReadDeadline(time.Now().Add(min(b.credit.stall, 5*time.Second)))
	}
}

// Sizes of the pieces of a response. The writer updates the deadline between two pieces.
const (
	maxPiece = 256 << 10
	minPiece = 4 << 10
)

// piece returns the bytes to send at once: the slowest client reads them in a quarter of stall.
func (p pace) piece() int64 {
	if p.rate <= 0 {
		return 4 * minPiece
	}
	return min(max(int64(p.rate*p.stall.Seconds()/4), minPiece), maxPiece)
}

// A pacedWriter adjusts the write deadline of a response to the pace of the client.
type pacedWriter struct {
	http.ResponseWriter
	rc     *http.ResponseController
	credit credit
	until  time.Time // the current deadline; zero: none was set
}

// before extends the deadline by the time that n bytes may take.
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

// ReadFrom copies src in pieces, so that files are still sent with sendfile.
func (w *pacedWriter) ReadFrom(src io.Reader) (total int64, err error) {
	all, ok := src.(*io.LimitedReader)
	if !ok {
		all = &io.LimitedReader{R: src, N: math.MaxInt64}
	}
	step := w.credit.piece()
	for all.N > 0 {
		// A LimitedReader around a LimitedReader would prevent sendfile.
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

// idle removes the deadline while there is nothing to write: with HTTP/2 an expired deadline would
// end the response.
func (w *pacedWriter) idle() {
	w.until = time.Time{}
	w.rc.SetWriteDeadline(time.Time{})
}

// finish runs after the response. The server may still hold unsent bytes, so the deadline remains.
// Only a server that sets its own deadline for each response replaces it before the next response.
func (w *pacedWriter) finish(r *http.Request) {
	if w.until.IsZero() {
		return
	}
	if srv, ok := r.Context().Value(http.ServerContextKey).(*http.Server); !ok || srv.WriteTimeout <= 0 {
		w.rc.SetWriteDeadline(time.Time{})
	}
}

// Unwrap supports http.ResponseController.
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
