//go:build cgo && linux

package pdfium

/*
#cgo LDFLAGS: -pthread

#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { IDLE = 0, FIRED = -1 };

typedef struct {
	int64_t until;   // processor time of the watched thread in ns, or IDLE, or FIRED
	clockid_t clock; // of the watched thread
	char *memory;
	size_t size;
	pthread_t thread;

	pthread_mutex_t mu;
	pthread_cond_t changed;
	int stop;
} watchdog;

static int64_t nanoseconds(clockid_t clock) {
	struct timespec t;
	if (clock_gettime(clock, &t) != 0)
		return 0;
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void *watch(void *arg) {
	watchdog *w = arg;
	pthread_mutex_lock(&w->mu);
	while (!w->stop) {
		int64_t until = __atomic_load_n(&w->until, __ATOMIC_SEQ_CST);
		if (until > 0 && nanoseconds(w->clock) >= until)
			__atomic_compare_exchange_n(&w->until, &until, FIRED, 0, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);
		if (__atomic_load_n(&w->until, __ATOMIC_SEQ_CST) == FIRED)
			memset(w->memory, 0xff, w->size);
		struct timespec next;
		clock_gettime(CLOCK_MONOTONIC, &next);
		next.tv_nsec += 100000000;
		if (next.tv_nsec >= 1000000000) {
			next.tv_sec++;
			next.tv_nsec -= 1000000000;
		}
		pthread_cond_timedwait(&w->changed, &w->mu, &next);
	}
	pthread_mutex_unlock(&w->mu);
	return NULL;
}

// watchdog_start watches the calling thread. It returns NULL if no thread can be started.
static watchdog *watchdog_start(void *memory, size_t size) {
	watchdog *w = calloc(1, sizeof *w);
	if (!w)
		return NULL;
	w->memory = memory;
	w->size = size;
	pthread_mutex_init(&w->mu, NULL);
	pthread_condattr_t monotonic;
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&w->changed, &monotonic);
	pthread_attr_t small;
	pthread_attr_init(&small);
	pthread_attr_setstacksize(&small, 64 << 10);
	sigset_t all, before; // the runtime of Go receives the signals
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failed = pthread_getcpuclockid(pthread_self(), &w->clock) || pthread_create(&w->thread, &small, watch, w);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (failed) {
		free(w);
		return NULL;
	}
	return w;
}

static void watchdog_stop(watchdog *w) {
	pthread_mutex_lock(&w->mu);
	w->stop = 1;
	pthread_cond_signal(&w->changed);
	pthread_mutex_unlock(&w->mu);
	pthread_join(w->thread, NULL);
	free(w);
}
*/
import "C"

import (
	"sync/atomic"
	"time"
	"unsafe"
)

// A watchdog kills an instance that works too long, like [Instance.kill], but from a
// thread that the runtime of Go does not know. A garbage collection waits for running
// WebAssembly, and until that returns no goroutine runs, not even one that would stop it.
type watchdog struct {
	c     *C.watchdog
	until *atomic.Int64 // c.until
}

// newWatchdog returns a watchdog for the calling thread. It overwrites memory, which must not
// move until close. newWatchdog returns nil if it cannot start a thread.
func newWatchdog(memory []byte) *watchdog {
	c := C.watchdog_start(unsafe.Pointer(unsafe.SliceData(memory)), C.size_t(len(memory)))
	if c == nil {
		return nil
	}
	return &watchdog{c: c, until: (*atomic.Int64)(unsafe.Pointer(&c.until))}
}

// arm makes the watchdog fire when the thread has used d of processor time from now.
func (w *watchdog) arm(d time.Duration) {
	if w != nil {
		w.until.Store(int64(C.nanoseconds(w.c.clock)) + int64(d))
	}
}

// disarm is the opposite of arm. A watchdog that has fired stays so.
func (w *watchdog) disarm() {
	if w == nil {
		return
	}
	if until := w.until.Load(); until != C.FIRED {
		w.until.CompareAndSwap(until, C.IDLE)
	}
}

// fired reports whether the watchdog overwrites, or has overwritten, the memory.
func (w *watchdog) fired() bool { return w != nil && w.until.Load() == C.FIRED }

func (w *watchdog) close() {
	if w != nil {
		C.watchdog_stop(w.c)
	}
}
