package auth

import (
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// The most common passwords are refused, in upper and lower case.
func TestCommonPasswords(t *testing.T) {
	t.Parallel()
	for _, p := range []string{"1234567890", "Qwertyuiop", "PASSWORD123", "aaaaaaaaaa", "AaAaAaAaAa", "1212121212", "filewright1"} {
		if !weak("Ada", "", p) {
			t.Errorf("%q is accepted", p)
		}
	}
	for _, p := range []string{"correct horse battery", "k3v7m-zq2d5-yhw6t-cn4xr", "1234567890 and more", "ertyuiopas", "1234567890\n1q2w3e4r5t"} {
		if common(p) {
			t.Errorf("%q is refused as common", p)
		}
	}
	lines := strings.Split(strings.TrimSuffix(commonPasswords, "\n"), "\n")
	if len(lines) < 300 || !slices.IsSorted(lines) || len(slices.Compact(slices.Clone(lines))) != len(lines) {
		t.Errorf("the list has %d lines; they must be sorted, and each be there once", len(lines))
	}
	for _, l := range lines {
		if utf8.RuneCountInString(l) < minPassword || l != strings.ToLower(l) || strings.TrimSpace(l) != l {
			t.Errorf("%q is too short to be accepted, or not in lower case", l)
		}
	}
}
