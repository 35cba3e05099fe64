package mediaops

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
)

// A pass is one run of ffmpeg within a job.
type pass struct {
	// out is called within a recover and returns the output node.
	out func() node

	path     string  // what it writes
	limit    int64   // how large that may get; a full file fails with errFull
	expected float64 // seconds of output, 0 if not known

	still bool // it writes one picture, so the time of its output says nothing

	// heard is for a run that begins before its input is known: it gives
	// expected then. nil otherwise.
	heard *hearing

	from, to float64 // which part of the job's progress this is
}

// errFull tells that the output reached its limit.
var errFull = errors.New("the output reached its size limit")

// setupError is a failure before anything was encoded: the combination of
// options may be at fault, and others are worth a try.
type setupError struct{ error }

func (e setupError) Unwrap() error { return e.error }

// run runs ffmpeg. Its errors are ready to be returned from an action, except
// for errFull.
func (e *Engine) run(ctx context.Context, job *fileops.Job, p pass) error {
	dir, err := job.Dir()
	if err != nil {
		return err
	}
	inputs, err := job.InputDir()
	if err != nil {
		return err
	}
	args, err := e.arguments(p.out)
	if err != nil {
		return err
	}
	var stderr complaints
	progress := &progress{expected: p.expected, report: func(done float64) { job.Progress(p.from + (p.to-p.from)*done) }}
	job.Log.Debug("run ffmpeg", "args", args)
	outer := ctx
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// What a file says of its duration need not be true.
	progress.most, progress.exceeded = e.maxDuration+1, func() {
		stop(e.checkDuration("the recording takes", math.Inf(1)))
	}
	err = e.start(ctx, p, engine.Cmd{
		Args: args, Dir: dir, Stdout: progress, OnLine: stderr.add,
		Access: engine.Access{Read: []string{inputs}},
		Limits: e.limits.Or(engine.Limits{
			CPU:    e.cpuTime(p.expected),
			Memory: memory,
			// -fs ends a file in order, but is only looked at now and then.
			FileSize: p.limit + 64<<20,
		}),
	}, progress)
	st, statErr := os.Stat(p.path)
	if err != nil && ctx.Err() != nil && outer.Err() == nil {
		return err // for its duration
	}
	ctx = outer
	switch {
	case err != nil && ctx.Err() == nil && statErr == nil && st.Size() >= p.limit:
		return errFull
	case errors.Is(err, errOtherwise):
		return err
	case err != nil:
		err = e.failure(job, err, fileops.ErrEngine)
		if progress.seconds < 1 && fileops.Code(err) != "limit_exceeded" {
			return setupError{err}
		}
		return err
	case errors.Is(statErr, fs.ErrNotExist) || statErr == nil && st.Size() == 0 || progress.none() && e.empty(ctx, dir, p.path):
		return setupError{fileops.Fail(fileops.ErrCorruptInput, stderr.err(), "the file is damaged: nothing in it could be decoded")}
	case statErr != nil:
		return statErr
	case st.Size() >= p.limit:
		return errFull
	}
	if stderr.first != "" {
		job.Log.Info("ffmpeg complained", "stderr", stderr.first, "lines", stderr.n)
	}
	// ffmpeg goes on after errors and reports success. What it could decode is
	// worth having, unless it is but a part.
	expected := progress.expected
	if short := expected - progress.seconds; !p.still && stderr.n > 0 && short > max(0.5, expected/10) {
		return fileops.Fail(fileops.ErrCorruptInput, stderr.err(),
			"the file is damaged or incomplete: only %.1f of %.1f seconds could be read", progress.seconds, expected)
	}
	return nil
}

// cpuTime is how much time of all its threads together a run may take for an
// output of so many seconds.
func (e *Engine) cpuTime(seconds float64) time.Duration {
	if e.limits.CPU > 0 {
		return e.limits.CPU
	}
	return time.Duration(e.threads) * max(10*time.Minute, time.Duration(10*seconds)*time.Second)
}

// start runs ffmpeg and, if it begins before its input is known, hears what that
// is.
func (e *Engine) start(ctx context.Context, p pass, c engine.Cmd, progress *progress) error {
	h := p.heard
	if h == nil {
		c.Args = append([]string{"-v", "error"}, c.Args...)
		return e.ffmpeg.Run(ctx, c)
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	c.Args = append([]string{"-v", "level+info"}, c.Args...)
	complain := c.OnLine
	c.OnLine = func(line string) {
		complaint, err := h.line(line)
		if complaint != "" {
			complain(complaint)
		}
		if err != nil {
			stop(err)
		}
	}
	// Limits can only be lowered later.
	c.Limits.CPU = e.cpuTime(float64(1000 * time.Hour / time.Second))
	proc, err := e.ffmpeg.Start(ctx, c)
	if err != nil {
		return err
	}
	ended, hears := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(hears)
		select {
		case <-h.decided:
			progress.expect(h.seconds)
			if err := proc.Limit(engine.Limits{CPU: e.cpuTime(h.seconds)}); err != nil {
				stop(err)
			}
		case <-time.After(beforeHeard):
			stop(errOtherwise)
		case <-ended:
		}
	}()
	err = proc.Wait()
	close(ended)
	<-hears
	if err == nil && !h.agreed {
		return errOtherwise
	}
	progress.expect(h.seconds) // it may have ended before anybody looked
	return err
}

// failure turns an error of ffmpeg or ffprobe into one that can be shown. kind is
// used if its output tells nothing.
func (e *Engine) failure(job *fileops.Job, err error, kind error) error {
	var x *engine.ExitError
	if !errors.As(err, &x) {
		return err
	}
	job.Log.Warn("engine failed", "err", x.Error(), "stderr", x.Stderr)
	says := func(texts ...string) bool {
		for _, t := range texts {
			if strings.Contains(x.Stderr, t) {
				return true
			}
		}
		return false
	}
	switch {
	case says("No space left on device"):
		return fmt.Errorf("%w: %w", syscall.ENOSPC, err)
	case x.Limit(), x.Signal == syscall.SIGKILL, says("received signal 24"), x.Code == 255 && !says("not permitted"): // the kernel's answer to too much CPU time, and ffmpeg's to that
		return fileops.Fail(fileops.ErrLimit, err, "processing the file takes more %s than is allowed; try a shorter or smaller one", cmp.Or(x.Which(), "processor time"))
	case says("exceeds specified max pixel count", "exceeds max_streams", "Cannot allocate memory", "Value too large", "failed to map segment"):
		return fileops.Fail(fileops.ErrLimit, err, "the file needs more memory than is allowed; try a smaller one")
	case says("Decoder (codec", "Unknown decoder", "No decoder could be found"):
		return fileops.Fail(fileops.ErrUnsupportedInput, err, "the file uses a codec that cannot be read here")
	case says("Invalid data found", "moov atom not found", "End of file", "could not find codec parameters", "parsing failed", "not in whitelist", "not on whitelist"):
		return fileops.Fail(fileops.ErrCorruptInput, err, "the file is damaged or incomplete")
	case errors.Is(kind, fileops.ErrCorruptInput):
		return fileops.Fail(fileops.ErrCorruptInput, err, "the file is damaged or incomplete")
	}
	return fileops.Fail(kind, err, "")
}

// tooLarge is what errFull means to users.
func (e *Engine) tooLarge() error {
	return fileops.Fail(fileops.ErrLimit, errFull, "the result would have more than the limit of %d bytes; choose a part of the recording, or a format that is smaller", e.maxOutput)
}

// complaints keeps the first line of standard error and counts the others.
type complaints struct {
	first string
	n     int
}

func (c *complaints) add(line string) {
	if c.n++; c.n == 1 {
		c.first = line
	}
}

func (c *complaints) err() error {
	if c.first == "" {
		return nil
	}
	return errors.New(c.first)
}

// progress reads what -progress writes: lines of key=value. out_time_us is how
// much of the output is written, in microseconds ("N/A" before the first
// packet; negative while an encoder fills its delay).
type progress struct {
	report func(done float64) // from 0 to 1

	most     float64 // seconds from which exceeded is called
	exceeded func()

	mu       sync.Mutex
	expected float64 // seconds of output, 0 if not known
	line     []byte
	seconds  float64
	frames   bool // some picture was written
	ended    bool
}

// expect tells how many seconds there will be.
func (p *progress) expect(seconds float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = seconds
}

// none tells whether ffmpeg has ended without a picture and without any time
// having passed. That may be a sound shorter than a packet, or nothing.
func (p *progress) none() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended && !p.frames && p.seconds == 0
}

// empty tells whether a file that ffmpeg wrote has no packet that could be read: for some
// damaged inputs it makes a container with nothing in it and is content.
func (e *Engine) empty(ctx context.Context, dir, path string) bool {
	var out bytes.Buffer
	err := e.ffprobe.Run(ctx, engine.Cmd{
		Args: []string{"-v", "error", "-read_intervals", "%+#1", "-show_entries", "packet=size", "-of", "csv=p=0", "file:" + path},
		Dir:  dir, Stdout: &out,
		Limits: e.limits.Or(engine.Limits{CPU: time.Minute, Memory: memory, FileSize: 1 << 20}),
	})
	if ctx.Err() != nil {
		return false
	}
	return err != nil || len(bytes.TrimSpace(out.Bytes())) == 0
}

// Write implements io.Writer.
func (p *progress) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.line = append(p.line, b...)
	for {
		line, rest, ok := bytes.Cut(p.line, []byte("\n"))
		if !ok {
			break
		}
		p.line = rest
		if v, ok := bytes.CutPrefix(line, []byte("out_time_us=")); ok {
			if us, err := strconv.ParseInt(strings.TrimSpace(string(v)), 10, 64); err == nil && us > 0 {
				p.seconds = max(p.seconds, float64(us)/1e6)
				if p.exceeded != nil && p.seconds > p.most {
					p.exceeded()
				}
				if p.expected > 0 {
					p.report(min(p.seconds/p.expected, 1))
				}
			}
		}
		if v, ok := bytes.CutPrefix(line, []byte("frame=")); ok && strings.Trim(string(v), "0 ") != "" {
			p.frames = true
		}
		if bytes.HasPrefix(line, []byte("progress=end")) {
			p.ended = true
		}
	}
	if len(p.line) > 4096 {
		p.line = nil
	}
	return len(b), nil
}
