package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/filewright/filewright/internal/conformance"
)

// checkConformance checks any server against the rules of the interface.
func checkConformance(c *cli) *cobra.Command {
	var baseURL, key, level, asJSON, asJUnit string
	var timeout time.Duration
	return c.command(spec{
		use: "conformance", short: "check any server against the rules of the API, rule by rule",
		long: `Checks a server over HTTP against the rules of the API, one by one. Core rules are the
interface that all servers share; extended rules are what Filewright adds and decides.
The check uploads small files and runs operations on them with the account of the key.
The exit code is 0 if no rule fails, 1 if some fail, 2 for an invalid command line, and
3 if the server cannot be reached.`,
		flags: func(f *flagSet) {
			f.StringVar(&baseURL, "base-url", "http://127.0.0.1:8080", "`URL` of the server")
			f.StringVar(&key, "key", "", "API `key` with the scopes upload, operate and read; @FILE reads it from a file")
			f.secret["key"] = true
			level = "all"
			f.choice(&level, "level", "`rules` to check", "core", "extended", "all")
			f.StringVar(&asJSON, "json", "", "also write the report as JSON to a `file`; -: to standard output, without the readable report")
			f.StringVar(&asJUnit, "junit", "", "also write the report in the XML format of JUnit to a `file`; -: as with --json")
			f.DurationVar(&timeout, "timeout", 2*time.Minute, "maximum `duration` of one operation")
		},
		run: func(ctx context.Context, _ []string) error {
			secret, err := orFile(key)
			switch {
			case err != nil:
			case secret == "":
				err = errors.New("--key is required")
			case asJSON == "-" && asJUnit == "-":
				err = errors.New("only one of --json and --junit can go to standard output")
			}
			if err != nil {
				return usageError{err}
			}
			var levels []conformance.Level
			if level != "all" {
				levels = append(levels, conformance.Level(level))
			}
			readable := c.out
			if asJSON == "-" || asJUnit == "-" {
				readable = io.Discard
			}
			report, err := conformance.Run(ctx, conformance.Config{BaseURL: baseURL, Key: secret, HTTP: &http.Client{}, Patience: timeout}, func(r conformance.Result) {
				fmt.Fprintf(readable, "%-7s  %s: %s\n", r.Outcome, r.Rule, r.Text)
				if r.Detail != "" {
					fmt.Fprintf(readable, "         %s\n", r.Detail)
				}
			}, levels...)
			if err != nil {
				return &exitError{incompleteCode, err}
			}
			failed := report.Count(conformance.Failed)
			fmt.Fprintf(readable, "\n%d rules: %d passed, %d failed, %d skipped\n", len(report.Results), report.Count(conformance.Passed), failed, report.Count(conformance.Skipped))
			err = errors.Join(c.write(asJSON, report.WriteJSON), c.write(asJUnit, report.WriteJUnit))
			if err == nil && failed > 0 {
				err = fmt.Errorf("%s does not follow %d of %d rules", baseURL, failed, len(report.Results))
			}
			return err
		},
	})
}

// write writes a report to a file, or to standard output for "-". It does nothing for "".
func (c *cli) write(path string, report func(io.Writer) error) error {
	switch path {
	case "":
		return nil
	case "-":
		return report(c.out)
	}
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	return errors.Join(report(f), f.Close())
}
