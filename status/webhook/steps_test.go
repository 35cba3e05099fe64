package webhook_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
)

// An operation of several steps causes the events of its last results and of its failed files, with
// its own inputs. Results of the other steps cause none.
func TestEventsOfSteps(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, db *sqlstore.DB) {
		w := newHooks(t, db, nil)
		r := receive(t, nil)
		create(t, w, "alice", r.URL+"/all")
		run(t, w)
		op := &status.Operation{ID: "op", Owner: "alice", Action: "steps", Created: time.Now(), Steps: []status.Step{{Action: "convert"}, {Action: "lock"}}}
		for i := range 3 {
			op.Items = append(op.Items, status.Item{Queue: "pdf", Inputs: []status.File{{Key: fmt.Sprint("in", i), Name: fmt.Sprintf("%d.docx", i)}}})
		}
		_, err := db.Operations().Create(t.Context(), op)
		systest.NoError(t, err)
		next := func(op *status.Operation) (list []status.Item) {
			items, _ := op.ItemsOf(op.Step())
			for i, it := range items {
				if it.State == status.Completed {
					one := status.Item{Queue: "pdf", Inputs: it.Results}
					if i == 1 {
						one.Error = &status.Error{Code: "unsupported_input", Message: "no"}
					}
					list = append(list, one)
				}
			}
			return list
		}
		made := func(key string) status.Outcome {
			return status.Outcome{Next: next, Results: []status.File{{Key: key, Name: key + ".pdf"}}}
		}
		finish(t, db, "op", 0, status.Outcome{Next: next, Error: &status.Error{Code: "corrupt_input", Message: "the file is damaged"}})
		finish(t, db, "op", 1, made("pdf1"))
		finish(t, db, "op", 2, made("pdf2")) // starts the second step, in which the first file is refused
		finish(t, db, "op", 4, made("locked2"))

		seen := make(map[string]int)
		for _, m := range r.wait(t, 4) {
			b := m.decode(t)
			line := b.Type
			if f := b.Payload.FileTask; f != nil {
				line = fmt.Sprintf("%s %v %v %v", b.Type, f["input_file_key"], f["file_name"], f["error_code"])
			}
			if c := b.Payload.MainTask.Count; c != nil {
				line = fmt.Sprintf("%s %d of %d", line, c.Success, c.Total)
			}
			seen[line]++
		}
		for _, want := range []string{
			"fileTask.failed in0 0.docx corrupt_input", "fileTask.failed in1 1.docx unsupported_input",
			"fileTask.completed in2 locked2.pdf <nil>", "operation.completed 1 of 3",
		} {
			if seen[want] != 1 {
				t.Errorf("no event %q in %v", want, seen)
			}
		}

		// A cancelled operation has no results of steps before the last.
		op.ID = "op2"
		_, err = db.Operations().Create(t.Context(), op)
		systest.NoError(t, err)
		finish(t, db, "op2", 0, made("x"))
		_, err = db.Operations().Cancel(t.Context(), "alice", "op2")
		systest.NoError(t, err)
		failed := 0
		for _, m := range r.wait(t, 8)[4:] {
			if b := m.decode(t); b.Type == "fileTask.failed" && b.Payload.FileTask["error_code"] == "cancelled" {
				failed++
			}
		}
		if failed != 3 {
			t.Errorf("%d files of the cancelled operation failed, want 3", failed)
		}
	})
}
