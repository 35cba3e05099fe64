//go:build linux

package e2e

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/hostile"
	"github.com/filewright/filewright/internal/systest"
)

var (
	soakItems   = flag.Int("items", 0, "how many `items` TestOverseen/Soak has worked on; 0: 2000, or 200 with -short")
	soakClients = flag.Int("clients", 8, "how many `clients` do so at once")
)

// A chore is an operation that the test repeats with different files.
type chore struct {
	deed
	weight       int
	good, others []file
}

// chores returns good, broken and hostile files, grouped by possible operations.
func chores(t *testing.T, x *hostile.Trap) []chore {
	png, doc, paper := sample(t, format.PNG), docx(t), pdf(t)
	small := makeFile(t, "small.jpg", "", "vips", "jpegsave", png.save(t), "small.jpg")
	broken := func(name string, b []byte) []file {
		flipped := slices.Clone(b)
		for i := len(flipped) / 3; i < len(flipped); i += 97 {
			flipped[i] ^= 0x55
		}
		return []file{{"half-" + name, b[:len(b)/2]}, {"flipped-" + name, flipped}, {"empty-" + name, nil}, {"noise-" + name, bytes.Repeat([]byte{0x13, 0, 0xfe, 0x37}, 100)}}
	}
	attacks := make(map[format.Family][]file)
	for _, f := range hostile.Files(x.Path, x.URL) {
		b, _ := f.Bytes()
		attacks[f.Format().Family()] = append(attacks[f.Format().Family()], file{f.Name(), b})
	}
	for _, f := range bombs() {
		switch f.Name() {
		// Bombs that are refused early. The others have their own test.
		case "pixels.png", "pixels.gif", "pixels.bmp", "pixels.tiff", "pixels.jpg", "pixels.psd", "large.svg", "frames.gif", "pages.tiff",
			"overlap.zip", "same.zip", "entries.zip", "lies.zip", "size.tar", "sparse.tar", "entries.tar.gz", "zeros.docx", "strings.xlsx":
			b, _ := f.Bytes()
			attacks[f.Format().Family()] = append(attacks[f.Format().Family()], file{f.Name(), b})
		}
	}
	of := func(fs []file, exts ...string) (out []file) {
		for _, f := range fs {
			if slices.Contains(exts, f.name[strings.LastIndexByte(f.name, '.')+1:]) {
				out = append(out, f)
			}
		}
		return out
	}
	table := file{"a.csv", []byte("a,b\n1,2\n")}
	tar := sample(t, format.TAR)
	archive := sample(t, format.ZIP)
	tone := audio(t, "wav")
	pictures := []string{"png", "jpg", "gif", "bmp", "tiff", "svg"}
	convert := func(to string) deed { return deed{"convert", map[string]any{"convert_to": to}} }
	return []chore{
		{convert("jpg"), 8, []file{png}, append(broken("a.png", png.b), of(attacks[format.Image], "png", "gif", "bmp", "svg")...)},
		{convert("webp"), 8, []file{small}, append(broken("a.jpg", small.b), of(attacks[format.Image], pictures...)...)},
		{deed{"compress", nil}, 4, []file{small}, append(broken("a.jpg", small.b), of(attacks[format.Image], "jpg", "png")...)},
		{convert("json"), 4, []file{table}, append(broken("b.csv", table.b)[:3], of(attacks[format.Sheet], "csv", "tsv")...)},
		{convert("zip"), 3, []file{tar}, append(broken("a.tar", tar.b), of(attacks[format.Archive], "tar", "gz")...)},
		{deed{"compress", nil}, 3, []file{archive}, append(broken("a.zip", archive.b), of(attacks[format.Archive], "zip")...)},
		{deed{"lock", map[string]any{"password": "secret"}}, 2, []file{paper}, append(broken("a.pdf", paper.b), of(attacks[format.Document], "pdf")...)},
		{convert("txt"), 1, []file{paper}, append(broken("b.pdf", paper.b), of(attacks[format.Document], "pdf")...)},
		{convert("mp3"), 2, []file{tone}, append(broken("a.wav", tone.b), of(attacks[format.Audio], "wav", "m4a")...)},
		{convert("pdf"), 1, []file{doc}, append(broken("a.docx", doc.b), of(attacks[format.Document], "docx", "fodt", "rtf", "html", "odt")...)},
		{deed{"zip", nil}, 1, []file{table, png}, attacks[format.Image]},
	}
}

// soak sends thousands of good, broken and hostile files from several accounts. Every item finishes,
// good files succeed, and nothing remains of the work.
func soak(t *testing.T, o *overseer) {
	x := hostile.NewTrap(t)
	work := chores(t, x)
	var lots []int
	for i, c := range work {
		lots = append(lots, slices.Repeat([]int{i}, c.weight)...)
	}

	// Accounts with their uploads.
	type account struct {
		*server
		good, others [][]string // keys by chore
		isGood       map[string]string
	}
	var accounts []*account
	for i := range 4 {
		a := &account{server: &server{url: o.url, dir: o.dir, key: o.key}, isGood: make(map[string]string)}
		if i > 0 {
			a.key = o.createKey(t, fmt.Sprint("account ", i))
		}
		for _, c := range work {
			var good, others []string
			for _, f := range c.good {
				good = append(good, a.upload(t, f.name, f.b, 1))
				a.isGood[good[len(good)-1]] = f.name
			}
			// Each account gets some of the files, so that all files are used; with -short a quarter of
			// the files.
			for j, f := range c.others {
				if len(c.others) < 12 || j%scale(4, 16) == i {
					others = append(others, a.upload(t, f.name, f.b, 1))
				}
			}
			a.good, a.others = append(a.good, good), append(a.others, others)
		}
		accounts = append(accounts, a)
	}
	goroutines := o.metric(t, "go_goroutines")

	var (
		left   atomic.Int64
		items  atomic.Int64
		mu     sync.Mutex
		counts = make(map[string]int)
		curve  []string
		wg     sync.WaitGroup
	)
	want := *soakItems
	if want == 0 {
		want = 1000
		if testing.Short() {
			want = 200
		}
	}
	left.Store(int64(want))
	began := time.Now()
	for client := range *soakClients {
		wg.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(client), 4))
			a := accounts[client%len(accounts)]
			for {
				i := lots[rng.IntN(len(lots))]
				keys := []string{a.good[i][rng.IntN(len(a.good[i]))]}
				for range 3 + rng.IntN(12) {
					keys = append(keys, a.others[i][rng.IntN(len(a.others[i]))])
				}
				rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
				n := len(keys)
				if work[i].action == "zip" {
					n = 1
				}
				if left.Add(-int64(n)) <= -int64(n) || t.Failed() {
					return
				}
				task := a.want(t, 200, "", "POST", "/api/v1/do", map[string]any{"action": work[i].action, "file_keys": keys, "parameters": work[i].params}).str("main_task_id")
				cancelled := rng.IntN(30) == 0
				if cancelled {
					time.Sleep(time.Duration(rng.IntN(500)) * time.Millisecond)
					a.want(t, 200, "", "DELETE", "/api/v1/status/"+task, nil)
				}
				r := a.await(t, task)
				mu.Lock()
				for _, e := range r.elements() {
					items.Add(1)
					code, _ := e["error_code"].(string)
					counts[e["status"].(string)+" "+code]++
					input, _ := e["input_file_key"].(string)
					switch {
					case e["status"] != "completed" && e["status"] != "failed":
						t.Errorf("an operation has ended, but not %v", e)
					case e["status"] == "failed" && !slices.Contains(knownCodes, code):
						t.Errorf("%v: %v", work[i].deed, e)
					case e["status"] == "failed" && a.isGood[input] != "" && !cancelled:
						t.Errorf("%v: the good file %s fails: %v", work[i].deed, a.isGood[input], e)
					}
				}
				mu.Unlock()
			}
		})
	}
	stop := make(chan struct{})
	var looks sync.WaitGroup
	looks.Go(func() {
		for tick := time.NewTicker(2 * time.Second); ; {
			c := o.census(t)
			curve = append(curve, fmt.Sprint(c.memory>>20))
			select {
			case <-tick.C:
			case <-stop:
				return
			}
		}
	})
	wg.Wait()
	took := time.Since(began)
	close(stop)
	looks.Wait()

	if n := items.Load(); n < int64(want) && !t.Failed() {
		t.Errorf("%d items, want %d", n, want)
	}
	if x.Opened() || x.Called() {
		t.Error("the canary was touched")
	}
	o.settled(t, "after the soak")
	o.goesOn(t, docx(t), "after the soak")
	o.wait(t, "after the soak", func(census) string {
		if now := o.metric(t, "go_goroutines"); now > goroutines+30 {
			return fmt.Sprintf("%v goroutines, before %v", now, goroutines)
		}
		return ""
	})
	for _, family := range []string{"filewright_items_queued", "filewright_items_running"} {
		// The server reads the number from its database once a second at most.
		eventually(t, family+" is 0", func() bool { return o.metric(t, family) == 0 })
	}
	end := o.census(t)
	t.Logf("%d items in %v: %.1f in a second", items.Load(), took.Round(time.Second), float64(items.Load())/took.Seconds())
	for _, k := range slices.Sorted(maps.Keys(counts)) {
		t.Logf("%6d %s", counts[k], k)
	}
	t.Logf("memory when idle %d MiB, afterwards %d, at most %d; every 2 s: %s", o.idle.memory>>20, end.memory>>20, o.peak>>20, strings.Join(curve, " "))
	t.Logf("descriptors %d, afterwards %d; goroutines %v, afterwards %v", o.idle.files, end.files, goroutines, o.metric(t, "go_goroutines"))
}

// createKey creates a key as the server's user.
func (o *overseer) createKey(t *testing.T, name string) string {
	t.Helper()
	program, err := plain()
	systest.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), program, "keys", "create", "--data-dir", o.dir, "--name", name)
	if o.user != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: o.user, Gid: o.user}}
	}
	out, err := cmd.Output()
	systest.NoError(t, err)
	return strings.TrimSpace(string(out))
}

// metric returns the sum of the values of a metric.
func (o *overseer) metric(t *testing.T, name string) (sum float64) {
	t.Helper()
	all := o.want(t, 200, "", "GET", "/metrics", nil, "Authorization", "").raw
	for _, m := range regexp.MustCompile(`(?m)^`+name+`(?:\{.*\})? (\S+)$`).FindAllSubmatch(all, -1) {
		n, err := strconv.ParseFloat(string(m[1]), 64)
		systest.NoError(t, err)
		sum += n
	}
	return sum
}
