package httpapi

import (
	"context"
	"errors"
	"io/fs"
	"time"

	"github.com/filewright/filewright/upload"
)

// A Quota counts the use of accounts and can refuse more. It is for programs with their own
// accounts. The limits of database accounts (account.Limits) need no Quota.
//
// Every upload is reserved when it starts and settled when it ends, with any outcome. An upload
// without a session, such as a file in POST /run, is reserved when its bytes have arrived. Operations
// are reserved and settled at creation. A crash may lose a Settle call, or leave a Reserve without
// its upload or operation. A program that needs exact counts compares them from time to time with
// Service.Uploads and Service.Operations.
type Quota interface {
	// Reserve is called before the use. To refuse, it returns an error that matches ErrQuota,
	// preferably a *QuotaError. PrincipalOf(ctx) returns the caller.
	Reserve(ctx context.Context, u Use) error

	// Settle reports the outcome of a reservation. Results of operations are settled without a
	// reservation: Kept, and later Freed. An error is only logged.
	Settle(ctx context.Context, u Use, s Settlement) error
}

// A Use is a planned or past use by an account.
type Use struct {
	Account    string
	File       string // key of an upload or result; "": an operation
	Operation  string // ID of the created operation; "": a file
	Operations int    // 1 for an operation
	Bytes      int64  // of the file
	Result     bool   // the file is a result, which is never reserved
}

// A Settlement is the outcome of a [Use].
type Settlement int

// The outcomes of a use.
const (
	Kept     Settlement = iota // the upload is complete, the result is stored, or the operation is created
	Released                   // the upload failed to start, or expired or was deleted before completion
	Freed                      // a kept file has expired or was deleted
)

// String returns the name of the settlement.
func (s Settlement) String() string { return [...]string{"kept", "released", "freed"}[s] }

// settle calls the quota and logs its error.
func (n *Node) settle(ctx context.Context, u Use, as Settlement) {
	if err := n.cfg.Quota.Settle(context.WithoutCancel(ctx), u, as); err != nil {
		n.log.Error("cannot settle quota", "account", u.Account, "file", u.File, "operation", u.Operation, "as", as.String(), "err", err)
	}
}

// quotaFiles is a file store that reports its changes to a quota.
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
	isUpload := f.State == upload.Open || f.State == upload.Ready && f.Task == "" && f.UploadID != ""
	if isUpload {
		if err := q.n.cfg.Quota.Reserve(ctx, use); err != nil {
			return nil, err
		}
	}
	stored, err := q.Store.Create(ctx, f)
	switch {
	case isUpload && (err != nil || stored.Key != f.Key):
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
	before, err := q.Get(ctx, key)
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

// changed reports a new state of a file to the quota.
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
