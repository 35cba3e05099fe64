package dashboard

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/status"
)

type operationPage struct {
	*operationRow
	Parts     []part
	StepParts []stepPart // nil for a single action
	Asked     []askedStep
	Key       string // name of the API key; "": the dashboard
	Moments   []moment
	More      int // moments that are left out
	Log       string
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

// A view is the preview of a file.
type view struct {
	Kind, Address string
	Picture       string // address of a picture that is at most about 500 pixels wide or small in bytes; "": none
	Thumb         string // address of a very small picture; "": none
}

// smallPicture is the size in bytes of pictures that need no thumbnail.
const smallPicture = 200_000

// viewOf returns the preview of a file; its Kind is "" if browsers cannot show the file.
func (d *Dashboard) viewOf(f status.File) view {
	if gone(f) {
		return view{}
	}
	v := view{Kind: previewKind(f.Name), Address: Path + "files/" + url.PathEscape(f.Key)}
	switch can := d.cfg.Thumbnails != nil && d.cfg.Thumbnails.Can(f.Name, f.Size); {
	case can:
		v.Picture, v.Thumb = v.Address+"/thumbnail", v.Address+"/thumbnail?small"
	case v.Kind == "image" && f.Size <= 5_000_000:
		v.Picture = v.Address
	}
	if v.Kind == "image" && f.Size <= smallPicture {
		v.Picture = v.Address
	}
	return v
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
	b := operationPage{operationRow: row(op), StepParts: stepParts(op), Asked: asked(op)}
	b.Moments, b.More = timeline(op, v.who.Administrator)
	if b.Key = op.Origin.Key; b.Key != "" {
		key, err := d.cfg.Accounts.Keys().Get(v.r.Context(), b.Key)
		switch {
		case err == nil && key.Account == v.owner():
			b.Key = key.Name
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return err
		}
	}
	b.Log = logText(op, b.Key, v.who.Administrator)
	for i, it := range b.Items {
		p := part{Item: it, N: i + 1, Waited: -1, Worked: -1}
		if !it.Started.IsZero() {
			if since := op.Queued(i); !since.IsZero() {
				p.Waited = max(0, it.Started.Sub(since))
			}
			p.Worked = max(0, until(it).Sub(it.Started))
		}
		if !it.State.Final() && !it.Started.IsZero() && it.State == status.Queued {
			p.Worked = -1 // waiting for another attempt
		}
		b.Parts = append(b.Parts, p)
	}
	return d.render(v, http.StatusOK, page{Template: "operation", Title: opTitle(b.Operation), Nav: "operations", Body: b})
}

// A parameter is one that a request had.
type parameter struct {
	Name, Value string
	Secret      bool // the value is not kept
}

// An askedStep is what a request asked for in one step.
type askedStep struct {
	Action     string
	Parameters []parameter
}

// asked returns what was asked for; nil if that is not known.
func asked(op *status.Operation) (list []askedStep) {
	if len(op.Asked) != max(1, len(op.Steps)) {
		return nil
	}
	for i, a := range op.Asked {
		step := askedStep{Action: op.Action}
		if len(op.Steps) > 0 {
			step.Action = op.Steps[i].Action
		}
		for _, name := range slices.Sorted(maps.Keys(a.Parameters)) {
			step.Parameters = append(step.Parameters, parameter{Name: name, Value: valueText(a.Parameters[name])})
		}
		for _, name := range a.Secret {
			step.Parameters = append(step.Parameters, parameter{Name: name, Secret: true})
		}
		list = append(list, step)
	}
	return list
}

// valueText returns a value of a JSON document for people.
func valueText(v any) string {
	switch v := v.(type) {
	case string:
		return v
	case bool:
		if v {
			return "Yes"
		}
		return "No"
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(b)
}

// A moment is an entry of the timeline of an operation.
type moment struct {
	Time              time.Time
	Icon, Class       string
	Title, Text, Code string
}

// maxMoments bounds the timeline.
const maxMoments = 60

// timeline returns what happened to an operation, oldest first, and how many more entries there
// are. The names of nodes are for administrators.
func timeline(op *status.Operation, nodes bool) (list []moment, more int) {
	for i, it := range op.Items {
		name := ""
		if first, _ := op.ItemsOf(0); i < len(first) && len(first) > 1 && len(it.Inputs) > 0 { // files between steps are not shown
			name = it.Inputs[0].Name
		}
		where := func(a status.Attempt) string {
			parts := []string{name, a.Engine}
			if nodes {
				parts = append(parts, a.Node)
			}
			return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), " · ")
		}
		label := func(what string) string {
			if len(op.Steps) > 0 {
				return fmt.Sprintf("Step %d: %s", op.StepOf(i)+1, strings.ToLower(what[:1])+what[1:])
			}
			return what
		}
		for n, a := range it.Attempts {
			m := moment{Time: a.Ended, Icon: "check", Class: "ok", Title: label("Processed in " + tookText(a.Ended.Sub(a.Started))), Text: where(a), Code: a.Code}
			switch {
			case a.Code == "":
			case n < len(it.Attempts)-1 || !it.State.Final():
				m.Icon, m.Class, m.Title = "refresh", "warn", label(fmt.Sprintf("Attempt %d ended after %s", n+1, tookText(a.Ended.Sub(a.Started))))
			case a.Code == status.CodeCancelled:
				m.Icon, m.Class, m.Title = "ban", "", label("Cancelled after "+tookText(a.Ended.Sub(a.Started)))
			default:
				m.Icon, m.Class, m.Title = "x", "bad", label("Failed after "+tookText(a.Ended.Sub(a.Started)))
			}
			list = append(list, moment{Time: a.Started, Icon: "play", Class: "run", Title: label("Started"), Text: name}, m)
		}
		if it.State == status.Running {
			list = append(list, moment{Time: it.Started, Icon: "play", Class: "run", Title: label("Started"), Text: name})
		}
	}
	slices.SortStableFunc(list, func(x, y moment) int { return x.Time.Compare(y.Time) })
	if more = max(0, len(list)-maxMoments); more > 0 {
		list = list[:maxMoments]
	}
	return list, more
}

// Repeatable reports whether the operation can be submitted again without a secret.
func (b operationPage) Repeatable() bool {
	return len(b.Asked) > 0 && !slices.ContainsFunc(b.Asked, func(s askedStep) bool {
		return slices.ContainsFunc(s.Parameters, func(p parameter) bool { return p.Secret })
	})
}

// Changeable reports whether the try-it page can show what was asked for.
func (b operationPage) Changeable() bool { return len(b.Asked) == 1 && len(b.Steps) == 0 }

func (d *Dashboard) deleteOperation(v *visit) error {
	id := v.r.PathValue("id")
	err := d.changeOperation(v, account.AuditOperationDelete, id)
	if errors.Is(err, status.ErrNotFinal) {
		d.fail(v, http.StatusConflict, "Still running", "Cancel the operation first, then delete it.")
		return nil
	}
	if err != nil {
		return err
	}
	return d.done(v, "deleted", "operations")
}

func (d *Dashboard) repeatOperation(v *visit) error {
	op, err := d.runAgain(v, v.r.PathValue("id"))
	if err != nil {
		p := httpapi.ProblemOf(err)
		if p.Status >= 500 || p.Status == http.StatusNotFound {
			return err
		}
		d.fail(v, p.Status, "Cannot run again", strings.ToUpper(p.Detail[:1])+p.Detail[1:]+".")
		return nil
	}
	return d.done(v, "again", "operations/"+url.PathEscape(op.ID))
}

func (d *Dashboard) cancelOperation(v *visit) error {
	id := v.r.PathValue("id")
	if err := d.changeOperation(v, account.AuditOperationCancel, id); err != nil {
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
