package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/filewright/filewright/capability"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/internal/batch"
)

// probe looks for the engines and leaves no engine running.
func probe(ctx context.Context, c *cli, e engineConfig) *standard.Set {
	e.Log = slog.New(slog.NewTextHandler(c.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return standard.Probe(ctx, e.options())
}

// formats prints the capability matrix of this host.
func formats(c *cli) *cobra.Command {
	var e engineConfig
	return c.command(spec{
		use: "formats [EXTENSION]", short: "list the formats and actions that this host supports",
		long:  "Lists the formats that this host can read, with their actions and output formats. With\nan EXTENSION, only that format.",
		max:   1,
		flags: e.register,
		run: func(ctx context.Context, args []string) error {
			return c.printFormats(ctx, e, strings.Join(args, ""))
		},
	})
}

// printFormats prints one format, or all if ext is empty.
func (c *cli) printFormats(ctx context.Context, e engineConfig, ext string) error {
	if ext != "" && !format.Parse(ext).Known() {
		return fmt.Errorf("unknown extension %q; refserver formats lists all", ext)
	}
	set := probe(ctx, c, e)
	defer set.Close()
	reg, err := fileops.NewRegistry(set.Actions()...)
	if err != nil {
		return err
	}
	m := capability.New(reg, nil)
	byFormat := make(map[format.Format]map[string]string) // format → action → values
	for entry := range m.Entries() {
		if ext != "" && entry.Format != format.Parse(ext) && entry.Format != format.Any {
			continue
		}
		actions := byFormat[entry.Format]
		if actions == nil {
			actions = make(map[string]string)
			byFormat[entry.Format] = actions
		}
		actions[entry.Action] = ""
		if a := m.Query(capability.Query{Ext: string(entry.Format), Action: entry.Action}); a.Parameters != nil {
			if to, ok := a.Parameters["convert_to"].([]string); ok {
				actions[entry.Action] = strings.Join(to, " ")
			}
		}
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FORMAT\tACTIONS\tCONVERTS TO")
	for _, f := range slices.Sorted(maps.Keys(byFormat)) {
		name := string(f)
		if f == format.Any {
			name = "any"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", name, strings.Join(slices.Sorted(maps.Keys(byFormat[f])), " "), byFormat[f]["convert"])
	}
	if err := w.Flush(); err != nil {
		return err
	}
	for _, e := range set.Dependencies() {
		if e.Err != nil {
			fmt.Fprintf(c.err, "%s is not available; actions that require it are left out. %s\n", e.Name, e.Hint)
		}
	}
	return nil
}

// doctor reports which engines work and how to install the others. It fails if an engine is
// missing, for use in scripts.
func doctor(c *cli) *cobra.Command {
	var e engineConfig
	return c.command(spec{
		use: "doctor", short: "check the engines, and show how to install missing ones",
		long:  "Starts each engine once, and shows which engines work and how to install the others.\nThe exit code is 1 if an engine is missing.",
		flags: e.register,
		run:   func(ctx context.Context, _ []string) error { return c.examine(ctx, e) },
	})
}

func (c *cli) examine(ctx context.Context, e engineConfig) error {
	set := probe(ctx, c, e)
	defer set.Close()
	var packages []string
	missing := 0
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	for _, e := range set.Dependencies() {
		mark, what := "ok", e.Version
		if e.Path != "" {
			what += "\t" + e.Path
		} else {
			what += "\t(built in)"
		}
		if e.Err != nil {
			missing++
			mark, what = "MISSING", "\t"+e.Purpose
			packages = append(packages, e.Packages...)
		}
		fmt.Fprintf(w, "%s\t%s\t%s\n", mark, e.Name, what)
	}
	if err := w.Flush(); err != nil {
		return err
	}
	confined := set.Sandbox()
	fmt.Fprintf(c.out, "\nSandbox: %s (tier %d of 4).\n", cmp.Or(strings.Join(confined.Layers(), ", "), "nothing"), len(confined.Layers()))
	for _, why := range confined.Missing() {
		fmt.Fprintf(c.out, "  without %s\n", why)
	}
	for _, e := range set.Dependencies() {
		if len(e.Recommended) > 0 {
			fmt.Fprintf(c.out, "\nRecommended for %s:\n  apt-get install --no-install-recommends %s\n", e.Name, strings.Join(e.Recommended, " "))
		}
	}
	if missing == 0 {
		fmt.Fprintln(c.out, "\nAll engines work.")
		return nil
	}
	slices.Sort(packages)
	if packages = slices.Compact(packages); len(packages) > 0 {
		fmt.Fprintf(c.out, "\nTo install the missing engines on Debian or Ubuntu:\n  apt-get install --no-install-recommends %s\n", strings.Join(packages, " "))
	}
	for _, e := range set.Dependencies() {
		if e.Err != nil {
			fmt.Fprintf(c.err, "%s: %v\n", e.Name, e.Err)
		}
	}
	return fmt.Errorf("%d engines are missing", missing)
}

// convert runs one conversion without a server.
func convert(c *cli) *cobra.Command {
	var e engineConfig
	var params paramFlags
	var force bool
	return c.command(spec{
		use: "convert IN OUT", short: "convert one file, without a server",
		long: "Converts one file to the format that the extension of OUT names. Several results, such\nas the pages of a PDF as pictures, are numbered. Existing files are kept unless --force\nis given.",
		min:  2,
		max:  2,
		flags: func(fs *flagSet) {
			fs.Var(&params, "param", "a parameter of the conversion as `NAME=VALUE`; may be repeated")
			fs.BoolVar(&force, "force", false, "replace existing files")
			e.register(fs)
		},
		run: func(ctx context.Context, args []string) error {
			return c.convert(ctx, e, args[0], args[1], params, force)
		},
	})
}

func (c *cli) convert(ctx context.Context, e engineConfig, in, out string, params paramFlags, force bool) error {
	// Report path errors before the slow probe of the engines.
	if err := checkPaths(in, out, force); err != nil {
		return err
	}
	set := probe(ctx, c, e)
	defer set.Close()
	reg, err := fileops.NewRegistry(set.Actions()...)
	if err != nil {
		return err
	}
	call := fileops.Args{"convert_to": string(format.Parse(out))}
	maps.Copy(call, fileops.Args(params))
	action, p, err := reg.Resolve("convert", []format.Format{format.Parse(in)}, call)
	var param *fileops.ParamError
	if errors.As(err, &param) && param.Param != "convert_to" {
		return usageError{err}
	}
	if err != nil {
		return err
	}
	// In the target's directory, so that results need no copy.
	dir, err := os.MkdirTemp(filepath.Dir(out), ".refserver-")
	if err != nil {
		return fmt.Errorf("cannot write to %q: %w", filepath.Dir(out), withoutPath(err))
	}
	defer os.RemoveAll(dir)
	var results []string
	sink := fileops.SinkFunc(func(ctx context.Context, f *fileops.File) error {
		results = append(results, filepath.Join(dir, f.Name()))
		return fileops.ToDir(dir).Put(ctx, f)
	})
	r := fileops.Runner{
		TempDir: dir, MaxOutput: e.output,
		Warn: func(w fileops.Warning) {
			fmt.Fprintf(c.err, "refserver convert: warning: %s (%s)\n", w.Message, w.Code)
		},
	}
	if err := r.Do(ctx, action, p, sink, fileops.Path(in)); err != nil {
		return errors.New(fileops.Message(err))
	}
	to := make([]string, len(results))
	for i := range results {
		if to[i] = out; len(results) > 1 {
			ext := filepath.Ext(out)
			to[i] = fmt.Sprintf("%s-%03d%s", strings.TrimSuffix(out, ext), i+1, ext)
		}
		if err := checkTarget(to[i], force); err != nil {
			return err
		}
	}
	for i, path := range results {
		if err := batch.Move(path, to[i], force); err != nil {
			var exists *batch.ExistsError
			if errors.As(err, &exists) { // created in the meantime
				return cmp.Or(checkTarget(to[i], force), err)
			}
			return err
		}
		fmt.Fprintln(c.out, to[i])
	}
	return nil
}

// checkPaths returns an error for invalid paths of a conversion.
func checkPaths(in, out string, force bool) error {
	src, err := os.Stat(in)
	switch {
	case err != nil:
		return fmt.Errorf("cannot read %q: %w", in, withoutPath(err))
	case !src.Mode().IsRegular():
		return fmt.Errorf("cannot read %q: not a regular file", in)
	}
	if dst, err := os.Stat(out); err == nil && os.SameFile(src, dst) {
		return fmt.Errorf("%q and %q are the same file", in, out)
	}
	switch st, err := os.Stat(filepath.Dir(out)); {
	case err != nil:
		return fmt.Errorf("cannot write to %q: %w", filepath.Dir(out), withoutPath(err))
	case !st.IsDir():
		return fmt.Errorf("cannot write to %q: not a directory", filepath.Dir(out))
	}
	return checkTarget(out, force)
}

// checkTarget returns an error if no result may be written to path.
func checkTarget(path string, force bool) error {
	switch st, err := os.Lstat(path); {
	case errors.Is(err, iofs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("cannot write to %q: %w", path, withoutPath(err))
	case st.IsDir():
		return fmt.Errorf("%q is a directory", path)
	case !force:
		return fmt.Errorf("%q exists; use --force to replace it", path)
	}
	return nil
}

// withoutPath returns an operating system error without the call and the path.
func withoutPath(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// paramFlags collects --param NAME=VALUE.
type paramFlags fileops.Args

// String implements pflag.Value.
func (p *paramFlags) String() string { return "" }

// Type implements pflag.Value.
func (p *paramFlags) Type() string { return "" }

// Set implements pflag.Value.
func (p *paramFlags) Set(v string) error {
	name, value, ok := strings.Cut(v, "=")
	if !ok || name == "" {
		return errors.New("must be NAME=VALUE")
	}
	if *p == nil {
		*p = make(paramFlags)
	}
	(*p)[name] = fileops.Text(value)
	return nil
}
