// Package dashboard is the web interface of the service. Its pages show operations, usage and
// formats, manage keys, webhooks and accounts, and run actions.
//
// [New] returns an http.Handler for the paths under [Path]. The server renders the pages. They work
// without JavaScript, except the try-it page and live updates. Scripts call the public API with the
// session cookie. So the [httpapi.Service] must have the same origin and authenticate sessions, as
// auth.Accounts does.
//
//	mux.Handle(dashboard.Path, dash)
//	mux.Handle("/", service)
//
// # Security
//
// Users see and change only data of their own account; administrators also manage accounts. Forms
// of other sites are refused (net/http.CrossOriginProtection). Scripts and styles come only from
// this package (Content-Security-Policy). File names are untrusted and are escaped by
// html/template.
package dashboard

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/dashboard/thumbnail"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/status/webhook"
	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
)

// Path is the path prefix of every page.
const Path = "/dashboard/"

// Config configures a [Dashboard].
type Config struct {
	Service  *httpapi.Service  // required
	Accounts *auth.Accounts    // required
	Webhooks *webhook.Webhooks // nil: no pages for webhooks
	Version  string            // version of the program, for people; "": not shown

	// SignIn is the provider with which users may log in; nil: none. Accounts must have identities.
	SignIn SignIn

	// OneCall reports whether the service has the endpoint of package onecall, which the page to
	// try everything then shows.
	OneCall bool

	// Imports reports whether the service has the imports of package remote, which the page to try
	// everything then offers.
	Imports bool

	// Nodes returns the servers of a cluster, and Failures counts the errors of all accounts since a
	// time, most frequent first. Administrators see both. nil: not shown.
	Nodes    func(context.Context) ([]SystemNode, error)
	Failures func(ctx context.Context, since time.Time) ([]status.FailureCount, error)

	// Thumbnails draws the files of an operation; nil: pages show the types of files instead.
	Thumbnails Thumbnailer

	// Connect lists further origins that browsers may upload to, such as the bucket's origin if
	// uploads go straight there (s3blob.Store.Origin). Pages load nothing from these origins, even
	// if downloads are redirected.
	Connect []string

	Log *slog.Logger // nil discards
}

// A Thumbnailer draws small pictures of files, as package thumbnail does.
type Thumbnailer interface {
	// Can reports whether a file of this name and size may have a thumbnail.
	Can(name string, size int64) bool

	// Draw returns the thumbnail of a file, with a side of thumbnail.Small or thumbnail.Large. Its
	// error is thumbnail.ErrNone or thumbnail.ErrBusy. open opens the content.
	Draw(ctx context.Context, f *upload.File, side int, open func(context.Context) (blob.Object, error)) (*thumbnail.Picture, error)
}

// A Dashboard serves the pages. It is safe for concurrent use.
type Dashboard struct {
	cfg     Config
	log     *slog.Logger
	assets  *assets
	pages   *pages
	csp     string
	started time.Time
	serve   http.Handler
	needs   map[string]account.Permission // by route; "": none

	closing context.Context // done once live updates must stop
	close   context.CancelFunc

	mu      sync.Mutex
	streams map[string]int // open live updates by account; "" is the total
}

// Limits of the pages with live updates, in total and for each account. Other pages poll.
const (
	maxStreams    = 1000
	maxOwnStreams = 30
)

// formTime bounds the upload of a form, and fileTime the transfer of a previewed file. Browsers
// request longer files in ranges.
const (
	formTime = 30 * time.Second
	fileTime = 15 * time.Minute
)

// maxForm bounds the size of a form in bytes.
const maxForm = 256 << 10

// New returns a dashboard.
func New(cfg Config) (*Dashboard, error) {
	if cfg.Service == nil || cfg.Accounts == nil {
		return nil, errors.New("dashboard: Config.Service and Config.Accounts are required")
	}
	cfg.Log = cmp.Or(cfg.Log, slog.New(slog.DiscardHandler))
	d := &Dashboard{cfg: cfg, log: cfg.Log, started: time.Now(), streams: make(map[string]int), needs: make(map[string]account.Permission)}
	var err error
	if d.assets, err = loadAssets(); err != nil {
		return nil, err
	}
	if d.pages, err = loadPages(d.assets, d.viewOf); err != nil {
		return nil, err
	}
	for _, origin := range cfg.Connect {
		if strings.ContainsAny(origin, "; ,\t\n'\"") {
			return nil, errors.New("dashboard: Config.Connect contains an invalid origin")
		}
	}
	d.csp = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; media-src 'self'; frame-src 'self'; connect-src " +
		strings.Join(append([]string{"'self'"}, cfg.Connect...), " ") + "; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
	d.closing, d.close = context.WithCancel(context.Background())
	protect := http.NewCrossOriginProtection()
	protect.SetDenyHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		d.fail(&visit{w: w, r: r}, http.StatusForbidden, "Request refused", "This form was sent by another site. Nothing was changed.")
	}))
	d.serve = protect.Handler(d.routes())
	return d, nil
}

// Close ends the live updates of all pages, so that the server can shut down.
func (d *Dashboard) Close() { d.close() }

// ServeHTTP serves the pages.
func (d *Dashboard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Content-Security-Policy", d.csp)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "same-origin")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-store")
	if r.Body != nil {
		r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	}
	if r.Method == http.MethodPost {
		http.NewResponseController(w).SetReadDeadline(time.Now().Add(formTime)) // the server resets it for the next request
	}
	d.serve.ServeHTTP(w, r)
}

func (d *Dashboard) routes() http.Handler {
	mux := http.NewServeMux()
	mux.Handle("GET "+Path+"static/{hash}/{name}", d.assets)
	with := func(to audience, need account.Permission) func(pattern string, h func(*visit) error) {
		return func(pattern string, h func(*visit) error) {
			d.needs[pattern] = need
			mux.Handle(at(pattern), d.visitor(h, to, need))
		}
	}
	pages := func(to audience) func(pattern string, h func(*visit) error) { return with(to, "") }
	open := pages(guest)
	open("GET login", d.loginPage)
	open("POST login", d.login)
	open("POST login/code", d.loginCode)
	open("POST theme", d.setTheme)
	if d.cfg.Accounts.HasPasskeys() {
		open("POST login/passkey/start", d.askPasskey)
		open("POST login/passkey", d.loginPasskey)
	}
	if d.cfg.SignIn != nil {
		open("GET login/oidc", d.startSignIn)
		open("GET login/oidc/callback", d.finishSignIn)
	}

	half := pages(unchanged)
	half("GET password", d.passwordPage)
	half("POST password", d.password)
	half("POST logout", d.logout)

	// Settings of the login itself. Everything else in the account needs a permission of its role.
	own := pages(member)
	view, operate := with(member, account.View), with(member, account.Operate)
	manage, invite, owner := with(member, account.Manage), with(member, account.Invite), with(member, account.Own)
	view("GET {$}", d.overview)
	view("GET events", d.events)
	operate("GET try", d.try)
	operate("GET try/parameters", d.tryParameters)
	view("GET operations", d.operations)
	view("GET operations.csv", d.exportOperations)
	operate("POST operations/selected", d.bulk)
	view("GET operations/{id}", d.operation)
	operate("POST operations/{id}/delete", d.deleteOperation)
	operate("POST operations/{id}/again", d.repeatOperation)
	operate("POST operations/{id}/cancel", d.cancelOperation)
	view("GET files/{key}", d.file)
	if d.cfg.Thumbnails != nil {
		view("GET files/{key}/thumbnail", d.thumbnail)
	}
	view("GET keys", d.keys)
	manage("POST keys", d.createKey)
	view("GET keys/{id}", d.key)
	manage("POST keys/{id}", d.updateKey)
	manage("POST keys/{id}/roll", d.rollKey)
	manage("POST keys/{id}/revoke", d.revokeKey)
	view("GET usage", d.usage)
	view("GET usage.csv", d.exportUsage)
	view("GET formats", d.formats)
	if d.cfg.Accounts.HasAudit() {
		manage("GET audit", d.audit)
		manage("GET audit.csv", d.exportAudit)
	}
	own("GET settings", d.settings)
	own("POST settings/password", d.changePassword)
	own("POST settings/sessions", d.endSessions)
	if d.cfg.Accounts.HasFactors() {
		own("GET settings/second-factor", d.newFactor)
		own("POST settings/second-factor", d.enableFactor)
		own("POST settings/second-factor/off", d.disableFactor)
	}
	if d.cfg.Accounts.HasPasskeys() {
		own("POST settings/passkeys/start", d.newPasskey)
		own("POST settings/passkeys", d.addPasskey)
		own("POST settings/passkeys/remove", d.removePasskey)
	}
	if d.cfg.SignIn != nil {
		own("GET settings/connect", d.connect)
		own("POST settings/disconnect", d.disconnect)
	}
	if d.cfg.Webhooks != nil {
		view("GET webhooks", d.webhooks)
		manage("POST webhooks", d.createWebhook)
		view("GET webhooks/{id}", d.webhook)
		manage("POST webhooks/{id}", d.updateWebhook)
		manage("POST webhooks/{id}/{what}", d.webhookAction)
		view("GET webhooks/{id}/deliveries/{delivery}", d.delivery)
		manage("POST webhooks/{id}/deliveries/{delivery}/replay", d.replay)
	}
	if d.cfg.Accounts.HasMembers() {
		open("GET join", d.joinPage)
		open("POST join", d.join)
		view("GET members", d.members)
		invite("POST members/invitations", d.inviteMember)
		invite("POST members/invitations/{id}/revoke", d.revokeInvitation)
		invite("POST members/{id}/role", d.setRole)
		own("POST members/{id}/remove", d.removeMember)
		owner("GET account/export", d.exportAccount)
		owner("POST account/delete", d.deleteOwnAccount)
	}

	admin := pages(administrator)
	admin("GET system", d.system)
	admin("GET accounts", d.accounts)
	admin("POST accounts", d.createAccount)
	admin("GET accounts/{id}", d.account)
	admin("POST accounts/{id}", d.updateAccount)
	admin("POST accounts/{id}/{what}", d.accountAction)
	admin("POST accounts/{id}/keys/{key}/revoke", d.revokeAccountKey)
	own("GET ", func(v *visit) error { return fs.ErrNotExist })
	return mux
}

// at inserts Path into a route pattern.
func at(pattern string) string {
	method, rest, _ := strings.Cut(pattern, " ")
	return method + " " + Path + rest
}

// A visit is one request of a visitor.
type visit struct {
	w     http.ResponseWriter
	r     *http.Request
	who   *account.Account // nil: not logged in
	token string           // session token
}

// owner returns the account whose operations and files the visitor sees.
func (v *visit) owner() string { return v.who.Owner() }

// An audience is the group of visitors that may open a page.
type audience int

const (
	guest         audience = iota // everyone
	unchanged                     // logged-in users, even with a one-time password
	member                        // logged-in users
	administrator                 // administrators
)

// visitor calls h only for visitors who may open the page: need is the permission that their role must
// have.
func (d *Dashboard) visitor(h func(*visit) error, to audience, need account.Permission) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		v := &visit{w: w, r: r}
		actor := account.Actor{Address: d.cfg.Accounts.From(r).Address}
		if token := d.cfg.Accounts.Token(r); token != "" {
			who, err := d.cfg.Accounts.Session(r.Context(), token)
			switch {
			case err == nil:
				v.who, v.token = who, token
				actor.Login, actor.Name = who.ID, who.Name
			case !errors.Is(err, auth.ErrNoSession):
				d.answer(v, err)
				return
			}
		}
		r = r.WithContext(auth.WithActor(r.Context(), actor))
		v.r = r
		switch {
		case to == guest:
		case v.who == nil:
			d.toLogin(v)
			return
		case v.who.MustChange && to > unchanged:
			if err := d.redirect(v, "password"); err != nil {
				d.answer(v, err)
			}
			return
		case to == administrator && !v.who.Administrator:
			d.answer(v, fs.ErrNotExist)
			return
		case need != "" && !v.who.Role.May(need):
			d.fail(v, http.StatusForbidden, "Not permitted", "Your role in this account ("+string(v.who.Role)+") does not permit this. Ask an owner or administrator of the account.")
			return
		}
		if r.Method == http.MethodPost {
			if err := r.ParseForm(); err != nil {
				d.fail(v, http.StatusBadRequest, "Invalid form", "The form could not be read. Please try again.")
				return
			}
		}
		if err := h(v); err != nil {
			d.answer(v, err)
		}
	})
}

// answer renders the page for an error that is not a user error.
func (d *Dashboard) answer(v *visit, err error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		d.fail(v, http.StatusNotFound, "Page not found", "This page does not exist, has expired, or belongs to another account.")
	case v.r.Context().Err() != nil:
	case unavailable(v.w, err):
		d.log.Error("dashboard: request failed", "method", v.r.Method, "path", v.r.URL.Path, "err", err)
		d.fail(v, http.StatusServiceUnavailable, "Temporarily unavailable", "The server cannot handle this request now. Nothing is lost; try again in a few seconds.")
	default:
		d.log.Error("dashboard: request failed", "method", v.r.Method, "path", v.r.URL.Path, "err", err)
		d.fail(v, http.StatusInternalServerError, "Something went wrong", "The server could not handle this request. Nothing is lost; please try again.")
	}
}

// unavailable reports whether an error is temporary, and then sets Retry-After.
func unavailable(w http.ResponseWriter, err error) bool {
	p := httpapi.ProblemOf(err)
	if p.Status != http.StatusServiceUnavailable && p.Status != http.StatusInsufficientStorage {
		return false
	}
	w.Header().Set("Retry-After", strconv.Itoa(int(math.Ceil(p.RetryAfter.Seconds()))))
	return true
}

func (d *Dashboard) fail(v *visit, status int, title, text string) {
	if v.r.Header.Get("Accept") == "application/json" {
		http.Error(v.w, text, status)
		return
	}
	if err := d.render(v, status, page{Template: "error", Title: title, Nav: "none", Body: struct{ Title, Text string }{title, text}}); err != nil {
		d.log.Error("dashboard: cannot render the error page", "err", err)
		http.Error(v.w, "internal error", http.StatusInternalServerError)
	}
}

// redirect sends the visitor to another page after a submitted form.
func (d *Dashboard) redirect(v *visit, to string) error {
	http.Redirect(v.w, v.r, Path+to, http.StatusSeeOther)
	return nil
}

var _ http.Handler = (*Dashboard)(nil)
