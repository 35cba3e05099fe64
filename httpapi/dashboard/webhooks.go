package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/webhook"
)

type webhooksPage struct {
	Hooks []hookRow
	Form  hookForm
	Types []eventType
	Open  bool // the form is open at first
}

// healthOf is the number of deliveries that the list of webhooks shows for each.
const healthOf = 20

// A hookRow is a webhook in the list, with its latest deliveries, oldest first.
type hookRow struct {
	*webhook.Endpoint
	Latest []*webhook.Delivery
}

// Health describes the latest deliveries.
func (r hookRow) Health() string {
	counts := make(map[string]int)
	for _, one := range r.Latest {
		counts[one.State]++
	}
	text := fmt.Sprintf("%d of %d delivered", counts[webhook.Delivered], len(r.Latest))
	if n := counts[webhook.Pending]; n > 0 {
		text += fmt.Sprintf(", %d pending", n)
	}
	return text
}

// A sample is an example of an event.
type sample struct{ Name, Text string }

// samples returns an example of each event, in the format of this server.
func (d *Dashboard) samples() (list []sample) {
	now := time.Now().UTC().Truncate(time.Second)
	for _, t := range eventTypes {
		it := status.Item{State: status.Completed, Progress: 1, Inputs: []status.File{{Key: "input-file-key", Name: "report.docx", Size: 48_213}},
			Results: []status.File{{Key: "result-file-key", Name: "report.pdf", ContentType: "application/pdf", Size: 91_442, Expires: now.Add(24 * time.Hour)}}, Finished: now}
		op := &status.Operation{ID: "main-task-id", Action: "convert", State: status.Completed, Notes: map[string]string{"order": "4711"}, Created: now.Add(-2 * time.Second), Finished: now}
		if strings.HasSuffix(t.Name, "failed") {
			it.State, it.Results, op.State = status.Failed, nil, status.Failed
			it.Error = &status.Error{Code: "corrupt_input", Message: "the document is damaged"}
		}
		op.Items = []status.Item{it}
		b, err := d.cfg.Service.Notification(t.Name, now, op)
		if err == nil {
			list = append(list, sample{t.Name, pretty(b)})
		}
	}
	return list
}

// maxReplayed is the number of deliveries that one form sends again.
const maxReplayed = 1000

// replayPeriods are the choices for the age of failed deliveries to send again.
var replayPeriods = map[string]time.Duration{"1": time.Hour, "24": 24 * time.Hour, "72": 72 * time.Hour, "all": 0}

// replayFailed sends the failed deliveries of a webhook since a time again, and returns their number.
func (d *Dashboard) replayFailed(v *visit, id string) (n int, err error) {
	ctx := v.r.Context()
	period, ok := replayPeriods[v.r.FormValue("period")]
	if !ok {
		return 0, fs.ErrNotExist
	}
	if _, err := d.cfg.Webhooks.Get(ctx, v.owner(), id); err != nil {
		return 0, err
	}
	var list []*webhook.Delivery // all are read before one is changed
	for before := ""; len(list) < maxReplayed; {
		some, err := d.cfg.Webhooks.Deliveries(ctx, v.owner(), webhook.Query{Endpoint: id, State: webhook.Failed, Before: before, Limit: 100})
		if err != nil {
			return 0, err
		}
		for _, one := range some {
			if period > 0 && time.Since(one.Created) > period {
				some = nil
				break
			}
			list = append(list, one)
		}
		if len(some) < 100 {
			break
		}
		before = some[len(some)-1].ID
	}
	for _, one := range list {
		if _, err := d.cfg.Webhooks.Replay(ctx, v.owner(), one.ID); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return n, err
		}
		n++
	}
	return n, nil
}

// A hookForm holds the submitted values of the webhook form.
type hookForm struct {
	URL, Description string
	Events           []string
	URLError         string
	DescriptionError string
	Error            string
}

// Has reports whether an event is selected.
func (f hookForm) Has(event string) bool { return slices.Contains(f.Events, event) }

type eventType struct{ Name, Text string }

var eventTypes = []eventType{
	{webhook.OperationCompleted, "All files of an operation are finished and at least one succeeded"},
	{webhook.OperationFailed, "No file of an operation succeeded, or it was cancelled"},
	{webhook.FileTaskCompleted, "One file is finished"},
	{webhook.FileTaskFailed, "One file failed"},
}

func (d *Dashboard) webhooks(v *visit) error {
	return d.showWebhooks(v, http.StatusOK, webhooksPage{Form: hookForm{Events: []string{webhook.OperationCompleted, webhook.OperationFailed}}})
}

func (d *Dashboard) showWebhooks(v *visit, code int, b webhooksPage) error {
	hooks, err := d.cfg.Webhooks.List(v.r.Context(), v.owner())
	if err != nil {
		return err
	}
	for _, h := range hooks {
		r := hookRow{Endpoint: h}
		if r.Latest, err = d.cfg.Webhooks.Deliveries(v.r.Context(), v.owner(), webhook.Query{Endpoint: h.ID, Limit: healthOf}); err != nil {
			return err
		}
		slices.Reverse(r.Latest)
		b.Hooks = append(b.Hooks, r)
	}
	b.Types = eventTypes
	b.Open = b.Open || len(b.Hooks) == 0
	return d.render(v, code, page{Template: "webhooks", Title: "Webhooks", Nav: "webhooks", Body: b})
}

func readHook(r *http.Request) hookForm {
	return hookForm{URL: strings.TrimSpace(r.FormValue("url")), Description: strings.TrimSpace(r.FormValue("description")), Events: r.Form["event"]}
}

// wrong reports whether err is a user error, and then puts it into the form.
func (f *hookForm) wrong(err error) bool {
	var input *webhook.InputError
	switch {
	case errors.As(err, &input) && input.Param == "url":
		f.URLError = input.Message
	case errors.As(err, &input) && input.Param == "description":
		f.DescriptionError = input.Message
	case errors.As(err, &input):
		f.Error = input.Message
	case errors.Is(err, webhook.ErrLimit):
		f.Error = "This account has the maximum number of webhooks. Delete one first."
	default:
		return false
	}
	return true
}

func (d *Dashboard) createWebhook(v *visit) error {
	f := readHook(v.r)
	hook, secret, err := d.cfg.Webhooks.Create(v.r.Context(), v.owner(), webhook.NewEndpoint{URL: f.URL, Description: f.Description, Events: f.Events})
	if err != nil {
		if !f.wrong(err) {
			return err
		}
		return d.showWebhooks(v, http.StatusUnprocessableEntity, webhooksPage{Form: f, Open: true})
	}
	if err := d.record(v, account.AuditWebhook(account.AuditWebhookCreate, hook.Account, hook.ID, hook.URL), nil); err != nil {
		return err
	}
	return d.showWebhook(v, http.StatusOK, hook.ID, webhookPage{Secret: secret, Fresh: true})
}

type webhookPage struct {
	*webhook.Endpoint
	Secret     string // the secret just created
	Fresh      bool   // the webhook was just created
	Form       hookForm
	FormOpen   bool
	Types      []eventType
	State      string
	States     []string
	Deliveries []*webhook.Delivery
	Older      string
	First      bool
	Samples    []sample
}

const deliveriesPerPage = 25

func (d *Dashboard) webhook(v *visit) error {
	return d.showWebhook(v, http.StatusOK, v.r.PathValue("id"), webhookPage{})
}

func (d *Dashboard) showWebhook(v *visit, code int, id string, b webhookPage) error {
	ctx := v.r.Context()
	var err error
	if b.Endpoint, err = d.cfg.Webhooks.Get(ctx, v.owner(), id); err != nil {
		return err
	}
	if !b.FormOpen {
		b.Form = hookForm{URL: b.URL, Description: b.Description, Events: b.Events}
		if len(b.Events) == 0 {
			b.Form.Events = webhook.Types()
		}
	}
	b.Types = eventTypes
	b.States = []string{webhook.Pending, webhook.Delivered, webhook.Failed}
	before := ""
	if v.r.Method == http.MethodGet {
		q := v.r.URL.Query()
		before = q.Get("before")
		if slices.Contains(b.States, q.Get("state")) {
			b.State = q.Get("state")
		}
	}
	b.First = before == ""
	list, err := d.cfg.Webhooks.Deliveries(ctx, v.owner(), webhook.Query{Endpoint: id, State: b.State, Before: before, Limit: deliveriesPerPage + 1})
	if err != nil {
		return err
	}
	if len(list) > deliveriesPerPage {
		list = list[:deliveriesPerPage]
		older := url.Values{"before": {list[deliveriesPerPage-1].ID}}
		if b.State != "" {
			older.Set("state", b.State)
		}
		b.Older = "webhooks/" + url.PathEscape(id) + "?" + older.Encode()
	}
	b.Deliveries, b.Samples = list, d.samples()
	return d.render(v, code, page{Template: "webhook", Title: "Webhook", Nav: "webhooks", Body: b})
}

func (d *Dashboard) updateWebhook(v *visit) error {
	id, f := v.r.PathValue("id"), readHook(v.r)
	err := d.changeWebhook(v, account.AuditWebhookUpdate, "", func(ctx context.Context) error {
		_, err := d.cfg.Webhooks.Update(ctx, v.owner(), id, webhook.Change{URL: &f.URL, Description: &f.Description, Events: &f.Events})
		return err
	})
	if err != nil {
		if !f.wrong(err) {
			return err
		}
		return d.showWebhook(v, http.StatusUnprocessableEntity, id, webhookPage{Form: f, FormOpen: true})
	}
	return d.done(v, "hook-saved", "webhooks/"+url.PathEscape(id))
}

func (d *Dashboard) webhookAction(v *visit) error {
	id, w := v.r.PathValue("id"), d.cfg.Webhooks
	to := "webhooks/" + url.PathEscape(id)
	switch what := v.r.PathValue("what"); what {
	case "test":
		var delivery *webhook.Delivery
		err := d.changeWebhook(v, account.AuditWebhookTest, "", func(ctx context.Context) (err error) {
			delivery, err = w.Test(ctx, v.owner(), id)
			return err
		})
		if err != nil {
			return err
		}
		return d.done(v, "test", to+"/deliveries/"+url.PathEscape(delivery.ID))
	case "rotate":
		secret := ""
		err := d.changeWebhook(v, account.AuditWebhookRotate, "", func(ctx context.Context) (err error) {
			secret, err = w.Rotate(ctx, v.owner(), id)
			return err
		})
		if err != nil {
			return err
		}
		return d.showWebhook(v, http.StatusOK, id, webhookPage{Secret: secret})
	case "enable", "disable":
		on := what == "enable"
		if err := d.changeWebhook(v, "webhook."+what, "", func(ctx context.Context) error {
			_, err := w.Update(ctx, v.owner(), id, webhook.Change{Enabled: &on})
			return err
		}); err != nil {
			return err
		}
		return d.done(v, "hook-"+what+"d", to)
	case "replay-failed":
		n, err := d.replayFailed(v, id)
		if err != nil {
			return err
		}
		if err := d.changeWebhook(v, account.AuditWebhookReplay, plural(n, "failed delivery", "failed deliveries"), nil); err != nil {
			return err
		}
		return d.done(v, fmt.Sprintf("replayed.%d.0", n), to)
	case "delete":
		if err := d.changeWebhook(v, account.AuditWebhookDelete, "", func(ctx context.Context) error { return w.Delete(ctx, v.owner(), id) }); err != nil {
			return err
		}
		return d.done(v, "hook-deleted", "webhooks")
	}
	return fs.ErrNotExist
}

type deliveryPage struct {
	*webhook.Delivery
	Hook     *webhook.Endpoint
	Attempts []webhook.Attempt // newest first
	Body     string
}

// Headers returns the headers of the latest attempt as text. The signature is not stored.
func (b deliveryPage) Headers() string {
	at := "the time of the attempt, in seconds"
	if len(b.Attempts) > 0 {
		at = strconv.FormatInt(b.Attempts[0].At.Unix(), 10)
	}
	return "Content-Type: application/json\nUser-Agent: Filewright-Webhook\nwebhook-id: " + b.ID + "\nwebhook-timestamp: " + at +
		"\nwebhook-signature: v1,<HMAC-SHA256 of ID, timestamp and body>"
}

func (d *Dashboard) delivery(v *visit) error {
	ctx := v.r.Context()
	hook, err := d.cfg.Webhooks.Get(ctx, v.owner(), v.r.PathValue("id"))
	if err != nil {
		return err
	}
	one, attempts, err := d.cfg.Webhooks.Delivery(ctx, v.owner(), v.r.PathValue("delivery"))
	if err != nil {
		return err
	}
	if one.Endpoint != hook.ID {
		return fs.ErrNotExist
	}
	slices.Reverse(attempts)
	b := deliveryPage{one, hook, attempts, pretty(one.Payload)}
	return d.render(v, http.StatusOK, page{Template: "delivery", Title: "Delivery of " + one.Type, Nav: "webhooks", Body: b})
}

// changeWebhook records a change of the webhook in the path of a request.
func (d *Dashboard) changeWebhook(v *visit, action, detail string, change func(context.Context) error) error {
	hook, err := d.cfg.Webhooks.Get(v.r.Context(), v.owner(), v.r.PathValue("id"))
	if err != nil {
		return err
	}
	e := account.AuditWebhook(action, hook.Account, hook.ID, hook.URL)
	e.Detail = detail
	return d.record(v, e, change)
}

// pretty indents JSON.
func pretty(b []byte) string {
	var out bytes.Buffer
	if json.Indent(&out, b, "", "  ") != nil {
		return string(b)
	}
	return out.String()
}

func (d *Dashboard) replay(v *visit) error {
	ctx, id := v.r.Context(), v.r.PathValue("delivery")
	one, _, err := d.cfg.Webhooks.Delivery(ctx, v.owner(), id)
	if err != nil {
		return err
	}
	if one.Endpoint != v.r.PathValue("id") {
		return fmt.Errorf("delivery of another webhook: %w", fs.ErrNotExist)
	}
	if err := d.changeWebhook(v, account.AuditWebhookReplay, "delivery "+id, func(ctx context.Context) error {
		_, err := d.cfg.Webhooks.Replay(ctx, v.owner(), id)
		return err
	}); err != nil {
		return err
	}
	return d.done(v, "replay", "webhooks/"+url.PathEscape(one.Endpoint)+"/deliveries/"+url.PathEscape(id))
}
