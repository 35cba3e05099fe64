package httpapi

import (
	"errors"
	"net/http"
	"sync/atomic"

	"github.com/filewright/filewright/capability"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/httpapi/internal/gcra"
	"github.com/filewright/filewright/httpapi/internal/zipstream"
)

// A Service is a [Node] with the API. It implements http.Handler; [Service.Run] does the background
// work.
type Service struct {
	*Node
	offered      atomic.Pointer[catalogue]
	extensions   []Extension
	fingerprints fingerprints
	rates        *gcra.Buckets // by key
	guard        *guard
	longAnswers  *turnstile // responses of initiate-upload
	longBodies   *turnstile // JSON request bodies
	sums         zipstream.Sums
}

// aliases are alternative action names that clients use.
var aliases = map[string]string{"create_zip": "zip"}

// New checks cfg and returns a service. It starts nothing.
func New(cfg Config) (*Service, error) {
	if cfg.Auth == nil {
		return nil, errors.New("httpapi: Config.Auth is required; see StaticKeys and AllowAll")
	}
	if cfg.Secrets == nil {
		cfg.Secrets = [][]byte{randomSecret()}
	}
	node, err := newNode(cfg)
	if err != nil {
		return nil, err
	}
	s := &Service{Node: node}
	s.rates, s.guard = gcra.New(), newGuard(s.cfg.Limits.InvalidKeys)
	s.longAnswers, s.longBodies = newTurnstile(64, 8), newTurnstile(24, 6)
	if s.fingerprints, err = newFingerprints(cfg.Secrets); err != nil {
		return nil, err
	}
	for _, extension := range cfg.Extensions {
		s.extensions = append(s.extensions, extension(s))
	}
	if len(s.extensions) > 0 { // the document of this package is right, and parsing it takes a while
		if _, err := extendedDocument(s.extensions); err != nil {
			return nil, err
		}
	}
	if err := s.Offer(cfg.Actions, cfg.Engines); err != nil {
		return nil, err
	}
	routes := append(s.routes(), s.extensionRoutes()...)
	for i, rt := range routes {
		if !rt.open {
			routes[i].handler = s.authenticated(rt.handler, rt.scope)
		}
	}
	if err := s.route(routes); err != nil {
		return nil, err
	}
	return s, nil
}

// Limits returns the limits of the service, with the defaults of Config.Limits.
func (s *Service) Limits() Limits { return s.cfg.Limits }

// Capabilities returns the current capability matrix.
func (s *Service) Capabilities() *capability.Matrix { return s.offered.Load().matrix }

// A catalogue describes the capabilities that clients see.
type catalogue struct {
	empty   bool // no action is offered: no worker of the cluster has ever run
	matrix  *capability.Matrix
	formats formatsResponse
	openAPI openAPI
}

// Offer replaces the capabilities that clients see, initially Config.Actions and Config.Engines. It
// uses only the specs of the actions: with several processes, some worker must be able to run them.
// It is safe to call at any time.
func (s *Service) Offer(actions []fileops.Action, engines []Engine) error {
	reg, err := fileops.NewRegistry(actions...)
	if err != nil {
		return err
	}
	c := &catalogue{empty: len(actions) == 0, matrix: capability.New(reg, aliases)}
	c.formats = describeFormats(c.matrix, engines)
	c.openAPI = describeAPI(reg, s.cfg.Envelope, s.extensions)
	s.offered.Store(c)
	s.ShowEngines(engines)
	return nil
}

var _ http.Handler = (*Service)(nil)
