// Package pdfium runs pdfium, compiled to WebAssembly. A [Pool] runs functions,
// each with its own [Instance]. The function opens a [Document] in it and loads
// pages.
//
// pdfium is isolated from the host: it has no files, no network, and at most 1
// GiB of memory. The memory returns to the system with the instance.
package pdfium

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"runtime"
	"runtime/pprof"
	"sync"
	"time"
	"unicode/utf16"
	_ "unsafe" // for go:linkname

	_ "github.com/klippa-app/go-pdfium/webassembly" // provides the module
	"github.com/klippa-app/go-pdfium/webassembly/imports"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/filewright/filewright/internal/worktime"
)

// This file contains the complete interface to pdfium. It uses go-pdfium for the
// WebAssembly module, and for the functions that the module imports. It does not
// use go-pdfium's Go interface, for three reasons. Its calls use their own
// context, so they cannot be cancelled. It allocates for each character of a
// text. Its memory is on the Go heap.

// pdfiumWasm is the module. go-pdfium does not export it. If a release lacks it,
// linking fails, not running.
//
//go:linkname pdfiumWasm github.com/klippa-app/go-pdfium/webassembly.pdfiumWasm
var pdfiumWasm []byte

// memoryLimit is the largest memory of an instance in bytes: enough for a file,
// pdfium's data structures and one page of 100 megapixels.
const memoryLimit = 1 << 30

// wasmPage is the unit of memory (WebAssembly core specification, 2.5.5).
const wasmPage = 64 << 10

// A library is pdfium compiled for this machine.
type library struct {
	runtime wazero.Runtime
	module  wazero.CompiledModule
	fonts   wazero.FSConfig         // the files that instances can read
	cache   wazero.CompilationCache // nil if there is none

	mu    sync.Mutex
	first *Instance // for the first job; nil if it is in use
}

// newLibrary compiles a module, which takes seconds, or loads it from the cache in dir,
// which may be "". It stops soon after ctx is done.
//
// The runtime does not watch the context (WithCloseOnContextDone), because the
// checks in every loop would make rendering five times slower. [Instance.Within]
// uses another way.
func newLibrary(ctx context.Context, module []byte, dir string, fonts []string) (*library, error) {
	cfg := wazero.NewRuntimeConfig().WithMemoryLimitPages(memoryLimit / wasmPage)
	l := &library{fonts: wazero.NewFSConfig().WithFSMount(findFonts(fonts), "/")}
	var err error
	if dir != "" {
		if l.cache, err = wazero.NewCompilationCacheWithDir(dir); err != nil {
			return nil, fmt.Errorf("cache for pdfium: %w", err)
		}
		cfg = cfg.WithCompilationCache(l.cache)
	}
	l.runtime = wazero.NewRuntimeWithConfig(ctx, cfg)
	fail := func(err error) (*library, error) {
		return nil, errors.Join(fmt.Errorf("start pdfium: %w", err), l.close())
	}
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, l.runtime); err != nil {
		return fail(err)
	}
	// wazero checks the context only if it compiles with several workers.
	workers := experimental.WithCompilationWorkers(ctx, max(2, runtime.GOMAXPROCS(0)))
	if l.module, err = l.runtime.CompileModule(workers, module); err != nil {
		return fail(err)
	}
	if _, err := imports.Instantiate(ctx, l.runtime, l.module); err != nil {
		return fail(err)
	}
	l.nameTypes()
	return l, nil
}

// nameTypes makes wazero compute the type names of the functions that all
// instances share. Otherwise the first call of each would compute them without a
// lock, while another instance reads them.
func (l *library) nameTypes() {
	for _, def := range l.runtime.Module("env").ExportedFunctionDefinitions() {
		if f, ok := def.GoFunction().(fmt.Stringer); ok {
			_ = f.String()
		}
	}
}

func (l *library) close() error {
	var err error
	if in := l.takeFirst(); in != nil {
		err = in.close()
	}
	err = errors.Join(err, l.runtime.Close(context.Background()))
	if l.cache != nil {
		err = errors.Join(err, l.cache.Close(context.Background()))
	}
	return err
}

// An Instance is one pdfium with its own memory and without files. It starts in
// a few milliseconds and serves one job only: a file's effect on pdfium cannot
// reach the next job.
//
// After a failed call, all further calls do nothing and return zero, and Err
// holds the error. An instance must not be used by several goroutines, except
// for kill.
type Instance struct {
	Module api.Module
	memory *linearMemory
	funcs  map[string]api.Function
	stack  [16]uint64
	Out    uint32 // address of the scratch space for results, outSize bytes
	Err    error

	dog  *watchdog // nil before the first limit
	over error     // the cause of a kill by dog

	mu    sync.Mutex
	cause error         // why it was killed
	dead  chan struct{} // closed when it is killed
	gone  bool          // the memory was released
}

// outSize is enough for the results of any function with a fixed number of
// results.
const outSize = 64

// takeFirst returns the instance that was started in advance, or nil.
func (l *library) takeFirst() *Instance {
	l.mu.Lock()
	defer l.mu.Unlock()
	in := l.first
	l.first = nil
	return in
}

// newInstance returns an instance that has not been used.
func (l *library) newInstance() (*Instance, error) {
	if in := l.takeFirst(); in != nil {
		return in, nil
	}
	mem, err := newLinearMemory(memoryLimit)
	if err != nil {
		return nil, fmt.Errorf("reserve memory: %w", err)
	}
	ctx := experimental.WithMemoryAllocator(context.Background(),
		experimental.MemoryAllocatorFunc(func(_, _ uint64) experimental.LinearMemory { return mem }))
	mod, err := l.runtime.InstantiateModule(ctx, l.module, wazero.NewModuleConfig().
		WithName("").WithStartFunctions("_initialize").WithFSConfig(l.fonts).
		WithStdout(io.Discard).WithStderr(io.Discard))
	if err != nil {
		return nil, errors.Join(fmt.Errorf("instantiate pdfium: %w", err), mem.release())
	}
	in := &Instance{Module: mod, memory: mem, funcs: make(map[string]api.Function), dead: make(chan struct{})}
	in.Call("FPDF_InitLibrary")
	in.Out = in.malloc(outSize)
	if in.Err != nil {
		return nil, errors.Join(in.Err, in.close())
	}
	return in, nil
}

func (in *Instance) close() error {
	in.dog.close()
	err := in.Module.Close(context.Background())
	in.mu.Lock()
	defer in.mu.Unlock()
	in.gone = true
	return errors.Join(err, in.memory.release())
}

// kill stops the current call soon, but not immediately. All further calls fail
// with cause. Any goroutine may call it.
//
// Interrupting running WebAssembly costs time in every loop. Instead, kill
// overwrites its memory: the next pointer that the code follows traps. A caller
// that waits for this calls kill again if it takes long.
func (in *Instance) kill(cause error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.cause == nil {
		in.cause = cause
		close(in.dead)
	}
	if !in.gone {
		in.memory.poison()
	}
}

// Within kills the instance if its thread uses d of processor time before the
// returned function is called. The goroutine that calls pdfium must be locked to
// its thread, and call Within. Calls must not be nested.
func (in *Instance) Within(d time.Duration, cause error) (done func()) {
	if in.dog == nil {
		in.dog = newWatchdog(in.memory.spoilable())
	}
	in.over = cause
	in.dog.arm(d + watchdogDelay)
	stop := worktime.AfterFunc(d, func() { in.kill(cause) }, worktime.Thread())
	return func() {
		stop()
		if in.dog.disarm(); in.dog.fired() {
			in.kill(cause)
		}
	}
}

// watchdogDelay is the time that a goroutine has to kill an instance before the watchdog
// does it.
const watchdogDelay = 200 * time.Millisecond

func (in *Instance) killed() error {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.cause
}

// Call calls a function of pdfium. Arguments and result use WebAssembly's
// representation: integers and pointers unchanged, doubles by
// [math.Float64bits].
func (in *Instance) Call(name string, args ...uint64) uint64 {
	if in.Err != nil {
		return 0
	}
	f, ok := in.funcs[name]
	if !ok {
		if f = in.Module.ExportedFunction(name); f == nil {
			in.Err = fmt.Errorf("pdfium has no function %s", name)
			return 0
		}
		in.funcs[name] = f
	}
	in.stack[0] = 0
	copy(in.stack[:], args)
	err := f.CallWithStack(context.Background(), in.stack[:])
	if in.dog.fired() {
		in.kill(in.over)
	}
	select {
	case <-in.dead:
		in.Err = in.killed()
		return 0
	default:
	}
	if err != nil {
		in.Err = fmt.Errorf("pdfium: %s: %w", name, err)
		return 0
	}
	return in.stack[0]
}

// Ok calls a function that returns a C int or bool. It reports whether the
// result is nonzero.
func (in *Instance) Ok(name string, args ...uint64) bool { return in.Int(name, args...) != 0 }

// Int calls a function that returns a C int.
func (in *Instance) Int(name string, args ...uint64) int {
	return int(int32(uint32(in.Call(name, args...))))
}

func (in *Instance) float(name string, args ...uint64) float64 {
	return float64(math.Float32frombits(uint32(in.Call(name, args...))))
}

// Double calls a function that returns a C double.
func (in *Instance) Double(name string, args ...uint64) float64 {
	return math.Float64frombits(in.Call(name, args...))
}

// malloc allocates memory of the instance. If there is not enough, it returns 0
// and sets Err.
func (in *Instance) malloc(n int) uint32 {
	p := uint32(in.Call("malloc", uint64(n)))
	if p == 0 && in.Err == nil {
		in.Err = errMemory
	}
	return p
}

var errMemory = errors.New("pdfium is out of memory")

// cString allocates a copy of s that ends with a zero byte.
func (in *Instance) cString(s string) uint32 {
	p := in.malloc(len(s) + 1)
	copy(in.Bytes(p, len(s)+1), s+"\x00")
	return p
}

// HasKey reports whether the dictionary of an annotation has a key.
func (in *Instance) HasKey(annot uint64, key string) bool {
	p := in.cString(key)
	defer in.free(p)
	return in.Ok("FPDFAnnot_HasKey", annot, uint64(p))
}

func (in *Instance) free(p uint32) { in.Call("free", uint64(p)) }

// Bytes returns n bytes of the instance's memory without a copy. They are valid
// until the next call.
func (in *Instance) Bytes(p uint32, n int) []byte {
	if in.Err != nil || n <= 0 {
		return nil
	}
	b, ok := in.Module.Memory().Read(p, uint32(n))
	if !ok {
		in.Err = errors.New("pdfium returned a bad pointer")
	}
	return b
}

// Arg returns the address of the i-th result slot of 8 bytes.
func (in *Instance) Arg(i int) uint64 { return uint64(in.Out) + 8*uint64(i) }

// OutInt returns the 32-bit integer in the i-th result slot.
func (in *Instance) OutInt(i int) int {
	v, _ := in.Module.Memory().ReadUint32Le(in.Out + 8*uint32(i))
	return int(int32(v))
}

// OutDouble returns the double in the i-th result slot.
func (in *Instance) OutDouble(i int) float64 {
	v, _ := in.Module.Memory().ReadFloat64Le(in.Out + 8*uint32(i))
	return v
}

// OutFloatAt returns the float at a byte offset in the scratch space.
func (in *Instance) OutFloatAt(offset uint32) float64 {
	v, _ := in.Module.Memory().ReadFloat32Le(in.Out + offset)
	return float64(v)
}

// OutFloats reads consecutive floats into v, as in FS_MATRIX and FS_RECTF.
func (in *Instance) OutFloats(v []float64) {
	for i := range v {
		f, _ := in.Module.Memory().ReadFloat32Le(in.Out + 4*uint32(i))
		v[i] = float64(f)
	}
}

// WithBuffer calls fn twice, as pdfium requires for strings and data: first for
// the size, then with a buffer. It returns a copy of the content.
func (in *Instance) WithBuffer(limit int, fn func(p uint64, n uint64) int) []byte {
	n := fn(0, 0)
	if in.Err != nil || n <= 0 || n > limit {
		return nil
	}
	p := in.malloc(n)
	if in.Err != nil {
		return nil
	}
	fn(uint64(p), uint64(n))
	b := append([]byte(nil), in.Bytes(p, n)...)
	in.free(p)
	return b
}

// Utf16String decodes pdfium's strings: UTF-16LE with a NUL at the end.
func Utf16String(b []byte) string {
	u := make([]uint16, 0, len(b)/2)
	for i := 0; i+1 < len(b); i += 2 {
		c := uint16(b[i]) | uint16(b[i+1])<<8
		if c == 0 {
			break
		}
		u = append(u, c)
	}
	return string(utf16.Decode(u))
}

// CString cuts b at the first NUL.
func CString(b []byte) string {
	for i, c := range b {
		if c == 0 {
			return string(b[:i])
		}
	}
	return string(b)
}

// A starter compiles pdfium on first use.
type starter struct {
	cache string // directory; "" means no cache
	fonts []string
	log   *slog.Logger

	ctx    context.Context // cancels compilation, which outlives the call that started it
	cancel context.CancelCauseFunc

	once  sync.Once
	ready chan struct{} // closed when lib and err are set
	lib   *library
	err   error
}

func newStarter(cacheDir string, fonts []string, log *slog.Logger) (*starter, error) {
	s := &starter{ready: make(chan struct{}), cache: cacheDir, fonts: fonts, log: log}
	s.ctx, s.cancel = context.WithCancelCause(context.Background())
	if cacheDir != "" {
		if err := os.MkdirAll(cacheDir, 0o700); err != nil {
			return nil, fmt.Errorf("cache for pdfium: %w", err)
		}
	}
	return s, nil
}

// library returns the compiled library. The first call starts compilation. A
// caller that stops waiting does not stop it.
func (s *starter) library(ctx context.Context) (*library, error) {
	s.once.Do(func() {
		go func() {
			defer close(s.ready)
			pprof.SetGoroutineLabels(s.ctx) // compilation outlives a caller that stops waiting
			begin := time.Now()
			if s.cache == "" {
				s.lib, s.err = newLibrary(s.ctx, pdfiumWasm, "", s.fonts)
			} else {
				s.lib, s.err = loadCached(s.ctx, s.cache, s.fonts)
			}
			s.log.Debug("pdfium started", "duration", time.Since(begin), "err", s.err)
		}()
	})
	select {
	case <-s.ready:
		return s.lib, s.err
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// close stops a running compilation and releases everything. The library cannot
// be started afterwards.
func (s *starter) close() error {
	s.cancel(errClosed)
	s.once.Do(func() {
		s.err = errClosed
		close(s.ready)
	})
	<-s.ready
	var errs []error
	if s.lib != nil {
		errs = append(errs, s.lib.close())
	}
	return errors.Join(errs...)
}

var errClosed = errors.New("pdfread: the engine is closed")
