package sqlstore

import (
	"context"
	"sync"

	"github.com/filewright/filewright/httpapi/account"
)

// A grantCache keeps the grants of recently used keys while the database does not change. SQLite
// reports in a few microseconds whether any connection of any process has committed since, a sixth
// of the cost of reading a key. So a key is still refused as soon as its revocation is committed.
// A nil cache keeps nothing.
type grantCache struct {
	version func(context.Context) (int64, error)

	mu      sync.Mutex
	at      int64 // version of the database that grants are from
	grants  map[[32]byte]account.Grant
	invalid bool // at is not known
}

// maxGrants bounds the keys of a grantCache.
const maxGrants = 4096

func newGrantCache(version func(context.Context) (int64, error)) *grantCache {
	return &grantCache{version: version, grants: make(map[[32]byte]account.Grant), invalid: true}
}

// get returns the grants for all hashes, or false if it does not know them all. keep is called with
// the grants that the caller then reads from the database.
func (c *grantCache) get(ctx context.Context, hashes [][32]byte) (found []*account.Grant, ok bool, keep func([]*account.Grant)) {
	if c == nil {
		return nil, false, func([]*account.Grant) {}
	}
	// Reading the version before the keys means that the keys are at least as new as the version.
	v, err := c.version(ctx)
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil { // the read of the caller reports what is wrong with the database
		c.invalid = true
		return nil, false, func([]*account.Grant) {}
	}
	if c.invalid || c.at != v {
		c.at, c.invalid = v, false
		clear(c.grants)
	}
	for _, h := range hashes {
		g, known := c.grants[h]
		if !known {
			return nil, false, func(read []*account.Grant) { c.put(v, read) }
		}
		found = append(found, &g)
	}
	return found, true, nil
}

// put keeps grants that were read after version v.
func (c *grantCache) put(v int64, read []*account.Grant) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.invalid || c.at != v {
		return
	}
	for _, g := range read {
		if len(c.grants) >= maxGrants {
			clear(c.grants)
		}
		c.grants[g.Hash] = *g
	}
}
