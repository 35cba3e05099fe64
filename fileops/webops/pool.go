package webops

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/internal/worktime"
)

var errClosed = errors.New("webops: the engine is closed")

// errCrashed says that a browser or the process of a page ended by itself.
var errCrashed error = crash{}

type crash struct{}

func (crash) Error() string { return "the browser crashed" }

// Crashed tells those who count such ends.
func (crash) Crashed() bool { return true }

// A pool keeps one browser, which several documents share, each in a browser
// context of its own. A browser that is not good any more gets no new
// documents; it is stopped when the last one has left it.
type pool struct {
	prog  *engine.Program
	opts  Options
	ctx   context.Context // done when the pool is closed
	end   context.CancelCauseFunc
	turns chan struct{}  // held by each document
	wg    sync.WaitGroup // of the browsers

	mu       sync.Mutex
	current  *browser
	starting chan struct{} // closed when the start that is under way has ended; nil if none is
	startErr error         // of the last start
}

func newPool(prog *engine.Program, o Options) *pool {
	ctx, end := context.WithCancelCause(context.Background())
	return &pool{prog: prog, opts: o, ctx: ctx, end: end, turns: make(chan struct{}, o.Workers)}
}

// use calls do with a browser. If that crashes, do is called once more with a
// browser of its own, so that a document which makes browsers crash does that to
// others once at most.
func (p *pool) use(ctx context.Context, do func(context.Context, *browser) error) error {
	select {
	case p.turns <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-p.ctx.Done():
		return p.closed()
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
	if b, err = p.start(); err != nil {
		return err
	}
	ctx, cancel = p.limited(outer, b.proc.Work())
	defer cancel()
	err = p.watched(ctx, b, do)
	b.stop()
	return p.verdict(ctx, b, err)
}

// limited returns a context for one document, whose work m measures.
func (p *pool) limited(ctx context.Context, m worktime.Meter) (context.Context, context.CancelFunc) {
	limit := p.opts.Timeout
	return worktime.Context(ctx, limit, fileops.Fail(fileops.ErrLimit, nil, "the document took longer than the limit of %v", limit), m)
}

// watched calls do and watches the memory of the browser meanwhile.
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

// verdict returns the error for whoever sent the document.
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

// get returns the current browser, started if need be.
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
			// Not bound to ctx: others may be waiting for it, too.
			go func() {
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

// put returns a browser after a document that ended with err.
func (p *pool) put(ctx context.Context, b *browser, err error) {
	large := b.proc.Memory() > p.opts.RecycleMemory
	p.mu.Lock()
	b.users--
	switch {
	case b.retired != "":
	case err != nil && ctx.Err() != nil:
		b.retired = "stopped" // the page may be busy for ever
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
		b.proc.Kill() // the rest need not be waited for
	}
}

// warm starts the browser if it does not run.
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

// close ends all browsers and waits for that.
func (p *pool) close() {
	p.mu.Lock()
	p.end(errClosed)
	p.mu.Unlock()
	p.wg.Wait()
}
