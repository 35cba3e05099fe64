// Command oidcprovider runs the OpenID Connect provider of github.com/zitadel/oidc with a few users in
// memory, for tests. It is a module of its own, so that the project does not depend on it.
//
//	oidcprovider 127.0.0.1:9998 http://127.0.0.1:8080/dashboard/login/oidc/callback http://127.0.0.1:8080/dashboard/login
//
// The arguments are the address to listen on, the redirect URI of the client "filewright", whose secret
// is "secret", and the URI to come back to after a logout. Users have the password "verysecure":
// ada is in the groups staff and admins, bob in staff, eve in none.
package main

import (
	"context"
	"encoding/json"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/zitadel/oidc/v3/example/server/exampleop"
	"github.com/zitadel/oidc/v3/example/server/storage"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

var groups = map[string][]string{"u-ada": {"staff", "admins"}, "u-bob": {"staff"}, "u-eve": {}}

// A store adds groups to the claims of users, and the URI after a logout to clients.
type store struct {
	*storage.Storage
	afterLogout string
}

// SetUserinfoFromToken adds the groups to the response of the UserInfo endpoint.
func (s store) SetUserinfoFromToken(ctx context.Context, info *oidc.UserInfo, tokenID, subject, origin string) error {
	err := s.Storage.SetUserinfoFromToken(ctx, info, tokenID, subject, origin)
	info.AppendClaims("groups", groups[subject])
	return err
}

// GetClientByClientID returns a client that may come back after a logout.
func (s store) GetClientByClientID(ctx context.Context, id string) (op.Client, error) {
	c, err := s.Storage.GetClientByClientID(ctx, id)
	if err != nil {
		return nil, err
	}
	return client{c, s.afterLogout}, nil
}

type client struct {
	op.Client
	afterLogout string
}

// PostLogoutRedirectURIs returns the URIs to come back to after a logout.
func (c client) PostLogoutRedirectURIs() []string { return []string{c.afterLogout} }

func main() {
	if err := run(os.Args[1], os.Args[2], os.Args[3]); err != nil {
		log.Fatal(err)
	}
}

func run(address, redirect, afterLogout string) error {
	dir, err := os.MkdirTemp("", "oidcprovider-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	users := make(map[string]*storage.User)
	for _, name := range []string{"ada", "bob", "eve"} {
		users["u-"+name] = &storage.User{ID: "u-" + name, Username: name, Password: "verysecure", Email: name + "@example.com", EmailVerified: true}
	}
	b, err := json.Marshal(users)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, "users.json")
	if err := os.WriteFile(path, b, 0o600); err != nil {
		return err
	}
	known, err := storage.StoreFromFile(path)
	if err != nil {
		return err
	}
	storage.RegisterClients(storage.WebClient("filewright", "secret", redirect))
	ln, err := net.Listen("tcp", address)
	if err != nil {
		return err
	}
	handler := exampleop.SetupServer("http://"+address, store{storage.NewStorage(known), afterLogout}, slog.New(slog.NewTextHandler(os.Stderr, nil)), false, op.WithAllowInsecure())
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
	return srv.Serve(ln)
}
