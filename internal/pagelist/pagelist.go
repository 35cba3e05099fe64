// Package pagelist reads lists of pages, such as "1-3,5,-1".
//
//	pages, err := pagelist.Parse("1-3,5,-1", 9) // 0, 1, 2, 4, 8
//
// Pages count from 1. Negative numbers count from the end: -1 is the last page. A
// range without an end extends to the last page.
package pagelist

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/filewright/filewright/fileops"
)

const (
	number = `-?[1-9][0-9]{0,4}`
	part   = number + `(-(` + number + `)?)?`

	// Pattern is the regular expression of a list.
	Pattern = part + `(,` + part + `)*`

	// Groups is the regular expression of lists that are separated by semicolons.
	Groups = Pattern + `(;` + Pattern + `)*`
)

// Parse returns the pages, counted from 0, that list selects from total, in the order
// of list and each once. "" selects all. Errors are of type *[fileops.ParamError] for
// the parameter pages.
func Parse(list string, total int) ([]int, error) {
	var out []int
	if list == "" {
		for i := range total {
			out = append(out, i)
		}
		return out, nil
	}
	seen := make([]bool, total)
	for part := range strings.SplitSeq(list, ",") {
		first, last, err := parsePart(part, total)
		if err != nil {
			return nil, err
		}
		for i := first; i <= last; i++ {
			if !seen[i] {
				seen[i] = true
				out = append(out, i)
			}
		}
	}
	return out, nil
}

// parsePart returns the first and the last page of a range, counted from 0.
func parsePart(part string, total int) (first, last int, err error) {
	end := len(part)
	if i := strings.IndexByte(part[min(1, len(part)):], '-'); i >= 0 {
		end = i + 1 // the first character may be the sign of a number
	}
	if first, err = parsePage(part[:end], total); err != nil {
		return 0, 0, err
	}
	switch rest := part[end:]; rest {
	case "":
		return first, first, nil
	case "-":
		return first, total - 1, nil
	default:
		if last, err = parsePage(rest[1:], total); err != nil {
			return 0, 0, err
		}
		if first > last {
			return 0, 0, bad("has the range %s, which ends before it begins", part)
		}
		return first, last, nil
	}
}

// parsePage returns a page, counted from 0.
func parsePage(s string, total int) (int, error) {
	digits := strings.TrimPrefix(s, "-")
	if digits == "" || len(digits) > 5 || digits[0] == '0' || strings.Trim(digits, "0123456789") != "" {
		return 0, bad("must be page numbers and ranges such as 1-3,5,-1")
	}
	n, err := strconv.Atoi(s)
	switch {
	case err != nil:
		return 0, bad("must be page numbers and ranges such as 1-3,5,-1")
	case n > total || -n > total:
		return 0, bad("names page %d, but the document has %s", n, Count(total))
	case n < 0:
		return total + n, nil
	}
	return n - 1, nil
}

func bad(format string, args ...any) error {
	return &fileops.ParamError{Param: "pages", Reason: fmt.Sprintf(format, args...)}
}

// Count returns a number of pages in words: "1 page", "3 pages".
func Count(n int) string {
	if n == 1 {
		return "1 page"
	}
	return strconv.Itoa(n) + " pages"
}
