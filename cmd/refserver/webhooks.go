package main

import (
	"context"
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

func (c *webhookConfig) register(fs *flagSet) {
	fs.BoolVar(&c.send, "webhooks", true, "send webhooks and serve the endpoints that manage them")
	fs.Func("webhook-allow", "comma-separated private `networks` that webhooks may be sent to, such as 10.1.0.0/16,127.0.0.1; all: any address; default: public addresses only", func(v string) (err error) {
		c.allow, err = parseNetworks(v)
		return err
	})
	fs.DurationVar(&c.ttl, "webhook-ttl", 7*24*time.Hour, "`lifetime` of the log of finished deliveries, also with --webhooks=false; negative: unlimited")
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
			return nil, fmt.Errorf("%q is not a network such as 10.1.0.0/16, an address, or all", text)
		}
		list = append(list, p.Masked())
	}
	return list, nil
}

// newWebhooks returns the sender of webhooks, or nil if this server sends none. service is called
// later, when the service exists.
func (c *webhookConfig) newWebhooks(db *sqlstore.DB, cl *clusterConfig, api *httpapi.Config, service func() *httpapi.Service, log *slog.Logger) (*webhook.Webhooks, error) {
	if !c.send {
		return nil, nil
	}
	return webhook.New(webhook.Config{
		Store: db.Webhooks(), Secrets: api.Secrets, Tracer: api.Tracer, Allow: c.allow, Retention: c.ttl, Exclusive: cl.url == "", Log: log,
		Payload: func(_ context.Context, e webhook.Event) ([]byte, error) {
			return service().Notification(e.Type, e.Time, e.Operation)
		},
	})
}
