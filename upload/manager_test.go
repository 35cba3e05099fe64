package upload_test

import (
	"bytes"
	"crypto/md5"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob/memblob"
)

func TestUpload(t *testing.T) {
	t.Parallel()
	each(t, upload.Options{}, func(t *testing.T, e *env) {
		for _, tt := range []struct {
			name  string
			parts [][]byte
		}{
			{"one part", cut(noise(100_000), 1)},
			{"empty", cut(nil, 1)},
			{"empty in parts", cut(nil, 3)},
			{"one byte", cut(noise(1), 1)},
			{"equal chunks below 5 MiB", cut(noise(3<<20+1), 4)},
			{"hundred", cut(noise(54_321), 100)},
			{"empty trailing parts", cut(noise(10), 7)},
			{"more parts than bytes", cut(noise(3), 10)},
			{"one larger", sizes(noise(30_000), 10_000, 5_000, 15_000)},
			{"displaced", sizes(noise(30_000), 5_000, 20_000, 5_000)},
			{"empty first", sizes(noise(9), 0, 0, 9)},
			{"empty last", sizes(noise(9), 9, 0, 0)},
		} {
			t.Run(tt.name, func(t *testing.T) { testUpload(t, e, tt.parts, false) })
			t.Run(tt.name+", again and again", func(t *testing.T) { testUpload(t, e, tt.parts, true) })
		}
	})
}

func TestUploadRandom(t *testing.T) {
	t.Parallel()
	each(t, upload.Options{}, func(t *testing.T, e *env) {
		rng := rand.New(rand.NewPCG(1, 2))
		for range systest.Scale(25, 8) {
			data := noise(rng.IntN(200_000))
			rest, parts := data, [][]byte{}
			for range rng.IntN(10) {
				n := rng.IntN(len(rest) + 1)
				parts, rest = append(parts, rest[:n]), rest[n:]
			}
			testUpload(t, e, append(parts, rest), true)
		}
	})
}

// testUpload sends parts concurrently and in random order, optionally after other
// bodies for the same parts.
func testUpload(t *testing.T, e *env, parts [][]byte, again bool) {
	ctx := t.Context()
	data := bytes.Join(parts, nil)
	f, urls, err := e.Start(ctx, upload.Request{Owner: "alice", Name: "dir/a.pdf", ContentType: "application/pdf", Size: int64(len(data)), Parts: len(parts)})
	systest.NoError(t, err)
	if f.State != upload.Open || f.Name != "a.pdf" || !upload.IsID(f.UploadID) || !upload.IsID(f.Key) || len(urls) != len(parts) {
		t.Fatalf("Start = %+v with %d URLs", f, len(urls))
	}
	etags := make([]string, len(parts))
	var wg sync.WaitGroup
	for _, i := range rand.Perm(len(parts)) {
		wg.Go(func() {
			p := parts[i]
			if again {
				other := noise(len(p) / 2)
				e.PutPart(ctx, http.MethodPut, urls[i], bytes.NewReader(other), upload.PutOptions{Size: int64(len(other))})
				e.PutPart(ctx, http.MethodPut, urls[i], iotest.ErrReader(io.ErrClosedPipe), upload.PutOptions{Size: int64(len(p))})
			}
			sum := md5.Sum(p)
			var err error
			etags[i], err = e.PutPart(ctx, http.MethodPut, urls[i], iotest.HalfReader(bytes.NewReader(p)), upload.PutOptions{
				Size: int64(len(p)), ContentMD5: base64.StdEncoding.EncodeToString(sum[:]),
			})
			if err != nil || etags[i] != hex.EncodeToString(sum[:]) {
				t.Errorf("part %d: %q, %v", i+1, etags[i], err)
			}
		})
	}
	wg.Wait()
	if t.Failed() {
		return
	}
	done, repeated, err := e.Complete(ctx, "alice", f.Key, f.Object, f.UploadID, list(etags...))
	if err != nil || repeated {
		t.Fatalf("Complete = %v, %v", repeated, err)
	}
	if done.State != upload.Ready || done.Size != int64(len(data)) || done.ETag != etagOf(parts) {
		t.Errorf("Complete = %+v, want ETag %s", done, etagOf(parts))
	}
	got := (&env{Manager: e.Manager, t: t}).content(done)
	if !bytes.Equal(got, data) {
		t.Errorf("content has %d bytes, MD5 %x; want %d, %x", len(got), md5.Sum(got), len(data), md5.Sum(data))
	}
	systest.Check(t, e.Delete(ctx, "alice", f.Key))
	if n := e.objects(); n != 0 {
		t.Errorf("%d objects or staging areas are left", n)
	}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	for name, o := range map[string]upload.Options{
		"URLTTL too long":  {URLTTL: upload.MaxURLTTL + time.Second},
		"URLTTL negative":  {URLTTL: -time.Second},
		"secret too short": {Secrets: [][]byte{make([]byte, 32), make([]byte, 15)}},
		"path":             {URLPath: "upload/"},
		"path without end": {URLPath: "/upload"},
		"negative size":    {MaxSize: -1},
	} {
		if _, err := upload.NewManager(memblob.New(), &o); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	broken := upload.Options{}
	broken.SetRand(iotest.ErrReader(io.ErrClosedPipe))
	if _, err := upload.NewManager(memblob.New(), &broken); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("without randomness: %v", err)
	}
	broken.Secrets = [][]byte{make([]byte, 32)}
	m, err := upload.NewManager(memblob.New(), &broken)
	systest.NoError(t, err)
	if _, _, err := m.Start(t.Context(), upload.Request{}); !errors.Is(err, io.ErrClosedPipe) {
		t.Errorf("Start without randomness: %v", err)
	}
}
