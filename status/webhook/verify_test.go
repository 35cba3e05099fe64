package webhook_test

import (
	"context"
	"errors"
	"net/http"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status/webhook"
)

func payloadOfNothing(context.Context, webhook.Event) ([]byte, error) { return []byte("{}"), nil }

// TestVerify compares Verify with the library of Standard Webhooks: Verify accepts what
// the library signs, and both reject changed requests.
func TestVerify(t *testing.T) {
	t.Parallel()
	const (
		secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
		other  = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"
	)
	lib, err := standardwebhooks.NewWebhook(secret)
	systest.NoError(t, err)
	now, body := time.Now(), []byte(`{"type":"operation.completed"}`)
	signed := func(at time.Time) http.Header {
		s, err := lib.Sign("msg_1", at, body)
		systest.NoError(t, err)
		h := make(http.Header)
		h.Set("webhook-id", "msg_1")
		h.Set("webhook-timestamp", itoa(at.Unix()))
		h.Set("webhook-signature", s)
		return h
	}
	with := func(name, value string) http.Header {
		h := signed(now)
		if value == "" {
			h.Del(name)
		} else {
			h.Set(name, value)
		}
		return h
	}
	good := signed(now).Get("webhook-signature")
	for name, c := range map[string]struct {
		secrets []string
		header  http.Header
		body    []byte
		ok      bool
	}{
		"good":              {[]string{secret}, signed(now), body, true},
		"a little old":      {[]string{secret}, signed(now.Add(-4 * time.Minute)), body, true},
		"a little early":    {[]string{secret}, signed(now.Add(4 * time.Minute)), body, true},
		"two secrets":       {[]string{other, secret}, signed(now), body, true},
		"several":           {[]string{secret}, with("webhook-signature", "v1a,xx v1,AAAA "+good+" v2,yy"), body, true},
		"other secret":      {[]string{other}, signed(now), body, false},
		"no secret":         {nil, signed(now), body, false},
		"other body":        {[]string{secret}, signed(now), []byte(`{"type":"operation.failed"}`), false},
		"no body":           {[]string{secret}, signed(now), nil, false},
		"other id":          {[]string{secret}, with("webhook-id", "msg_2"), body, false},
		"no id":             {[]string{secret}, with("webhook-id", ""), body, false},
		"other time":        {[]string{secret}, with("webhook-timestamp", itoa(now.Unix()-1)), body, false},
		"no time":           {[]string{secret}, with("webhook-timestamp", ""), body, false},
		"odd time":          {[]string{secret}, with("webhook-timestamp", "soon"), body, false},
		"old":               {[]string{secret}, signed(now.Add(-6 * time.Minute)), body, false},
		"future":            {[]string{secret}, signed(now.Add(6 * time.Minute)), body, false},
		"no signature":      {[]string{secret}, with("webhook-signature", ""), body, false},
		"empty signature":   {[]string{secret}, with("webhook-signature", "v1,"), body, false},
		"unknown version":   {[]string{secret}, with("webhook-signature", "v2"+good[2:]), body, false},
		"part of signature": {[]string{secret}, with("webhook-signature", good[:20]), body, false},
	} {
		err := webhook.Verify(c.secrets, c.header, c.body, now)
		if (err == nil) != c.ok || err != nil && !errors.Is(err, webhook.ErrSignature) {
			t.Errorf("%s: error is %v", name, err)
		}
		if len(c.secrets) == 1 && c.secrets[0] == secret {
			if err := lib.Verify(c.body, c.header); (err == nil) != c.ok {
				t.Errorf("%s: the library says %v", name, err)
			}
		}
	}
	for _, bad := range []string{"", "secret", "whsec_", "whsec_%", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"} {
		if err := webhook.Verify([]string{bad}, signed(now), body, now); err == nil || errors.Is(err, webhook.ErrSignature) {
			t.Errorf("secret %q: error is %v", bad, err)
		}
	}
}

// signature returns the signature made by the library of Standard Webhooks.
func signature(t *testing.T, secret, id string, at time.Time, body []byte) string {
	t.Helper()
	lib, err := standardwebhooks.NewWebhook(secret)
	systest.NoError(t, err)
	s, err := lib.Sign(id, at, body)
	systest.NoError(t, err)
	return s
}
