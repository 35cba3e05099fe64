//go:build linux

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"

	"github.com/filewright/filewright/internal/browsertest"
	"github.com/filewright/filewright/internal/oidctest"
)

// TestSignIn logs in to the dashboard with a real OpenID Connect provider, in Chromium.
func TestSignIn(t *testing.T) {
	t.Parallel()
	address := oidctest.Address(t)
	base := "http://" + address
	issuer := oidctest.Start(t, base+"/dashboard/login/oidc/callback", base+"/dashboard/login")
	s := startLean(t, filepath.Join(t.TempDir(), "data"), "--listen", address,
		"--oidc-issuer", issuer, "--oidc-client-id", oidctest.ClientID, "--oidc-client-secret", oidctest.ClientSecret,
		"--oidc-name", "Example ID", "--oidc-groups", "staff", "--oidc-admin-groups", "admins", "--oidc-logout")
	if strings.Contains(s.err.String(), oidctest.ClientSecret+"\"") {
		t.Error("the client secret is in the log")
	}
	tab := browsertest.Open(t)
	// atProvider fills the form of the provider. Its pages load an icon that does not exist.
	atProvider := func(user string) {
		t.Helper()
		tab.Wait(`document.querySelector("#username") && document.querySelector("#password")`)
		tab.Fill("#username", user)
		tab.Fill("#password", oidctest.Password)
		tab.Do(chromedp.Click("button[type=submit]", chromedp.ByQuery))
	}
	signIn := func(user string) {
		t.Helper()
		tab.Leave("a[href^='/dashboard/login/oidc']")
		atProvider(user)
	}
	icon := tab.Expect("favicon.ico")

	// A user with no permitted group.
	tab.Go(s.url + "/dashboard/usage")
	tab.Accessible()
	shot(tab, "login-provider")
	refused := tab.Expect("403")
	signIn("eve")
	tab.Wait(`document.querySelector("[role=alert]")`)
	if text := tab.Text("[role=alert]"); !strings.Contains(text, "no group") {
		t.Errorf("a user without a group: %s", text)
	}
	tab.Accessible()
	refused()

	// A new user gets an account, and lands on the page that was asked for.
	tab.Go(s.url + "/dashboard/usage")
	signIn("bob")
	tab.Wait(`location.pathname === "/dashboard/usage"`)
	if name := tab.Text(".who-name b"); name != "bob" {
		t.Errorf("the new account is %s", name)
	}
	if n := count(tab, "a[href='/dashboard/accounts']"); n != 0 {
		t.Error("a user who is not in the group of administrators sees accounts")
	}
	tab.Go(s.url + "/dashboard/settings")
	tab.Accessible()
	shot(tab, "settings-provider")
	only := tab.Expect("409")
	tab.Leave("form[action='/dashboard/settings/disconnect'] button")
	if text := tab.Text("[role=alert]"); !strings.Contains(text, "only way") {
		t.Errorf("the only way to log in: %s", text)
	}
	only()

	// The logout goes to the provider and back.
	tab.Do(chromedp.Click("main form[action='/dashboard/logout'] button", chromedp.ByQuery))
	tab.Wait(`location.pathname === "/dashboard/login" && document.querySelector("#name")`)

	// A member of the administrators' group.
	signIn("ada")
	tab.Wait(`location.pathname === "/dashboard/"`)
	if n := count(tab, "a[href='/dashboard/accounts']"); n != 1 {
		t.Error("an administrator does not see accounts")
	}
	tab.Do(chromedp.Click(".side form[action='/dashboard/logout'] button", chromedp.ByQuery))
	tab.Wait(`location.pathname === "/dashboard/login" && document.querySelector("#name")`)

	// The first administrator connects an account with a password, and uses it.
	m := passwordLine.FindStringSubmatch(s.banner)
	tab.Fill("#name", m[1])
	tab.Fill("#password", m[2])
	tab.Leave("form.form button")
	tab.Fill("#old", m[2])
	tab.Fill("#new", newPassword)
	tab.Fill("#again", newPassword)
	tab.Leave("form.form button")
	tab.Go(s.url + "/dashboard/settings")
	taken := tab.Expect("409")
	tab.Leave("a[href='/dashboard/settings/connect']")
	atProvider("ada")
	tab.Wait(`document.querySelector("[role=alert]")`)
	if text := tab.Text("[role=alert]"); !strings.Contains(text, "another account") {
		t.Errorf("a user of another account: %s", text)
	}
	taken()
	icon()
	tab.NoProblems()

	if log := s.err.String(); strings.Contains(log, "id_token") || strings.Contains(log, "code_verifier") {
		t.Error("the log has parts of tokens")
	}
}
