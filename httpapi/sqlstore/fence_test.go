package sqlstore_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/url"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload"
)

// claimed creates an operation of one item and claims it.
func claimed(t *testing.T, s *sqlstore.Operations) *status.Claim {
	t.Helper()
	if _, err := s.Create(t.Context(), &status.Operation{ID: "op", Owner: "alice", Created: time.Now(), Items: []status.Item{{Queue: "pdf"}}}); err != nil {
		t.Fatal(err)
	}
	c, err := s.Claim(t.Context(), status.Ref{Operation: "op"}, "first", time.Minute)
	systest.NoError(t, err)
	return c
}

// A process may lose the database while it records an outcome, for longer than its
// lease. Another process has then claimed the item and removed the results of the
// first: the late outcome is not recorded.
func TestOvertaken(t *testing.T) {
	t.Parallel()
	db := openPostgres(t)
	s := db.Operations()
	c := claimed(t, s)

	// The transaction of the outcome waits for the row after it has read it.
	other, err := db.Pool().Begin(t.Context())
	systest.NoError(t, err)
	defer other.Rollback(t.Context())
	if _, err := other.Exec(t.Context(), `UPDATE items SET token = token + 1, attempt = attempt + 1, worker = 'second' WHERE operation = 'op'`); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := s.Finish(t.Context(), c, status.Outcome{Results: []status.File{{Key: "late", Size: 1}}})
		done <- err
	}()
	pgtest.UntilLocked(t, db.Pool(), "")
	systest.NoError(t, other.Commit(t.Context()))
	if err := <-done; !errors.Is(err, status.ErrLost) {
		t.Errorf("the late outcome: got %v, want status.ErrLost", err)
	}
	second := *c
	second.Token++
	op, err := s.Finish(t.Context(), &second, status.Outcome{Results: []status.File{{Key: "good", Size: 1}}})
	systest.NoError(t, err)
	if op.State != status.Completed || len(op.Items) != 1 || len(op.Items[0].Results) != 1 || op.Items[0].Results[0].Key != "good" {
		t.Errorf("the operation is %+v", op)
	}
}

// proxied returns the URL of a new database behind a proxy, which calls hand to forward
// each connection. When hand returns, the connections are closed.
func proxied(t *testing.T, hand func(client, server *net.TCPConn)) string {
	t.Helper()
	u, err := url.Parse(pgtest.New(t))
	systest.NoError(t, err)
	u.Host = systest.Proxy(t, u.Host, hand)
	return u.String()
}

// A deathbed is the behaviour of a proxy before PostgreSQL. When it is armed, the
// server process seems to exit at the next commit. The proxy sends the error 57P01
// after the response to the commit, or instead of it.
type deathbed struct {
	armed atomic.Pointer[string] // "after" or "instead"
}

func (d *deathbed) hand(client, server *net.TCPConn) {
	go func() { io.Copy(server, client); server.Close() }()
	d.answer(client, server)
}

// readMessage reads one message of a PostgreSQL server: a byte for its type, a length
// that counts itself, and the body.
// https://www.postgresql.org/docs/15/protocol-message-formats.html
func readMessage(server io.Reader) (head, body []byte, err error) {
	head = make([]byte, 5)
	if _, err := io.ReadFull(server, head); err != nil {
		return nil, nil, err
	}
	body = make([]byte, binary.BigEndian.Uint32(head[1:])-4)
	_, err = io.ReadFull(server, body)
	return head, body, err
}

// answer forwards the server's messages.
func (d *deathbed) answer(client io.Writer, server io.Reader) {
	for {
		head, body, err := readMessage(server)
		if err != nil {
			return
		}
		how := d.armed.Load()
		last := how != nil && head[0] == 'C' && bytes.Equal(body, []byte("COMMIT\x00")) && d.armed.CompareAndSwap(how, nil)
		if !last || *how == "after" {
			if _, err := client.Write(append(head, body...)); err != nil {
				return
			}
		}
		if last {
			content := "SFATAL\x00VFATAL\x00C57P01\x00Mterminating connection due to administrator command\x00\x00"
			client.Write(append(binary.BigEndian.AppendUint32([]byte{'E'}, uint32(4+len(content))), content...))
			return
		}
	}
}

// A server process that exits may have committed. A client that does not know must not
// retry from the start: its claim would seem lost, and its results would be removed.
func TestEndAtCommit(t *testing.T) {
	t.Parallel()
	for how, sure := range map[string]bool{"after": true, "instead": false} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			d := new(deathbed)
			s := openURL(t, proxied(t, d.hand)).Operations()
			c := claimed(t, s)
			d.armed.Store(&how)
			outcome := status.Outcome{Results: []status.File{{Key: "result", Size: 1}}}
			_, err := s.Finish(t.Context(), c, outcome)
			switch {
			case d.armed.Load() != nil:
				t.Fatal("nothing was committed")
			case sure && err != nil, !sure && (!errors.Is(err, status.ErrUnavailable) || errors.Is(err, status.ErrLost)):
				t.Errorf("got %v", err)
			}
			if _, err := s.Finish(t.Context(), c, outcome); !errors.Is(err, status.ErrLost) {
				t.Errorf("again: got %v, want status.ErrLost", err)
			}
			if op, err := s.Get(t.Context(), "op"); err != nil || op.State != status.Completed || len(op.Items[0].Results) != 1 {
				t.Errorf("the operation is %+v, %v", op, err)
			}
		})
	}
}

// A database that does not respond is no reason to give up an item.
func TestNoAnswerAtEnd(t *testing.T) {
	t.Parallel()
	var armed atomic.Bool // the next connection that locks an operation gets no response
	s := openURL(t, proxied(t, func(client, server *net.TCPConn) {
		go func() { io.Copy(client, server); client.Close() }()
		for buf := make([]byte, 64<<10); ; {
			n, err := client.Read(buf)
			if err != nil {
				return
			}
			if bytes.Contains(buf[:n], []byte("FOR NO KEY UPDATE")) && armed.CompareAndSwap(true, false) {
				io.Copy(io.Discard, client)
				return
			}
			if _, err := server.Write(buf[:n]); err != nil {
				return
			}
		}
	})).Operations()
	c := claimed(t, s)
	armed.Store(true)
	outcome := status.Outcome{Results: []status.File{{Key: "result", Size: 1}}}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := s.Finish(ctx, c, outcome); !errors.Is(err, status.ErrUnavailable) || errors.Is(err, status.ErrLost) {
		t.Errorf("without an answer: got %v, want status.ErrUnavailable", err)
	}
	if armed.Load() {
		t.Fatal("all connections were answered")
	}
	op, err := s.Finish(t.Context(), c, outcome)
	if err != nil || op.State != status.Completed {
		t.Errorf("the operation is %+v, %v", op, err)
	}
}

// A transaction that PostgreSQL has ended, because its process was idle for too long,
// is retried.
func TestIdleTransaction(t *testing.T) {
	t.Parallel()
	url := pgtest.New(t)
	other := openURL(t, url).Pool()
	s := openURL(t, url+"&idle_in_transaction_session_timeout=100").Files()
	if _, err := s.Create(t.Context(), &upload.File{Key: "key", Owner: "alice", Name: "old", Created: time.Now()}); err != nil {
		t.Fatal(err)
	}
	times := 0
	f, err := s.Update(t.Context(), "key", func(f *upload.File) error {
		times++
		for idle := 1; times == 1 && idle > 0; { // until PostgreSQL ends the session
			if err := other.QueryRow(t.Context(), `SELECT count(*) FROM pg_stat_activity
				WHERE datname = current_database() AND state = 'idle in transaction'`).Scan(&idle); err != nil {
				return err
			}
		}
		f.Name = "new"
		return nil
	})
	if err != nil || f.Name != "new" || times != 2 {
		t.Errorf("%+v, %v after %d times", f, err, times)
	}
}
