package dashboard

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/status"
)

const (
	operationsPerPage = 50
	exportPage        = 500 // rows of a CSV file that are read at a time
	exportPause       = 30 * time.Second
)

// allAccounts is the value of the filter for the operations of all accounts.
const allAccounts = "all"

// A historyForm holds the filters of the list of operations, as the address has them.
type historyForm struct {
	Text, Action, State, Key, From, To, Account, Sort string
}

var historyFields = []string{"q", "action", "state", "key", "from", "to", "account", "sort"}

func (f *historyForm) field(name string) *string {
	return map[string]*string{"q": &f.Text, "action": &f.Action, "state": &f.State, "key": &f.Key, "from": &f.From, "to": &f.To, "account": &f.Account, "sort": &f.Sort}[name]
}

// A sorting is an order of the list of operations.
type sorting struct {
	Value, Text string
	order       status.Order
	ascending   bool
	column      string
}

// sorts are the orders of the list. The first of each column is that of the first click on it.
var sorts = []sorting{
	{"", "Newest first", status.ByTime, false, "started"},
	{"oldest", "Oldest first", status.ByTime, true, "started"},
	{"name", "Name, A to Z", status.ByName, true, "name"},
	{"name-desc", "Name, Z to A", status.ByName, false, "name"},
	{"largest", "Largest first", status.BySize, false, "size"},
	{"smallest", "Smallest first", status.BySize, true, "size"},
	{"longest", "Longest first", status.ByDuration, false, "duration"},
	{"shortest", "Shortest first", status.ByDuration, true, "duration"},
}

// A columnHead is the head of a column by which the list can be sorted.
type columnHead struct {
	Address   string // of the list in another order
	Direction string // aria-sort: "ascending", "descending" or "" if another column decides
}

// heads returns the heads of the columns by name.
func (f historyForm) heads() map[string]columnHead {
	heads := make(map[string]columnHead)
	for i := 0; i < len(sorts); i += 2 {
		h, to := columnHead{}, sorts[i].Value
		for _, s := range sorts[i : i+2] {
			if s.Value != f.Sort {
				continue
			}
			if h.Direction = "descending"; s.ascending {
				h.Direction = "ascending"
			}
			if s.Value == to {
				to = sorts[i+1].Value
			}
		}
		f := f
		f.Sort = to
		h.Address = "operations" + f.query()
		heads[sorts[i].column] = h
	}
	return heads
}

// readHistory reads the filters of a request. It drops those that the visitor may not use or that
// are invalid.
func readHistory(v *visit) (f historyForm, q status.HistoryQuery) {
	values := v.r.URL.Query()
	for _, name := range historyFields {
		*f.field(name) = strings.TrimSpace(values.Get(name))
	}
	if old := values.Get("status"); f.State == "" {
		f.State = old // of links to earlier versions
	}
	if !slices.Contains(status.Conditions(), status.Condition(f.State)) {
		f.State = ""
	}
	if !v.who.Administrator || f.Account == v.who.ID {
		f.Account = ""
	}
	if runes := []rune(f.Text); len(runes) > 200 {
		f.Text = string(runes[:200])
	}
	q = status.HistoryQuery{
		Owner: v.owner(), Text: f.Text, Action: f.Action, Key: f.Key, Condition: status.Condition(f.State),
		After: values.Get("after"), Limit: operationsPerPage,
	}
	switch f.Account {
	case "":
	case allAccounts:
		q.Owner = ""
	default:
		q.Owner = f.Account
	}
	if q.Owner == "" && f.Sort != "oldest" || q.Owner != v.owner() && strings.HasPrefix(f.Sort, "name") { // names of others are private
		f.Sort = ""
	}
	at := slices.IndexFunc(sorts, func(s sorting) bool { return s.Value == f.Sort })
	at = max(0, at)
	f.Sort, q.Order, q.Oldest = sorts[at].Value, sorts[at].order, sorts[at].ascending
	q.From, q.To = days(&f.From, &f.To)
	return f, q
}

// days returns the time from the start of the first day to the end of the last one, of days such as
// 2026-01-31. It empties another text and returns a zero time for it.
func days(first, last *string) (from, to time.Time) {
	day := func(text *string) time.Time {
		t, err := time.Parse(time.DateOnly, *text)
		if err != nil {
			*text = ""
			return time.Time{}
		}
		return t
	}
	from = day(first)
	if to = day(last); !to.IsZero() {
		to = to.AddDate(0, 0, 1)
	}
	return from, to
}

// query returns the address of the filters, with further pairs of names and values.
func (f historyForm) query(more ...string) string {
	values := url.Values{}
	for _, name := range historyFields {
		if v := *f.field(name); v != "" {
			values.Set(name, v)
		}
	}
	for i := 0; i+1 < len(more); i += 2 {
		values.Set(more[i], more[i+1])
	}
	if len(values) == 0 {
		return ""
	}
	return "?" + values.Encode()
}

// Filtered reports whether the form hides any operation.
func (f historyForm) Filtered() bool { f.Sort, f.Account = "", ""; return f != historyForm{} }

// More reports whether one of the filters that are not always visible is set.
func (f historyForm) More() bool {
	return f.Key != "" || f.From != "" || f.To != "" || f.Account != "" || f.Sort != ""
}

// A choiceOption is an option of a filter.
type choiceOption struct{ Value, Text string }

type operationsPage struct {
	Form     historyForm
	States   []status.Condition
	Actions  []string
	Sorts    []sorting
	Heads    map[string]columnHead // nil: the list has one order
	Keys     []choiceOption
	Accounts []choiceOption // for administrators
	Rows     []*operationRow
	Names    map[string]string // of accounts, by ID; nil: the list has only the visitor's operations
	Older    string            // address of the next page
	Scanned  bool              // there may be more matches on the next page
	First    bool              // this is the first page
	Export   string
	Searches bool // false: the store can neither search nor delete
	Back     string
}

// Newest returns the address of the first page.
func (b operationsPage) Newest() string { return "operations" + b.Form.query() }

func (d *Dashboard) operations(v *visit) error {
	f, q := readHistory(v)
	ctx := v.r.Context()
	b := operationsPage{Form: f, States: status.Conditions(), Actions: d.cfg.Service.Capabilities().Registry().Names(), Sorts: sorts, First: q.After == "", Searches: true,
		Export: "operations.csv" + f.query(), Back: strings.TrimPrefix(v.r.URL.RequestURI(), Path)}
	found, err := d.cfg.Service.Operations().History(ctx, q)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		b.Searches, b.Form = false, historyForm{}
		if found, err = d.listed(v, q.After); err != nil {
			return err
		}
	case errors.Is(err, fs.ErrNotExist): // the last operation of the page before was deleted
		return d.redirect(v, b.Newest())
	case err != nil:
		return err
	}
	for _, op := range found.Operations {
		r := row(op)
		r.Foreign = op.Owner != v.owner()
		b.Rows = append(b.Rows, r)
	}
	if b.Searches && q.Owner != "" {
		b.Heads = b.Form.heads()
	}
	if found.Next != "" {
		b.Older, b.Scanned = "operations"+f.query("after", found.Next), found.Scanned
	}
	keys, err := d.cfg.Accounts.Keys().List(ctx, v.owner())
	if err != nil {
		return err
	}
	for _, k := range keys {
		b.Keys = append(b.Keys, choiceOption{k.ID, k.Name})
	}
	if v.who.Administrator {
		accounts, err := d.cfg.Accounts.List(ctx)
		if err != nil {
			return err
		}
		b.Names = make(map[string]string)
		for _, a := range accounts {
			b.Names[a.ID] = accountName(a)
			if a.ID != v.owner() {
				b.Accounts = append(b.Accounts, choiceOption{a.ID, accountName(a)})
			}
		}
		if f.Account == "" {
			b.Names = nil
		}
	}
	return d.render(v, http.StatusOK, page{Template: "operations", Title: "Operations", Nav: "operations", Body: b})
}

func accountName(a *account.Account) string {
	if a.Name == "" {
		return short(a.ID)
	}
	return a.Name
}

// listed returns a page of operations of a store that cannot search.
func (d *Dashboard) listed(v *visit, after string) (p status.HistoryPage, err error) {
	for op, err := range d.cfg.Service.Operations().List(v.r.Context(), status.Query{Owner: v.owner(), Before: after, Limit: operationsPerPage + 1}) {
		if err != nil {
			return p, err
		}
		if len(p.Operations) == operationsPerPage {
			p.Next = p.Operations[operationsPerPage-1].ID
			break
		}
		p.Operations = append(p.Operations, op)
	}
	return p, nil
}

// exportOperations answers GET …/operations.csv with the operations that the filters select. It
// writes while it reads, so the length of the list does not matter.
func (d *Dashboard) exportOperations(v *visit) error {
	f, q := readHistory(v)
	q.Limit = exportPage
	page, err := d.cfg.Service.Operations().History(v.r.Context(), q)
	if errors.Is(err, errors.ErrUnsupported) {
		return fs.ErrNotExist
	}
	if err != nil {
		return err
	}
	return sendCSV(v, "operations.csv", func(w *csv.Writer) error { return d.writeOperations(v, w, q, page, f.Account != "") })
}

// sendCSV answers with a file that write writes.
func sendCSV(v *visit, name string, write func(*csv.Writer) error) error {
	h := v.w.Header()
	h.Set("Content-Type", "text/csv; charset=utf-8")
	h.Set("Content-Disposition", `attachment; filename="`+name+`"`)
	if err := write(csv.NewWriter(v.w)); err != nil && v.r.Context().Err() == nil {
		panic(http.ErrAbortHandler) // so that the client does not take the file for complete
	}
	return nil
}

// writeOperations writes the operations that q selects as CSV, beginning with its first page.
func (d *Dashboard) writeOperations(v *visit, w *csv.Writer, q status.HistoryQuery, page status.HistoryPage, accounts bool) error {
	head := []string{"id", "created", "finished", "seconds", "state", "action", "key", "files", "failed", "bytes", "names", "errors", "warnings"}
	if accounts {
		head = append(head, "account")
	}
	read := true // page is the next one
	return writePages(v, w, head, func() (records [][]string, more bool, err error) {
		if !read {
			if page, err = d.cfg.Service.Operations().History(v.r.Context(), q); err != nil {
				return nil, false, err
			}
		}
		for _, op := range page.Operations {
			record := exportRecord(op, op.Owner == v.owner())
			if accounts {
				record = append(record, op.Owner)
			}
			records = append(records, record)
		}
		q.After, read = page.Next, false
		return records, page.Next != "", nil
	})
}

// writePages writes CSV page by page. next returns the records of the next page, and whether more
// follow. Each page has exportPause to reach the client.
func writePages(v *visit, w *csv.Writer, head []string, next func() (records [][]string, more bool, err error)) error {
	rc := http.NewResponseController(v.w)
	defer rc.SetWriteDeadline(time.Time{})
	if err := w.Write(head); err != nil {
		return err
	}
	for {
		records, more, err := next()
		if err != nil {
			return err
		}
		rc.SetWriteDeadline(time.Now().Add(exportPause))
		for _, record := range records {
			for i := range record {
				record[i] = cell(record[i])
			}
			if err := w.Write(record); err != nil {
				return err
			}
		}
		w.Flush()
		if w.Error() != nil || !more {
			return w.Error()
		}
		rc.Flush()
	}
}

// exportRecord returns the row of an operation. Administrators do not see the names of files of
// others.
func exportRecord(op *status.Operation, own bool) []string {
	r := row(op)
	var bytes int64
	var names, codes, warnings []string
	add := func(list *[]string, s string) {
		if !slices.Contains(*list, s) {
			*list = append(*list, s)
		}
	}
	for _, it := range op.Items {
		if it.Error != nil {
			add(&codes, it.Error.Code)
		}
		for _, one := range it.Warnings {
			add(&warnings, one.Code)
		}
	}
	for _, it := range r.Items {
		for _, f := range it.Inputs {
			bytes += f.Size
			if own {
				names = append(names, f.Name)
			}
		}
	}
	finished, seconds := "", ""
	if !op.Finished.IsZero() {
		finished, seconds = iso(op.Finished), strconv.FormatFloat(op.Finished.Sub(op.Created).Seconds(), 'f', 3, 64)
	}
	return []string{op.ID, iso(op.Created), finished, seconds, string(op.Condition()), r.Action, op.Origin.Key, strconv.Itoa(r.Files()), strconv.Itoa(r.Failed),
		strconv.FormatInt(bytes, 10), strings.Join(names, "\n"), strings.Join(codes, " "), strings.Join(warnings, " ")}
}

// cell returns a text for a CSV file that spreadsheets do not take for a formula.
func cell(text string) string {
	if text != "" && strings.ContainsRune("=+-@\t\r\n", rune(text[0])) {
		return "'" + text
	}
	return text
}

// bulkLimit is the number of operations that one form can change.
const bulkLimit = 200

// bulk applies an action to the chosen operations.
func (d *Dashboard) bulk(v *visit) error {
	ids, what := v.r.Form["id"], v.r.FormValue("what")
	back := next(v.r.FormValue("back"))
	if back == "" {
		back = "operations"
	}
	if len(ids) == 0 {
		return d.done(v, "bulk-none", back)
	}
	ids = ids[:min(len(ids), bulkLimit)]
	var one func(id string) error
	switch what {
	case "cancel":
		one = func(id string) error { return d.changeOperation(v, account.AuditOperationCancel, id) }
	case "delete":
		one = func(id string) error { return d.changeOperation(v, account.AuditOperationDelete, id) }
	case "again":
		one = func(id string) error { _, err := d.runAgain(v, id); return err }
	case "download":
		err := d.cfg.Service.ResultsOf(v.w, v.r, v.owner(), ids)
		if p := httpapi.ProblemOf(err); err != nil && p.Status == http.StatusGone {
			return d.done(v, "bulk-empty", back)
		}
		return err
	default:
		return fs.ErrNotExist
	}
	good, bad := 0, 0
	for _, id := range ids {
		err := one(id)
		switch {
		case err == nil:
			good++
		case errors.Is(err, status.ErrNotFinal), errors.Is(err, fs.ErrNotExist), httpapi.ProblemOf(err).Status < 500:
			bad++
		default:
			return err
		}
	}
	return d.done(v, fmt.Sprintf("bulk-%s.%d.%d", what, good, bad), back)
}
