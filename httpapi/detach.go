package httpapi

import (
	"context"
	"net/http"
)

// Detached returns a copy of a request to an [Extension] for work that continues after the response. It
// has the same caller and request ID, and its context is not done when the response is complete.
func Detached(r *http.Request) *http.Request {
	info := *infoOf(r)
	ctx := context.WithoutCancel(r.Context())
	return r.Clone(context.WithValue(ctx, requestInfoKey{}, &info))
}
