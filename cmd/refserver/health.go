package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// health checks whether a server on this machine is ready. It is for container health checks, whose
// image has no other program for it.
func health(c *cli) *cobra.Command {
	var listen string
	var timeout time.Duration
	return c.command(spec{
		use: "health", short: "check whether the server on this machine is ready",
		long: "Checks whether the server on this machine is ready. The exit code is 1 if it is not, or\nif it does not respond.",
		flags: func(fs *flagSet) {
			fs.StringVar(&listen, "listen", defaultListen, "`address` of the server: its --listen")
			fs.DurationVar(&timeout, "timeout", 5*time.Second, "maximum `duration` of the check")
		},
		run: func(ctx context.Context, _ []string) error { return c.checkHealth(ctx, listen, timeout) },
	})
}

func (c *cli) checkHealth(ctx context.Context, listen string, timeout time.Duration) error {
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+net.JoinHostPort(host, port)+"/readyz", nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return err
	}
	if resp.StatusCode == http.StatusOK {
		fmt.Fprintln(c.out, "ready")
		return nil
	}
	var body struct {
		Checks map[string]string `json:"checks"`
	}
	var bad []string
	if json.Unmarshal(b, &body) == nil {
		for name, state := range body.Checks {
			if state != "ok" {
				bad = append(bad, name+": "+state)
			}
		}
	}
	slices.Sort(bad)
	return fmt.Errorf("not ready: %s. %s", resp.Status, strings.Join(bad, "; "))
}
