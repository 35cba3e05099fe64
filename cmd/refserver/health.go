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
)

// health checks whether a server on this machine is ready. It is for container health checks, whose
// image has no other program for it.
func health(ctx context.Context, c *cli, args []string) error {
	var listen string
	var patience time.Duration
	fs := c.flags("health", "", "Asks the server on this machine whether it is ready. It fails if that is not so, or if\nthere is no answer.")
	fs.StringVar(&listen, "listen", defaultListen, "`address` that the server listens on")
	fs.DurationVar(&patience, "patience", 5*time.Second, "`time` to wait for the answer")
	if err := c.parse(fs, args, 0, 0); err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(listen)
	if err != nil {
		return err
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "localhost"
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
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
