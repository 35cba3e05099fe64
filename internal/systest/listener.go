package systest

import (
	"context"
	"net"
	"sync"
)

// A Listener accepts connections that exist only in memory. Reads, writes and deadlines on them
// count as waiting in a synctest bubble; those of the kernel's connections do not. A connection
// buffers nothing: a write returns when the peer has read all of it.
type Listener struct {
	conns  chan net.Conn
	closed chan struct{}
	close  sync.Once
}

// Listen returns a new listener.
func Listen() *Listener {
	return &Listener{conns: make(chan net.Conn), closed: make(chan struct{})}
}

// Dial connects to the listener when it accepts. It returns [net.ErrClosed] if the listener is
// closed, and the context's error if that ends first.
func (l *Listener) Dial(ctx context.Context) (net.Conn, error) {
	client, server := net.Pipe()
	select {
	case l.conns <- server:
		return client, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements [net.Listener].
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case conn := <-l.conns:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements [net.Listener]. Accepted connections stay open.
func (l *Listener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return nil
}

// Addr implements [net.Listener]. The address is not one of the network.
func (l *Listener) Addr() net.Addr { return address{} }

type address struct{}

func (address) Network() string { return "memory" }
func (address) String() string  { return "memory.test:80" }
