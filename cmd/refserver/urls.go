package main

import (
	"net/netip"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/remote"
)

// urlConfig configures transfers between the server and URLs of clients.
type urlConfig struct {
	imports bool
	deliver bool
	allow   []netip.Prefix
	time    time.Duration
}

func (c *urlConfig) register(fs *flagSet) {
	fs.BoolVar(&c.imports, "import", true, "serve POST /api/v1/import, which reads a file from a URL")
	fs.BoolVar(&c.deliver, "deliver", true, "accept deliver in POST /api/v1/do, which writes results to URLs")
	fs.Func("url-allow", "comma-separated private `networks` that imports may read from and results may be written to, such as 10.1.0.0/16,127.0.0.1; all: any address; default: public addresses only", func(v string) (err error) {
		c.allow, err = parseNetworks(v)
		return err
	})
	fs.DurationVar(&c.time, "url-time", time.Hour, "maximum `duration` of one transfer from or to a URL")
}

// newImports returns what reads files from URLs, or nil if this server does not.
func (a *app) newImports(cfg *serverConfig, api *httpapi.Config) (*remote.Imports, error) {
	if !cfg.urls.imports {
		return nil, nil
	}
	return remote.NewImports(remote.ImportConfig{
		Store: a.db.Transfers(), Secrets: api.Secrets, Allow: cfg.urls.allow, Total: cfg.urls.time,
		Timeout: cfg.runTimeout, Exclusive: cfg.cluster.url == "", Lease: cfg.cluster.lease, Tracer: api.Tracer, Log: a.log,
	})
}

// newDeliveries returns what writes results to URLs, or nil if this server does not.
func (a *app) newDeliveries(cfg *serverConfig, api *httpapi.Config) (*remote.Deliveries, error) {
	if !cfg.urls.deliver {
		return nil, nil
	}
	keep := api.Retention.Operations // the status shows deliveries as long as their operations
	if keep < 0 {
		keep = 10 * 365 * 24 * time.Hour
	}
	return remote.NewDeliveries(remote.DeliveryConfig{
		Store: a.db.Transfers(), Secrets: api.Secrets, Allow: cfg.urls.allow, Total: cfg.urls.time, Retention: keep,
		Exclusive: cfg.cluster.url == "", Lease: cfg.cluster.lease, Tracer: api.Tracer, Log: a.log,
	})
}
