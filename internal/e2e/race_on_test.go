//go:build race

package e2e

// buildFlags makes the server detect data races if the tests do. As in the Makefile, SQLite does
// without.
var buildFlags = []string{"-race", "-gcflags=modernc.org/...=-race=false"}
