package zipstream

import (
	"fmt"
	"path"
	"strings"
)

// A Namer makes names unique, also on file systems that ignore case: the second report.pdf
// becomes "report (2).pdf". The zero value is ready for use.
type Namer struct {
	taken map[string]bool
	next  map[string]int // the next number to try, by name
}

// Unique returns name, or a variant of it that was not returned before.
func (n *Namer) Unique(name string) string {
	if n.taken == nil {
		n.taken, n.next = make(map[string]bool), make(map[string]int)
	}
	name = strings.Map(func(r rune) rune {
		if r == '/' || r == '\\' {
			return '_'
		}
		return r
	}, name)
	if name == "" || name == "." || name == ".." {
		name = "file"
	}
	wanted := strings.ToLower(name)
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	if stem == "" { // .profile
		stem, ext = name, ""
	}
	one := name
	for i := max(2, n.next[wanted]); n.taken[strings.ToLower(one)]; i++ {
		one = fmt.Sprintf("%s (%d)%s", stem, i, ext)
		n.next[wanted] = i + 1
	}
	n.taken[strings.ToLower(one)] = true
	return one
}
