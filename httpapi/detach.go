package httpapi

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload"
)

// Resumed returns a request of who for work of an [Extension] that continues after the response, also
// after a restart of the server. It has the ID of the request that started the work, and ctx as its
// context.
func Resumed(ctx context.Context, who Principal, id string) *http.Request {
	ctx = context.WithValue(ctx, principalKey{}, who)
	ctx = context.WithValue(ctx, requestInfoKey{}, &requestInfo{id: id, who: who})
	return (&http.Request{Method: http.MethodPost, URL: new(url.URL), Header: make(http.Header)}).WithContext(ctx)
}

// cleanupTime bounds the work for a request that has ended. What is not deleted by then expires.
const cleanupTime = time.Minute

// Abandon cancels an operation of a request to an [Extension] whose client does not wait for it any
// more, also if the client has gone. It returns the operation when that has ended, or nil if this
// takes longer than a minute.
func (s *Service) Abandon(r *http.Request, owner, id string) *status.Operation {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), cleanupTime)
	defer cancel()
	if _, err := s.tracker.Cancel(ctx, owner, id); err != nil {
		s.Log(r).Warn("cannot cancel the operation of a request that has ended", "operation", id, "err", err)
	}
	op, err := s.tracker.Wait(ctx, owner, id)
	if err != nil {
		s.Log(r).Warn("cannot wait for a cancelled operation", "operation", id, "err", err)
		return nil
	}
	return op
}

// maxDiscards bounds the calls of Discard that work in the background, and discardsAtOnce the files
// of each that are deleted at the same time, so that their transactions share commits.
const (
	maxDiscards    = 64
	discardsAtOnce = 4
)

// Discard deletes files of a request to an [Extension] that has ended, also if the client has gone. It
// usually returns at once, so that the next request on the connection need not wait. The result is
// closed when the files are deleted.
func (s *Service) Discard(r *http.Request, owner string, keys []string) (done <-chan struct{}) {
	all := make(chan struct{})
	work := func() {
		defer close(all)
		s.discard(r, owner, keys)
	}
	if s.closing.Err() != nil {
		work() // Run does not wait for it any more
		return all
	}
	select {
	case s.discards <- struct{}{}:
		go func() {
			defer func() { <-s.discards }()
			work()
		}()
	default:
		work()
	}
	return all
}

func (s *Service) discard(r *http.Request, owner string, keys []string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), cleanupTime)
	defer cancel()
	var deleting sync.WaitGroup
	slots := make(chan struct{}, discardsAtOnce)
	for _, key := range keys {
		slots <- struct{}{}
		deleting.Go(func() {
			defer func() { <-slots }()
			if err := s.erase(ctx, owner, key); err != nil {
				s.Log(r).Warn("cannot delete a file of a request that has ended; it expires", "file", key, "err", err)
			}
		})
	}
	deleting.Wait()
}

// erase deletes a file unless it is already gone.
func (s *Service) erase(ctx context.Context, owner, key string) error {
	err := s.uploads.Delete(ctx, owner, key)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, upload.ErrExpired) {
		return nil
	}
	return err
}

// finishDiscards waits until the deletions in the background have ended, and allows no more.
func (n *Node) finishDiscards() {
	for range cap(n.discards) {
		n.discards <- struct{}{}
	}
}
