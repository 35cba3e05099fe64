//go:build linux

package kills

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/png"
	"math/rand/v2"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/filewright/filewright/internal/pgtest"
	"github.com/filewright/filewright/internal/systest"
)

var takeoversFlag = flag.Int("takeovers", 1, "how often a worker is killed, and how often one is frozen, to measure how soon another one starts its item")

// A worker is killed or frozen while it processes an item. Another worker restarts the item, which
// loses no attempt. docs/operations.md says how soon.
func TestTakeover(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		sig  syscall.Signal
	}{{"killed", syscall.SIGKILL}, {"frozen", syscall.SIGSTOP}} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			testTakeover(t, tt.sig)
		})
	}
}

func testTakeover(t *testing.T, sig syscall.Signal) {
	c := &cluster{dir: t.TempDir(), patient: &host{client: newClient(30 * time.Second)}}
	c.url = pgtest.Own(t).Database(t)
	out, err := exec.Command(binary, "keys", "create", "--database-url", c.url, "--name", "test").Output()
	if err != nil {
		t.Fatalf("keys create: %v", err)
	}
	c.patient.key = strings.TrimSpace(string(out))
	c.add(t, "api", "api", true)
	for i := range 2 {
		c.add(t, fmt.Sprint("worker", i), "worker", true, "--concurrency", "image=1")
	}
	for _, n := range c.nodes {
		t.Cleanup(func() {
			if n.run != nil {
				n.cmd.Process.Kill()
			}
		})
	}
	up := func(n *node) {
		n.run = n.start(t)
		n.wait(t)
	}
	up(c.nodes[0])
	holder, other := c.nodes[1], c.nodes[2]
	up(holder)

	// A picture with seconds of processing, and a small one.
	cu := c.patient.crew(t, 1, 0)[0]
	cu.send(t.Context(), "noise", "noise.png", noise(t, 6000))
	cu.send(t.Context(), "small", "small.png", noise(t, 9))
	if len(cu.uploads) != 2 {
		t.Fatal("the pictures are not uploaded")
	}
	conn, err := pgx.Connect(t.Context(), c.url)
	systest.NoError(t, err)
	defer conn.Close(context.Background())
	number := func(column, id string) (n int) {
		systest.NoError(t, conn.QueryRow(t.Context(), "SELECT "+column+" FROM items WHERE operation = $1", id).Scan(&n))
		return n
	}
	var times []time.Duration
	for range *takeoversFlag {
		do := func(upload int) (id string) {
			t.Helper()
			systest.Until(t, "the workers are known", func() bool {
				a := c.patient.ask(t.Context(), "POST", "/api/v1/do", map[string]any{"action": "convert", "file_keys": []string{cu.uploads[upload].key}, "parameters": map[string]any{"convert_to": "avif"}})
				if a == nil || a.status != http.StatusOK && a.str("error") != "unsupported_operation" {
					t.Fatalf("do: %+v", a)
				}
				id = a.str("main_task_id")
				return a.status == http.StatusOK
			})
			return id
		}
		id := do(0)
		until := func(n int) {
			t.Helper()
			systest.Until(t, fmt.Sprintf("start %d of the item", n), func() bool {
				if number("CASE WHEN finished_ms IS NULL THEN 0 ELSE 1 END", id) == 1 {
					t.Fatalf("the item has finished before its start %d", n)
				}
				return number("token", id) >= n
			})
		}
		until(1)
		// The only slot of the holder is taken, so the other worker converts the small picture.
		up(other)
		if a := c.patient.ask(t.Context(), "GET", "/api/v1/status/"+do(1)+"?wait=30s", nil); a == nil || a.str("operation_status") != "completed" {
			t.Fatalf("the small picture: %+v", a)
		}
		if n := number("token", id); n != 1 {
			t.Fatalf("the item was started %d times before anything has happened", n)
		}
		died := time.Now()
		systest.NoError(t, holder.cmd.Process.Signal(sig))
		until(2)
		times = append(times, time.Since(died))
		if n := number("attempt * 100 + restarts", id); n != 101 {
			t.Errorf("the item has attempts and restarts %d, want 1 and 01", n)
		}
		c.patient.ask(t.Context(), "DELETE", "/api/v1/status/"+id, nil)
		if a := c.patient.ask(t.Context(), "GET", "/api/v1/status/"+id+"?wait=30s", nil); a == nil || a.str("operation_status") != "failed" {
			t.Errorf("after it was cancelled: %+v", a)
		}
		holder.end(t, holder.run, syscall.SIGKILL)
		holder.run = nil
		holder, other = other, holder
	}
	slices.Sort(times)
	t.Logf("another worker starts the item after %v", times)
}

// noise returns a picture that takes long to compress.
func noise(t *testing.T, side int) []byte {
	t.Helper()
	img := image.NewGray(image.Rect(0, 0, side, side))
	rng := rand.NewChaCha8([32]byte{1})
	rng.Read(img.Pix)
	var b bytes.Buffer
	systest.NoError(t, (&png.Encoder{CompressionLevel: png.NoCompression}).Encode(&b, img))
	return b.Bytes()
}
