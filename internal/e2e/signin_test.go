//go:build linux

package e2e

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"

	"github.com/filewright/filewright/internal/browsertest"
	"github.com/filewright/filewright/internal/oidctest"
	"github.com/filewright/filewright/internal/systest"
)

// TestSignIn logs in to the dashboard with a real OpenID Connect provider and with a second factor, in
// Chromium.
func TestSignIn(t *testing.T) {
	t.Parallel()
	address := systest.FreeAddr(t)
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
	tab.Arrive("/dashboard/usage")
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
	tab.Arrive("/dashboard/login")

	// A member of the administrators' group.
	signIn("ada")
	tab.Arrive("/dashboard/")
	if n := count(tab, "a[href='/dashboard/accounts']"); n != 1 {
		t.Error("an administrator does not see accounts")
	}
	tab.Do(chromedp.Click(".side form[action='/dashboard/logout'] button", chromedp.ByQuery))
	tab.Arrive("/dashboard/login")

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
	secondFactor(t, s, tab, m[1])

	if log := s.err.String(); strings.Contains(log, "id_token") || strings.Contains(log, "code_verifier") {
		t.Error("the log has parts of tokens")
	}
}

// secondFactor turns the second factor of an account on, and logs in with codes of the app and with a
// recovery code.
func secondFactor(t *testing.T, s *server, tab *browsertest.Tab, name string) {
	t.Helper()
	tab.Go(s.url + "/dashboard/settings/second-factor")
	tab.Accessible()
	shot(tab, "second-factor")
	tab.Scheme("dark")
	shot(tab, "second-factor-dark")
	tab.Scheme("light")
	secret, step := tab.Text("#secret"), time.Now().Unix()/30
	wrong := tab.Expect("422")
	tab.Fill("#code", code(t, secret, step))
	tab.Fill("#password", "not this one")
	tab.Leave("form.form button.primary")
	if text := tab.Text("[role=alert]"); !strings.Contains(text, "password is wrong") {
		t.Errorf("a wrong password: %s", text)
	}
	wrong()
	if again := tab.Text("#secret"); again != secret {
		t.Error("the secret changes with a wrong password")
	}
	tab.Fill("#code", code(t, secret, step))
	tab.Fill("#password", newPassword)
	tab.Leave("form.form button.primary")
	if n := count(tab, "#recovery li"); n != 10 {
		t.Fatalf("%d recovery codes", n)
	}
	tab.Accessible()
	recovery := tab.Text("#recovery li code")

	for _, code := range []string{code(t, secret, step+1), recovery} {
		tab.Go(s.url + "/dashboard/settings")
		tab.Leave("main form[action='/dashboard/logout'] button")
		tab.Go(s.url + "/dashboard/usage")
		tab.Fill("#name", name)
		tab.Fill("#password", newPassword)
		tab.Leave("form.form button")
		if h := tab.Text("h1"); h != "Second factor" {
			t.Fatalf("after the password: %s", h)
		}
		tab.Accessible()
		refused := tab.Expect("401")
		tab.Fill("#code", "000 000x")
		tab.Leave("form.form button")
		if text := tab.Text("[role=alert]"); !strings.Contains(text, "Wrong or used code") {
			t.Errorf("a wrong code: %s", text)
		}
		refused()
		tab.Fill("#code", code)
		tab.Leave("form.form button")
		if path := location(tab); !strings.HasSuffix(path, "/dashboard/usage") {
			t.Fatalf("after the code: %s", path)
		}
	}
	tab.Go(s.url + "/dashboard/settings")
	tab.Accessible()
	shot(tab, "settings-factor")
	tab.Click("details.ask summary")
	tab.Fill("#factor-password", newPassword)
	tab.Leave("form[action='/dashboard/settings/second-factor/off'] button")
	if n := count(tab, "a[href='/dashboard/settings/second-factor']"); n != 1 {
		t.Error("the second factor is still on")
	}
	tab.NoProblems()
}

// code returns the code of an authenticator app (RFC 6238).
func code(t *testing.T, secret string, step int64) string {
	t.Helper()
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	systest.NoError(t, err)
	h := hmac.New(sha1.New, key)
	for shift := 56; shift >= 0; shift -= 8 {
		h.Write([]byte{byte(step >> shift)})
	}
	sum := h.Sum(nil)
	n := 0
	for _, b := range sum[sum[19]&15:][:4] {
		n = n<<8 | int(b)
	}
	return fmt.Sprintf("%06d", n&0x7fffffff%1_000_000)
}
