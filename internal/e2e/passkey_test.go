//go:build linux

package e2e

import (
	"context"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/webauthn"
	"github.com/chromedp/chromedp"

	"github.com/filewright/filewright/internal/browsertest"
	"github.com/filewright/filewright/internal/systest"
)

// A device is an authenticator of the browser: the fingerprint reader of a laptop.
type device struct {
	id  webauthn.AuthenticatorID
	tab *browsertest.Tab
}

func newDevice(tab *browsertest.Tab) *device {
	d := &device{tab: tab}
	tab.Do(webauthn.Enable(), chromedp.ActionFunc(func(ctx context.Context) (err error) {
		d.id, err = webauthn.AddVirtualAuthenticator(&webauthn.VirtualAuthenticatorOptions{
			Protocol: webauthn.AuthenticatorProtocolCtap2, Transport: webauthn.AuthenticatorTransportInternal,
			HasResidentKey: true, HasUserVerification: true, IsUserVerified: true, AutomaticPresenceSimulation: true,
		}).Do(ctx)
		return err
	}))
	return d
}

// onLocalhost returns the address of a server under the name at which browsers offer passkeys without
// TLS.
func onLocalhost(s *server) string { return strings.Replace(s.url, "127.0.0.1", "localhost", 1) }

// TestMembers invites a member with a link, changes the role and removes the member, in Chromium.
func TestMembers(t *testing.T) {
	t.Parallel()
	s := startLean(t, filepath.Join(t.TempDir(), "data"), "--listen", systest.FreeAddr(t))
	tab := browsertest.Open(t)
	tab.Scheme("light")
	login(t, s, tab)
	tab.Go(s.url + "/dashboard/members")
	tab.Accessible()
	tab.Click("details.fold summary")
	tab.Accessible()
	tab.Do(chromedp.SetValue("#role", "viewer", chromedp.ByQuery))
	tab.Fill("#note", "Eve")
	tab.Leave("form[action='/dashboard/members/invitations'] button")
	link := tab.Text("#secret")
	if !strings.HasPrefix(link, s.url+"/dashboard/join?invitation=") {
		t.Fatalf("the link is %s", link)
	}
	tab.Accessible()
	for _, width := range []int64{390, 768, 1280} {
		tab.Size(width, 860)
		tab.Accessible()
	}
	tab.Scheme("dark")
	tab.Accessible()
	shot(tab, "members-dark")
	tab.Scheme("light")
	shot(tab, "members")

	// The new member, in another browser.
	eve := browsertest.Open(t)
	eve.Go(link)
	eve.Accessible()
	shot(eve, "join")
	eve.Fill("#name", "Eve")
	eve.Fill("#new", newPassword)
	eve.Fill("#again", newPassword)
	eve.Leave("form.form button")
	if h := eve.Text("h1"); h != "Overview" {
		t.Fatalf("after joining: %s", h)
	}
	if text := eve.Text(".who-name span"); text != "Viewer" {
		t.Errorf("the role is shown as %s", text)
	}
	if n := count(eve, "a[href='/dashboard/try'], a[href='/dashboard/accounts']"); n != 0 {
		t.Error("a viewer is offered pages that are refused")
	}
	for _, page := range []string{"", "operations", "keys", "webhooks", "members", "settings", "usage"} {
		eve.Go(s.url + "/dashboard/" + page)
		eve.Accessible()
	}
	refused := eve.Expect("403")
	eve.Go(s.url + "/dashboard/try")
	if h := eve.Text("h1"); h != "Not permitted" {
		t.Errorf("a viewer opens %s", h)
	}
	eve.Accessible()
	refused()

	// The role counts from the next page, and so does the end of the membership.
	tab.Go(s.url + "/dashboard/members")
	row := "form[action$='/role']:has(option[value=viewer][selected])"
	tab.Do(chromedp.SetValue(row+" select", "member", chromedp.ByQuery))
	tab.Leave(row + " button")
	eve.Go(s.url + "/dashboard/try")
	if h := eve.Text("h1"); h != "Try it" {
		t.Errorf("a member opens %s", h)
	}
	tab.Click("tr:has(option[value=member][selected]) details.ask summary")
	tab.Leave("tr:has(option[value=member][selected]) form[action$='/remove'] button")
	eve.Go(s.url + "/dashboard/usage")
	eve.Arrive("/dashboard/login")
	eve.NoProblems()
	tab.NoProblems()
}

// TestPasskeys adds a passkey in Chromium, and logs in with it alone and after the password.
func TestPasskeys(t *testing.T) {
	t.Parallel()
	s := startLean(t, filepath.Join(t.TempDir(), "data"), "--listen", systest.FreeAddr(t))
	tab := browsertest.Open(t)
	tab.Scheme("light")

	// At an address with an IP address browsers offer no passkeys, and the pages do not mention them.
	tab.Go(s.url + "/dashboard/login")
	if n := count(tab, "form[data-passkey]"); n != 0 {
		t.Error("the login page offers passkeys at an IP address")
	}
	s.url = onLocalhost(s)
	name := login(t, s, tab)
	newDevice(tab)
	settings := func() {
		tab.Go(s.url + "/dashboard/settings")
		tab.Wait(`!document.querySelector("#new-passkey").hidden`)
	}
	add := func(name, password string) {
		tab.Fill("#passkey-name", name)
		tab.Fill("#passkey-password", password)
	}
	settings()
	tab.Accessible()

	wrong := tab.Expect("422")
	add("Laptop", "not this one")
	tab.Click("#new-passkey button")
	tab.Wait(`!document.querySelector("#new-passkey .passkey-error").hidden`)
	if text := tab.Text("#new-passkey .passkey-error"); !strings.Contains(text, "password is wrong") {
		t.Errorf("a wrong password: %s", text)
	}
	wrong()
	settings()
	add("Laptop", newPassword)
	tab.Leave("#new-passkey button")
	if text := tab.Text("#passkeys li b"); text != "Laptop" {
		t.Fatalf("the passkey is called %s", text)
	}
	tab.Accessible()
	for _, width := range []int64{390, 768, 1280} {
		tab.Size(width, 860)
		tab.Accessible()
	}
	shot(tab, "passkeys")
	tab.Scheme("dark")
	tab.Accessible()
	tab.Scheme("light")

	// The same device again.
	settings()
	add("Again", newPassword)
	tab.Click("#new-passkey button")
	tab.Wait(`!document.querySelector("#new-passkey .passkey-error").hidden`)
	if text := tab.Text("#new-passkey .passkey-error"); !strings.Contains(text, "already has a passkey") {
		t.Errorf("a second passkey on one device: %s", text)
	}

	// The passkey alone logs in, with the keyboard.
	tab.Leave("main form[action='/dashboard/logout'] button")
	tab.Go(s.url + "/dashboard/usage")
	tab.Wait(`!document.querySelector("form[data-passkey]").hidden`)
	tab.Accessible()
	shot(tab, "login-passkey")
	tab.Eval(`document.querySelector("form[data-passkey] button").focus()`, nil)
	tab.Do(chromedp.KeyEvent("\r"))
	tab.Arrive("/dashboard/usage")
	settings()
	if text := tab.Text("main"); !strings.Contains(text, "· passkey") {
		t.Error("the settings do not show how the session was started")
	}

	// After the password it is the second factor.
	tab.Leave("main form[action='/dashboard/logout'] button")
	tab.Fill("#name", name)
	tab.Fill("#password", newPassword)
	tab.Leave("form.form button")
	tab.Wait(`!document.querySelector("form[data-passkey]").hidden`)
	if h := tab.Text("h1"); h != "Second factor" {
		t.Fatalf("after the password: %s", h)
	}
	if n := count(tab, "#code"); n != 0 {
		t.Error("a code is asked for without an app")
	}
	tab.Accessible()
	tab.Leave("form[data-passkey] button")
	tab.Arrive("/dashboard/")

	// Without the passkey, the password is enough again.
	settings()
	tab.Click("#passkeys details.ask summary")
	tab.Fill("#passkey-password-0", newPassword)
	tab.Leave("form[action='/dashboard/settings/passkeys/remove'] button")
	if n := count(tab, "#passkeys li"); n != 0 {
		t.Error("the passkey is still listed")
	}
	tab.Leave("main form[action='/dashboard/logout'] button")

	// The device still has it, but the server does not know it.
	refused := tab.Expect("401")
	tab.Wait(`!document.querySelector("form[data-passkey]").hidden`)
	tab.Leave("form[data-passkey] button")
	if text := tab.Text(".note[role=alert]"); !strings.Contains(text, "not accepted") {
		t.Errorf("a removed passkey: %s", text)
	}
	refused()
	tab.Fill("#name", name)
	tab.Fill("#password", newPassword)
	tab.Leave("form.form button")
	tab.Arrive("/dashboard/")
	tab.NoProblems()
}
