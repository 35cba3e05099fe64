package admin

import (
	"net/http"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
)

// listAccounts answers GET /accounts.
func (a *api) listAccounts(_ http.ResponseWriter, r *http.Request) (any, error) {
	if err := administrator(r); err != nil {
		return nil, err
	}
	all, err := a.cfg.Accounts.List(r.Context())
	if err != nil {
		return nil, err
	}
	list := accountList{Accounts: []accountBody{}}
	for _, acct := range all {
		list.Accounts = append(list.Accounts, describeAccount(acct))
	}
	return list, nil
}

// createAccount answers POST /accounts.
func (a *api) createAccount(w http.ResponseWriter, r *http.Request) (any, error) {
	if err := administrator(r); err != nil {
		return nil, err
	}
	var req accountRequest
	if err := a.svc.Decode(w, r, &req); err != nil {
		return nil, err
	}
	var n auth.NewAccount
	set(&n.Name, req.Name)
	set(&n.Administrator, req.Administrator)
	n.Limits = req.Limits.apply(a.cfg.Accounts.DefaultLimits())
	acct, password, err := a.cfg.Accounts.Create(r.Context(), n)
	if err != nil {
		return nil, err
	}
	body := describeAccount(acct)
	body.Password = password
	return body, nil
}

// getAccount answers GET /accounts/<account>.
func (a *api) getAccount(_ http.ResponseWriter, r *http.Request, acct *account.Account) (any, error) {
	used, err := a.cfg.Accounts.Used(r.Context(), acct.ID)
	if err != nil {
		return nil, err
	}
	body := describeAccount(acct)
	body.Used = describeUsed(used)
	return body, nil
}

// updateAccount answers PATCH /accounts/<account>.
func (a *api) updateAccount(w http.ResponseWriter, r *http.Request, acct *account.Account) (any, error) {
	if err := administrator(r); err != nil {
		return nil, err
	}
	var req accountRequest
	if err := a.svc.Decode(w, r, &req); err != nil {
		return nil, err
	}
	acct, err := a.cfg.Accounts.Update(r.Context(), acct.ID, auth.Change{
		Name: req.Name, Administrator: req.Administrator, Disabled: req.Disabled, Limits: req.Limits.apply(acct.Limits),
	})
	if err != nil {
		return nil, err
	}
	return describeAccount(acct), nil
}

// deleteAccount answers DELETE /accounts/<account>.
func (a *api) deleteAccount(_ http.ResponseWriter, r *http.Request, acct *account.Account) (any, error) {
	err := administrator(r)
	if err == nil {
		err = a.cfg.Accounts.Delete(r.Context(), acct.ID)
	}
	if err != nil {
		return nil, err
	}
	return messageBody{Message: "account deleted", ID: acct.ID}, nil
}

// resetPassword answers POST /accounts/<account>/password.
func (a *api) resetPassword(_ http.ResponseWriter, r *http.Request, acct *account.Account) (any, error) {
	if err := administrator(r); err != nil {
		return nil, err
	}
	password, err := a.cfg.Accounts.ResetPassword(r.Context(), acct.ID)
	if err != nil {
		return nil, err
	}
	return passwordBody{ID: acct.ID, Name: acct.Name, Password: password}, nil
}
