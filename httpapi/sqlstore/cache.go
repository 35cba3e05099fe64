package sqlstore

import (
	"cmp"
	"container/list"
	"sync"
	"time"

	"github.com/filewright/filewright/status"
)

// A cache keeps the most recently used finished operations. They do not change, but
// another process may delete them, so each is kept for a limited time only. A nil cache
// keeps nothing.
type cache struct {
	limit int64

	mu      sync.Mutex
	size    int64
	order   *list.List // of *cached, most recently used first
	entries map[string]*list.Element
}

type cached struct {
	op    *status.Operation
	size  int64
	until time.Time
}

// cacheTime is how long a finished operation is kept.
const cacheTime = 30 * time.Second

func newCache(limit int64) *cache {
	if limit < 0 {
		return nil
	}
	limit = cmp.Or(limit, 32<<20)
	return &cache{limit: limit, order: list.New(), entries: make(map[string]*list.Element)}
}

// get returns a copy of an operation, or nil.
func (c *cache) get(id string) *status.Operation {
	if c == nil {
		return nil
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.entries[id]
	if e == nil {
		return nil
	}
	if time.Now().After(e.Value.(*cached).until) {
		c.remove(e)
		return nil
	}
	c.order.MoveToFront(e)
	return e.Value.(*cached).op.Clone()
}

// put keeps a copy of an operation if it is final.
func (c *cache) put(op *status.Operation) {
	if c == nil || !op.State.Final() {
		return
	}
	n := &cached{op: op.Clone(), size: sizeOf(op), until: time.Now().Add(cacheTime)}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[op.ID]; e != nil {
		c.remove(e)
	}
	c.entries[op.ID] = c.order.PushFront(n)
	c.size += n.size
	for c.size > c.limit {
		c.remove(c.order.Back())
	}
}

// drop removes an operation.
func (c *cache) drop(id string) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[id]; e != nil {
		c.remove(e)
	}
}

// clear empties the cache.
func (c *cache) clear() {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.size = 0
	c.order.Init()
	clear(c.entries)
}

func (c *cache) remove(e *list.Element) {
	n := c.order.Remove(e).(*cached)
	c.size -= n.size
	delete(c.entries, n.op.ID)
}

// sizeOf estimates how many bytes of memory an operation takes.
func sizeOf(op *status.Operation) int64 {
	const perOperation, perItem, perFile = 400, 300, 120 // structs and their string headers
	n := perOperation + len(op.ID) + len(op.Owner) + len(op.Action) + len(op.Args) + len(op.IdempotencyKey) + len(op.Fingerprint)
	for k, v := range op.Notes {
		n += perFile + len(k) + len(v)
	}
	for _, one := range op.Steps {
		n += perFile + len(one.Action)
	}
	for _, it := range op.Items {
		n += perItem + len(it.Queue)
		if it.Error != nil {
			n += len(it.Error.Code) + len(it.Error.Message)
		}
		for _, files := range [][]status.File{it.Inputs, it.Results} {
			for _, f := range files {
				n += perFile + len(f.Key) + len(f.Name) + len(f.ContentType)
			}
		}
	}
	return int64(n)
}
