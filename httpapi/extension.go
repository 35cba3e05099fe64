package httpapi

import (
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// An Extension adds endpoints to a service. They share its keys, limits, log, metrics, errors and
// OpenAPI document. A function in Config.Extensions creates it for one service.
type Extension struct {
	Routes []Route

	// OpenAPI describes the routes as YAML. Its "tags", "paths", "webhooks", "components" and
	// "x-errors" are merged into the service's document, and it may refer to the components there.
	// Responses are written without their envelope, which the service adds.
	OpenAPI []byte

	// Files knows files that the extension has accepted but not stored yet; nil: there are none.
	Files FileSource

	// Delivery delivers the results of operations; nil: the extension does not. At most one
	// extension of a service may.
	Delivery Delivery
}

// A Route is one endpoint of an [Extension].
type Route struct {
	Method string // "GET", "POST", …

	// Path is the path, such as "/api/v1/admin/accounts/{account}". A name in braces matches one
	// segment. The handler reads it with http.Request.PathValue.
	Path string

	Scope Scope // required scope of the API key; 0: any valid key

	// Handler answers with [Service.Reply] and [Service.Fail]. [PrincipalOf] returns the caller.
	// The handler must not reveal data of other accounts.
	Handler http.HandlerFunc
}

var pathParam = regexp.MustCompile(`\{([a-z_]+)\}`)

// extensionRoutes returns the routes of all extensions.
func (s *Service) extensionRoutes() (routes []route) {
	for _, e := range s.extensions {
		for _, rt := range e.Routes {
			routes = append(routes, route{method: rt.Method, path: pathParam.ReplaceAllString(rt.Path, ":$1"), scope: rt.Scope, noAlias: true, handler: rt.Handler})
		}
	}
	return routes
}

// Reply answers a request to an [Extension] with the struct v, as JSON in the configured envelope.
func (s *Service) Reply(w http.ResponseWriter, v any) { s.reply(w, v) }

// ReplyStatus is [Service.Reply] with another HTTP status than 200.
func (s *Service) ReplyStatus(w http.ResponseWriter, status int, v any) {
	s.replyStatus(w, status, v)
}

// Log returns a logger for lines about a request to an [Extension].
func (s *Service) Log(r *http.Request) *slog.Logger { return s.logOf(r) }

// Link returns a path of the service as its responses show it: it starts with Config.BaseURL if
// Config.AbsoluteLinks is set.
func (s *Service) Link(path string) string { return s.link(path) }

// Fail answers a request to an [Extension] with an error. A [Problem] is sent unchanged. Other
// errors that the service knows (fs.ErrNotExist, ErrForbidden, status.ErrUnavailable, …) become the
// matching problem. All others become internal_error; their text appears only in the log.
func (s *Service) Fail(w http.ResponseWriter, r *http.Request, err error) { s.fail(w, r, err) }

// Decode decodes the JSON object in the body of a request to an [Extension] into v, a pointer to a
// struct. It ignores unknown members and treats null as a missing member. Pass its error to
// [Service.Fail].
func (s *Service) Decode(w http.ResponseWriter, r *http.Request, v any) error {
	_, err := s.decode(w, r, v, false)
	return err
}

// ProblemOf returns the problem that [Service.Fail] sends for an error, without the members that
// depend on the request. It is for handlers with another response format.
func ProblemOf(err error) *Problem { return asProblem(err) }

// NewProblem returns a [Problem] with an HTTP status, a stable name for programs and a text for
// people, formatted as by fmt.Sprintf.
func NewProblem(status int, slug, format string, args ...any) *Problem {
	return problem(status, slug, format, args...)
}

// Invalid returns the [Problem] of a missing or invalid request member or parameter: 400
// invalid_request.
func Invalid(param, format string, args ...any) *Problem { return invalid(param, format, args...) }

// merge adds the document of an extension to d.
func (d document) merge(source []byte) error {
	if len(source) == 0 {
		return nil
	}
	root, err := parseDocument(source)
	if err != nil {
		return err
	}
	for name, part := range members(root) {
		var err error
		switch name {
		case "tags":
			for _, t := range elements(part) {
				d.addTag(t)
			}
		case "paths":
			for path, item := range members(part) {
				if strings.HasPrefix(path, prefixes[0]+"/") {
					set(item, "x-no-alias", toNode(true))
				}
				err = errors.Join(err, add(get(d.root, "paths"), path, item))
			}
		case "webhooks":
			if get(d.root, "webhooks") == nil {
				set(d.root, "webhooks", part)
				break
			}
			for event, item := range members(part) {
				err = errors.Join(err, add(get(d.root, "webhooks"), event, item))
			}
		case "x-errors": // slugs of problems
			d.addSlugs(part)
		case "components":
			for kind, all := range members(part) {
				to := get(d.root, "components", kind)
				if to == nil {
					return fmt.Errorf("unknown kind of components %q", kind)
				}
				for component, v := range members(all) {
					err = errors.Join(err, add(to, component, v))
				}
			}
		default:
			err = fmt.Errorf("unexpected %q; permitted are tags, paths, webhooks, components and x-errors", name)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// addSlugs adds slugs of problems unless they exist.
func (d document) addSlugs(part *yaml.Node) {
	all := get(d.root, "x-errors")
	have := make(map[string]bool)
	for _, e := range elements(all) {
		have[text(e, "slug")] = true
	}
	for _, e := range elements(part) {
		if !have[text(e, "slug")] {
			all.Content = append(all.Content, e)
		}
	}
}

// addTag adds a tag unless it exists. It goes before the last tag, which is about the service
// itself.
func (d document) addTag(t *yaml.Node) {
	tags := get(d.root, "tags")
	for _, have := range tags.Content {
		if text(have, "name") == text(t, "name") {
			return
		}
	}
	last := len(tags.Content) - 1
	tags.Content = append(tags.Content[:last:last], t, tags.Content[last])
}

// add adds a member to a mapping. It fails if the member exists.
func add(n *yaml.Node, key string, value *yaml.Node) error {
	if get(n, key) != nil {
		return fmt.Errorf("%s already exists", key)
	}
	set(n, key, value)
	return nil
}
