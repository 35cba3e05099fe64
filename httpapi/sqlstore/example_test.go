package sqlstore_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/status"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	ctx := context.Background()
	db, err := sqlstore.Open(ctx, sqlstore.Options{Path: filepath.Join(dir, "filewright.db"), Exclusive: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer db.Close()

	tracker, err := status.New(status.Config{Store: db.Operations(), Exclusive: true})
	if err != nil {
		fmt.Println(err)
		return
	}
	op, err := tracker.Submit(ctx, status.Operation{Owner: "alice", Items: []status.Item{{Queue: "pdf"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(op.State)

	hash := sha256.Sum256([]byte("the secret, which only its owner keeps"))
	err = db.Keys().Create(ctx, &account.Key{ID: "1", Name: "laptop", Account: "alice", Hash: hash, Created: time.Now()})
	if err != nil {
		fmt.Println(err)
		return
	}
	keys, err := db.Keys().Grants(ctx, hash)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, key := range keys {
		fmt.Println(key.Name, "of", key.Account, "is valid:", key.Valid(time.Now()))
	}
	// Output:
	// queued
	// laptop of alice is valid: true
}
