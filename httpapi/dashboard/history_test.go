package dashboard_test

import (
	"archive/zip"
	"bytes"
	"encoding/csv"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/status"
)

// finish ends the only item of an operation.
func (s *site) finish(id string, o status.Outcome) {
	s.t.Helper()
	c, err := s.store.Claim(s.t.Context(), status.Ref{Operation: id}, "w", time.Hour)
	systest.NoError(s.t, err)
	_, err = s.store.Finish(s.t.Context(), c, o)
	systest.NoError(s.t, err)
}

// The list of operations can be searched, and says the truth about each.
func TestOperationsFilters(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v, acct := s.member("ada")
	warned := s.submit(acct.ID, "a", "sales <2026>.docx")
	failed := s.submit(acct.ID, "b", "budget.xlsx")
	cancelled := s.submit(acct.ID, "c", "=cmd.pdf")
	s.submit(acct.ID, "d", "open.txt")
	s.finish(warned, status.Outcome{Warnings: []status.Warning{{Code: "fonts_substituted", Message: "a font is missing"}}, Engine: "qpdf 11", Node: "host/1"})
	s.finish(failed, status.Outcome{Error: &status.Error{Code: "corrupt_input", Message: "the file is damaged"}})
	_, err := s.store.Cancel(t.Context(), acct.ID, cancelled)
	systest.NoError(t, err)
	today := time.Now().UTC().Format(time.DateOnly)
	for query, want := range map[string][]string{
		"":                                 {"sales", "budget", "cmd", "open", "Completed with warnings", "Cancelled", "Queued"},
		"?q=SALES":                         {"sales"},
		"?q=" + url.QueryEscape("<2026>"):  {"sales", `value="&lt;2026&gt;"`},
		"?state=failed":                    {"budget"},
		"?state=cancelled":                 {"cmd"},
		"?state=warnings&action=zip":       {"sales"},
		"?status=failed":                   {"budget"},
		"?state=queued&from=" + today:      {"open"},
		"?to=2020-01-01":                   {"No matching operations"},
		"?action=convert":                  {"No matching operations"},
		"?q=nothing&state=nonsense&from=x": {"No matching operations"},
		"?account=all&q=open":              {"open"}, // only administrators see other accounts
	} {
		p := v.get("/dashboard/operations" + query)
		_, list, _ := strings.Cut(p.text, `<form class="filters"`)
		_, rows, _ := strings.Cut(list, `id="list"`)
		for _, text := range want {
			if !strings.Contains(list, text) {
				t.Errorf("%q: the list has no %q", query, text)
			}
		}
		for _, name := range []string{"sales", "budget", "cmd", "open.txt"} {
			short := strings.TrimSuffix(name, ".txt")
			if strings.Contains(rows, name) && !slices.Contains(want, short) {
				t.Errorf("%q: the list has %s", query, name)
			}
		}
	}

	// The file can be opened in a spreadsheet without running anything.
	p := v.get("/dashboard/operations.csv?sort=oldest")
	rows, err := csv.NewReader(strings.NewReader(p.text)).ReadAll()
	if err != nil || len(rows) != 5 || !strings.HasPrefix(p.header.Get("Content-Type"), "text/csv") || !strings.Contains(p.header.Get("Content-Disposition"), "operations.csv") {
		t.Fatalf("export: %v, %v\n%s", err, p.header, p.text)
	}
	at := func(row int, column string) string { return rows[row][slices.Index(rows[0], column)] }
	if at(1, "state") != "warnings" || at(1, "warnings") != "fonts_substituted" || at(2, "errors") != "corrupt_input" || at(3, "names") != "'=cmd.pdf" || at(4, "state") != "queued" || at(4, "finished") != "" {
		t.Errorf("export: %q", rows)
	}

	// Administrators see the operations of others without the names of files, and cannot change them.
	admin := s.visitor()
	admin.login("admin", s.admin)
	p = admin.get("/dashboard/operations?account=all")
	if !strings.Contains(p.text, warned) || strings.Contains(p.text, "budget") || strings.Contains(p.text, `name="id"`) || !strings.Contains(p.text, "ada") {
		t.Error("administrators do not see others' operations, or too much of them")
	}
	if p := admin.get("/dashboard/operations.csv?account=" + acct.ID); strings.Contains(p.text, "budget") || !strings.Contains(p.text, acct.ID) {
		t.Errorf("export of administrators: %s", p.text)
	}
	admin.post("/dashboard/operations/selected", url.Values{"what": {"delete"}, "id": {failed}})
	if p := v.get("/dashboard/operations/" + failed); p.status != 200 {
		t.Errorf("an administrator deleted the operation of another account: %d", p.status)
	}

	// Several operations at once.
	p = v.post("/dashboard/operations/selected", url.Values{"what": {"delete"}, "id": {failed, cancelled, "op-d"}, "back": {"operations?state=failed"}})
	if p.path != "/dashboard/operations" || !strings.Contains(p.text, "2 operations deleted. 1 operation was left out: only finished operations can be deleted.") {
		t.Errorf("bulk delete: %s\n%s", p.path, p.text)
	}
	if p := v.get("/dashboard/operations/" + failed); p.status != 404 {
		t.Errorf("a deleted operation: %d", p.status)
	}
	for form, want := range map[string]string{
		"what=cancel&id=op-d":                      "1 operation cancelled.",
		"what=delete":                              "No operation is selected.",
		"what=download&id=op-d":                    "have no results",
		"what=again&id=" + warned:                  "0 operations started again. 1 operation was left out",
		"what=cancel&id=op-d&back=//evil.example/": "1 operation cancelled.",
	} {
		values, err := url.ParseQuery(form)
		systest.NoError(t, err)
		if p := v.post("/dashboard/operations/selected", values); p.path != "/dashboard/operations" || !strings.Contains(p.text, want) {
			t.Errorf("%s: %s does not say %q", form, p.path, want)
		}
	}
	if p := v.post("/dashboard/operations/selected", url.Values{"what": {"burn"}, "id": {warned}}); p.status != 404 {
		t.Errorf("an unknown action: %d", p.status)
	}
}

// An operation says what was asked, where it ran and what happened. It can run again and be
// deleted with its results.
func TestOperationRequest(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v, acct := s.member("ada")
	_, key, err := s.accounts.Keys().Create(t.Context(), auth.NewKey{Name: "build server", Account: acct.ID})
	systest.NoError(t, err)
	input, result := v.send("a.txt", "hello"), v.send("a.zip", "PK")
	op, err := s.service.Operations().Submit(t.Context(), status.Operation{
		ID: "op-1", Owner: acct.ID, Action: "zip", Created: time.Now(), Origin: status.Origin{Key: key.ID, Request: "req-7", Client: "<b>curl</b>/8.5.0", Address: "192.0.2.7"},
		Asked: []status.Asked{{Parameters: map[string]any{"level": "store"}}},
		Items: []status.Item{{Queue: "archive", Inputs: []status.File{{Key: input, Name: "a.txt", Size: 5}}}},
	})
	systest.NoError(t, err)
	if p := v.post("/dashboard/operations/op-1/delete", nil); p.status != 409 {
		t.Errorf("deleting what runs: %d", p.status)
	}
	s.finish(op.ID, status.Outcome{Results: []status.File{{Key: result, Name: "a.zip", Size: 2}}, Engine: "archiver 3", Node: "host/1", Log: []status.LogLine{{Time: time.Now(), Level: "warn", Text: "archive entries <left> out links=2"}}})
	page := v.get("/dashboard/operations/op-1").text
	for _, want := range []string{"<code>level</code>", "<dd>store</dd>", "build server", "req-7", "<dt>Client</dt><dd class=\"break\" title=\"&lt;b&gt;curl&lt;/b&gt;/8.5.0\">&lt;b&gt;curl&lt;/b&gt;/8.5.0</dd>", "<dd class=\"break\">192.0.2.7</dd>", "archiver 3",
		"submitted request=req-7 key=&#34;build server&#34; client=&lt;b&gt;curl&lt;/b&gt;/8.5.0 address=192.0.2.7", "started engine=&#34;archiver 3&#34;", "WARN  archive entries &lt;left&gt; out links=2", "completed results=1", "finished state=completed",
		`data-copy="op-1"`, "Run again with changes", `action="/dashboard/operations/op-1/again"`} {
		if !strings.Contains(page, want) {
			t.Errorf("the page has no %q\n%s", want, page)
		}
	}
	if strings.Contains(page, "host/1") {
		t.Error("members see the names of nodes")
	}
	if p := v.get("/dashboard/try?from=op-1"); !strings.Contains(p.text, input) || !strings.Contains(p.text, "&#34;level&#34;") {
		t.Errorf("the form to run again with changes: %s", p.text)
	}
	p := v.post("/dashboard/operations/op-1/again", nil)
	again := strings.TrimPrefix(p.path, "/dashboard/operations/")
	if p.status != 200 || again == "op-1" || !strings.Contains(p.text, "Started again") || !strings.Contains(p.text, "<dd>store</dd>") {
		t.Errorf("running again: %d %s\n%s", p.status, p.path, p.text[max(0, strings.Index(p.text, "<h1")):])
	}
	p = v.post("/dashboard/operations/selected", url.Values{"what": {"download"}, "id": {"op-1", again}})
	z, err := zip.NewReader(bytes.NewReader([]byte(p.text)), int64(len(p.text)))
	if err != nil || len(z.File) != 1 || z.File[0].Name != "a.zip" {
		t.Errorf("ZIP of results: %v, %q", err, p.text)
	}
	eve, _ := s.member("eve")
	for _, path := range []string{"op-1/delete", "op-1/again"} {
		if p := eve.post("/dashboard/operations/"+path, nil); p.status != 404 {
			t.Errorf("eve posts to %s: %d", path, p.status)
		}
	}
	if p := eve.get("/dashboard/try?from=op-1"); strings.Contains(p.text, input) {
		t.Error("eve sees ada's file")
	}
	if p := v.post("/dashboard/operations/op-1/delete", nil); p.path != "/dashboard/operations" || !strings.Contains(p.text, "deleted") {
		t.Errorf("deleting: %s", p.path)
	}
	if p := v.get("/v1/download/" + result); p.status != 404 && p.status != 410 {
		t.Errorf("the result of a deleted operation: %d", p.status)
	}

	// Secrets are neither stored nor repeated.
	secret, err := s.service.Operations().Submit(t.Context(), status.Operation{
		ID: "op-2", Owner: acct.ID, Action: "zip", Created: time.Now(), Asked: []status.Asked{{Secret: []string{"password"}}},
		Items: []status.Item{{Queue: "archive", Inputs: []status.File{{Key: input, Name: "a.txt", Size: 5}}}},
	})
	systest.NoError(t, err)
	if p := v.get("/dashboard/operations/" + secret.ID); !strings.Contains(p.text, "secret, not stored") || strings.Contains(p.text, "op-2/again") {
		t.Errorf("a secret parameter: %s", p.text)
	}
	if p := v.post("/dashboard/operations/op-2/again", nil); p.status != 409 || !strings.Contains(p.text, "Cannot run again") {
		t.Errorf("running again without the secret: %d", p.status)
	}
}

// The list has any order, in pages, and the address has it. Administrators see the operations of all
// accounts only by time.
func TestOperationsOrder(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v, acct := s.member("ada")
	names := []string{"b.pdf", "C.pdf", "a.pdf"}
	for i, name := range names {
		_, err := s.service.Operations().Submit(t.Context(), status.Operation{
			ID: fmt.Sprint("op-", i), Owner: acct.ID, Action: "zip", Created: time.Now().Add(time.Duration(i) * time.Second),
			Items: []status.Item{{Queue: "archive", Inputs: []status.File{{Key: "k", Name: name, Size: int64(100 - i)}}}},
		})
		systest.NoError(t, err)
	}
	s.finish("op-2", status.Outcome{})
	order := func(v *visitor, query string) (list string) {
		for _, part := range strings.Split(v.get("/dashboard/operations"+query).text, `data-operation="op-`)[1:] {
			list += part[:1]
		}
		return list
	}
	for sort, want := range map[string]string{
		"": "210", "oldest": "012", "name": "201", "name-desc": "102", "largest": "012", "smallest": "210", "shortest": "201", "longest": "102", "nonsense": "210",
	} {
		if got := order(v, "?sort="+sort); got != want {
			t.Errorf("in the order %q: %s, want %s", sort, got, want)
		}
	}
	p := v.get("/dashboard/operations?sort=largest&q=pdf")
	for _, want := range []string{
		`aria-sort="descending"><a class="sort" href="/dashboard/operations?q=pdf&amp;sort=smallest">Size`, `href="/dashboard/operations?q=pdf&amp;sort=name">Operation`,
		`href="/dashboard/operations?q=pdf">Started`, `<option value="largest" selected>`, `operations.csv?q=pdf&amp;sort=largest`,
	} {
		if !strings.Contains(p.text, want) {
			t.Errorf("the list has no %s", want)
		}
	}
	admin := s.visitor()
	admin.login("admin", s.admin)
	for query, want := range map[string]string{
		"?account=all&sort=largest": "210", "?account=all&sort=oldest": "012", "?sort=largest&account=" + acct.ID: "012", "?sort=name&account=" + acct.ID: "210",
	} {
		if got := order(admin, query); got != want {
			t.Errorf("%s: %s, want %s", query, got, want)
		}
	}
	if p := admin.get("/dashboard/operations?account=all"); strings.Contains(p.text, "aria-sort") {
		t.Error("the operations of all accounts can be sorted")
	}
}

// A page is small however many operations there are, and pages follow each other without gaps.
func TestOperationsPages(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	v, acct := s.member("ada")
	for i := range 120 {
		s.submit(acct.ID, fmt.Sprintf("k%03d", i), fmt.Sprintf("%03d %s.pdf", i, strings.Repeat("long name ", 10)))
	}
	seen, path := 0, "/dashboard/operations?sort=oldest&q=long"
	for path != "" {
		p := v.get(path)
		if n := len(p.text); n > 120_000 {
			t.Errorf("%s has %d bytes", path, n)
		}
		for strings.Contains(p.text, fmt.Sprintf("Zip %03d ", seen)) {
			seen++
		}
		_, rest, ok := strings.Cut(p.text, `<a class="button compact" href="`)
		for path = ""; ok; _, rest, ok = strings.Cut(rest, `<a class="button compact" href="`) {
			if link, _, _ := strings.Cut(rest, `"`); strings.Contains(link, "after=") {
				path = strings.ReplaceAll(link, "&amp;", "&")
			}
		}
	}
	if seen != 120 {
		t.Errorf("the pages have %d operations of 120", seen)
	}
	if p := v.get("/dashboard/operations?after=gone"); p.status != 200 || !strings.Contains(p.text, "Next page") {
		t.Errorf("after an operation that is gone: %d", p.status)
	}
}
