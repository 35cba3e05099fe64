package dashboard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/filewright/filewright/status/webhook"
)

type webhooksPage struct {
	Hooks []*webhook.Endpoint
	Form  hookForm
	Types []eventType
	Open  bool // the form is open at first
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
	var err error
	if b.Hooks, err = d.cfg.Webhooks.List(v.r.Context(), v.owner()); err != nil {
		return err
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
	b.Deliveries = list
	return d.render(v, code, page{Template: "webhook", Title: "Webhook", Nav: "webhooks", Body: b})
}

func (d *Dashboard) updateWebhook(v *visit) error {
	id, f := v.r.PathValue("id"), readHook(v.r)
	_, err := d.cfg.Webhooks.Update(v.r.Context(), v.owner(), id, webhook.Change{URL: &f.URL, Description: &f.Description, Events: &f.Events})
	if err != nil {
		if !f.wrong(err) {
			return err
		}
		return d.showWebhook(v, http.StatusUnprocessableEntity, id, webhookPage{Form: f, FormOpen: true})
	}
	return d.done(v, "hook-saved", "webhooks/"+url.PathEscape(id))
}

func (d *Dashboard) webhookAction(v *visit) error {
	ctx, id, w := v.r.Context(), v.r.PathValue("id"), d.cfg.Webhooks
	to := "webhooks/" + url.PathEscape(id)
	switch what := v.r.PathValue("what"); what {
	case "test":
		delivery, err := w.Test(ctx, v.owner(), id)
		if err != nil {
			return err
		}
		return d.done(v, "test", to+"/deliveries/"+url.PathEscape(delivery.ID))
	case "rotate":
		secret, err := w.Rotate(ctx, v.owner(), id)
		if err != nil {
			return err
		}
		return d.showWebhook(v, http.StatusOK, id, webhookPage{Secret: secret})
	case "enable", "disable":
		on := what == "enable"
		if _, err := w.Update(ctx, v.owner(), id, webhook.Change{Enabled: &on}); err != nil {
			return err
		}
		return d.done(v, "hook-"+what+"d", to)
	case "delete":
		if err := w.Delete(ctx, v.owner(), id); err != nil {
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
	if _, err := d.cfg.Webhooks.Replay(ctx, v.owner(), id); err != nil {
		return err
	}
	return d.done(v, "replay", "webhooks/"+url.PathEscape(one.Endpoint)+"/deliveries/"+url.PathEscape(id))
}
