package auth_test

import (
	"crypto/sha1"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/internal/systest"
)

// listOf writes a list of passwords with the given end of lines.
func listOf(t *testing.T, end string, passwords ...string) string {
	t.Helper()
	var lines []string
	for i, p := range passwords {
		lines = append(lines, fmt.Sprintf("%X:%d", sha1.Sum([]byte(p)), i*i*i))
	}
	slices.Sort(lines)
	path := filepath.Join(t.TempDir(), "list")
	systest.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, end)), 0o600))
	return path
}

func TestPasswordList(t *testing.T) {
	t.Parallel()
	for _, n := range []int{1, 2, 3, 17, 1000} {
		var known []string
		for i := range n {
			known = append(known, fmt.Sprintf("password %d", i))
		}
		for _, end := range []string{"\n", "\r\n"} {
			l, err := auth.OpenPasswordList(listOf(t, end, known...))
			systest.NoError(t, err)
			for _, p := range known {
				if ok, err := l.Contains(p); !ok || err != nil {
					t.Fatalf("%d passwords: %q: %t, %v", n, p, ok, err)
				}
				if ok, err := l.Contains(p + "x"); ok || err != nil {
					t.Fatalf("%d passwords: %q: %t, %v", n, p+"x", ok, err)
				}
			}
			systest.NoError(t, l.Close())
		}
	}
	sorted := string(systest.ReadFile(t, listOf(t, "\n", "a", "b", "c", "d", "e")))
	lines := strings.Split(sorted, "\n")
	slices.Reverse(lines)
	for name, text := range map[string]string{
		"empty": "", "no hashes": "password\n123456\n", "not sorted": strings.Join(lines, "\n"), "long lines": strings.Repeat("A", 1000), "plain text": strings.Repeat("Z", 40) + "\n",
	} {
		path := filepath.Join(t.TempDir(), "list")
		systest.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		if _, err := auth.OpenPasswordList(path); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
	if _, err := auth.OpenPasswordList("missing"); err == nil {
		t.Error("a missing file is accepted")
	}
}

// A password of the list cannot be chosen.
func TestBreached(t *testing.T) {
	t.Parallel()
	l, err := auth.OpenPasswordList(listOf(t, "\n", "a", goodPassword, "b"))
	systest.NoError(t, err)
	t.Cleanup(func() { l.Close() })
	a := newAccounts(open(t, filepath.Join(t.TempDir(), "filewright.db")), auth.Config{Breached: l})
	acct, once, err := a.Create(t.Context(), auth.NewAccount{Name: "Ada"})
	systest.NoError(t, err)
	if _, err := a.ChangePassword(t.Context(), acct.ID, once, goodPassword, home); !errors.Is(err, auth.ErrBreached) {
		t.Errorf("a password of the list: %v", err)
	}
	if _, err := a.ChangePassword(t.Context(), acct.ID, once, goodPassword+"!", home); err != nil {
		t.Errorf("another password: %v", err)
	}
}
