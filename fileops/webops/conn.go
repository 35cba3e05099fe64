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

// maxMessage limits the size of a message of the browser in bytes. All expected messages
// are shorter.
const maxMessage = 64 << 20

// errGone is the error of a call whose browser has ended.
var errGone = errors.New("the browser has ended")

// A conn speaks the Chrome DevTools Protocol over a pair of pipes. Messages are JSON,
// each followed by a zero byte (devtools_pipe_handler.cc in Chromium). It is safe for
// concurrent use.
type conn struct {
	r io.ReadCloser
	w io.WriteCloser

	mu       sync.Mutex
	queue    [][]byte // messages to write
	calls    map[int64]chan<- message
	sessions map[string]func(event)
	last     int64 // id of the last call

	more chan struct{} // the queue is not empty
	done chan struct{} // closed when the input has ended
}

// A message from the browser is the response to a call if it has an id, else an event.
type message struct {
	ID        int64           `json:"id"`
	SessionID string          `json:"sessionId"`
	Method    string          `json:"method"`
	Params    json.RawMessage `json:"params"`
	Result    json.RawMessage `json:"result"`
	Error     *protocolError  `json:"error"`
}

// An event is an event of a session.
type event struct {
	method string
	params json.RawMessage
}

// A protocolError is an error response of the browser.
type protocolError struct {
	Code    int    `json:"code"`
	Message string `json:"message"`
	method  string
}

func (e *protocolError) Error() string {
	return fmt.Sprintf("%s: %s (%d)", e.method, e.Message, e.Code)
}

// newConn starts reading from r and writing to w. It closes both when the browser closes
// its end or [conn.close] is called.
func newConn(r io.ReadCloser, w io.WriteCloser) *conn {
	c := &conn{
		r: r, w: w, calls: make(map[int64]chan<- message), sessions: make(map[string]func(event)),
		more: make(chan struct{}, 1), done: make(chan struct{}),
	}
	go c.read()
	go c.write()
	return c
}

// close closes the connection; pending calls fail with errGone. It does not wait for the
// other end: processes that the browser had just started when it was killed may hold it
// open for longer.
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
			return // the other end is not a browser
		}
		c.mu.Lock()
		reply, handler := c.calls[m.ID], c.sessions[m.SessionID]
		delete(c.calls, m.ID)
		c.mu.Unlock()
		switch {
		case m.ID != 0 && reply != nil:
			reply <- m // reply has room for it
		case m.ID == 0 && handler != nil:
			handler(event{m.Method, m.Params})
		}
	}
}

// write writes the messages in the queue. The queue has no limit: an event handler must
// never wait for the browser, which may wait for the handler.
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
				return // the input ends too
			}
		}
	}
}

// send sends a call. The response goes to reply, which must have room for it; a nil
// reply drops it.
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

// call sends a call, waits for the response and decodes it into result, which may be
// nil. It fails with a *protocolError, errGone or the cause of ctx.
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

// listen passes the events of a session to handle until [conn.forget]. The reading
// goroutine calls handle, which must not block.
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
