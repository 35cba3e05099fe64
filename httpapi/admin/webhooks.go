package admin

import (
	"context"
	_ "embed"
	"errors"
	"io/fs"
	"net/http"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/status/webhook"
)

//go:embed webhooks.yaml
var webhooksDocument []byte

// webhooks returns the endpoints for managing webhooks.
func (c Config) webhooks(svc *httpapi.Service) httpapi.Extension {
	a := &api{c, svc}
	const one = "/accounts/{account}/webhooks/{webhook}"
	return httpapi.Extension{OpenAPI: webhooksDocument, Routes: []httpapi.Route{
		a.route("GET", "/accounts/{account}/webhooks", a.of(a.listWebhooks)),
		a.route("POST", "/accounts/{account}/webhooks", a.of(a.createWebhook)),
		a.route("GET", one, a.of(a.getWebhook)),
		a.route("PATCH", one, a.of(a.updateWebhook)),
		a.route("DELETE", one, a.of(a.deleteWebhook)),
		a.route("POST", one+"/secret", a.of(a.rotateSecret)),
		a.route("POST", one+"/test", a.of(a.testWebhook)),
		a.route("GET", one+"/deliveries", a.of(a.listDeliveries)),
		a.route("GET", one+"/deliveries/{delivery}", a.of(a.getDelivery)),
		a.route("POST", one+"/deliveries/{delivery}/replay", a.of(a.replayDelivery)),
	}}
}

type webhookRequest struct {
	URL         *string   `json:"url"`
	Description *string   `json:"description"`
	Events      *[]string `json:"events"`
	Enabled     *bool     `json:"enabled"`
}

type webhookBody struct {
	ID                  string    `json:"id"`
	Account             string    `json:"account"`
	URL                 string    `json:"url"`
	Description         string    `json:"description,omitempty"`
	Events              []string  `json:"events"`
	Enabled             bool      `json:"enabled"`
	CreatedAt           time.Time `json:"created_at"`
	DisabledAt          time.Time `json:"disabled_at,omitzero"`
	DisabledReason      string    `json:"disabled_reason,omitempty"`
	FailingSince        time.Time `json:"failing_since,omitzero"`
	PreviousSecretUntil time.Time `json:"previous_secret_until,omitzero"`
	Secret              string    `json:"secret,omitempty"` // only in the response that creates it
}

type webhookList struct {
	Webhooks []webhookBody `json:"webhooks"`
}

type deliveryBody struct {
	ID            string    `json:"id"`
	Webhook       string    `json:"webhook"`
	Type          string    `json:"type"`
	MainTaskID    string    `json:"main_task_id,omitempty"`
	State         string    `json:"state"`
	Attempts      int       `json:"attempts"`
	CreatedAt     time.Time `json:"created_at"`
	NextAttemptAt time.Time `json:"next_attempt_at,omitzero"`
	FinishedAt    time.Time `json:"finished_at,omitzero"`
}

type deliveryList struct {
	Deliveries []deliveryBody `json:"deliveries"`
	NextCursor string         `json:"next_cursor,omitempty"`
}

type deliveryDetail struct {
	deliveryBody
	Body string        `json:"body,omitempty"`
	Log  []attemptBody `json:"log"`
}

type attemptBody struct {
	Number     int       `json:"number"`
	At         time.Time `json:"at"`
	DurationMS int64     `json:"duration_ms"`
	URL        string    `json:"url"`
	Status     int       `json:"status,omitempty"`
	Response   string    `json:"response,omitempty"`
	Error      string    `json:"error,omitempty"`
	Manual     bool      `json:"manual"`
}

func describeWebhook(e *webhook.Endpoint) webhookBody {
	return webhookBody{
		ID: e.ID, Account: e.Account, URL: e.URL, Description: e.Description, Events: e.Events, Enabled: e.Disabled.IsZero(),
		CreatedAt: stamp(e.Created), DisabledAt: stamp(e.Disabled), DisabledReason: e.Reason, FailingSince: stamp(e.Failing),
		PreviousSecretUntil: stamp(e.PreviousSecretUntil),
	}
}

func describeDelivery(d *webhook.Delivery) deliveryBody {
	return deliveryBody{
		ID: d.ID, Webhook: d.Endpoint, Type: d.Type, MainTaskID: d.Operation, State: d.State, Attempts: d.Attempts,
		CreatedAt: stamp(d.Created), NextAttemptAt: stamp(d.Next), FinishedAt: stamp(d.Finished),
	}
}

// refused returns the problem for an error of package webhook.
func refused(err error) error {
	var bad *webhook.InputError
	switch {
	case errors.As(err, &bad):
		p := httpapi.Invalid(bad.Param, "%s", bad.Message)
		p.Allowed = bad.Allowed
		return p
	case errors.Is(err, webhook.ErrLimit):
		return httpapi.NewProblem(http.StatusConflict, "conflict", "the account has reached its limit of webhooks; delete one first")
	}
	return err
}

// listWebhooks answers GET …/webhooks.
func (a *api) listWebhooks(_ http.ResponseWriter, r *http.Request, acct *account.Account) (any, error) {
	all, err := a.cfg.Webhooks.List(r.Context(), acct.ID)
	if err != nil {
		return nil, err
	}
	list := webhookList{Webhooks: []webhookBody{}}
	for _, e := range all {
		list.Webhooks = append(list.Webhooks, describeWebhook(e))
	}
	return list, nil
}

// changeWebhook records a change of the webhook in the path of a request.
func (a *api) changeWebhook(r *http.Request, acct *account.Account, action string, change func(context.Context) error) error {
	e, err := a.cfg.Webhooks.Get(r.Context(), acct.ID, r.PathValue("webhook"))
	if err != nil {
		return err
	}
	return a.cfg.Accounts.Audit(r.Context(), account.AuditWebhook(action, e.Account, e.ID, e.URL), change)
}

// createWebhook answers POST …/webhooks.
func (a *api) createWebhook(w http.ResponseWriter, r *http.Request, acct *account.Account) (any, error) {
	var req webhookRequest
	if err := a.svc.Decode(w, r, &req); err != nil {
		return nil, err
	}
	var n webhook.NewEndpoint
	set(&n.URL, req.URL)
	set(&n.Description, req.Description)
	set(&n.Events, req.Events)
	e, secret, err := a.cfg.Webhooks.Create(r.Context(), acct.ID, n)
	if err != nil {
		return nil, refused(err)
	}
	if err := a.cfg.Accounts.Audit(r.Context(), account.AuditWebhook(account.AuditWebhookCreate, e.Account, e.ID, e.URL), nil); err != nil {
		return nil, err
	}
	body := describeWebhook(e)
	body.Secret = secret
	return body, nil
}

// getWebhook answers GET …/webhooks/<webhook>.
func (a *api) getWebhook(_ http.ResponseWriter, r *http.Request, acct *account.Account) (any, error) {
	e, err := a.cfg.Webhooks.Get(r.Context(), acct.ID, r.PathValue("webhook"))
	if err != nil {
		return nil, err
	}
	return describeWebhook(e), nil
}

// updateWebhook answers PATCH …/webhooks/<webhook>.
func (a *api) updateWebhook(w http.ResponseWriter, r *http.Request, acct *account.Account) (any, error) {
	var req webhookRequest
	if err := a.svc.Decode(w, r, &req); err != nil {
		return nil, err
	}
	action := account.AuditWebhookUpdate
	if on := req.Enabled; on != nil {
		action = account.AuditWebhookDisable
		if *on {
			action = account.AuditWebhookEnable
		}
	}
	var e *webhook.Endpoint
	err := a.changeWebhook(r, acct, action, func(ctx context.Context) (err error) {
		e, err = a.cfg.Webhooks.Update(ctx, acct.ID, r.PathValue("webhook"), webhook.Change(req))
		return err
	})
	if err != nil {
		return nil, refused(err)
	}
	return describeWebhook(e), nil
}

// deleteWebhook answers DELETE …/webhooks/<webhook> with the deleted webhook.
func (a *api) deleteWebhook(w http.ResponseWriter, r *http.Request, acct *account.Account) (any, error) {
	body, err := a.getWebhook(w, r, acct)
	if err != nil {
		return nil, err
	}
	e := body.(webhookBody)
	return e, a.changeWebhook(r, acct, account.AuditWebhookDelete, func(ctx context.Context) error { return a.cfg.Webhooks.Delete(ctx, e.Account, e.ID) })
}

// rotateSecret answers POST …/webhooks/<webhook>/secret.
func (a *api) rotateSecret(w http.ResponseWriter, r *http.Request, acct *account.Account) (any, error) {
	secret := ""
	err := a.changeWebhook(r, acct, account.AuditWebhookRotate, func(ctx context.Context) (err error) {
		secret, err = a.cfg.Webhooks.Rotate(ctx, acct.ID, r.PathValue("webhook"))
		return err
	})
	if err != nil {
		return nil, err
	}
	body, err := a.getWebhook(w, r, acct)
	if err != nil {
		return nil, err
	}
	e := body.(webhookBody)
	e.Secret = secret
	return e, nil
}

// testWebhook answers POST …/webhooks/<webhook>/test.
func (a *api) testWebhook(_ http.ResponseWriter, r *http.Request, acct *account.Account) (any, error) {
	var d *webhook.Delivery
	err := a.changeWebhook(r, acct, account.AuditWebhookTest, func(ctx context.Context) (err error) {
		d, err = a.cfg.Webhooks.Test(ctx, acct.ID, r.PathValue("webhook"))
		return err
	})
	if err != nil {
		return nil, err
	}
	return describeDelivery(d), nil
}

// listDeliveries answers GET …/webhooks/<webhook>/deliveries.
func (a *api) listDeliveries(_ http.ResponseWriter, r *http.Request, acct *account.Account) (any, error) {
	q := r.URL.Query()
	query := webhook.Query{Endpoint: r.PathValue("webhook"), State: q.Get("state"), Before: q.Get("cursor")}
	switch query.State {
	case "", webhook.Pending, webhook.Delivered, webhook.Failed:
	default:
		p := httpapi.Invalid("state", "state must be pending, delivered or failed")
		p.Allowed = []string{webhook.Pending, webhook.Delivered, webhook.Failed}
		return nil, p
	}
	limit, err := pageLimit(q)
	if err != nil {
		return nil, err
	}
	query.Limit = limit + 1 // one more, to detect a next page
	all, err := a.cfg.Webhooks.Deliveries(r.Context(), acct.ID, query)
	if errors.Is(err, fs.ErrNotExist) && query.Before != "" {
		// Either the cursor or the webhook does not exist.
		query.Before, query.Limit = "", 1
		if _, err = a.cfg.Webhooks.Deliveries(r.Context(), acct.ID, query); err == nil {
			err = httpapi.InvalidCursor()
		}
	}
	if err != nil {
		return nil, err
	}
	list := deliveryList{Deliveries: []deliveryBody{}}
	for i, d := range all {
		if i == limit {
			list.NextCursor = all[i-1].ID
			break
		}
		list.Deliveries = append(list.Deliveries, describeDelivery(d))
	}
	return list, nil
}

// delivery returns the delivery in the path of a request.
func (a *api) delivery(r *http.Request, acct *account.Account) (*webhook.Delivery, []webhook.Attempt, error) {
	d, attempts, err := a.cfg.Webhooks.Delivery(r.Context(), acct.ID, r.PathValue("delivery"))
	if err == nil && d.Endpoint != r.PathValue("webhook") {
		err = fs.ErrNotExist
	}
	return d, attempts, err
}

// getDelivery answers GET …/deliveries/<delivery>.
func (a *api) getDelivery(_ http.ResponseWriter, r *http.Request, acct *account.Account) (any, error) {
	d, attempts, err := a.delivery(r, acct)
	if err != nil {
		return nil, err
	}
	detail := deliveryDetail{deliveryBody: describeDelivery(d), Body: string(d.Payload), Log: []attemptBody{}}
	for _, at := range attempts {
		detail.Log = append(detail.Log, attemptBody{
			Number: at.N, At: stamp(at.At), DurationMS: at.Took.Milliseconds(), URL: at.URL,
			Status: at.Status, Response: at.Response, Error: at.Error, Manual: at.Manual,
		})
	}
	return detail, nil
}

// replayDelivery answers POST …/deliveries/<delivery>/replay.
func (a *api) replayDelivery(_ http.ResponseWriter, r *http.Request, acct *account.Account) (any, error) {
	d, _, err := a.delivery(r, acct)
	if err == nil {
		err = a.changeWebhook(r, acct, account.AuditWebhookReplay, func(ctx context.Context) (err error) {
			d, err = a.cfg.Webhooks.Replay(ctx, d.Account, d.ID)
			return err
		})
	}
	if err != nil {
		return nil, err
	}
	return describeDelivery(d), nil
}
