package admin

import (
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
)

// listKeys answers GET …/keys.
func (a *api) listKeys(_ http.ResponseWriter, r *http.Request, acct *account.Account) (any, error) {
	keys, err := a.cfg.Accounts.Keys().List(r.Context(), acct.ID)
	if err != nil {
		return nil, err
	}
	list := keyList{Keys: []keyBody{}}
	for _, k := range keys {
		list.Keys = append(list.Keys, describeKey(k, time.Now()))
	}
	return list, nil
}

// createKey answers POST …/keys.
func (a *api) createKey(w http.ResponseWriter, r *http.Request, acct *account.Account) (any, error) {
	var req keyRequest
	if err := a.svc.Decode(w, r, &req); err != nil {
		return nil, err
	}
	c, err := req.change()
	if err != nil {
		return nil, err
	}
	n := auth.NewKey{Account: acct.ID}
	set(&n.Name, c.Name)
	set(&n.Expires, c.Expires)
	set(&n.Scopes, c.Scopes)
	set(&n.Rate, c.Rate)
	set(&n.Addresses, c.Addresses)
	raw, key, err := a.cfg.Accounts.Keys().Create(r.Context(), n)
	if err != nil {
		return nil, err
	}
	body := describeKey(key, time.Now())
	body.Key = raw
	return body, nil
}

func set[T any](to, from *T) {
	if from != nil {
		*to = *from
	}
}

// change validates a request.
func (req *keyRequest) change() (c auth.KeyChange, err error) {
	c.Name, c.Expires = req.Name, req.ExpiresAt
	if c.Expires != nil && !c.Expires.After(time.Now()) {
		return c, httpapi.Invalid("expires_at", "expires_at must be in the future")
	}
	if req.Scopes != nil {
		s, err := httpapi.ParseScope(strings.Join(*req.Scopes, " "))
		if err != nil || s == 0 {
			p := httpapi.Invalid("scopes", "scopes must be some of upload, operate, read and admin")
			p.Allowed = strings.Fields((httpapi.DefaultScopes | httpapi.ScopeAdmin).String())
			return c, p
		}
		c.Scopes = &s
	}
	if req.Rate != nil {
		rate := httpapi.Rate{PerSecond: req.Rate.PerSecond, Burst: req.Rate.Burst}
		if !(rate.PerSecond >= 0 && rate.PerSecond <= 1e6) || rate.Burst < 0 || rate.Burst > 1e6 || rate.PerSecond == 0 && rate.Burst != 0 {
			return c, httpapi.Invalid("rate", "rate.per_second and rate.burst must be from 0 to 1000000, and burst requires per_second; per_second 0 is the service's default")
		}
		c.Rate = &rate
	}
	if req.Addresses != nil {
		list, err := auth.ParseAddresses(strings.Join(*req.Addresses, " "))
		if err != nil {
			return c, err
		}
		c.Addresses = &list
	}
	return c, nil
}

// key returns the key in the path of a request.
func (a *api) key(r *http.Request, acct *account.Account) (*account.Key, error) {
	k, err := a.cfg.Accounts.Keys().Get(r.Context(), r.PathValue("key"))
	if err == nil && k.Account != acct.ID {
		err = fs.ErrNotExist
	}
	return k, err
}

// getKey answers GET …/keys/<key>.
func (a *api) getKey(_ http.ResponseWriter, r *http.Request, acct *account.Account) (any, error) {
	k, err := a.key(r, acct)
	if err != nil {
		return nil, err
	}
	return describeKey(k, time.Now()), nil
}

// updateKey answers PATCH …/keys/<key>.
func (a *api) updateKey(w http.ResponseWriter, r *http.Request, acct *account.Account) (any, error) {
	k, err := a.key(r, acct)
	if err != nil {
		return nil, err
	}
	var req keyRequest
	if err := a.svc.Decode(w, r, &req); err != nil {
		return nil, err
	}
	c, err := req.change()
	if err != nil {
		return nil, err
	}
	if k, err = a.cfg.Accounts.Keys().Update(r.Context(), k.ID, c); err != nil {
		return nil, err
	}
	return describeKey(k, time.Now()), nil
}

// revokeKey answers DELETE …/keys/<key>.
func (a *api) revokeKey(_ http.ResponseWriter, r *http.Request, acct *account.Account) (any, error) {
	k, err := a.key(r, acct)
	if err == nil {
		err = a.cfg.Accounts.Keys().Revoke(r.Context(), k.ID)
	}
	if err == nil {
		k, err = a.cfg.Accounts.Keys().Get(r.Context(), k.ID)
	}
	if err != nil {
		return nil, err
	}
	return describeKey(k, time.Now()), nil
}
