package remote

import (
	"net"

	"github.com/filewright/filewright/internal/netguard"
)

// SetResolver replaces the resolver of host names.
func (i *Imports) SetResolver(r *net.Resolver) {
	i.fetch.transport = netguard.NewTransport(netguard.Options{Allow: i.cfg.Allow, TLS: i.cfg.TLS, Resolver: r})
}

// SetResolver replaces the resolver of host names.
func (d *Deliveries) SetResolver(r *net.Resolver) {
	d.transport = netguard.NewTransport(netguard.Options{Allow: d.cfg.Allow, TLS: d.cfg.TLS, Resolver: r})
}
