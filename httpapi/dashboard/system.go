package dashboard

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"runtime"
	"runtime/debug"
	"slices"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/status"
)

// A SystemNode is a server of a cluster, for the system page.
type SystemNode struct {
	Name    string
	Role    string
	Version string
	Seen    time.Time // when it last announced itself
	Engines int       // that it can use
}

type systemPage struct {
	Version, Go, Platform string
	Started               time.Time
	Memory                int64 // bytes that the process holds
	Goroutines            int
	Nodes                 []SystemNode
	Dependencies          []httpapi.Dependency
	Queues                []status.QueueStats
	Queued, Running       int
	Store                 storeState
	Engines               []httpapi.Engine
	Sandbox               *httpapi.Sandbox
	Tier                  tier
	Failures              []status.FailureCount // of all accounts in the last 24 hours
	Counts                bool                  // Failures is known
	Modules               []module
	Sweeps                []sweepRow
}

// A sweepRow is the last run of a sweep of this process.
type sweepRow struct {
	Name    string
	At      time.Time // zero: none
	Removed int
	Failed  bool
}

// sweeps returns the sweeps of this process.
func (d *Dashboard) sweeps() (list []sweepRow) {
	add := func(name string, last func() (time.Time, int, error)) {
		at, removed, err := last()
		list = append(list, sweepRow{name, at, removed, err != nil})
	}
	add("Expired files and uploads", d.cfg.Service.Uploads().LastSweep)
	add("Finished operations", d.cfg.Service.Operations().LastSweep)
	if d.cfg.Webhooks != nil {
		add("Webhook deliveries", d.cfg.Webhooks.LastSweep)
	}
	if d.cfg.Accounts.HasAudit() {
		add("Audit log", d.cfg.Accounts.LastSweep)
	}
	return list
}

// A storeState describes the stored files and their removal.
type storeState struct {
	Free    int64         // bytes that can still be stored; -1: unknown
	Overdue time.Duration // how long the file that expired first has waited for its removal
	Removed int64         // stored objects without a record that this process removed
	Refused int64         // such objects that the last sweep kept, because they were too many
	Lost    int64         // files whose content was found missing
	Known   bool          // Overdue is known
}

func (d *Dashboard) store(ctx context.Context) storeState {
	uploads := d.cfg.Service.Uploads()
	s := storeState{Free: -1, Removed: uploads.OrphansRemoved(), Refused: uploads.SweepRefused(), Lost: uploads.LostContents()}
	if free, err := uploads.FreeSpace(ctx); err == nil {
		s.Free = free
	}
	var err error
	s.Overdue, err = uploads.SweepOverdue(ctx)
	s.Known = err == nil
	return s
}

// A module is a library that is linked into the server.
type module struct{ Path, Version string }

// system shows administrators the state of the server.
func (d *Dashboard) system(v *visit) error {
	ctx := v.r.Context()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	b := systemPage{
		Version: d.cfg.Version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH, Started: d.started, Memory: int64(memory.Sys - memory.HeapReleased), Goroutines: runtime.NumGoroutine(),
		Dependencies: d.cfg.Service.Dependencies(), Engines: d.cfg.Service.Engines(), Sandbox: d.cfg.Service.Sandbox(), Tier: tierOf(d.cfg.Service.Sandbox()),
	}
	b.Store, b.Sweeps = d.store(ctx), d.sweeps()
	var err error
	if b.Queues, err = d.cfg.Service.Operations().Stats(ctx); err != nil {
		return err
	}
	for _, q := range b.Queues {
		b.Queued += q.Queued
		b.Running += q.Running
	}
	if d.cfg.Nodes != nil {
		if b.Nodes, err = d.cfg.Nodes(ctx); err != nil {
			return err
		}
	}
	if b.Counts = d.cfg.Failures != nil; b.Counts {
		if b.Failures, err = d.cfg.Failures(ctx, time.Now().Add(-24*time.Hour)); err != nil {
			return err
		}
		b.Failures = b.Failures[:min(len(b.Failures), 20)]
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			b.Modules = append(b.Modules, module{m.Path, m.Version})
		}
	}
	return d.render(v, http.StatusOK, page{Template: "system", Title: "System", Nav: "system", Body: b})
}

// A codeCount is an error code with the number of files that failed with it.
type codeCount struct {
	Code  string
	Files int
}

// troubles are the recent failures of an account.
type troubles struct {
	Items, Failed int         // processed files of the last seven days
	Codes         []codeCount // of the latest failed operations, most frequent first
}

// Rate returns the failure rate in percent.
func (t *troubles) Rate() int { return share(int64(t.Failed), int64(t.Items)) }

// latestFailures is the number of operations that the overview looks at for error codes.
const latestFailures = 100

func (d *Dashboard) troubles(ctx context.Context, owner string) (*troubles, error) {
	now := time.Now()
	t := new(troubles)
	days, err := d.cfg.Accounts.Usage(ctx, owner, now.AddDate(0, 0, -6), now)
	if err != nil {
		return nil, err
	}
	for _, u := range days {
		t.Items += u.Items
		t.Failed += u.Failed
	}
	if t.Failed == 0 {
		return t, nil
	}
	counts := make(map[string]int)
	for _, c := range []status.Condition{status.Broken, status.Partial} {
		found, err := d.cfg.Service.Operations().History(ctx, status.HistoryQuery{Owner: owner, Condition: c, From: now.AddDate(0, 0, -7), Limit: latestFailures})
		if errors.Is(err, errors.ErrUnsupported) { // without a search there are no codes
			return t, nil
		}
		if err != nil {
			return nil, err
		}
		for _, op := range found.Operations {
			for _, it := range op.Items {
				if it.Error != nil {
					counts[it.Error.Code]++
				}
			}
		}
	}
	for code, n := range counts {
		t.Codes = append(t.Codes, codeCount{code, n})
	}
	slices.SortFunc(t.Codes, func(x, y codeCount) int {
		return cmp.Or(y.Files-x.Files, cmp.Compare(x.Code, y.Code))
	})
	t.Codes = t.Codes[:min(len(t.Codes), 5)]
	return t, nil
}
