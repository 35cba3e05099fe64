// Command refserver is the Filewright server. It wires the packages of this module together and
// keeps its state in one directory.
//
//	refserver [serve] [flags]      start the server
//	refserver keys create|list|revoke
//	refserver accounts list|create|password|disable|enable
//	refserver backup DIR           copy everything, also while the server runs
//	refserver check                compare records and files, also while the server runs
//	refserver formats              what can be done with which files here
//	refserver health               whether a server on this machine is ready
//	refserver doctor               engines and what is missing
//	refserver convert IN OUT       one conversion, without a server
//
// Every command has a --help flag. Every flag can also be set in the environment: --data-dir as
// FILEWRIGHT_DATA_DIR.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/filewright/filewright/fileops/standard"
)

func main() {
	standard.Main()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop) // a second signal ends the process at once
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.LookupEnv)
	stop()
	os.Exit(code)
}

// A command is one subcommand.
type command struct {
	name    string
	args    string // arguments, for the usage text
	summary string
	run     func(ctx context.Context, c *cli, args []string) error
}

// commands returns all subcommands; the first is the default.
func commands() []command {
	return []command{
		{"serve", "", "start the server (this is what happens without a command)", serve},
		{"keys", "", "create, list and revoke API keys", keys},
		{"accounts", "", "list, create and disable accounts, and give out passwords", accounts},
		{"backup", "", "copy the data directory, also while the server runs", backup},
		{"check", "", "compare records and files, also while the server runs", check},
		{"formats", "", "show what can be done with which files on this host", formats},
		{"health", "", "ask a server on this machine whether it is ready", health},
		{"doctor", "", "look for the engines and say what is missing", doctor},
		{"convert", "", "convert one file without a server", convert},
		{"version", "", "print the version", func(_ context.Context, c *cli, _ []string) error {
			fmt.Fprintln(c.out, versionLine())
			return nil
		}},
	}
}

// A cli is the environment of a command.
type cli struct {
	out, err io.Writer
	env      func(string) (string, bool)
}

// errUsage reports an invalid command line. The details are already printed.
var errUsage = errors.New("usage")

// An exitError ends the program with its own exit code.
type exitError struct {
	code int
	err  error
}

// Error implements error.
func (e *exitError) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *exitError) Unwrap() error { return e.err }

// run runs the command line and returns the exit code: 0, 1 after a failure, 2 for an invalid
// command line, or that of an exitError.
func run(ctx context.Context, args []string, out, errw io.Writer, env func(string) (string, bool)) int {
	c := &cli{out: out, err: errw, env: env}
	cmds := commands()
	cmd := cmds[0]
	switch {
	case len(args) > 1 && args[0] == "help":
		args = append(args[1:], "--help")
	case len(args) > 0 && (args[0] == "help" || args[0] == "--help" || args[0] == "-h"):
		c.usage(out, cmds)
		return 0
	case len(args) > 0 && args[0] == "--version":
		fmt.Fprintln(out, versionLine())
		return 0
	}
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		found := false
		for _, k := range cmds {
			if k.name == args[0] {
				cmd, found = k, true
			}
		}
		if !found {
			fmt.Fprintf(errw, "refserver: there is no command %q; refserver --help lists them\n", args[0])
			return 2
		}
		args = args[1:]
	}
	var exit *exitError
	switch err := cmd.run(ctx, c, args); {
	case errors.As(err, &exit):
		fmt.Fprintf(errw, "refserver: %v\n", err)
		return exit.code
	case err == nil, errors.Is(err, flag.ErrHelp):
		return 0
	case errors.Is(err, errUsage):
		return 2
	default:
		fmt.Fprintf(errw, "refserver: %v\n", err)
		return 1
	}
}

func (c *cli) usage(w io.Writer, cmds []command) {
	fmt.Fprint(w, `Filewright converts, compresses, merges, zips, locks and unlocks files.

Usage:
  refserver [command] [flags]

Commands:
`)
	for _, k := range cmds {
		fmt.Fprintf(w, "  %-9s %s\n", k.name, k.summary)
	}
	fmt.Fprint(w, `
"refserver COMMAND --help" lists the flags of a command. Each flag can also be
set in the environment: --data-dir as FILEWRIGHT_DATA_DIR.
`)
}

// dispatch runs the subcommand that args[0] names. about is the start of the last paragraph of the
// usage text.
func (c *cli) dispatch(ctx context.Context, name string, cmds []command, about string, args []string) error {
	var names []string
	for _, k := range cmds {
		if len(args) > 0 && args[0] == k.name {
			return k.run(ctx, c, args[1:])
		}
		names = append(names, k.name)
	}
	if len(args) > 0 && !slices.Contains([]string{"", "help", "-h", "--help"}, args[0]) {
		fmt.Fprintf(c.err, "refserver %s: there is no command %q; there are %s\n", name, args[0], strings.Join(names, ", "))
		return errUsage
	}
	fmt.Fprintf(c.out, "Usage: refserver %s %s [flags]\n\n", name, strings.Join(names, "|"))
	for _, k := range cmds {
		fmt.Fprintf(c.out, "  %-21s %s\n", k.name+" "+k.args, k.summary)
	}
	fmt.Fprintf(c.out, "\n%sAll take --data-dir or --database-url, and work while the server runs.\n", about)
	if len(args) == 0 || args[0] == "" {
		return errUsage
	}
	return nil
}
