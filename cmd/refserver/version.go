package main

import (
	"cmp"
	"fmt"
	"runtime"
	"runtime/debug"
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

// versionLine describes the build for people.
func versionLine() string {
	return fmt.Sprintf("refserver %s (%s, %s/%s)", version(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
}
