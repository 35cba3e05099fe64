package dashboard

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/status"
)

const operationsPerPage = 25

type operationsPage struct {
	State  status.State
	States []status.State
	Rows   []*operationRow
	Older  string // address of the next page
	First  bool   // this is the first page
}

func (d *Dashboard) operations(v *visit) error {
	q := v.r.URL.Query()
	b := operationsPage{State: status.State(q.Get("status")), States: []status.State{status.Queued, status.Running, status.Completed, status.Failed}}
	switch b.State {
	case "", status.Queued, status.Running, status.Completed, status.Failed:
	default:
		b.State = ""
	}
	before := q.Get("before")
	b.First = before == ""
	for op, err := range d.cfg.Service.Operations().List(v.r.Context(), status.Query{Owner: v.owner(), State: b.State, Before: before, Limit: operationsPerPage + 1}) {
		if err != nil {
			return err
		}
		if len(b.Rows) == operationsPerPage {
			older := url.Values{"before": {b.Rows[operationsPerPage-1].ID}}
			if b.State != "" {
				older.Set("status", string(b.State))
			}
			b.Older = "operations?" + older.Encode()
			break
		}
		b.Rows = append(b.Rows, row(op))
	}
	return d.render(v, http.StatusOK, page{Template: "operations", Title: "Operations", Nav: "operations", Body: b})
}

type operationPage struct {
	*operationRow
	Parts     []part
	StepParts []stepPart // nil for a single action
}

// A stepPart is a step of an operation.
type stepPart struct {
	N       int
	Action  string
	State   status.State
	Percent int
	Files   int // 0: the step has not started
	Failed  int
	Kept    []status.File
}

func stepParts(op *status.Operation) (list []stepPart) {
	for i, step := range op.Steps {
		p := stepPart{N: i + 1, Action: step.Action, State: op.StepState(i)}
		items, _ := op.ItemsOf(i)
		done := 0.0
		for _, it := range items {
			if p.Files++; it.State == status.Failed {
				p.Failed++
			}
			if it.State.Final() {
				done++
			} else {
				done += it.Progress
			}
			if step.Keep && i < len(op.Steps)-1 {
				p.Kept = append(p.Kept, it.Results...)
			}
		}
		p.Percent = percent(done / float64(max(1, p.Files)))
		list = append(list, p)
	}
	return list
}

// A part is an item of an operation.
type part struct {
	status.Item
	N      int
	Waited time.Duration // until the latest attempt; negative: not started
	Worked time.Duration // of the latest attempt; negative: not started
}

// Percent returns the progress in percent.
func (p part) Percent() int {
	if p.State.Final() {
		return 100
	}
	return percent(p.Progress)
}

// Reason says why the item waits; "" if it waits only for a worker.
func (p part) Reason() string {
	if p.State != status.Queued || p.Waiting == nil {
		return ""
	}
	switch p.Waiting.Reason {
	case status.WaitStorage:
		return "Waiting for storage"
	case status.WaitDatabase:
		return "Waiting for the database"
	case status.WaitDisk:
		return "Waiting for disk space"
	case status.WaitEngine:
		return "Waiting for the engine"
	case status.WaitAlone:
		return "Waiting for other files to finish"
	}
	return "Waiting"
}

// Title names the files of the item.
func (p part) Title() string {
	switch len(p.Inputs) {
	case 0:
		return "–"
	case 1:
		return p.Inputs[0].Name
	}
	return plural(len(p.Inputs), "file", "files")
}

// A view is the preview of a result.
type view struct{ Kind, Address string }

// viewOf returns the preview of a file; its Kind is "" if browsers cannot show the file.
func viewOf(f status.File) view {
	return view{previewKind(f.Name), Path + "files/" + url.PathEscape(f.Key)}
}

// gone reports whether a file has expired.
func gone(f status.File) bool { return !f.Expires.IsZero() && time.Now().After(f.Expires) }

// until returns when an item finished, or now.
func until(it status.Item) time.Time {
	if it.Finished.IsZero() {
		return time.Now()
	}
	return it.Finished
}

// HasResults reports whether there is a file to download.
func (b operationPage) HasResults() bool {
	return slices.ContainsFunc(b.Items, func(it status.Item) bool { return len(it.Results) > 0 })
}

// Several reports whether the operation is final and has several files to download.
func (b operationPage) Several() bool {
	n := 0
	for _, it := range b.Items {
		for _, f := range it.Results {
			if !gone(f) {
				n++
			}
		}
	}
	return b.State.Final() && n > 1
}

// Curl returns the API call for the operation as a shell command.
func (b operationPage) Curl() string {
	return fmt.Sprintf("curl -s \"$API/api/v1/status/%s\" \\\n  -H \"Authorization: Bearer $KEY\"", b.ID)
}

func (d *Dashboard) operation(v *visit) error {
	op, err := d.cfg.Service.Operations().Get(v.r.Context(), v.owner(), v.r.PathValue("id"))
	if err != nil {
		return err
	}
	b := operationPage{operationRow: row(op), StepParts: stepParts(op)}
	for i, it := range b.Items {
		p := part{Item: it, N: i + 1, Waited: -1, Worked: -1}
		if !it.Started.IsZero() {
			p.Waited = max(0, it.Started.Sub(op.Created))
			p.Worked = max(0, until(it).Sub(it.Started))
		}
		if !it.State.Final() && !it.Started.IsZero() && it.State == status.Queued {
			p.Worked = -1 // waiting for another attempt
		}
		b.Parts = append(b.Parts, p)
	}
	return d.render(v, http.StatusOK, page{Template: "operation", Title: opTitle(b.Operation), Nav: "operations", Body: b})
}

func (d *Dashboard) cancelOperation(v *visit) error {
	id := v.r.PathValue("id")
	if _, err := d.cfg.Service.Operations().Cancel(v.r.Context(), v.owner(), id); err != nil {
		return err
	}
	return d.done(v, "cancelled", "operations/"+url.PathEscape(id))
}

// previewKind returns how browsers can show a file, by its name: "image", "pdf", "audio", "video",
// "text", or "" if they cannot.
func previewKind(name string) string {
	f := format.Parse(name)
	switch f {
	case format.PDF:
		return "pdf"
	case format.HTML, format.SVG, format.XML, format.JSON, format.TXT, format.MD, format.CSV, format.TSV:
		return "text"
	case "jpg", "png", "webp", "gif", "avif", "bmp", "ico":
		return "image"
	case "mp3", "wav", "flac", "ogg", "opus", "m4a", "aac":
		return "audio"
	case "mp4", "webm", "m4v", "mov":
		return "video"
	}
	return ""
}

// previewType returns the media type of a preview: never a type that browsers would execute.
func previewType(name string) string {
	if kind := previewKind(name); kind == "text" {
		return "text/plain; charset=utf-8"
	} else if kind == "" {
		return ""
	}
	return strings.TrimSpace(format.Parse(name).MIME())
}
