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
	// out is called with a recover and returns the output node.
	out func() node

	path     string  // of the output
	null     bool    // nothing is written
	limit    int64   // maximum size of the output; reaching it fails with errFull
	expected float64 // seconds of output, 0 if unknown
	declared float64 // seconds of output by a reliable record in the input, 0 if there is none

	info   func(line string) // called with the lines of standard error that are not complaints; nil means none
	length *float64          // set to the seconds of output; may be nil

	still bool // it writes one picture, so the output time means nothing

	// rate is the frames per second of an output whose encoder writes all frames as one
	// packet. Their number then stands for the output time, which stays at 0.
	rate float64

	// heard is set for a run that starts before its input is known. It then replaces
	// expected.
	heard *hearing

	from, to float64 // range of the job's progress that this pass covers
}

// errFull reports that the output reached its limit.
var errFull = errors.New("the output reached its size limit")

// setupError is a failure before anything was encoded. The combination of options may be
// the reason, so other options are worth a try.
type setupError struct{ error }

func (e setupError) Unwrap() error { return e.error }

// run runs ffmpeg. Its errors can be returned from an action, except errFull.
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
	progress := &progress{expected: p.expected, rate: p.rate, report: func(done float64) { job.Progress(p.from + (p.to-p.from)*done) }}
	job.Log.Debug("run ffmpeg", "args", args)
	outer := ctx
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	// The duration that a file declares need not be true.
	progress.most, progress.exceeded = e.maxDuration+1, func() {
		stop(e.checkDuration("the recording takes", math.Inf(1)))
	}
	err = e.start(ctx, p, engine.Cmd{
		Args: args, Dir: dir, Stdout: progress, OnLine: stderr.add,
		Access: engine.Access{Read: []string{inputs}},
		Limits: e.limits.Or(engine.Limits{
			CPU:    e.cpuTime(p.expected),
			Memory: memory,
			// -fs ends a file cleanly, but ffmpeg checks it only now and then.
			FileSize: p.limit + 64<<20,
		}),
	}, progress)
	if p.heard != nil {
		p.declared = p.heard.declared
	}
	st, statErr := os.Stat(p.path)
	if err != nil && ctx.Err() != nil && outer.Err() == nil {
		return err // because of its duration
	}
	ctx = outer
	if p.length != nil {
		*p.length = progress.seconds
	}
	if p.null && err == nil {
		return nil
	}
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
	case p.declared >= 2 && progress.seconds < p.declared/20:
		return fileops.Fail(fileops.ErrCorruptInput, stderr.err(),
			"the file is damaged or incomplete: only %.1f of %.1f seconds could be read", progress.seconds, p.declared)
	case errors.Is(statErr, fs.ErrNotExist) || statErr == nil && st.Size() == 0 || progress.none() && e.empty(ctx, dir, p.path):
		return setupError{fileops.Fail(fileops.ErrCorruptInput, stderr.err(), "the file is damaged: nothing in it could be decoded")}
	case statErr != nil:
		return statErr
	case st.Size() >= p.limit:
		return errFull
	}
	return judgeDecoding(job, p, progress, &stderr)
}

// judgeDecoding decides about a result that ffmpeg wrote although it met errors: ffmpeg continues after
// errors and reports success. What it decoded is kept, unless a large part is missing.
func judgeDecoding(job *fileops.Job, p pass, progress *progress, stderr *complaints) error {
	if stderr.first != "" {
		job.Log.Info("ffmpeg reported errors", "stderr", stderr.first, "lines", stderr.n)
	}
	expected := progress.expected
	if short := expected - progress.seconds; !p.still && stderr.n > 0 && short > max(0.5, expected/10) {
		return fileops.Fail(fileops.ErrCorruptInput, stderr.err(),
			"the file is damaged or incomplete: only %.1f of %.1f seconds could be read", progress.seconds, expected)
	}
	switch short := p.declared - progress.seconds; {
	case p.still:
	case short > max(1, p.declared/50), short > 0.5 && stderr.damage:
		job.Warn(fileops.WarnContentDropped, "The file is damaged or incomplete: only %.1f of %.1f seconds could be read.", progress.seconds, p.declared)
	case stderr.damage:
		job.Warn(fileops.WarnContentDropped, "The file is damaged; parts of it could not be read.")
	}
	return nil
}

// cpuTime returns the limit of processor time, all threads together, for an output of
// the given seconds.
func (e *Engine) cpuTime(seconds float64) time.Duration {
	if e.limits.CPU > 0 {
		return e.limits.CPU
	}
	return time.Duration(e.threads) * max(10*time.Minute, time.Duration(10*seconds)*time.Second)
}

// start runs ffmpeg. If p.heard is set, it also reads ffmpeg's description of the input.
func (e *Engine) start(ctx context.Context, p pass, c engine.Cmd, progress *progress) error {
	h := p.heard
	if h == nil && p.info == nil {
		c.Args = append([]string{"-v", "error"}, c.Args...)
		return e.ffmpeg.Run(ctx, c)
	}
	if h == nil {
		c.Args = append([]string{"-v", "level+info"}, c.Args...)
		complain := c.OnLine
		c.OnLine = func(line string) {
			if m := saidLevel.FindStringSubmatch(line); len(m) > 1 && m[1] != "info" && m[1] != "warning" {
				complain(line)
				return
			}
			p.info(line)
		}
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
	progress.expect(h.seconds) // it may have ended before this point
	return err
}

// failure converts an error of ffmpeg or ffprobe to an error for users. kind is the
// default if the output does not show the reason.
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
	case x.Limit(), x.Signal == syscall.SIGKILL, says("received signal 24"), x.Code == 255 && !says("not permitted"): // the kernel's signal for too much CPU time, and ffmpeg's exit code for it
		return fileops.Fail(fileops.ErrLimit, err, "processing the file takes more %s than is allowed; try a shorter or smaller one", cmp.Or(x.Which(), "processor time"))
	case says("exceeds specified max pixel count", "exceeds max_streams", "Cannot allocate memory", "Value too large", "failed to map segment"):
		return fileops.Fail(fileops.ErrLimit, err, "the file needs more memory than is allowed; try a smaller one")
	case says("Decoder (codec", "Unknown decoder", "No decoder could be found"):
		return fileops.Fail(fileops.ErrUnsupportedInput, err, "the file uses a codec that cannot be read here")
	case says("not currently supported in container"):
		return fileops.Fail(fileops.ErrUnsupportedInput, err, "the file uses a codec that cannot be written to its format here")
	case says("Invalid data found", "moov atom not found", "End of file", "could not find codec parameters", "parsing failed", "not in whitelist", "not on whitelist"):
		return fileops.Fail(fileops.ErrCorruptInput, err, "the file is damaged or incomplete")
	case errors.Is(kind, fileops.ErrCorruptInput):
		return fileops.Fail(fileops.ErrCorruptInput, err, "the file is damaged or incomplete")
	}
	return fileops.Fail(kind, err, "")
}

// tooLarge returns the user's version of errFull.
func (e *Engine) tooLarge() error {
	return fileops.Fail(fileops.ErrLimit, errFull, "the result would have more than the limit of %d bytes; choose a part of the recording, or a format that is smaller", e.maxOutput)
}

// complaints keeps the first line of standard error and counts the others.
type complaints struct {
	first  string
	n      int
	damage bool // a line says that content could not be read
}

func (c *complaints) add(line string) {
	if strings.HasPrefix(line, "Svt[info]") { // of libsvtav1, which has its own log
		return
	}
	if c.n++; c.n == 1 {
		c.first = line
	}
	c.damage = c.damage || isDamageSign(line)
}

func (c *complaints) err() error {
	if c.first == "" {
		return nil
	}
	return errors.New(c.first)
}

// progress parses the output of -progress: lines of key=value. out_time_us is the length
// of the written output in microseconds ("N/A" before the first packet; negative while
// an encoder fills its delay).
type progress struct {
	report func(done float64) // done is from 0 to 1

	most     float64 // seconds after which exceeded is called
	exceeded func()

	mu       sync.Mutex
	expected float64 // seconds of output, 0 if unknown
	rate     float64 // see pass
	line     []byte
	seconds  float64
	frames   bool // a picture was written
	ended    bool
}

// expect sets the expected seconds of output.
func (p *progress) expect(seconds float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.expected = seconds
}

// none reports whether ffmpeg has ended without a picture and at time zero. The output
// may be a sound shorter than a packet, or nothing.
func (p *progress) none() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.ended && !p.frames && p.seconds == 0
}

// empty reports whether a file of ffmpeg has no readable packet. For some damaged inputs
// ffmpeg writes an empty container and reports success.
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
		if v, ok := bytes.CutPrefix(line, []byte("frame=")); ok {
			n := number(strings.TrimSpace(string(v)))
			p.frames = p.frames || n > 0
			if p.rate > 0 {
				p.seconds = max(p.seconds, n/p.rate)
			}
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
