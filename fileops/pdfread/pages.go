package pdfread

import (
	"strconv"
	"strings"

	"github.com/filewright/filewright/fileops"
)

// pagesPattern is the form of the parameter pages: page numbers and ranges. A
// range without an end extends to the last page.
const pagesPattern = `[1-9][0-9]{0,4}(-([1-9][0-9]{0,4})?)?(,[1-9][0-9]{0,4}(-([1-9][0-9]{0,4})?)?)*`

// choose returns the requested pages of a document.
func (e *Engine) choose(job *fileops.Job, total int) ([]int, error) {
	pages, err := parsePages(job.Params.Get("pages"), total)
	if err == nil && len(pages) > e.pages {
		return nil, fileops.Fail(fileops.ErrLimit, nil, "there are %s to convert, more than the limit of %d; choose some of them with the parameter pages", count(len(pages), "page"), e.pages)
	}
	return pages, err
}

// parsePages returns the pages, counted from 0, that s selects from total, in
// the order of s and without duplicates. "" selects all.
func parsePages(s string, total int) ([]int, error) {
	bad := func(reason string) error {
		return &fileops.ParamError{Param: "pages", Reason: reason}
	}
	var out []int
	if s == "" {
		for i := range total {
			out = append(out, i)
		}
		return out, nil
	}
	seen := make([]bool, total)
	for part := range strings.SplitSeq(s, ",") {
		from, to, isRange := strings.Cut(part, "-")
		a, ok := parsePage(from)
		if !ok {
			return nil, bad("must be page numbers and ranges such as 1-3,5,9-")
		}
		b := a
		if isRange {
			b = total
			if to != "" {
				if b, ok = parsePage(to); !ok {
					return nil, bad("must be page numbers and ranges such as 1-3,5,9-")
				}
			}
		}
		if a > total || b > total {
			return nil, bad("names page " + strconv.Itoa(max(a, b)) + ", but the document has " + count(total, "page"))
		}
		if a > b {
			return nil, bad("has the range " + part + ", which ends before it begins")
		}
		for i := a - 1; i < b; i++ {
			if !seen[i] {
				seen[i] = true
				out = append(out, i)
			}
		}
	}
	return out, nil
}

// parsePage parses a page number: digits without a leading 0.
func parsePage(s string) (int, bool) {
	if s == "" || len(s) > 5 || s[0] == '0' || strings.Trim(s, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return strconv.Itoa(n) + " " + what + "s"
}
