package admin

import (
	"strings"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/status/sqlstore"
)

// The bodies of requests and responses; see package httpapi.

type keyRequest struct {
	Name      *string    `json:"name"`
	ExpiresAt *time.Time `json:"expires_at"`
	Scopes    *[]string  `json:"scopes"`
	Rate      *rateBody  `json:"rate"`
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
	CreatedAt  time.Time `json:"created_at"`
	LastUsedAt time.Time `json:"last_used_at,omitzero"`
	ExpiresAt  time.Time `json:"expires_at,omitzero"`
	RevokedAt  time.Time `json:"revoked_at,omitzero"`
	Key        string    `json:"key,omitempty"` // once, when it was made
}

type keyList struct {
	Keys []keyBody `json:"keys"`
}

func describeKey(k *sqlstore.Key, now time.Time) keyBody {
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
	switch {
	case !k.Revoked.IsZero():
		b.State = "revoked"
	case !k.Valid(now):
		b.State = "expired"
	}
	return b
}

// stamp is how times are shown: UTC, whole milliseconds.
func stamp(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return t.UTC().Truncate(time.Millisecond)
}
