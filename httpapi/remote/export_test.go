package remote

import (
	"net"

	"github.com/filewright/filewright/internal/netguard"
)

// SetResolver replaces the resolver of host names.
func (i *Imports) SetResolver(r *net.Resolver) {
	i.fetch.transport = netguard.NewTransport(netguard.Options{Allow: i.cfg.Allow, TLS: i.cfg.TLS, Resolver: r})
}
