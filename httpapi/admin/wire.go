package admin

import (
	"strings"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
)

// The bodies of requests and responses; see package httpapi.

type accountRequest struct {
	Name          *string        `json:"name"`
	Administrator *bool          `json:"administrator"`
	Disabled      *bool          `json:"disabled"`
	Limits        *limitsRequest `json:"limits"`
}

type limitsRequest struct {
	StoredBytes      *int64 `json:"stored_bytes"`
	BytesPerDay      *int64 `json:"bytes_per_day"`
	OperationsPerDay *int64 `json:"operations_per_day"`
	Parallel         *int   `json:"parallel"`
}

// apply returns l with the requested changes, or nil without changes.
func (req *limitsRequest) apply(l account.Limits) *account.Limits {
	if req == nil {
		return nil
	}
	set(&l.StoredBytes, req.StoredBytes)
	set(&l.BytesPerDay, req.BytesPerDay)
	set(&l.OperationsPerDay, req.OperationsPerDay)
	set(&l.Parallel, req.Parallel)
	return &l
}

type accountBody struct {
	ID            string     `json:"id"`
	Name          string     `json:"name,omitempty"`
	Administrator bool       `json:"administrator"`
	Login         bool       `json:"login"`
	MustChange    bool       `json:"must_change_password"`
	CreatedAt     time.Time  `json:"created_at"`
	LastLoginAt   time.Time  `json:"last_login_at,omitzero"`
	DisabledAt    time.Time  `json:"disabled_at,omitzero"`
	Limits        limitsBody `json:"limits"`
	Used          *usedBody  `json:"used,omitempty"`
	Password      string     `json:"password,omitempty"` // only in the response that creates it
}

type limitsBody struct {
	StoredBytes      int64 `json:"stored_bytes"`
	BytesPerDay      int64 `json:"bytes_per_day"`
	OperationsPerDay int64 `json:"operations_per_day"`
	Parallel         int   `json:"parallel"`
}

type usedBody struct {
	StoredBytes     int64     `json:"stored_bytes"`
	BytesToday      int64     `json:"bytes_today"`
	OperationsToday int64     `json:"operations_today"`
	Running         int       `json:"running"`
	ResetAt         time.Time `json:"reset_at"`
}

type accountList struct {
	Accounts []accountBody `json:"accounts"`
}

type messageBody struct {
	Message string `json:"message"`
	ID      string `json:"id"`
}

type passwordBody struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Password string `json:"password"`
}

func describeAccount(a *account.Account) accountBody {
	return accountBody{
		ID: a.ID, Name: a.Name, Administrator: a.Administrator, Login: a.Password != "", MustChange: a.MustChange,
		CreatedAt: stamp(a.Created), LastLoginAt: stamp(a.LastLogin), DisabledAt: stamp(a.Disabled), Limits: limitsBody(a.Limits),
	}
}

func describeUsed(u account.Used) *usedBody {
	return &usedBody{u.StoredBytes, u.BytesToday, u.OperationsToday, u.Running, stamp(u.Reset)}
}

type usageBody struct {
	From string    `json:"from"`
	To   string    `json:"to"`
	Days []dayBody `json:"days"`
	Used *usedBody `json:"used"`
}

type dayBody struct {
	Day           string       `json:"day"`
	UploadedBytes int64        `json:"uploaded_bytes"`
	Operations    int          `json:"operations"`
	Actions       []actionBody `json:"actions"`
}

type actionBody struct {
	Action        string  `json:"action"`
	Items         int     `json:"items"`
	Failed        int     `json:"failed"`
	BytesIn       int64   `json:"bytes_in"`
	BytesOut      int64   `json:"bytes_out"`
	EngineSeconds float64 `json:"engine_seconds"`
}

type overviewBody struct {
	Accounts int              `json:"accounts"`
	Queues   []queueBody      `json:"queues"`
	Failures []failureBody    `json:"failures"`
	Engines  []engineBody     `json:"engines"`
	Sandbox  *httpapi.Sandbox `json:"sandbox,omitempty"`
}

type queueBody struct {
	Family        string  `json:"family"`
	Queued        int     `json:"queued"`
	Running       int     `json:"running"`
	OldestSeconds float64 `json:"oldest_seconds"`
}

type failureBody struct {
	Action    string `json:"action"`
	ErrorCode string `json:"error_code"`
	Items     int    `json:"items"`
}

type engineBody struct {
	Name      string `json:"name"`
	Version   string `json:"version,omitempty"`
	Available bool   `json:"available"`
	Problem   string `json:"problem,omitempty"`
}

type operationList struct {
	Operations []operationBody `json:"operations"`
	NextCursor string          `json:"next_cursor,omitempty"`
}

type operationBody struct {
	MainTaskID      string    `json:"main_task_id"`
	Account         string    `json:"account"`
	Action          string    `json:"action"`
	OperationStatus string    `json:"operation_status"`
	Items           itemCount `json:"items"`
	ErrorCodes      []string  `json:"error_codes,omitempty"`
	CreatedAt       time.Time `json:"created_at"`
	FinishedAt      time.Time `json:"finished_at,omitzero"`
}

type itemCount struct {
	Total     int `json:"total"`
	Completed int `json:"completed"`
	Failed    int `json:"failed"`
}

type keyRequest struct {
	Name      *string    `json:"name"`
	ExpiresAt *time.Time `json:"expires_at"`
	Scopes    *[]string  `json:"scopes"`
	Rate      *rateBody  `json:"rate"`
	Addresses *[]string  `json:"addresses"`
}

type rateBody struct {
	PerSecond float64 `json:"per_second"`
	Burst     int     `json:"burst"`
}

type keyBody struct {
	ID         string    `json:"id"`
	Account    string    `json:"account"`
	Name       string    `json:"name"`
	Prefix     string    `json:"prefix"`
	State      string    `json:"state"`
	Scopes     []string  `json:"scopes"`
	Rate       *rateBody `json:"rate,omitempty"`
	Addresses  []string  `json:"addresses,omitempty"`
	CreatedAt  time.Time `json:"created_at"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
	ExpiresAt  time.Time `json:"expires_at,omitzero"`
	RevokedAt  time.Time `json:"revoked_at,omitzero"`
	Key        string    `json:"key,omitempty"` // only in the response that creates it
}

type keyList struct {
	Keys []keyBody `json:"keys"`
}

func describeKey(k *account.Key, now time.Time) keyBody {
	b := keyBody{
		ID: k.ID, Account: k.Account, Name: k.Name, Prefix: k.Prefix, State: "valid", Scopes: strings.Fields(k.Scopes),
		CreatedAt: stamp(k.Created), LastUsedAt: stamp(k.LastUsed), ExpiresAt: stamp(k.Expires), RevokedAt: stamp(k.Revoked),
	}
	if k.Scopes == "" {
		b.Scopes = strings.Fields(httpapi.DefaultScopes.String())
	}
	if k.Rate != 0 || k.Burst != 0 {
		b.Rate = &rateBody{PerSecond: k.Rate, Burst: k.Burst}
	}
	b.Addresses = strings.Fields(k.Addresses)
	switch {
	case !k.Revoked.IsZero():
		b.State = "revoked"
	case !k.Valid(now):
		b.State = "expired"
	}
	return b
}

// stamp rounds t as responses show it: UTC, whole milliseconds.
func stamp(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Millisecond)
}
