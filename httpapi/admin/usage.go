package admin

import (
	"net/http"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
)

// dayForm is the format of days.
const dayForm = "2006-01-02"

// usage answers GET …/usage.
func (a *api) usage(_ http.ResponseWriter, r *http.Request, acct *account.Account) (any, error) {
	from, to, err := span(r, time.Now())
	if err != nil {
		return nil, err
	}
	body := usageBody{From: from.Format(dayForm), To: to.Format(dayForm), Days: []dayBody{}}
	index := make(map[time.Time]int)
	for d := from; !d.After(to); d = d.AddDate(0, 0, 1) {
		index[d] = len(body.Days)
		body.Days = append(body.Days, dayBody{Day: d.Format(dayForm), Actions: []actionBody{}})
	}
	days, err := a.cfg.Accounts.Days(r.Context(), acct.ID, from, to)
	if err != nil {
		return nil, err
	}
	for _, d := range days {
		b := &body.Days[index[d.Day]]
		b.UploadedBytes, b.Operations = d.Bytes, d.Operations
	}
	actions, err := a.cfg.Accounts.Usage(r.Context(), acct.ID, from, to)
	if err != nil {
		return nil, err
	}
	for _, u := range actions {
		b := &body.Days[index[u.Day]]
		b.Actions = append(b.Actions, actionBody{u.Action, u.Items, u.Failed, u.BytesIn, u.BytesOut, u.Work.Seconds()})
	}
	used, err := a.cfg.Accounts.Used(r.Context(), acct.ID)
	if err != nil {
		return nil, err
	}
	body.Used = describeUsed(used)
	return body, nil
}

// maxDays is the longest period of a usage request, in days.
const maxDays = 400

// span returns the requested days, by default the last month.
func span(r *http.Request, now time.Time) (from, to time.Time, err error) {
	to = now.UTC().Truncate(24 * time.Hour)
	q := r.URL.Query()
	for _, p := range []struct {
		name string
		day  *time.Time
	}{{"to", &to}, {"from", &from}} {
		if text := q.Get(p.name); text != "" {
			if *p.day, err = time.Parse(dayForm, text); err != nil {
				return from, to, httpapi.Invalid(p.name, "%s must be a day such as 2026-01-31", p.name)
			}
		}
	}
	if q.Get("from") == "" {
		from = to.AddDate(0, 0, -29)
	}
	if to.Before(from) || to.Sub(from) >= maxDays*24*time.Hour {
		return from, to, httpapi.Invalid("from", "from must not be after to, and they must be at most %d days apart", maxDays)
	}
	return from, to, nil
}
