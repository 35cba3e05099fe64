package webops

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
)

// maxMessage is how long a message of the browser may be, in bytes. What we ask
// for is shorter.
const maxMessage = 64 << 20

// errGone is the error of a call whose browser has ended.
var errGone = errors.New("the browser has ended")

// A conn speaks the Chrome DevTools Protocol over a pair of pipes: messages are
// JSON, each followed by a zero byte (devtools_pipe_handler.cc in Chromium). It
// is safe for concurrent use.
type conn struct {
	r io.ReadCloser
	w io.WriteCloser

	mu       sync.Mutex
	queue    [][]byte // to be written
	calls    map[int64]chan<- message
	sessions map[string]func(event)
	last     int64 // id of a call

	more chan struct{} // the queue is not empty
	done chan struct{} // closed when nothing more can be read
}

// A message is what the browser sends: the reply to a call if it has an id,
// else an event.
type message struct {
	ID        int64           `json:"id"`
	SessionID string          `json:"sessionId"`
	Method    string          `json:"method"`
	Params    json.RawMessage `json:"params"`
	Result    json.RawMessage `json:"result"`
	Error     *protocolError  `json:"error"`
}

// An event is something that has happened in a session.
type event struct {
	method string
	params json.RawMessage
}

// A protocolError is the browser's refusal of a call.
type protocolError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	method  string
}

func (e *protocolError) Error() string {
	return fmt.Sprintf("%s: %s (%d)", e.method, e.Message, e.Code)
}

// newConn starts to read from r and to write to w. It closes both when the
// browser closes its end or [conn.close] is called.
func newConn(r io.ReadCloser, w io.WriteCloser) *conn {
	c := &conn{
		r: r, w: w, calls: make(map[int64]chan<- message), sessions: make(map[string]func(event)),
		more: make(chan struct{}, 1), done: make(chan struct{}),
	}
	go c.read()
	go c.write()
	return c
}

// close ends the connection; calls that wait fail with errGone. It does not
// wait for the other end: what the browser had just started when it was killed may
// hold that open for longer.
func (c *conn) close() {
	c.w.Close()
	c.r.Close()
}

func (c *conn) read() {
	defer close(c.done)
	defer c.w.Close()
	defer c.r.Close()
	br := bufio.NewReaderSize(c.r, 64<<10)
	var long []byte // a message that does not fit into br
	for {
		part, err := br.ReadSlice(0)
		if errors.Is(err, bufio.ErrBufferFull) && len(long) < maxMessage {
			long = append(long, part...)
			continue
		}
		if err != nil {
			return
		}
		if long != nil {
			part = append(long, part...)
			long = nil
		}
		var m message
		if json.Unmarshal(part[:len(part)-1], &m) != nil {
			return // whatever it is, it is no browser
		}
		c.mu.Lock()
		reply, handler := c.calls[m.ID], c.sessions[m.SessionID]
		delete(c.calls, m.ID)
		c.mu.Unlock()
		switch {
		case m.ID != 0 && reply != nil:
			reply <- m // has room for it
		case m.ID == 0 && handler != nil:
			handler(event{m.Method, m.Params})
		}
	}
}

// write writes what is in the queue. The queue is not bounded: a handler of
// events must never wait for the browser, which may wait for it.
func (c *conn) write() {
	for {
		select {
		case <-c.more:
		case <-c.done:
			return
		}
		c.mu.Lock()
		queue := c.queue
		c.queue = nil
		c.mu.Unlock()
		for _, b := range queue {
			if _, err := c.w.Write(b); err != nil {
				return // what is read will end, too
			}
		}
	}
}

// send sends a call; its reply goes to reply, which has room for it, or is
// dropped if that is nil.
func (c *conn) send(session, method string, params any, reply chan<- message) (id int64, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.last++
	b, err := json.Marshal(struct {
		ID        int64  `json:"id"`
		SessionID string `json:"sessionId,omitempty"`
		Method    string `json:"method"`
		Params    any    `json:"params,omitempty"`
	}{c.last, session, method, params})
	if err != nil {
		return 0, err
	}
	if reply != nil {
		c.calls[c.last] = reply
	}
	c.queue = append(c.queue, append(b, 0))
	select {
	case c.more <- struct{}{}:
	default:
	}
	return c.last, nil
}

// call sends a call, waits for its reply and decodes that into result, which
// may be nil. It fails with a *protocolError, errGone or the cause of ctx.
func (c *conn) call(ctx context.Context, session, method string, params, result any) error {
	reply := make(chan message, 1)
	id, err := c.send(session, method, params, reply)
	if err != nil {
		return err
	}
	defer func() {
		c.mu.Lock()
		delete(c.calls, id)
		c.mu.Unlock()
	}()
	var m message
	select {
	case m = <-reply:
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-c.done:
		return fmt.Errorf("%s: %w", method, errGone)
	}
	if m.Error != nil {
		m.Error.method = method
		return m.Error
	}
	if result == nil {
		return nil
	}
	return json.Unmarshal(m.Result, result)
}

// listen has the events of a session handled until [conn.forget]. handle is
// called from the goroutine that reads: it must not wait for anything.
func (c *conn) listen(session string, handle func(event)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.sessions[session] = handle
}

func (c *conn) forget(session string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.sessions, session)
}
