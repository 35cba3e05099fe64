// Command refserver is the Filewright server. It wires the packages of this module together and
// keeps its state in one directory.
//
//	refserver [serve] [flags]      start the server
//	refserver config               print the settings and where they come from
//	refserver keys create|list|revoke
//	refserver accounts list|create|password|disable|enable
//	refserver backup DIR           back up the data directory
//	refserver check                compare database records with stored files
//	refserver formats              formats and actions that this host supports
//	refserver health               check whether the server on this machine is ready
//	refserver doctor               check the engines
//	refserver conformance          check any server against the rules of the API
//	refserver convert IN OUT       convert one file, without a server
//	refserver completion SHELL     print completions for bash, zsh, fish or PowerShell
//	refserver man DIR              write manual pages
//	refserver docs DIR             write the documentation as static pages
//	refserver version              print the version
//
// Every command has a --help flag. Every flag can also be set in the environment: --data-dir as
// FILEWRIGHT_DATA_DIR, and those of the server in a file (--config).
package main

import (
	"context"
	"os"
	"os/signal"
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
