//go:build linux

package kills

import (
	"context"
	endian "encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"sync"
	"syscall"
	"testing"
	"time"
)

var engineKillsFlag = flag.Int("engine-kills", 0, "how often the server of TestEnginesAtWork is killed; 0: 8, or 3 with -short")

// The server is killed repeatedly while LibreOffice, Chromium and ffmpeg run for it. With the
// default settings every operation completes with one result, and no kill counts as an attempt.
func TestEnginesAtWork(t *testing.T) {
	t.Parallel()
	h := newHost(t, "--concurrency", "office=1,web=1,media=1")
	h.engines = true
	r := h.start(t)
	r.wait(t)
	inputs := []struct {
		name, to string
		content  []byte
	}{
		{"table.csv", "pdf", []byte("name,count\nx,1\n")},
		{"page.html", "pdf", []byte("<h1>Title</h1><p>Text</p>")},
		{"tone.wav", "mp3", tone(20 * time.Second)},
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var wg sync.WaitGroup
	defer wg.Wait()
	defer stop()
	finished := make([]int, len(inputs))
	for i, c := range h.crew(t, len(inputs), 0) {
		in := inputs[i]
		c.send(t.Context(), "input"+in.name, in.name, in.content)
		request := map[string]any{"action": "convert", "file_keys": []string{c.uploads[0].key}, "parameters": map[string]any{"convert_to": in.to}}
		wg.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				idem := fmt.Sprint(in.name, n)
				a := h.ask(t.Context(), "POST", "/api/v1/do", request, "Idempotency-Key", idem)
				if a == nil || a.status != 200 {
					t.Errorf("do: %+v", a)
					return
				}
				op := &operation{idem: idem, id: a.str("main_task_id"), results: 1}
				end := c.await(op)
				if end == nil {
					return
				}
				if end.str("operation_status") != "completed" {
					t.Errorf("%s to %s: %s", in.name, in.to, end.raw)
				}
				finished[i]++
			}
		})
	}
	rng := rand.New(rand.NewPCG(1, 2))
	kills := scale(*engineKillsFlag, 8, 3)
	for range kills {
		time.Sleep(time.Duration(500+rng.IntN(2500)) * time.Millisecond)
		h.end(t, r, syscall.SIGKILL)
		r = h.start(t)
		r.wait(t)
	}
	stop()
	wg.Wait()
	h.end(t, r, syscall.SIGTERM)

	for i, n := range finished {
		if n == 0 {
			t.Errorf("no conversion of %s was finished", inputs[i].name)
		}
	}
	if n := query(t, h.dir, "SELECT count(*) FROM items WHERE state <> 'completed' OR attempt > 1"); n != 0 {
		t.Errorf("%d items failed or were charged with an attempt", n)
	}
	if n := query(t, h.dir, "SELECT count(*) FROM items WHERE restarts > 0"); n == 0 {
		t.Error("no item was interrupted: the test shows nothing")
	}
	if n := query(t, h.dir, "SELECT count(*) FROM items i WHERE json_array_length(i.results) <> 1"); n != 0 {
		t.Errorf("%d items have not one result", n)
	}
	if n := query(t, h.dir, `SELECT count(*) FROM files f WHERE f.state = 'ready' AND f.task <> '' AND NOT EXISTS (
			SELECT 1 FROM items i, json_each(i.results) r WHERE r.value ->> 'key' = f.file_key)`); n != 0 {
		t.Errorf("%d results exist that no operation lists", n)
	}
	for _, line := range h.trouble {
		t.Errorf("a server logs: %s", line)
	}
	t.Logf("%d kills; finished %v; %d items were interrupted", kills, finished, query(t, h.dir, "SELECT count(*) FROM items WHERE restarts > 0"))
}

// tone returns a WAV file with a sine of 440 Hz: mono, 16 bits, 44.1 kHz.
func tone(d time.Duration) []byte {
	const rate = 44100
	samples := int(d.Seconds() * rate)
	b := []byte("RIFF")
	b = endian.LittleEndian.AppendUint32(b, uint32(36+2*samples))
	b = append(b, "WAVEfmt "...)
	for _, v := range []uint32{16, 1 | 1<<16, rate, 2 * rate, 2 | 16<<16} {
		b = endian.LittleEndian.AppendUint32(b, v)
	}
	b = append(b, "data"...)
	b = endian.LittleEndian.AppendUint32(b, uint32(2*samples))
	for i := range samples {
		b = endian.LittleEndian.AppendUint16(b, uint16(int16(8000*math.Sin(2*math.Pi*440*float64(i)/rate))))
	}
	return b
}
