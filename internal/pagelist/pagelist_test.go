package pagelist_test

import (
	"errors"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/pagelist"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, in string
		total    int
		want     []int // from 0
		err      string
	}{
		{name: "all", in: "", total: 3, want: []int{0, 1, 2}},
		{name: "one", in: "2", total: 3, want: []int{1}},
		{name: "range", in: "2-3", total: 3, want: []int{1, 2}},
		{name: "to the end", in: "2-", total: 4, want: []int{1, 2, 3}},
		{name: "order is kept", in: "3,1", total: 3, want: []int{2, 0}},
		{name: "each once", in: "1-2,2,1-3", total: 3, want: []int{0, 1, 2}},
		{name: "beyond the end", in: "4", total: 3, err: "names page 4, but the document has 3 pages"},
		{name: "range beyond the end", in: "1-9", total: 1, err: "names page 9, but the document has 1 page"},
		{name: "backwards", in: "3-2", total: 3, err: "ends before it begins"},
		{name: "zero", in: "0", total: 3, err: "such as"},
		{name: "word", in: "x", total: 3, err: "such as"},
		{name: "empty part", in: "1,,2", total: 3, err: "such as"},
		{name: "last", in: "-1", total: 3, want: []int{2}},
		{name: "from the end", in: "-3,1--2", total: 4, want: []int{1, 0, 2}},
		{name: "last two", in: "-2-", total: 5, want: []int{3, 4}},
		{name: "between two from the end", in: "-3--2", total: 5, want: []int{2, 3}},
		{name: "before the begin", in: "-4", total: 3, err: "names page -4, but the document has 3 pages"},
		{name: "only a sign", in: "-", total: 3, err: "such as"},
		{name: "three signs", in: "1---2", total: 3, err: "such as"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			got, err := pagelist.Parse(tc.in, tc.total)
			if tc.err != "" {
				var p *fileops.ParamError
				if !errors.As(err, &p) || !strings.Contains(err.Error(), tc.err) || p.Param != "pages" {
					t.Fatalf("got %v, want a ParamError with %q", err, tc.err)
				}
				return
			}
			if err != nil || !slices.Equal(got, tc.want) {
				t.Fatalf("got %v, %v, want %v", got, err, tc.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"", "1", "1-3,5,9-", "00", "1-", "99999", "1,2,3-2", "-", ",", "1-2-3", "１"} {
		f.Add(s, 7)
	}
	pattern := regexp.MustCompile(`^(?:` + pagelist.Pattern + `)$`)
	f.Fuzz(func(t *testing.T, s string, total int) {
		total = 1 + (total%5000+5000)%5000
		got, err := pagelist.Parse(s, total)
		if err != nil {
			var p *fileops.ParamError
			if !errors.As(err, &p) {
				t.Fatalf("%q: error %v is no ParamError", s, err)
			}
			return
		}
		seen := make(map[int]bool)
		for _, n := range got {
			if n < 0 || n >= total || seen[n] {
				t.Fatalf("%q of %d: page %d is out of range or double", s, total, n)
			}
			seen[n] = true
		}
		if len(got) == 0 || s != "" && !pattern.MatchString(s) {
			t.Fatalf("%q is accepted, but does not match the pattern, or selects nothing", s)
		}
	})
}
