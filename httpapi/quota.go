package httpapi

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/filewright/filewright/upload"
)

// A Quota counts what accounts use and may refuse more. It is for programs that keep
// accounts of their own; the limits of accounts in a database (account.Limits) need
// none.
//
// Uploads are reserved when they begin and settled when they end, however they end;
// operations are both when they are created. In a crash in between a call of Settle may
// be lost, or Reserve may have been for something that is not there: who has to be
// exact asks from time to time what there is (Service.Uploads, Service.Operations).
type Quota interface {
	// Reserve is asked before the fact. It refuses with an error that matches
	// ErrQuota, best a *QuotaError. PrincipalOf(ctx) tells who asks.
	Reserve(ctx context.Context, u Use) error

	// Settle tells what has become of what was reserved. It is also called for
	// results of operations, which are never asked for: they are Kept, and Freed
	// later. An error goes to the log only.
	Settle(ctx context.Context, u Use, s Settlement) error
}

// A Use is what an account is about to use, or has used.
type Use struct {
	Account    string
	File       string // key of an upload or a result; "": an operation
	Operation  string // that is created; "": a file
	Operations int    // 1 for an operation
	Bytes      int64  // of the file
	Result     bool   // the file is the result of an operation, never reserved
}

// A Settlement is what has become of a [Use].
type Settlement int

// What may become of a use.
const (
	Kept     Settlement = iota // the upload is complete, the result stored, the operation created
	Released                   // nothing came of it: the upload has expired or was deleted before it was complete, or failed to begin
	Freed                      // a file that was kept has expired or was deleted
)

// String returns the name of the settlement.
func (s Settlement) String() string { return [...]string{"kept", "released", "freed"}[s] }

// settle tells the quota.
func (n *Node) settle(ctx context.Context, u Use, as Settlement) {
	if err := n.cfg.Quota.Settle(context.WithoutCancel(ctx), u, as); err != nil {
		n.log.Error("quota not settled", "account", u.Account, "file", u.File, "operation", u.Operation, "as", as.String(), "err", err)
	}
}

// quotaFiles are file records whose changes a quota is told of.
type quotaFiles struct {
	upload.Store
	n *Node
}

func fileUse(f *upload.File) Use {
	return Use{Account: f.Owner, File: f.Key, Bytes: f.Size, Result: f.Task != ""}
}

// Create implements [upload.Store].
func (q quotaFiles) Create(ctx context.Context, f *upload.File) (*upload.File, error) {
	use := fileUse(f)
	if f.State == upload.Open {
		if err := q.n.cfg.Quota.Reserve(ctx, use); err != nil {
			return nil, err
		}
	}
	stored, err := q.Store.Create(ctx, f)
	switch {
	case f.State == upload.Open && (err != nil || stored.Key != f.Key):
		q.n.settle(ctx, use, Released)
	case f.State == upload.Ready && err == nil:
		q.n.settle(ctx, use, Kept)
	}
	return stored, err
}

// Update implements [upload.Store].
func (q quotaFiles) Update(ctx context.Context, key string, fn func(*upload.File) error) (*upload.File, error) {
	var before upload.File
	f, err := q.Store.Update(ctx, key, func(f *upload.File) error {
		before = *f
		return fn(f)
	})
	if err == nil && f.State != before.State {
		q.changed(ctx, &before, f.State)
	}
	return f, err
}

// Expire implements [upload.Store].
func (q quotaFiles) Expire(ctx context.Context, keys []string, at, until time.Time) ([]*upload.File, error) {
	ended, err := q.Store.Expire(ctx, keys, at, until)
	for _, f := range ended {
		q.changed(ctx, f, upload.Expired)
	}
	return ended, err
}

// Delete implements [upload.Store].
func (q quotaFiles) Delete(ctx context.Context, key string) error {
	before, err := q.Store.Get(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = q.Store.Delete(ctx, key)
	}
	if err == nil {
		q.changed(ctx, before, upload.Expired)
	}
	return err
}

// changed tells the quota that a file has another state now.
func (q quotaFiles) changed(ctx context.Context, before *upload.File, now upload.State) {
	use := fileUse(before)
	switch {
	case before.State == upload.Open && now == upload.Ready:
		q.n.settle(ctx, use, Kept)
	case before.State == upload.Open && now == upload.Expired:
		q.n.settle(ctx, use, Released)
	case before.State == upload.Ready && now == upload.Expired:
		q.n.settle(ctx, use, Freed)
	}
}
