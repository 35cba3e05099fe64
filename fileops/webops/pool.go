package webops

import (
	"context"
	"errors"
	"fmt"
	"runtime/pprof"
	"sync"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/internal/worktime"
)

var errClosed = errors.New("webops: the engine is closed")

// errCrashed reports that a browser or the process of a page ended by itself.
var errCrashed error = crash{}

type crash struct{}

func (crash) Error() string { return "the browser crashed" }

// Crashed marks the error for code that counts crashes.
func (crash) Crashed() bool { return true }

// A pool keeps one browser, which several documents share. Each document has its own
// browser context. A browser that has to be replaced gets no new documents and is
// stopped after its last document.
type pool struct {
	prog  *engine.Program
	opts  Options
	ctx   context.Context // done when the pool is closed
	end   context.CancelCauseFunc
	turns chan struct{}  // held by each document
	wg    sync.WaitGroup // counts the browsers

	mu       sync.Mutex
	current  *browser
	starting chan struct{} // closed when the current start has finished; nil if there is none
	startErr error         // of the last start
}

func newPool(prog *engine.Program, o Options) *pool {
	ctx, end := context.WithCancelCause(context.Background())
	return &pool{prog: prog, opts: o, ctx: ctx, end: end, turns: make(chan struct{}, o.Workers)}
}

// turn waits until a document may have a browser. The caller then receives from p.turns.
func (p *pool) turn(ctx context.Context) error {
	select {
	case p.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.ctx.Done():
		return p.closed()
	}
}

// use calls do with the shared browser. If that crashes, use calls do once more with a
// separate browser, so that a document that crashes browsers affects other documents at
// most once.
func (p *pool) use(ctx context.Context, do func(context.Context, *browser) error) error {
	if err := p.turn(ctx); err != nil {
		return err
	}
	defer func() { <-p.turns }()
	b, err := p.get(ctx)
	if err != nil {
		return err
	}
	outer := ctx
	ctx, cancel := p.limited(outer, b.proc.Work())
	defer cancel()
	err = p.watched(ctx, b, do)
	p.put(ctx, b, err)
	if !errors.Is(err, errCrashed) || ctx.Err() != nil {
		return p.verdict(ctx, b, err)
	}
	p.opts.Log.Warn("the browser crashed; the document gets another one of its own", "err", err)
	return p.separately(outer, do)
}

// alone calls do with a separate browser, which is stopped afterwards.
func (p *pool) alone(ctx context.Context, do func(context.Context, *browser) error) error {
	if err := p.turn(ctx); err != nil {
		return err
	}
	defer func() { <-p.turns }()
	return p.separately(ctx, do)
}

// separately is alone without waiting for a turn.
func (p *pool) separately(ctx context.Context, do func(context.Context, *browser) error) error {
	b, err := p.start()
	if err != nil {
		return err
	}
	defer b.stop()
	ctx, cancel := p.limited(ctx, b.proc.Work())
	defer cancel()
	return p.verdict(ctx, b, p.watched(ctx, b, do))
}

// limited returns a context for one document; m measures its work.
func (p *pool) limited(ctx context.Context, m worktime.Meter) (context.Context, context.CancelFunc) {
	limit := p.opts.Timeout
	return worktime.Context(ctx, limit, fileops.Fail(fileops.ErrLimit, nil, "the document took longer than the limit of %v", limit), m)
}

// watched calls do and monitors the memory of the browser.
func (p *pool) watched(ctx context.Context, b *browser, do func(context.Context, *browser) error) error {
	watching, stop := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() { b.watch(watching, p.opts.MemoryLimit) })
	defer wg.Wait()
	defer b.proc.Watch(p.opts.Run)()
	defer stop()
	err := do(ctx, b)
	if errors.Is(err, errGone) {
		err = fmt.Errorf("%w: %w", errCrashed, err)
	}
	return err
}

// verdict converts err to the error for the sender of the document.
func (p *pool) verdict(ctx context.Context, b *browser, err error) error {
	switch {
	case err == nil:
		return nil
	case p.ctx.Err() != nil:
		return p.closed()
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case b.tooLarge.Load():
		return fileops.Fail(fileops.ErrLimit, err, "the document needs more memory than is allowed")
	case b.proc.Exceeded() != "":
		return fileops.Fail(fileops.ErrLimit, err, "the document needs more %s than is allowed", b.proc.Exceeded())
	case errors.Is(err, errCrashed):
		return fileops.Fail(fileops.ErrEngine, err, "the document could not be converted")
	}
	return err
}

func (p *pool) closed() error {
	return fileops.Fail(fileops.ErrUnavailable, errClosed, "the service is shutting down")
}

// get returns the current browser. It starts one if necessary.
func (p *pool) get(ctx context.Context) (*browser, error) {
	for {
		p.mu.Lock()
		if b := p.current; b != nil && !b.ended() {
			b.users++
			b.documents++
			p.mu.Unlock()
			return b, nil
		}
		if p.starting == nil {
			p.starting = make(chan struct{})
			// Independent of ctx, because others may be waiting for the browser too.
			go func() {
				pprof.SetGoroutineLabels(p.ctx) // the browser outlives the call that starts it
				b, err := p.start()
				p.mu.Lock()
				defer p.mu.Unlock()
				p.current, p.startErr = b, err
				close(p.starting)
				p.starting = nil
			}()
		}
		starting := p.starting
		p.mu.Unlock()
		select {
		case <-starting:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		p.mu.Lock()
		err := p.startErr
		p.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
}

// start starts a browser.
func (p *pool) start() (*browser, error) {
	p.mu.Lock()
	if p.ctx.Err() != nil {
		p.mu.Unlock()
		return nil, p.closed()
	}
	p.wg.Add(1)
	p.mu.Unlock()
	b, _, err := startBrowser(p.ctx, p.prog, p.opts)
	if err != nil && p.ctx.Err() == nil {
		p.opts.Log.Warn("the browser did not start; trying again", "err", err)
		b, _, err = startBrowser(p.ctx, p.prog, p.opts)
	}
	if err != nil {
		p.wg.Done()
		if p.ctx.Err() != nil {
			return nil, p.closed()
		}
		return nil, fileops.Fail(fileops.ErrUnavailable, err, "the browser could not be started")
	}
	go func() {
		<-b.done
		p.wg.Done()
	}()
	return b, nil
}

// put releases a browser after a document that ended with err.
func (p *pool) put(ctx context.Context, b *browser, err error) {
	large := b.proc.Memory() > p.opts.RecycleMemory
	p.mu.Lock()
	b.users--
	switch {
	case b.retired != "":
	case err != nil && ctx.Err() != nil:
		b.retired = "stopped" // the page may be busy forever
	case b.ended():
		b.retired = "crashed"
	case b.documents >= p.opts.RecycleAfter:
		b.retired = "count"
	case large:
		b.retired = "memory"
	}
	why, last := b.retired, b.users == 0
	if why != "" && p.current == b {
		p.current = nil
		p.opts.Log.Debug("browser replaced", "why", why, "documents", b.documents)
	}
	p.mu.Unlock()
	if why != "" && last {
		b.proc.Kill() // without waiting for its end
	}
}

// warm starts the browser if it is not running.
func (p *pool) warm(ctx context.Context) error {
	b, err := p.get(ctx)
	if err != nil {
		return err
	}
	p.mu.Lock()
	b.users--
	b.documents--
	p.mu.Unlock()
	return nil
}

// close stops all browsers and waits for them.
func (p *pool) close() {
	p.mu.Lock()
	p.end(errClosed)
	p.mu.Unlock()
	p.wg.Wait()
}
