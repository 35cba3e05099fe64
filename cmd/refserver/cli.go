package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
)

// A cli is the environment of a command.
type cli struct {
	in       io.Reader
	out, err io.Writer
	env      func(string) (string, bool)
	sets     map[*cobra.Command]*flagSet
	subs     map[*cobra.Command][]*cobra.Command // in the order of the help
	deeds    []*cobra.Command                    // the commands of actions, in the order of the help
}

// A usageError reports an invalid command line.
type usageError struct{ error }

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.error }

// errPrinted reports an invalid command line whose details are already printed.
var errPrinted = errors.New("invalid command line")

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
	return runWith(ctx, args, os.Stdin, out, errw, env)
}

// runWith is run with another standard input.
func runWith(ctx context.Context, args []string, in io.Reader, out, errw io.Writer, env func(string) (string, bool)) int {
	c := &cli{in: in, out: out, err: errw, env: env, sets: make(map[*cobra.Command]*flagSet), subs: make(map[*cobra.Command][]*cobra.Command)}
	root := c.root()
	root.SetArgs(withCommand(args))
	cmd, err := root.ExecuteContextC(ctx)
	var exit *exitError
	var usage usageError
	switch {
	case err == nil:
		return 0
	case errors.Is(err, errPrinted):
		return 2
	case errors.As(err, &usage):
		fmt.Fprintf(errw, "%s: %v\nSee %s --help.\n", cmd.CommandPath(), err, cmd.CommandPath())
		return 2
	}
	fmt.Fprintf(errw, "refserver: %v\n", err)
	if errors.As(err, &exit) {
		return exit.code
	}
	return 1
}

// withCommand inserts the default command.
func withCommand(args []string) []string {
	switch {
	case len(args) == 0, strings.HasPrefix(args[0], "-") && !slices.Contains([]string{"-h", "--help", "--version"}, args[0]):
		return append([]string{"serve"}, args...)
	case args[0] == "--version":
		return []string{"version"}
	}
	return args
}

// manual is the description of refserver in its manual page.
const manual = `refserver is the Filewright server. It also works on local files without one. Without a command it starts the server.

Each flag can be set in the environment: --data-dir as FILEWRIGHT_DATA_DIR. The flags of serve can be set in a YAML file (--config).

# EXIT STATUS

* **0**: success.
* **1**: failure. run: at least one file failed.
* **2**: invalid command line.
* **3**: check and conformance only: the test could not be completed.
`

// root returns the command that has all others.
func (c *cli) root() *cobra.Command {
	root := &cobra.Command{
		Use: "refserver", Short: "convert, compress, merge and protect files, as a server or without one", Long: manual, Args: cobra.ArbitraryArgs, SilenceErrors: true, SilenceUsage: true,
		RunE: func(cmd *cobra.Command, args []string) error {
			return usageError{c.unknownCommand(cmd, args[0])}
		},
	}
	root.SetOut(c.out)
	root.SetErr(c.err)
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) { c.help(cmd) })
	root.SetHelpCommand(&cobra.Command{
		Use: "help [COMMAND]", Short: "describe a command", Hidden: true,
		RunE: func(_ *cobra.Command, args []string) error {
			cmd, rest, err := root.Find(args)
			if err != nil || len(rest) > 0 {
				return usageError{fmt.Errorf("unknown command %q", strings.Join(args, " "))}
			}
			c.help(cmd)
			return nil
		},
	})
	c.add(root,
		serve(c), showConfig(c), keys(c), accounts(c), backup(c), check(c), formats(c), health(c), doctor(c), checkConformance(c), batchRun(c), agents(c),
		writeDocs(c), writeManual(c, func() *cobra.Command { return root }),
		versionCommand(c),
	)
	for _, d := range deeds {
		cmd := d.command(c)
		root.AddCommand(cmd)
		c.deeds = append(c.deeds, cmd)
	}
	return root
}

// unknownCommand returns an error that names similar commands.
func (c *cli) unknownCommand(cmd *cobra.Command, name string) error {
	var names []string
	for _, sub := range c.subs[cmd] {
		names = append(names, sub.Name())
	}
	if !cmd.HasParent() {
		for _, d := range deeds {
			names = append(names, d.action)
		}
	}
	if similar := cmd.SuggestionsFor(name); len(similar) > 0 {
		return fmt.Errorf("unknown command %q; did you mean %s?", name, strings.Join(similar, " or "))
	}
	return fmt.Errorf("unknown command %q; commands are %s", name, strings.Join(names, ", "))
}

// A spec describes a command.
type spec struct {
	use      string // name and arguments: "backup DIR"
	short    string // for the list of commands
	long     string
	min, max int // number of arguments; max -1: any number
	flags    func(*flagSet)
	run      func(ctx context.Context, args []string) error
}

// command returns a command. Its flags are set when run is called.
func (c *cli) command(s spec) *cobra.Command {
	cmd := &cobra.Command{Use: s.use, Short: s.short, Long: s.long}
	fs := newFlagSet(cmd.Flags())
	c.sets[cmd] = fs
	if s.flags != nil {
		s.flags(fs)
	}
	for name, values := range fs.choices {
		_ = cmd.RegisterFlagCompletionFunc(name, cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)) // fails only for an unknown flag
	}
	cmd.Args = func(_ *cobra.Command, args []string) error {
		if n := len(args); n < s.min || n > s.max && s.max >= 0 {
			_, expected, _ := strings.Cut(s.use, " ")
			switch {
			case s.max == 0:
				return usageError{fmt.Errorf("unexpected argument %q", args[0])}
			case n < s.min:
				return usageError{fmt.Errorf("missing arguments: expected %s", expected)}
			}
			return usageError{fmt.Errorf("too many arguments: expected %s", expected)}
		}
		return nil
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := fs.load(c.env); err != nil {
			return usageError{err}
		}
		return s.run(cmd.Context(), args)
	}
	return cmd
}

// group returns a command that only has subcommands.
func (c *cli) group(name, short, long string, sub ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: name, Short: short, Long: long, Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case len(args) == 0:
				c.help(cmd)
				return errPrinted
			case args[0] == "help":
				c.help(cmd)
				return nil
			}
			return usageError{c.unknownCommand(cmd, args[0])}
		},
	}
	c.add(cmd, sub...)
	return cmd
}

func (c *cli) add(cmd *cobra.Command, sub ...*cobra.Command) {
	cmd.AddCommand(sub...)
	c.subs[cmd] = sub
}

// help prints the help of a command.
func (c *cli) help(cmd *cobra.Command) {
	fs := c.sets[cmd]
	switch {
	case !cmd.HasParent():
		fmt.Fprint(c.out, "Filewright converts, compresses, merges, zips, locks and unlocks files.\n\nUsage:\n  refserver [command] [flags]\n\nCommands:\n")
		c.list(c.subs[cmd])
		fmt.Fprint(c.out, "\nActions on files, without a server:\n")
		c.list(c.deeds)
		fmt.Fprint(c.out, `
serve is the default command. "refserver COMMAND --help" lists the flags of a command.
Each flag can also be set in the environment, --data-dir as FILEWRIGHT_DATA_DIR, and
those of serve in a YAML file: refserver serve --config FILE.
`)
	case fs != nil:
		use := strings.SplitN(cmd.Use+" ", " ", 2)[1]
		fmt.Fprintf(c.out, "Usage: %s\n\n%s\n", strings.TrimSpace(cmd.CommandPath()+" [flags] "+use), cmp.Or(cmd.Long, cmd.Short))
		fs.help(c.out)
	case len(c.subs[cmd]) > 0:
		var names []string
		for _, sub := range c.subs[cmd] {
			names = append(names, sub.Name())
		}
		fmt.Fprintf(c.out, "Usage: %s %s [flags]\n\n", cmd.CommandPath(), strings.Join(names, "|"))
		c.list(c.subs[cmd])
		fmt.Fprintf(c.out, "\n%sEach command takes --data-dir or --database-url,\nand works while the server runs.\n", cmd.Long)
	default: // cobra's own
		fmt.Fprintf(c.out, "%s\n\n%s", cmd.Long, cmd.UsageString())
	}
}

// printJSON prints a value with --json, for programs.
func (c *cli) printJSON(v any) error {
	e := json.NewEncoder(c.out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// list prints commands.
func (c *cli) list(commands []*cobra.Command) {
	wide := 21
	for _, sub := range commands {
		wide = max(wide, len(sub.Use))
	}
	for _, sub := range commands {
		fmt.Fprintf(c.out, "  %-*s %s\n", wide, sub.Use, sub.Short)
	}
}
