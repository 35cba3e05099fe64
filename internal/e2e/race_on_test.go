//go:build race

package e2e

// buildFlags makes the server detect data races if the tests do.
var buildFlags = []string{"-race"}
