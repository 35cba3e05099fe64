package statustest

import (
	"cmp"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/status"
)

// history returns the suite's store if it can search, and skips the test otherwise:
// status.History is optional.
func (s *suite) history() status.History {
	s.Helper()
	h, ok := s.Store.(status.History)
	if !ok {
		s.Skip("the store does not implement status.History")
	}
	return h
}

// found returns all operations that q selects, in pages.
func (s *suite) found(h status.History, q status.HistoryQuery) (ids []string) {
	s.Helper()
	for range 100 {
		page, err := h.History(s.ctx(), q)
		s.noError(err)
		for _, op := range page.Operations {
			if len(op.Items) == 0 {
				s.Fatalf("operation %s has no items", op.ID)
			}
			ids = append(ids, op.ID)
		}
		if q.After = page.Next; q.After == "" {
			return ids
		}
	}
	s.Fatal("the list has no end")
	return nil
}

func historySearch(_ *testing.T, s *suite) {
	h := s.history()
	var ids []string
	for i, op := range []*status.Operation{
		{Action: "convert", Notes: map[string]string{"ticket": "R&D 50%"}, Origin: status.Origin{Key: "k1"}},
		{Action: "merge", Origin: status.Origin{Key: "k2"}},
		{Action: "convert", Origin: status.Origin{Key: "k2"}},
		{Action: "zip"},
	} {
		made := s.make([]string{"alice", "alice", "alice", "bob"}[i], "pdf")
		made.Action, made.Notes, made.Origin = op.Action, op.Notes, op.Origin
		made.Items[0].Inputs = []status.File{{Key: "a", Name: []string{"Übersicht.docx", "sales_1.pdf", "salesX1.pdf", "übersicht.txt"}[i]}}
		made.Asked = []status.Asked{{Parameters: map[string]any{"convert_to": "pdf"}, Secret: []string{"password"}}}
		_, err := s.Create(s.ctx(), made)
		s.noError(err)
		s.equal("what was asked", s.get(made.ID).Asked, made.Asked)
		ids = append(ids, made.ID)
	}
	second := s.get(ids[1]).Created
	for name, tt := range map[string]struct {
		q    status.HistoryQuery
		want []string
	}{
		"all of an owner":   {status.HistoryQuery{Owner: "alice"}, []string{ids[2], ids[1], ids[0]}},
		"all":               {status.HistoryQuery{}, []string{ids[3], ids[2], ids[1], ids[0]}},
		"oldest first":      {status.HistoryQuery{Owner: "alice", Oldest: true, Limit: 2}, ids[:3]},
		"pages":             {status.HistoryQuery{Owner: "alice", Limit: 1}, []string{ids[2], ids[1], ids[0]}},
		"pages of all":      {status.HistoryQuery{Limit: 1, Oldest: true}, ids},
		"file name":         {status.HistoryQuery{Owner: "alice", Text: "üBERSICHT"}, ids[:1]},
		"no wildcards":      {status.HistoryQuery{Text: "sales_1"}, ids[1:2]},
		"note":              {status.HistoryQuery{Text: "r&d 50%"}, ids[:1]},
		"ID":                {status.HistoryQuery{Text: ids[3]}, ids[3:]},
		"start of an ID":    {status.HistoryQuery{Owner: "bob", Text: ids[3][:4]}, ids[3:]},
		"nothing":           {status.HistoryQuery{Text: "%%"}, nil},
		"action":            {status.HistoryQuery{Owner: "alice", Action: "convert"}, []string{ids[2], ids[0]}},
		"key":               {status.HistoryQuery{Owner: "alice", Key: "k2"}, []string{ids[2], ids[1]}},
		"from":              {status.HistoryQuery{Owner: "alice", From: second}, []string{ids[2], ids[1]}},
		"until":             {status.HistoryQuery{Owner: "alice", To: second}, ids[:1]},
		"days of all":       {status.HistoryQuery{From: second, To: second.Add(time.Millisecond)}, ids[1:2]},
		"several":           {status.HistoryQuery{Owner: "alice", Action: "convert", Key: "k2", Text: "sales"}, ids[2:3]},
		"queued":            {status.HistoryQuery{Owner: "alice", Condition: status.Enqueued, Oldest: true}, ids[:3]},
		"queued, all":       {status.HistoryQuery{Condition: status.Enqueued, Limit: 3}, []string{ids[3], ids[2], ids[1], ids[0]}},
		"another condition": {status.HistoryQuery{Owner: "alice", Condition: status.Warned}, nil},
	} {
		if got := s.found(h, tt.q); !equalIDs(got, tt.want) {
			s.Errorf("%s: %v, want %v", name, got, tt.want)
		}
	}
	_, err := h.History(s.ctx(), status.HistoryQuery{Owner: "alice", After: "nothing"})
	s.matches(err, fs.ErrNotExist)
}

// Operations can be listed by size, duration and name, in both directions and in pages, also
// with a filter.
func historyOrders(_ *testing.T, s *suite) {
	h := s.history()
	check := func(what string, got, want []string) {
		s.Helper()
		if !equalIDs(got, want) {
			s.Errorf("%s: %v, want %v", what, got, want)
		}
	}
	var ids []string
	for _, in := range []struct {
		name string
		size int64
	}{{"b.pdf", 30}, {"A.pdf", 10}, {"c.pdf", 30}, {"é.pdf", 20}} {
		op := s.make("alice", "pdf", "pdf")
		op.Items[0].Inputs = []status.File{{Key: "a", Name: in.name, Size: in.size - 5}}
		op.Items[1].Inputs = []status.File{{Key: "b", Name: "x", Size: 5}}
		_, err := s.Create(s.ctx(), op)
		s.noError(err)
		ids = append(ids, op.ID)
	}
	s.create("bob", "pdf")
	// The second is the first to finish. The last stays open.
	for _, i := range []int{1, 0, 2} {
		for index := range 2 {
			s.finish(s.claim(ids[i], index, "w", time.Hour), success)
		}
	}
	durations := make(map[string]time.Duration)
	for _, id := range ids[:3] {
		op := s.get(id)
		durations[id] = op.Finished.Truncate(time.Millisecond).Sub(op.Created.Truncate(time.Millisecond))
	}
	shortest := slices.SortedFunc(slices.Values(ids[:3]), func(x, y string) int {
		return cmp.Or(cmp.Compare(durations[x], durations[y]), cmp.Compare(x, y))
	})
	shortest = append(shortest, ids[3])
	same := []string{ids[0], ids[2]} // of one size
	slices.Sort(same)
	for _, tt := range []struct {
		order status.Order
		want  []string // ascending
	}{
		{status.BySize, []string{ids[1], ids[3], same[0], same[1]}},
		{status.ByName, []string{ids[1], ids[0], ids[2], ids[3]}},
		{status.ByDuration, shortest},
	} {
		for limit := range 4 {
			q := status.HistoryQuery{Owner: "alice", Order: tt.order, Oldest: true, Limit: limit}
			check("operations "+string(tt.order), s.found(h, q), tt.want)
			q.Oldest = false
			descending := slices.Clone(tt.want)
			slices.Reverse(descending)
			check("operations descending "+string(tt.order), s.found(h, q), descending)
			for c, selects := range map[status.Condition]func(id string) bool{
				status.Succeeded: func(id string) bool { return id != ids[3] }, status.Enqueued: func(id string) bool { return id == ids[3] },
				status.Held: func(string) bool { return false },
			} {
				q.Condition = c
				want := slices.DeleteFunc(slices.Clone(descending), func(id string) bool { return !selects(id) })
				check("operations "+string(c)+" "+string(tt.order), s.found(h, q), want)
			}
		}
		first := s.get(ids[0]).Created
		q := status.HistoryQuery{Owner: "alice", Order: tt.order, From: first, To: first.Add(time.Millisecond), Text: ids[0]}
		check("operations of a time", s.found(h, q), ids[:1])
		q = status.HistoryQuery{Order: tt.order, Limit: 3}
		check("the order of all accounts", s.found(h, q)[1:], []string{ids[3], ids[2], ids[1], ids[0]})
		_, err := h.History(s.ctx(), status.HistoryQuery{Owner: "alice", Order: tt.order, After: "nothing"})
		s.matches(err, fs.ErrNotExist)
	}
	// An operation that finishes between two pages does not move the second page.
	page, err := h.History(s.ctx(), status.HistoryQuery{Owner: "alice", Order: status.ByDuration, Limit: 1})
	s.noError(err)
	s.equal("the longest operation", page.Operations[0].ID, ids[3])
	for index := range 2 {
		s.finish(s.claim(ids[3], index, "w", time.Hour), success)
	}
	rest := s.found(h, status.HistoryQuery{Owner: "alice", Order: status.ByDuration, After: page.Next})
	for _, id := range ids[:3] {
		if !slices.Contains(rest, id) {
			s.Errorf("the second page %v lacks %s", rest, id)
		}
	}
}

func equalIDs(x, y []string) bool {
	if len(x) != len(y) {
		return false
	}
	for i := range x {
		if x[i] != y[i] {
			return false
		}
	}
	return true
}

// Each operation is found by its condition, and by no other.
func historyConditions(_ *testing.T, s *suite) {
	h := s.history()
	run := func(id string, index int, o status.Outcome) { s.finish(s.claim(id, index, "w", time.Hour), o) }
	want := make(map[status.Condition]string)
	make2 := func(c status.Condition) string {
		op := s.create("alice", "pdf", "pdf")
		want[c] = op.ID
		return op.ID
	}
	warned := success
	warned.Warnings = []status.Warning{{Code: "fonts_substituted", Message: "a font is missing"}}
	make2(status.Enqueued)
	s.claim(make2(status.Active), 0, "w", time.Hour)
	run(make2(status.Held), 0, status.Outcome{Release: true, Waiting: status.WaitDisk, RetryAfter: time.Hour, Engine: "qpdf", Node: "n1"})
	for c, both := range map[status.Condition][2]status.Outcome{
		status.Succeeded: {success, success}, status.Warned: {success, warned}, status.Partial: {warned, failure}, status.Broken: {failure, failure},
	} {
		id := make2(c)
		run(id, 0, both[0])
		run(id, 1, both[1])
	}
	id := make2(status.Stopped)
	run(id, 0, success)
	_, err := s.Cancel(s.ctx(), "alice", id)
	s.noError(err)
	for _, c := range status.Conditions() {
		s.equal("condition", s.get(want[c]).Condition(), c)
		s.equal("operations in condition "+string(c), s.found(h, status.HistoryQuery{Owner: "alice", Condition: c}), []string{want[c]})
		s.equal("operations of all in condition "+string(c), s.found(h, status.HistoryQuery{Condition: c}), []string{want[c]})
	}
	// The attempts that ended say where they ran, and have a bounded log.
	line := status.LogLine{Time: s.get(want[status.Held]).Created.Truncate(time.Millisecond), Level: "warn", Text: strings.Repeat("ü", 500)}
	logged := s.create("alice", "pdf").ID
	for range 2 {
		run(logged, 0, status.Outcome{Release: true, Waiting: status.WaitDisk, Log: []status.LogLine{line, line}})
	}
	for i, n := range []int{0, 2} {
		log := s.get(logged).Items[0].Attempts[i].Log
		if len(log) != n || n > 0 && (log[1].Text != line.Text || log[1].Level != "warn" || !log[1].Time.Equal(line.Time)) {
			s.Errorf("attempt %d has the log %+v, want %d lines", i, log, n)
		}
	}
	list := s.get(want[status.Held]).Items[0].Attempts
	if len(list) != 1 || list[0].Code != status.WaitDisk || list[0].Engine != "qpdf" || list[0].Node != "n1" || list[0].Started.IsZero() || list[0].Ended.Before(list[0].Started) {
		s.Errorf("attempts %+v", list)
	}
	s.equal("code of a failure", s.get(want[status.Broken]).Items[0].Attempts[0].Code, "corrupt_input")
	s.equal("code of a success", s.get(want[status.Succeeded]).Items[0].Attempts[0].Code, "")
	s.equal("attempts of an item that never ran", len(s.get(want[status.Stopped]).Items[1].Attempts), 0)
}

func historyDelete(_ *testing.T, s *suite) {
	h := s.history()
	op := s.create("alice", "pdf")
	_, err := h.Delete(s.ctx(), "alice", op.ID)
	s.matches(err, status.ErrNotFinal)
	s.finish(s.claim(op.ID, 0, "w", time.Hour), success)
	_, err = h.Delete(s.ctx(), "bob", op.ID)
	s.matches(err, fs.ErrNotExist)
	gone, err := h.Delete(s.ctx(), "alice", op.ID)
	s.noError(err)
	s.equal("deleted operation", gone.Items[0].Results[0].Key, "out")
	_, err = s.Get(s.ctx(), op.ID)
	s.matches(err, fs.ErrNotExist)
	_, err = h.Delete(s.ctx(), "alice", op.ID)
	s.matches(err, fs.ErrNotExist)
	s.equal("operations", s.list(status.Query{Owner: "alice"}), []string(nil))
}
