package dashboard_test

import (
	"crypto/hmac"
	"crypto/sha1"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/internal/systest"
)

// A second factor is set up, asked for, and removed by an administrator.
func TestSecondFactor(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v, acct := s.member("Ada")
	p := v.get("/dashboard/settings/second-factor")
	field := func(pattern string) string {
		t.Helper()
		m := regexp.MustCompile(pattern).FindStringSubmatch(p.text)
		if m == nil {
			t.Fatalf("%s is not in the page:\n%s", pattern, p.text)
		}
		return m[1]
	}
	secret, ticket := field(`id="secret">([A-Z2-7]+)<`), field(`name="ticket" value="([^"]+)"`)
	if !strings.Contains(p.text, `<svg id="qr"`) || strings.Contains(p.text, "style=") {
		t.Error("there is no QR code, or one that the policy of the page forbids")
	}
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	systest.NoError(t, err)
	h := hmac.New(sha1.New, key)
	systest.NoError(t, binary.Write(h, binary.BigEndian, time.Now().Unix()/30))
	sum := h.Sum(nil)
	code := fmt.Sprintf("%06d", binary.BigEndian.Uint32(sum[sum[19]&15:])&0x7fffffff%1_000_000)
	if p = v.post("/dashboard/settings/second-factor", url.Values{"ticket": {ticket}, "code": {"1"}, "password": {good}}); p.status != 422 || !strings.Contains(p.text, secret) {
		t.Errorf("a wrong code: %d", p.status)
	}
	p = v.post("/dashboard/settings/second-factor", url.Values{"ticket": {ticket}, "code": {code}, "password": {good}})
	if n := strings.Count(p.text, "<li><code>"); p.status != 200 || n != 10 || strings.Contains(p.text, secret) {
		t.Errorf("turned on: %d with %d recovery codes", p.status, n)
	}
	recovery := field(`<li><code>([a-z2-7-]+)</code>`)
	if p = v.get("/dashboard/settings"); !strings.Contains(p.text, "10 recovery codes left") {
		t.Error("the settings do not show the second factor")
	}

	// Another browser.
	w := s.visitor()
	p = w.post("/dashboard/login", url.Values{"name": {"Ada"}, "password": {good}, "next": {"usage"}})
	if p.status != 200 || p.path != "/dashboard/login" || !strings.Contains(p.text, "Second factor") {
		t.Fatalf("after the password: %d %s", p.status, p.path)
	}
	ticket = field(`name="ticket" value="([^"]+)"`)
	if p = w.get("/dashboard/usage"); p.path != "/dashboard/login" {
		t.Errorf("the password alone opens %s", p.path)
	}
	if p = w.post("/dashboard/login/code", url.Values{"ticket": {ticket}, "code": {code}, "next": {"usage"}}); p.status != 401 || !strings.Contains(p.text, "Wrong or used code") {
		t.Errorf("the code of the setup: %d", p.status)
	}
	if p = w.post("/dashboard/login/code", url.Values{"ticket": {"x"}, "code": {recovery}}); p.status != 401 || !strings.Contains(p.text, "has expired") {
		t.Errorf("another ticket: %d", p.status)
	}
	if p = w.post("/dashboard/login/code", url.Values{"ticket": {ticket}, "code": {recovery}, "next": {"https://evil.example/"}}); p.status != 200 || p.path != "/dashboard/" {
		t.Errorf("a recovery code: %d %s", p.status, p.path)
	}
	if p = w.post("/dashboard/settings/second-factor/off", url.Values{"password": {"x"}}); p.status != 422 || !strings.Contains(p.text, "password is wrong") {
		t.Errorf("off with a wrong password: %d", p.status)
	}

	// Only an administrator removes it for another account.
	path := "/dashboard/accounts/" + acct.ID
	if p = w.post(path+"/second-factor", nil); p.status != 404 {
		t.Errorf("removed by a user: %d", p.status)
	}
	boss := s.visitor()
	boss.login("admin", s.admin)
	if p = boss.get(path); !strings.Contains(p.text, "Remove second factor") {
		t.Error("the page of the account does not show the second factor")
	}
	if p = boss.post(path+"/second-factor", nil); p.status != 200 || strings.Contains(p.text, "Remove second factor") {
		t.Errorf("removed: %d", p.status)
	}
	if p = s.visitor().post("/dashboard/login", url.Values{"name": {"Ada"}, "password": {good}}); p.path != "/dashboard/" {
		t.Errorf("login without a second factor: %s", p.path)
	}
}
