package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is the version that the linker was given, for builds without version control.
var release string

// version returns the version of this program: the tag or commit that Go recorded in the
// build, or "dev".
func version() string {
	if release != "" {
		return release
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "(devel)" {
		return cmp.Or(info.Main.Version, "dev")
	}
	return "dev"
}

// A build describes this program.
type build struct {
	Version string `json:"version"`
	Go      string `json:"go"`
	System  string `json:"system"` // linux/amd64
}

func versionCommand(c *cli) *cobra.Command {
	var asJSON bool
	return c.command(spec{
		use: "version", short: "print the version",
		flags: func(fs *flagSet) { fs.BoolVar(&asJSON, "json", false, "print a JSON object") },
		run: func(context.Context, []string) error {
			b := build{version(), runtime.Version(), runtime.GOOS + "/" + runtime.GOARCH}
			if asJSON {
				return json.NewEncoder(c.out).Encode(b)
			}
			_, err := fmt.Fprintf(c.out, "refserver %s (%s, %s)\n", b.Version, b.Go, b.System)
			return err
		},
	})
}
