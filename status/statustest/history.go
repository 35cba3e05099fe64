package statustest

import (
	"io/fs"
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
	// The attempts that ended say where they ran.
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
