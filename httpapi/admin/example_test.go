package admin_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/admin"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/sqlstore"
)

func Example() {
	ctx := context.Background()
	dir, err := os.MkdirTemp("", "admin-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	db, err := sqlstore.Open(ctx, sqlstore.Options{Path: filepath.Join(dir, "filewright.db")})
	if err != nil {
		panic(err)
	}
	defer db.Close()

	accounts := auth.New(auth.Config{Accounts: db.Accounts(), Keys: db.Keys(), Sessions: db.Sessions(), Usage: db})
	svc, err := httpapi.New(httpapi.Config{
		Auth: accounts, Extensions: admin.New(admin.Config{Accounts: accounts, Operations: db}),
		Files: db.Files(), Operations: db.Operations(),
	})
	if err != nil {
		panic(err)
	}
	key, _, err := accounts.Keys().Create(ctx, auth.NewKey{Name: "manager", Account: "ada", Scopes: httpapi.ScopeAdmin})
	if err != nil {
		panic(err)
	}

	r := httptest.NewRequest("POST", "/api/v1/admin/accounts/self/keys", strings.NewReader(`{"name":"form","scopes":["upload"]}`))
	r.Header.Set("Authorization", "Bearer "+key)
	w := httptest.NewRecorder()
	svc.ServeHTTP(w, r)
	fmt.Println(w.Code == http.StatusOK, strings.Contains(w.Body.String(), `"scopes":["upload"]`))
	// Output: true true
}
