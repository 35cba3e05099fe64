package dashboard

import (
	"bytes"
	"cmp"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/status"
)

//go:embed templates
var templateFiles embed.FS

// A page is the data of the templates.
type page struct {
	Template string // template file of the content
	Title    string
	Nav      string // active entry of the navigation
	Plain    bool   // without navigation
	Body     any

	// Set by render.
	Account  *account.Account
	Theme    string // light, dark or "" for the system's theme
	Here     string // path of the page below Path, to return to
	Flash    *flash
	Webhooks bool
	Members  bool
	Audit    bool
	Version  string
}

// May reports whether the role of the visitor has a permission.
func (p page) May(permission string) bool {
	return p.Account != nil && p.Account.Role.May(account.Permission(permission))
}

// pages are the templates, each with the layout.
type pages struct{ byName map[string]*template.Template }

func loadPages(a *assets, viewOf func(status.File) view) (*pages, error) {
	frame, err := template.New("frame").Funcs(template.FuncMap{
		"asset": a.url, "icon": icon, "bytes": bytesText, "count": countText, "ago": ago, "stamp": stampText, "iso": iso,
		"took": tookText, "ext": ext, "family": family, "percent": percent, "opTitle": opTitle, "actionName": actionName,
		"short": short, "plural": plural, "stateText": stateText, "stateIcon": stateIcon, "initial": initial, "dict": dict, "viewOf": viewOf, "gone": gone, "scopesOf": scopesOf, "seg": url.PathEscape, "roleName": roleName, "auditName": auditName, "clientName": clientOf,
	}).ParseFS(templateFiles, "templates/frame.html", "templates/parts.html")
	if err != nil {
		return nil, err
	}
	entries, err := templateFiles.ReadDir("templates")
	if err != nil {
		return nil, err
	}
	p := &pages{make(map[string]*template.Template)}
	for _, e := range entries {
		name := strings.TrimSuffix(e.Name(), ".html")
		if name == "frame" || name == "parts" {
			continue
		}
		t, err := frame.Clone()
		if err != nil {
			return nil, err
		}
		if p.byName[name], err = t.ParseFS(templateFiles, "templates/"+e.Name()); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// render answers with a page.
func (d *Dashboard) render(v *visit, code int, p page) error {
	t := d.pages.byName[p.Template]
	if t == nil {
		return fmt.Errorf("unknown page %q", p.Template)
	}
	p.Account, p.Webhooks, p.Version = v.who, d.cfg.Webhooks != nil, d.cfg.Version
	p.Members, p.Audit = d.cfg.Accounts.HasMembers(), d.cfg.Accounts.HasAudit()
	if v.who == nil || v.who.MustChange {
		p.Plain = true
	}
	if c, err := v.r.Cookie(themeCookie); err == nil && (c.Value == "light" || c.Value == "dark") {
		p.Theme = c.Value
	}
	p.Here = strings.TrimPrefix(v.r.URL.RequestURI(), Path)
	if v.r.Method != http.MethodGet {
		p.Here = p.Nav
	}
	if p.Flash == nil {
		p.Flash = d.takeFlash(v)
	}
	var b bytes.Buffer
	if err := t.ExecuteTemplate(&b, "frame.html", p); err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	h.Set("Content-Length", strconv.Itoa(b.Len()))
	v.w.WriteHeader(code)
	v.w.Write(b.Bytes())
	return nil
}

// The following functions format values for people.

func bytesText(n int64) string {
	if n < 1000 {
		return strconv.FormatInt(n, 10) + " B"
	}
	f, unit := float64(n), ""
	for _, unit = range []string{"kB", "MB", "GB", "TB", "PB"} {
		if f /= 1000; f < 999.5 {
			break
		}
	}
	if f < 9.95 {
		return strconv.FormatFloat(f, 'f', 1, 64) + " " + unit
	}
	return strconv.FormatFloat(f, 'f', 0, 64) + " " + unit
}

// countText formats a number with thin spaces between groups of three digits.
func countText(n any) string {
	s := fmt.Sprint(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "\u202f" + s[i:]
	}
	return s
}

func plural(n any, one, many string) string {
	s := fmt.Sprint(n)
	if s == "1" {
		return s + " " + one
	}
	return countText(n) + " " + many
}

// ago formats a time relative to now.
func ago(t time.Time) string {
	if t.IsZero() {
		return "never"
	}
	d := time.Since(t)
	future := d < -time.Second
	if future {
		d = -d
	}
	text := ""
	switch {
	case d < 5*time.Second && !future:
		return "just now"
	case d < time.Minute:
		text = plural(int(d.Seconds()), "second", "seconds")
	case d < time.Hour:
		text = plural(int(d.Minutes()), "minute", "minutes")
	case d < 24*time.Hour:
		text = plural(int(d.Hours()), "hour", "hours")
	case d < 14*24*time.Hour:
		text = plural(int(d.Hours()/24), "day", "days")
	default:
		return t.UTC().Format("2 Jan 2006")
	}
	if future {
		return "in " + text
	}
	return text + " ago"
}

func stampText(t time.Time) string {
	if t.IsZero() {
		return "–"
	}
	return t.UTC().Format("2 Jan 2006, 15:04:05 UTC")
}

func iso(t time.Time) string { return t.UTC().Format(time.RFC3339) }

func tookText(d time.Duration) string {
	switch {
	case d < 0:
		return "–"
	case d < time.Second:
		return strconv.FormatInt(d.Milliseconds(), 10) + " ms"
	case d < time.Minute:
		return strconv.FormatFloat(d.Seconds(), 'f', 1, 64) + " s"
	case d < time.Hour && d%time.Minute == 0:
		return strconv.Itoa(int(d.Minutes())) + " min"
	case d%time.Hour == 0:
		return countText(int(d.Hours())) + " h"
	case d < time.Hour:
		return fmt.Sprintf("%d min %d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %d min", int(d.Hours()), int(d.Minutes())%60)
}

// ext returns the extension that represents a file in lists.
func ext(name string) string {
	e := strings.TrimPrefix(path.Ext(name), ".")
	if e == "" || len(e) > 4 {
		return "file"
	}
	return strings.ToLower(e)
}

func family(name string) string { return string(format.Parse(name).Family()) }

func percent(f float64) int { return int(100 * min(max(f, 0), 1)) }

func short(id string) string {
	if len(id) > 8 {
		return id[:8]
	}
	return id
}

func initial(name string) string {
	for _, r := range name {
		return string(r)
	}
	return "?"
}

var actionNames = map[string]string{
	"convert": "Convert", "compress": "Compress", "merge": "Merge", "zip": "Zip", "lock": "Lock", "unlock": "Unlock", "reset_password": "Change password",
}

func actionName(action string) string {
	if n, ok := actionNames[action]; ok {
		return n
	}
	n := strings.ReplaceAll(action, "_", " ")
	if n == "" {
		return "Operation"
	}
	return strings.ToUpper(n[:1]) + n[1:]
}

// opTitle returns the title of an operation.
func opTitle(op *status.Operation) string {
	var files []status.File
	for _, it := range op.Items {
		files = append(files, it.Inputs...)
	}
	switch len(files) {
	case 0:
		return actionName(op.Action)
	case 1:
		return actionName(op.Action) + " " + files[0].Name
	}
	return actionName(op.Action) + " " + plural(len(files), "file", "files")
}

// states are the words and icons of states and conditions.
var states = map[string]struct{ text, icon string }{
	"queued":    {"Queued", "clock"},
	"running":   {"Running", "play"},
	"waiting":   {"Waiting for a resource", "pause"},
	"completed": {"Completed", "check"},
	"warnings":  {"Completed with warnings", "alert"},
	"partial":   {"Partly failed", "half"},
	"failed":    {"Failed", "x"},
	"cancelled": {"Cancelled", "ban"},
	"pending":   {"Pending", "clock"},
	"delivered": {"Delivered", "check"},
}

func stateText(s any) string {
	t := fmt.Sprint(s)
	return cmp.Or(states[t].text, t)
}

func stateIcon(s any) string { return states[fmt.Sprint(s)].icon }

// dict returns a map of names and values, for templates with several arguments.
func dict(pairs ...any) (map[string]any, error) {
	m := make(map[string]any)
	for i := 0; i+1 < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, fmt.Errorf("%v is not a name", pairs[i])
		}
		m[name] = pairs[i+1]
	}
	return m, nil
}
