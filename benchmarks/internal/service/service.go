// Package service starts the HTTP service for benchmarks, with a database and a directory for files.
package service

import (
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"path/filepath"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/archiveops"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/upload/blob/fsblob"
)

// Start starts the service with all data in dir. authenticator is called with the database. stop ends
// the service and closes everything.
func Start(ctx context.Context, dir string, authenticator func(*sqlstore.DB) (httpapi.Authenticator, error)) (url string, stop func() error, err error) {
	db, err := sqlstore.Open(ctx, sqlstore.Options{Path: filepath.Join(dir, "filewright.db"), Exclusive: true})
	if err != nil {
		return "", nil, err
	}
	blobs, err := fsblob.New(filepath.Join(dir, "blobs"))
	if err != nil {
		return "", nil, errors.Join(err, db.Close())
	}
	closeAll := func() error { return errors.Join(blobs.Close(), db.Close()) }
	auth, err := authenticator(db)
	if err != nil {
		return "", nil, errors.Join(err, closeAll())
	}
	svc, err := httpapi.New(httpapi.Config{
		Actions: []fileops.Action{archiveops.Zip()}, Auth: auth, Log: slog.New(slog.DiscardHandler),
		Blobs: blobs, Files: db.Files(), Operations: db.Operations(), TempDir: dir,
	})
	if err != nil {
		return "", nil, errors.Join(err, closeAll())
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, errors.Join(err, closeAll())
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() { done <- svc.Run(ctx) }()
	server := &http.Server{Handler: svc}
	go server.Serve(l)
	return "http://" + l.Addr().String(), func() error {
		cancel()
		return errors.Join(<-done, server.Close(), closeAll())
	}, nil
}
