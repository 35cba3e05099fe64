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
	allow   []netip.Prefix
	time    time.Duration
}

func (c *urlConfig) register(fs *flagSet) {
	fs.BoolVar(&c.imports, "import", true, "serve POST /api/v1/import, which reads a file from a URL")
	fs.Func("url-allow", "comma-separated private `networks` that imports may read from, such as 10.1.0.0/16,127.0.0.1; all: any address; default: public addresses only", func(v string) (err error) {
		c.allow, err = parseNetworks(v)
		return err
	})
	fs.DurationVar(&c.time, "url-time", time.Hour, "maximum `duration` of one transfer from a URL")
}

// newImports returns what reads files from URLs, or nil if this server does not.
func (a *app) newImports(cfg *serverConfig, api *httpapi.Config) (*remote.Imports, error) {
	if !cfg.urls.imports {
		return nil, nil
	}
	return remote.NewImports(remote.ImportConfig{
		Store: a.db.Transfers(), Secrets: api.Secrets, Allow: cfg.urls.allow, Total: cfg.urls.time,
		Timeout: cfg.runTimeout, Exclusive: cfg.cluster.url == "", Log: a.log,
	})
}
