package officeops

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"runtime/debug"
	"runtime/pprof"
	"sync"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/internal/worktime"
)

// A request is one conversion by LibreOffice. worker.py reads its JSON form.
type request struct {
	In        string         `json:"in"`            // path
	Out       string         `json:"out"`           // path; must not exist
	Name      string         `json:"-"`             // original name of the document
	URL       string         `json:"url,omitempty"` // the document's address for LibreOffice, see neutralURL
	Kind      string         `json:"kind"`
	InFilter  string         `json:"inFilter,omitempty"` // "" makes LibreOffice detect the format
	InOptions string         `json:"inOptions,omitempty"`
	Password  string         `json:"password,omitempty"` // of the document
	Filter    string         `json:"filter"`
	Options   string         `json:"options,omitempty"`
	Data      map[string]any `json:"data,omitempty"` // booleans and integers

	AllSheets bool                 `json:"allSheets,omitempty"` // each sheet with content becomes a file, see sheetFile
	onNames   func(names []string) // called with the names of these sheets

	onSheets func(left int) // called if sheets with content are left out; may be nil

	// choose returns the pages of the result, counted from 0, of a document with total
	// pages. nil selects all.
	choose    func(total int) ([]int, error)
	Choose    bool `json:"choose,omitempty"`    // choose is not nil
	HiddenToo bool `json:"hiddenToo,omitempty"` // hidden slides are pages

	MaxRows     int    `json:"maxRows,omitempty"` // fail if a sheet has more; 0 means no limit
	MaxColumns  int    `json:"maxColumns,omitempty"`
	Widest      int    `json:"widest,omitempty"` // fit column widths, up to this many 1/100 mm; 0 keeps the widths
	SheetName   string `json:"sheetName,omitempty"`
	FitTo       string `json:"fitTo,omitempty"`       // how sheets fit on pages: "width", "page" or "none"
	Orientation string `json:"orientation,omitempty"` // of all pages; "" keeps it
	Changes     string `json:"changes,omitempty"`     // what happens to tracked changes; "" keeps their display
	Indexes     bool   `json:"indexes,omitempty"`     // update tables of contents and other indexes
	Sheets      string `json:"sheets,omitempty"`      // names or numbers of the sheets to print; "" means all
	Sheet       string `json:"sheet,omitempty"`       // name or number of the sheet that becomes text; "" means the first
	FitPictures bool   `json:"fitPictures,omitempty"`
	FitPage     bool   `json:"fitPage,omitempty"`  // give the page of a drawing the size of its content
	ISODates    bool   `json:"isoDates,omitempty"` // show dates as in ISO 8601

	More    []addition `json:"more,omitempty"`    // documents to append
	Scratch string     `json:"scratch,omitempty"` // path prefix of temporary files for that
}

// An addition is a document to append to another document.
type addition struct {
	In       string `json:"in"`
	Name     string `json:"-"`
	URL      string `json:"url,omitempty"`
	InFilter string `json:"inFilter,omitempty"`
	Password string `json:"password,omitempty"`
}

// Kinds of documents, with the names that worker.py uses.
const (
	kindText    = "text"
	kindSheet   = "sheet"
	kindSlides  = "slides"
	kindDrawing = "drawing"
)

var (
	errClosed  = fileops.Fail(fileops.ErrUnavailable, nil, "the office engine was closed")
	errCrashed = error(crash{})
	errSlow    = errors.New("the LibreOffice process did not respond in time")
)

type crash struct{}

func (crash) Error() string { return "the LibreOffice process ended" }

// Crashed marks the error for code that counts crashes.
func (crash) Crashed() bool { return true }

// A pool owns the LibreOffice processes.
type pool struct {
	office, python *engine.Program // python may be nil: then each document gets its own process
	allocator      string          // path of a library; "" for that of the C library. dir changes it
	opts           Options
	startTime      time.Duration // maximum work until a process is ready
	log            *slog.Logger

	ctx    context.Context // done when the pool closes: processes outlive the call that started them
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup // everything that close waits for
	turns  chan struct{}  // held while a document is converted

	prepare sync.Mutex // guards base and ready; held while the first process creates them
	base    string     // directory of all files of the pool; "" until the first process
	ready   bool       // base is complete

	mu     sync.Mutex
	closed bool
	free   []*slot
}

// A slot holds one process, which can be replaced.
type slot struct {
	next *future // nil if no process was started
}

// A future is a worker that is starting.
type future struct {
	done chan struct{}
	w    *worker
	err  error
}

func newPool(office, python *engine.Program, allocator string, o Options) *pool {
	p := &pool{office: office, python: python, allocator: allocator, opts: o, startTime: startTime, log: o.Log, turns: make(chan struct{}, o.Workers)}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	for range o.Workers {
		p.free = append(p.free, new(slot))
	}
	return p
}

// do converts one document. onPhase is called with "loaded" and "stored". It returns when the result is
// complete; LibreOffice may still close the document then.
func (p *pool) do(ctx context.Context, r request, onPhase func(string)) error {
	if !p.enter() {
		return errClosed
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.ctx, func() { cancel(errClosed) })()
	select {
	case p.turns <- struct{}{}:
	case <-ctx.Done():
		p.wg.Done()
		return context.Cause(ctx)
	}
	outcome := make(chan error, 2) // of the document, and perhaps of closing it
	go func() {
		defer p.wg.Done()
		defer func() { <-p.turns }()
		// The caller's context stops the process only until the result is complete.
		working, stop := context.WithCancelCause(context.WithoutCancel(ctx))
		defer stop(nil)
		defer context.AfterFunc(p.ctx, func() { stop(errClosed) })()
		detach := context.AfterFunc(ctx, func() { stop(context.Cause(ctx)) })
		defer detach()
		stored := func() {
			if detach() {
				outcome <- nil
			}
		}
		defer func() {
			if v := recover(); v != nil {
				outcome <- fileops.Fail(fileops.ErrEngine, fmt.Errorf("panic: %v\n%s", v, debug.Stack()), "")
			}
		}()
		outcome <- p.turn(working, r, onPhase, stored)
	}()
	return <-outcome
}

// turn converts one document. The caller has a turn. stored is called when the result is complete and the
// document is being closed; then the returned error does not matter.
func (p *pool) turn(ctx context.Context, r request, onPhase func(string), stored func()) error {
	if p.python == nil {
		return p.oneShot(ctx, r)
	}
	s := p.take()
	defer p.put(s)
	w, err := s.wait(ctx)
	if err != nil && ctx.Err() == nil {
		p.log.Warn("office process did not start; trying again", "err", err)
		p.launch(s)
		w, err = s.wait(ctx)
	}
	complete := false
	if err == nil {
		var stop func()
		ctx, stop = worktime.Context(ctx, p.opts.Timeout, tooLong(p.opts.Timeout), w.office.Work(), w.python.Work())
		defer stop()
		err = w.convert(ctx, r, onPhase, func() {
			complete = true
			stored()
		})
		if reason := w.spent(ctx, err); reason != "" {
			p.log.Info("office process replaced", "reason", reason, "documents", w.documents, "pid", w.office.Pid())
			w.stop() // before the document's directory is removed
			p.launch(s)
		}
	} else if ctx.Err() == nil {
		p.log.Error("office process did not start", "err", err)
		s.next = nil
	}
	if complete {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, errSlow) {
		return fileops.Fail(fileops.ErrUnavailable, err, "LibreOffice could not be started")
	}
	if errors.Is(err, errCrashed) && len(r.More) > 0 { // only the driver can merge them
		return fileops.Fail(fileops.ErrEngine, err, "the documents could not be merged")
	}
	if errors.Is(err, errCrashed) {
		p.log.Warn("document retried in a separate process", "err", err)
		if err := os.Remove(r.Out); err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		return p.oneShot(ctx, r)
	}
	return err
}

// tooLong returns the error for a document that takes more work than limit.
func tooLong(limit time.Duration) error {
	return fileops.Fail(fileops.ErrLimit, nil, "the document took longer than the limit of %v", limit)
}

// enter registers a call that close must wait for. It reports whether the pool is open.
func (p *pool) enter() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.closed {
		p.wg.Add(1)
	}
	return !p.closed
}

// take returns a free slot, preferably one with a process, and starts a process if the
// slot has none. There is a free slot, because the caller has a turn.
func (p *pool) take() *slot {
	p.mu.Lock()
	best := 0
	for i, s := range p.free {
		// Of several ready slots, take the most recently used one: its memory is
		// still in the caches.
		if s.rank() >= p.free[best].rank() {
			best = i
		}
	}
	s := p.free[best]
	p.free = append(p.free[:best], p.free[best+1:]...)
	p.mu.Unlock()
	if s.next == nil || s.broken() {
		p.launch(s)
	}
	return s
}

func (p *pool) put(s *slot) {
	p.mu.Lock()
	p.free = append(p.free, s)
	p.mu.Unlock()
}

func (s *slot) rank() int {
	if s.next == nil {
		return 0
	}
	select {
	case <-s.next.done:
		if s.broken() {
			return 0
		}
		return 2
	default:
		return 1
	}
}

// broken reports whether the process failed to start or has exited.
func (s *slot) broken() bool {
	select {
	case <-s.next.done:
		return s.next.err != nil || s.next.w.gone()
	default:
		return false
	}
}

func (s *slot) wait(ctx context.Context) (*worker, error) {
	f := s.next
	select {
	case <-f.done:
		if f.err != nil {
			return nil, fmt.Errorf("%w: %w", errCrashed, f.err)
		}
		return f.w, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// launch starts a process for s in the background. The caller owns s.
func (p *pool) launch(s *slot) {
	f := &future{done: make(chan struct{})}
	s.next = f
	if !p.enter() {
		f.err = errClosed
		close(f.done)
		return
	}
	go func() {
		defer p.wg.Done()
		defer close(f.done)
		pprof.SetGoroutineLabels(p.ctx) // the process outlives the call that starts it
		f.w, f.err = p.start()
		if f.err == nil {
			p.log.Info("office process started", "pid", f.w.office.Pid())
			p.wg.Go(func() { // whether the pool, a document or something outside stops it
				f.w.reap()
			})
		}
	}()
}

// warm starts the missing processes and waits for all that are not in use.
func (p *pool) warm(ctx context.Context) error {
	if !p.enter() {
		return errClosed
	}
	defer p.wg.Done()
	if p.python == nil {
		_, err := p.dir()
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(p.ctx, func() { cancel(errClosed) })()
	var idle []*slot
	for {
		select {
		case p.turns <- struct{}{}:
			idle = append(idle, p.take())
			continue
		default: // the others are in use, so they were started
		}
		break
	}
	var err error
	for _, s := range idle {
		if err == nil {
			_, err = s.wait(ctx)
		}
		p.put(s)
		<-p.turns
	}
	if err != nil && ctx.Err() == nil {
		return fileops.Fail(fileops.ErrUnavailable, err, "LibreOffice could not be started")
	}
	return err
}

func (p *pool) close() error {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cancel(errClosed)
	p.wg.Wait()
	p.prepare.Lock()
	defer p.prepare.Unlock()
	if p.base == "" {
		return nil
	}
	err := os.RemoveAll(p.base)
	p.base, p.ready = "", false
	return err
}
