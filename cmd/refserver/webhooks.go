package main

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"net/netip"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/status/webhook"
)

// webhookConfig configures the sending of webhooks.
type webhookConfig struct {
	send  bool
	allow []netip.Prefix
	ttl   time.Duration
}

func (c *webhookConfig) register(fs *flag.FlagSet) {
	fs.BoolVar(&c.send, "webhooks", true, "send webhooks; false: this server sends none and has no endpoints for managing them")
	fs.Func("webhook-allow", "`networks` that webhooks may be sent to although they are not public, separated by commas, such as 10.1.0.0/16,127.0.0.1; all: any address", func(v string) (err error) {
		c.allow, err = parseNetworks(v)
		return err
	})
	fs.DurationVar(&c.ttl, "webhook-ttl", 7*24*time.Hour, "`lifetime` of the log of finished deliveries, also with --webhooks=false; negative: for ever")
}

// parseNetworks parses networks and addresses.
func parseNetworks(v string) (list []netip.Prefix, err error) {
	for _, text := range splitList(v) {
		if text == "all" {
			list = append(list, netip.PrefixFrom(netip.IPv4Unspecified(), 0), netip.PrefixFrom(netip.IPv6Unspecified(), 0))
			continue
		}
		p, err := netip.ParsePrefix(text)
		if addr, aerr := netip.ParseAddr(text); aerr == nil && addr.Zone() == "" {
			p, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil || p.Addr().Is4In6() {
			return nil, fmt.Errorf("%q is neither a network such as 10.1.0.0/16 nor an address nor all", text)
		}
		list = append(list, p.Masked())
	}
	return list, nil
}

// newWebhooks returns the sender of webhooks, or nil if this server sends none. service is called
// later, when the service exists.
func (c *webhookConfig) newWebhooks(db *sqlstore.DB, cl *clusterConfig, secrets [][]byte, service func() *httpapi.Service, log *slog.Logger) (*webhook.Webhooks, error) {
	if !c.send {
		return nil, nil
	}
	return webhook.New(webhook.Config{
		Store: db.Webhooks(), Secrets: secrets, Allow: c.allow, Retention: c.ttl, Exclusive: cl.url == "", Log: log,
		Payload: func(_ context.Context, e webhook.Event) ([]byte, error) {
			return service().Notification(e.Type, e.Time, e.Operation)
		},
	})
}
