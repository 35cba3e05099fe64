package dashboard

import (
	"bytes"
	"cmp"
	"encoding/csv"
	"fmt"
	"io"
	"math"
	"net/http"
	"slices"
	"strconv"
	"time"

	"github.com/filewright/filewright/httpapi/account"
)

type usagePage struct {
	Days    int
	Choices []int
	Quotas  []quota
	Reset   time.Time
	Charts  []*chart
	Actions []actionUse
	Total   actionUse
	Groups  []usageGroup
}

// A usageGroup is the use by key, format or error in the shown period.
type usageGroup struct {
	Kind          account.UsageKind
	Title, Column string
	Rows          []actionUse
	More          int // rows that are not shown
}

// usageGroups are the groups of the page, in their order. maxGroupRows bounds each.
var usageGroups = []usageGroup{
	{Kind: account.UsageByKey, Title: "By API key", Column: "Key"},
	{Kind: account.UsageByFormat, Title: "By input format", Column: "Format"},
	{Kind: account.UsageByError, Title: "By error", Column: "Error"},
}

const maxGroupRows = 20

// An actionUse is the use of an action in the shown period.
type actionUse struct {
	Action   string
	Name     string // for people; only of a group
	Items    int
	Failed   int
	In, Out  int64
	Work     time.Duration
	Share    int // percent of all items
	Averages time.Duration
}

// FailureRate returns the share of failed items.
func (a actionUse) FailureRate() string {
	switch rate := share(int64(a.Failed), int64(a.Items)); {
	case a.Failed > 0 && rate == 0:
		return "< 1 %"
	default:
		return strconv.Itoa(rate) + " %"
	}
}

func (d *Dashboard) usage(v *visit) error {
	b := usagePage{Days: 30, Choices: []int{7, 30, 90}}
	if n, err := strconv.Atoi(v.r.URL.Query().Get("days")); err == nil && slices.Contains(b.Choices, n) {
		b.Days = n
	}
	u, err := d.used(v.r.Context(), v.who)
	if err != nil {
		return err
	}
	b.Quotas, b.Reset = u.Quotas(), u.Reset
	today := time.Now().UTC().Truncate(24 * time.Hour)
	from := today.AddDate(0, 0, 1-b.Days)
	all, err := d.cfg.Accounts.Usage(v.r.Context(), v.owner(), from, today)
	if err != nil {
		return err
	}
	b.Actions, b.Total = byAction(all)
	b.Charts = charts(all, from, b.Days)
	if b.Groups, err = d.groups(v, from, today); err != nil {
		return err
	}
	return d.render(v, http.StatusOK, page{Template: "usage", Title: "Usage", Nav: "usage", Body: b})
}

// groups returns the use of the visitor's account by key, format and error.
func (d *Dashboard) groups(v *visit, from, to time.Time) (list []usageGroup, err error) {
	for _, g := range usageGroups {
		all, err := d.cfg.Accounts.UsageBy(v.r.Context(), v.owner(), g.Kind, from, to)
		if err != nil {
			return nil, err
		}
		for i := range all {
			all[i].Action = all[i].Group
		}
		g.Rows, _ = byAction(all)
		g.More = max(0, len(g.Rows)-maxGroupRows)
		g.Rows = g.Rows[:len(g.Rows)-g.More]
		names := make(map[string]string)
		if g.Kind == account.UsageByKey && len(g.Rows) > 0 {
			keys, err := d.cfg.Accounts.Keys().List(v.r.Context(), v.owner())
			if err != nil {
				return nil, err
			}
			for _, k := range keys {
				names[k.ID] = k.Name
			}
		}
		for i := range g.Rows {
			g.Rows[i].Name = groupName(g.Kind, g.Rows[i].Action, names)
		}
		list = append(list, g)
	}
	return list, nil
}

// groupName returns a group for people. names are those of keys.
func groupName(kind account.UsageKind, value string, names map[string]string) string {
	switch {
	case kind == account.UsageByKey && value == "":
		return "Dashboard"
	case kind == account.UsageByKey:
		return cmp.Or(names[value], short(value))
	}
	return cmp.Or(value, "Other")
}

// exportUsage answers GET …/usage.csv with the usage by day and action, or by day and the group in the
// query.
func (d *Dashboard) exportUsage(v *visit) error {
	days, err := strconv.Atoi(v.r.URL.Query().Get("days"))
	if err != nil || days < 1 || days > 400 {
		days = 90
	}
	today := time.Now().UTC().Truncate(24 * time.Hour)
	owner := v.owner()
	if of := v.r.URL.Query().Get("account"); of != "" && v.who.Administrator {
		owner = of
	}
	ctx, from, column := v.r.Context(), today.AddDate(0, 0, 1-days), "action"
	var all []account.Usage
	if i := slices.IndexFunc(usageGroups, func(g usageGroup) bool { return string(g.Kind) == v.r.URL.Query().Get("by") }); i >= 0 {
		column = string(usageGroups[i].Kind)
		all, err = d.cfg.Accounts.UsageBy(ctx, owner, usageGroups[i].Kind, from, today)
	} else {
		all, err = d.cfg.Accounts.Usage(ctx, owner, from, today)
	}
	if err != nil {
		return err
	}
	var b bytes.Buffer
	if err := writeUsage(&b, column, all); err != nil {
		return err
	}
	h := v.w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="usage.csv"`)
	v.w.Write(b.Bytes())
	return nil
}

// writeUsage writes usage as CSV.
func writeUsage(out io.Writer, column string, all []account.Usage) error {
	rows := [][]string{{"day", column, "files", "failed", "bytes_in", "bytes_out", "engine_seconds"}}
	for _, u := range all {
		rows = append(rows, []string{u.Day.Format(time.DateOnly), cell(u.Action + u.Group), strconv.Itoa(u.Items), strconv.Itoa(u.Failed),
			strconv.FormatInt(u.BytesIn, 10), strconv.FormatInt(u.BytesOut, 10), strconv.FormatFloat(u.Work.Seconds(), 'f', 3, 64)})
	}
	return csv.NewWriter(out).WriteAll(rows)
}

func byAction(all []account.Usage) (list []actionUse, total actionUse) {
	for _, u := range all {
		i := slices.IndexFunc(list, func(a actionUse) bool { return a.Action == u.Action })
		if i < 0 {
			i = len(list)
			list = append(list, actionUse{Action: u.Action})
		}
		for _, a := range []*actionUse{&list[i], &total} {
			a.Items += u.Items
			a.Failed += u.Failed
			a.In += u.BytesIn
			a.Out += u.BytesOut
			a.Work += u.Work
		}
	}
	for i := range list {
		a := &list[i]
		a.Share = share(int64(a.Items), int64(total.Items))
		a.Averages = a.Work / time.Duration(max(1, a.Items))
	}
	slices.SortStableFunc(list, func(x, y actionUse) int { return y.Items - x.Items })
	return list, total
}

// charts draws the daily use for a number of days, starting with from.
func charts(all []account.Usage, from time.Time, days int) []*chart {
	type sums struct{ good, bad, in, out, work float64 }
	sum := make([]sums, days)
	for _, u := range all {
		if i := int(u.Day.Sub(from) / (24 * time.Hour)); i >= 0 && i < days {
			sum[i].good += float64(u.Items - u.Failed)
			sum[i].bad += float64(u.Failed)
			sum[i].in += float64(u.BytesIn)
			sum[i].out += float64(u.BytesOut)
			sum[i].work += u.Work.Seconds()
		}
	}
	values := func(f func(sums) []float64) (out [][]float64) {
		for _, s := range sum {
			out = append(out, f(s))
		}
		return out
	}
	whole := func(v float64) string { return countText(int64(math.Round(v))) }
	size := func(v float64) string { return bytesText(int64(v)) }
	work := func(v float64) string { return tookText(time.Duration(v * float64(time.Second))) }
	return []*chart{
		draw("files", "Files processed", from, []series{{"Completed", "a"}, {"Failed", "b"}}, whole, values(func(s sums) []float64 { return []float64{s.good, s.bad} })),
		draw("traffic", "Data in and out", from, []series{{"In", "a"}, {"Out", "c"}}, size, values(func(s sums) []float64 { return []float64{s.in, s.out} })),
		draw("work", "Engine time", from, []series{{"Time", "a"}}, work, values(func(s sums) []float64 { return []float64{s.work} })),
	}
}

// A chart has a bar for each day, with stacked parts for the series. The server draws it. The same
// data is also a table.
type chart struct {
	ID, Title string
	Series    []series
	Empty     bool
	Ticks     []string // labels of the vertical axis, from the top
	Width     int
	Bars      []bar
	Days      []string // labels of the horizontal axis
	Rows      []chartRow
}

type series struct{ Name, Class string }

// A bar is a day. Its coordinates are those of the drawing, which is 100 high.
type bar struct {
	Title   string
	X, Slot string
	Parts   []barPart
}

type barPart struct{ Class, X, Y, W, H string }

type chartRow struct {
	Day    string
	Values []string
}

const slot = 10 // width of a day

func draw(id, title string, from time.Time, of []series, text func(float64) string, values [][]float64) *chart {
	c := &chart{ID: "chart-" + id, Title: title, Series: of, Width: slot * len(values)}
	top := 0.0
	for _, day := range values {
		sum := 0.0
		for _, v := range day {
			sum += v
		}
		top = max(top, sum)
	}
	if c.Empty = top == 0; c.Empty {
		return c
	}
	top = roundUp(top, of[0].Name == "Time")
	c.Ticks = []string{text(top), text(top / 2), "0"}
	point := func(v float64) string { return strconv.FormatFloat(v, 'f', 2, 64) }
	gap := 2.0
	if len(values) > 40 {
		gap = 1
	}
	for i, day := range values {
		date := from.AddDate(0, 0, i)
		b := bar{Title: date.Format("2 Jan"), X: point(float64(slot * i)), Slot: point(slot)}
		r := chartRow{Day: date.Format("Mon, 2 Jan 2006")}
		y, any := 100.0, false
		for k, v := range day {
			r.Values = append(r.Values, text(v))
			b.Title += fmt.Sprintf(", %s %s", text(v), of[k].Name)
			if v > 0 {
				any = true
				h := max(100*v/top, 1)
				y -= h
				b.Parts = append(b.Parts, barPart{of[k].Class, point(float64(slot*i) + gap), point(y), point(slot - 2*gap), point(h)})
			}
		}
		c.Bars = append(c.Bars, b)
		if any {
			c.Rows = append(c.Rows, r)
		}
	}
	slices.Reverse(c.Rows)
	for _, i := range []int{0, len(values) / 2, len(values) - 1} {
		c.Days = append(c.Days, from.AddDate(0, 0, i).Format("2 Jan"))
	}
	return c
}

// roundUp returns a round number that is not below v. For seconds it prefers whole minutes or
// hours.
func roundUp(v float64, seconds bool) float64 {
	if v <= 2 {
		return 2
	}
	scale := 1.0
	switch {
	case seconds && v > 7200:
		scale = 3600
	case seconds && v > 120:
		scale = 60
	}
	v /= scale
	unit := math.Pow(10, math.Floor(math.Log10(v)))
	for _, f := range []float64{1, 2, 3, 4, 6, 8, 10} {
		if f*unit >= v {
			return f * unit * scale
		}
	}
	return v * scale
}
