package dashboard

import "github.com/filewright/filewright/httpapi/account"

// Needs returns the permission of each route; "": none.
func (d *Dashboard) Needs() map[string]account.Permission { return d.needs }
