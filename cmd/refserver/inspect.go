package main

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/filewright/filewright/capability"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/standard"
)

// probe looks for the engines and leaves no engine running.
func probe(ctx context.Context, c *cli, e engineConfig) *standard.Set {
	e.Log = slog.New(slog.NewTextHandler(c.err, &slog.HandlerOptions{Level: slog.LevelWarn}))
	return standard.Probe(ctx, e.options())
}

// probeToWork is probe for commands that process files. It keeps compiled code for the next command,
// unless --cache-dir does.
func probeToWork(ctx context.Context, c *cli, e engineConfig) *standard.Set {
	if e.CacheDir == "" {
		e.CacheDir = userCache()
	}
	return probe(ctx, c, e)
}

// userCache returns a directory of the user for compiled code, or "" if there is none that can be
// written to.
func userCache() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	dir = filepath.Join(dir, "filewright")
	if os.MkdirAll(dir, 0o700) != nil {
		return ""
	}
	f, err := os.CreateTemp(dir, "writable-")
	if err != nil {
		return ""
	}
	f.Close()
	os.Remove(f.Name())
	return dir
}

// formats prints the capability matrix of this host.
func formats(c *cli) *cobra.Command {
	var e engineConfig
	var asJSON bool
	return c.command(spec{
		use: "formats [EXTENSION]", short: "list the formats and actions that this host supports",
		long: "Lists the formats that this host can read, with their actions and output formats. With\nan EXTENSION, only that format.",
		max:  1,
		flags: func(fs *flagSet) {
			fs.BoolVar(&asJSON, "json", false, "print one JSON array of objects with format, actions and convert_to")
			e.register(fs)
		},
		run: func(ctx context.Context, args []string) error {
			return c.printFormats(ctx, e, strings.Join(args, ""), asJSON)
		},
	})
}

// printFormats prints one format, or all if ext is empty.
func (c *cli) printFormats(ctx context.Context, e engineConfig, ext string, asJSON bool) error {
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
	type row struct {
		Format    string   `json:"format"`
		Actions   []string `json:"actions"`
		ConvertTo []string `json:"convert_to"` // of convert
	}
	byFormat := make(map[format.Format]*row)
	for entry := range m.Entries() {
		if ext != "" && entry.Format != format.Parse(ext) && entry.Format != format.Any {
			continue
		}
		r := byFormat[entry.Format]
		if r == nil {
			r = &row{Format: string(entry.Format), ConvertTo: []string{}}
			if entry.Format == format.Any {
				r.Format = "any"
			}
			byFormat[entry.Format] = r
		}
		r.Actions = append(r.Actions, entry.Action)
		if a := m.Query(capability.Query{Ext: string(entry.Format), Action: entry.Action}); entry.Action == "convert" && a.Parameters != nil {
			if to, ok := a.Parameters["convert_to"].([]string); ok {
				r.ConvertTo = to
			}
		}
	}
	rows := make([]*row, 0, len(byFormat))
	for _, f := range slices.Sorted(maps.Keys(byFormat)) {
		r := byFormat[f]
		slices.Sort(r.Actions)
		r.Actions = slices.Compact(r.Actions)
		rows = append(rows, r)
	}
	if asJSON {
		return c.printJSON(rows)
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "FORMAT\tACTIONS\tCONVERTS TO")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.Format, strings.Join(r.Actions, " "), strings.Join(r.ConvertTo, " "))
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
	var asJSON bool
	return c.command(spec{
		use: "doctor", short: "check the engines, and show how to install missing ones",
		long: "Starts each engine once, and shows which engines work and how to install the others.\nThe exit code is 1 if an engine is missing.",
		flags: func(fs *flagSet) {
			fs.BoolVar(&asJSON, "json", false, "print one JSON object with the engines and the sandbox")
			e.register(fs)
		},
		run: func(ctx context.Context, _ []string) error {
			if asJSON {
				return c.examineJSON(ctx, e)
			}
			return c.examine(ctx, e)
		},
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

// examineJSON is examine for programs.
func (c *cli) examineJSON(ctx context.Context, e engineConfig) error {
	set := probe(ctx, c, e)
	defer set.Close()
	type engine struct {
		Name        string   `json:"name"`
		OK          bool     `json:"ok"`
		Version     string   `json:"version,omitempty"`
		Path        string   `json:"path,omitempty"` // empty: built in
		Purpose     string   `json:"purpose"`
		Error       string   `json:"error,omitempty"`
		Packages    []string `json:"packages,omitempty"`    // of Debian, that install a missing engine
		Recommended []string `json:"recommended,omitempty"` // of Debian, that make a working one better
	}
	type sandbox struct {
		Tier    int      `json:"tier"` // of 4
		Layers  []string `json:"layers"`
		Missing []string `json:"missing"`
	}
	var out struct {
		Engines []engine `json:"engines"`
		Sandbox sandbox  `json:"sandbox"`
	}
	missing := 0
	for _, d := range set.Dependencies() {
		e := engine{Name: d.Name, OK: d.Err == nil, Version: d.Version, Path: d.Path, Purpose: d.Purpose, Recommended: d.Recommended}
		if d.Err != nil {
			missing++
			e.Error, e.Packages = d.Err.Error(), d.Packages
		}
		out.Engines = append(out.Engines, e)
	}
	confined := set.Sandbox()
	layers := confined.Layers()
	out.Sandbox = sandbox{len(layers), append([]string{}, layers...), append([]string{}, confined.Missing()...)}
	if err := c.printJSON(out); err != nil || missing == 0 {
		return err
	}
	return fmt.Errorf("%d engines are missing", missing)
}
