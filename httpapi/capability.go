package httpapi

import (
	"cmp"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/filewright/filewright/capability"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// supportedOperation answers POST and GET /supported-operation. A GET may carry its parameters in
// the query string or, like a POST, in a body.
func (s *Service) supportedOperation(w http.ResponseWriter, r *http.Request) {
	var req capabilityRequest
	if _, err := s.decode(w, r, &req, r.Method == http.MethodGet); err != nil {
		s.fail(w, r, err)
		return
	}
	if r.Method == http.MethodGet {
		if err := req.fromQuery(r); err != nil {
			s.fail(w, r, err)
			return
		}
	}
	ext := strings.ToLower(strings.TrimPrefix(strings.TrimSpace(req.Ext), "."))
	if ext == "" {
		s.fail(w, r, invalid("ext", "ext is required: a file extension such as pdf"))
		return
	}
	offered, err := s.known()
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if req.Steps != nil {
		resp, err := s.stepsSupported(offered, ext, &req)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		s.reply(w, resp)
		return
	}
	a := offered.Query(capability.Query{Ext: ext, Action: req.Action, Parameters: req.Parameters})
	resp := capabilityResponse{
		Supported: a.Supported, Ext: ext, Action: a.Action,
		AvailableActions: a.AvailableActions, AvailableActionsAlias: a.AvailableActions,
		Parameters: a.Parameters, SameFormat: a.Changes,
	}
	for name, n := range a.MaxBytes {
		if resp.Limits == nil {
			resp.Limits = make(map[string]sizeLimit)
		}
		resp.Limits[name] = sizeLimit{n}
	}
	if a.Err != nil {
		resp.Reason = fileops.Message(a.Err)
	}
	s.reply(w, resp)
}

// errUnknown is the response while the service's capabilities are unknown. Unlike an unsupported
// operation, this state is temporary.
var errUnknown = errors.New("no worker has started yet")

// known returns the current catalogue, or errUnknown.
func (s *Service) known() (*capability.Matrix, error) {
	c := s.offered.Load()
	if c.empty {
		return nil, errUnknown
	}
	return c.matrix, nil
}

// fromQuery fills the fields that the body did not set. Parameters are one JSON object, or separate
// members: parameters[convert_to]=pdf.
func (req *capabilityRequest) fromQuery(r *http.Request) error {
	q := r.URL.Query()
	if req.Ext == "" {
		req.Ext = q.Get("ext")
	}
	if req.Action == "" {
		req.Action = q.Get("action")
	}
	if text := q.Get("parameters"); text != "" && req.Parameters == nil {
		if err := json.Unmarshal([]byte(text), &req.Parameters); err != nil {
			return invalid("parameters", "parameters must be a JSON object")
		}
	}
	for name, values := range q {
		inner, ok := strings.CutPrefix(name, "parameters[")
		if inner, closed := strings.CutSuffix(inner, "]"); ok && closed {
			if req.Parameters == nil {
				req.Parameters = make(map[string]any)
			}
			req.Parameters[inner] = fileops.Text(values[0])
		}
	}
	return nil
}

// formats answers GET /formats: the whole capability matrix.
func (s *Service) formats(w http.ResponseWriter, r *http.Request) {
	s.reply(w, s.offered.Load().formats)
}

// describeFormats runs once for each catalogue, because a capability matrix never changes.
func describeFormats(m *capability.Matrix, engines []Engine) formatsResponse {
	byExt := make(map[format.Format]*formatEntry)
	for e := range m.Entries() {
		fe := byExt[e.Format]
		if fe == nil {
			fe = &formatEntry{Ext: string(e.Format), Title: e.Format.Title(), Family: string(e.Format.Family()), MIME: e.Format.MIME(), Actions: make(map[string]actionEntry)}
			if e.Format == format.Any {
				fe.Title, fe.Family = "any file", "any"
			}
			for _, a := range e.Format.Aliases() {
				fe.Aliases = append(fe.Aliases, string(a))
			}
			byExt[e.Format] = fe
		}
		a := fe.Actions[e.Action]
		if !slices.Contains(a.Engines, e.Engine) {
			a.Engines = append(a.Engines, e.Engine)
		}
		if a.Parameters == nil && e.Format != format.Any {
			q := m.Query(capability.Query{Ext: string(e.Format), Action: e.Action})
			a.Parameters, a.SameFormat = q.Parameters, q.Changes
		}
		if a.Parameters == nil {
			a.Parameters = e.Params.Options()
		}
		fe.Actions[e.Action] = a
	}
	resp := formatsResponse{Formats: []formatEntry{}, Engines: engineEntries(engines)}
	for _, f := range slices.Sorted(maps.Keys(byExt)) {
		resp.Formats = append(resp.Formats, *byExt[f])
	}
	return resp
}

// engineEntries returns engines in the form of responses.
func engineEntries(engines []Engine) []engineEntry {
	all := []engineEntry{} // not null in JSON
	for _, e := range engines {
		entry := engineEntry{Name: e.Name, Version: e.Version, Available: e.Err == nil}
		if e.Err != nil {
			entry.Problem = cmp.Or(e.Hint, "not usable on this host")
		}
		all = append(all, entry)
	}
	return all
}
