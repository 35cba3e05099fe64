package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
)

// keys creates, lists and revokes API keys. It works while the server runs.
func keys(ctx context.Context, c *cli, args []string) error {
	return c.dispatch(ctx, "keys", []command{
		{"create", "--name NAME", "make a key and print it, alone, on standard output", createKey},
		{"list", "", "show all keys; the keys themselves are not kept", listKeys},
		{"revoke", "ID", "make a key invalid at once", revokeKey},
	}, "", args)
}

func createKey(ctx context.Context, c *cli, args []string) error {
	where := database{make: true}
	var k auth.NewKey
	var ttl time.Duration
	fs := c.flags("keys create", "", "Makes an API key and prints it, alone, on standard output. It is kept as a hash\nonly and cannot be shown again.")
	where.register(fs)
	fs.StringVar(&k.Name, "name", "", "`name` that tells what the key is for (required)")
	fs.StringVar(&k.Account, "account", "", "name or id of the `account` that owns what is uploaded with the key; keys of one account see the same files; made if it is missing; default: an account of its own")
	fs.Func("scopes", "what the key may be used for, `names` with commas: upload, operate, read, admin (managing the account) [upload,operate,read]", func(v string) (err error) {
		if k.Scopes, err = httpapi.ParseScope(v); err == nil && k.Scopes == 0 {
			err = errors.New("a key needs a scope")
		}
		return err
	})
	fs.Float64Var(&k.Rate.PerSecond, "rate", 0, "`requests` per second with the key; default: what the server is configured for")
	fs.IntVar(&k.Rate.Burst, "rate-burst", 0, "with --rate: largest `number` of requests at once; default: as many as come in a second")
	fs.DurationVar(&ttl, "expires-in", 0, "`time` after which the key becomes invalid; default: never")
	if err := c.parse(fs, args, 0, 0); err != nil {
		return err
	}
	if k.Name == "" {
		fmt.Fprintln(c.err, "refserver keys create: --name is required")
		return errUsage
	}
	if k.Rate.PerSecond < 0 || k.Rate.Burst < 0 || k.Rate.PerSecond == 0 && k.Rate.Burst != 0 {
		fmt.Fprintln(c.err, "refserver keys create: --rate must not be negative, and --rate-burst needs it")
		return errUsage
	}
	if ttl != 0 {
		k.Expires = time.Now().Add(ttl)
	}
	return withAccounts(ctx, where, func(a *auth.Accounts) error {
		if k.Account != "" {
			switch acct, err := find(ctx, a, k.Account); {
			case err == nil:
				k.Account = acct.ID
			case !errors.Is(err, iofs.ErrNotExist):
				return err
			}
		}
		raw, key, err := a.Keys().Create(ctx, k)
		if err != nil {
			return err
		}
		fmt.Fprintln(c.out, raw)
		fmt.Fprintf(c.err, "Key %s (%s) was created. It is shown only this once.\n", key.ID, key.Name)
		return nil
	})
}

func listKeys(ctx context.Context, c *cli, args []string) error {
	var where database
	fs := c.flags("keys list", "", "Shows all keys.")
	where.register(fs)
	if err := c.parse(fs, args, 0, 0); err != nil {
		return err
	}
	return withAccounts(ctx, where, func(a *auth.Accounts) error {
		all, err := a.Keys().List(ctx, "")
		if err != nil {
			return err
		}
		accts, err := a.List(ctx)
		if err != nil {
			return err
		}
		names := make(map[string]string)
		for _, acct := range accts {
			names[acct.ID] = acct.Name
		}
		w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tKEY\tNAME\tACCOUNT\tSCOPES\tCREATED\tLAST USED\tSTATE")
		for _, k := range all {
			fmt.Fprintf(w, "%s\t%s…\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Prefix, k.Name, cmp.Or(names[k.Account], k.Account),
				strings.ReplaceAll(cmp.Or(k.Scopes, httpapi.DefaultScopes.String()), " ", ","), day(k.Created), day(k.LastUsed), keyState(k, time.Now()))
		}
		return w.Flush()
	})
}

func keyState(k *account.Key, now time.Time) string {
	switch {
	case !k.Revoked.IsZero():
		return "revoked " + day(k.Revoked)
	case !k.Expires.IsZero() && !now.Before(k.Expires):
		return "expired " + day(k.Expires)
	case !k.Expires.IsZero():
		return "valid until " + day(k.Expires)
	}
	return "valid"
}

func day(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.UTC().Format("2006-01-02 15:04")
}

func revokeKey(ctx context.Context, c *cli, args []string) error {
	var where database
	fs := c.flags("keys revoke", " ID", "Makes a key invalid at once. \"refserver keys list\" shows the ids.")
	where.register(fs)
	if err := c.parse(fs, args, 1, 1); err != nil {
		return err
	}
	return withAccounts(ctx, where, func(a *auth.Accounts) error {
		if err := a.Keys().Revoke(ctx, fs.Arg(0)); err != nil {
			return err
		}
		fmt.Fprintf(c.err, "Key %s is revoked.\n", fs.Arg(0))
		return nil
	})
}
