package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
	"time"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/status/sqlstore"
)

// keys creates, lists and revokes API keys. It works while the server runs.
func keys(ctx context.Context, c *cli, args []string) error {
	sub := ""
	if len(args) > 0 {
		sub, args = args[0], args[1:]
	}
	switch sub {
	case "create":
		return createKey(ctx, c, args)
	case "list":
		return listKeys(ctx, c, args)
	case "revoke":
		return revokeKey(ctx, c, args)
	case "", "help", "-h", "--help":
		fmt.Fprint(c.out, `Usage: refserver keys create|list|revoke [flags]

  create --name NAME    make a key and print it, alone, on standard output
  list                  show all keys; the keys themselves are not kept
  revoke ID             make a key invalid at once

All take --data-dir or --database-url, and work while the server runs.
`)
		if sub == "" {
			return errUsage
		}
		return nil
	}
	fmt.Fprintf(c.err, "refserver keys: there is no command %q; there are create, list and revoke\n", sub)
	return errUsage
}

// A database is where keys are kept.
type database struct{ dir, url string }

func (d *database) register(fs *flag.FlagSet) {
	registerDataDir(fs, &d.dir)
	registerDatabase(fs, &d.url)
}

// withKeys opens the database beside a server that may run.
func withKeys(ctx context.Context, where database, do func(*account.Keys) error) error {
	o := sqlstore.Options{URL: where.url}
	if where.url == "" {
		if err := os.MkdirAll(where.dir, 0o700); err != nil {
			return err
		}
		o.Path = filepath.Join(where.dir, databaseName)
	}
	db, err := sqlstore.Open(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(do(account.NewKeys(db.Keys(), nil)), db.Close())
}

func createKey(ctx context.Context, c *cli, args []string) error {
	var where database
	var k account.NewKey
	var ttl time.Duration
	fs := c.flags("keys create", "", "Makes an API key and prints it, alone, on standard output. It is kept as a hash\nonly and cannot be shown again.")
	where.register(fs)
	fs.StringVar(&k.Name, "name", "", "`name` that tells what the key is for (required)")
	fs.StringVar(&k.Account, "account", "", "`account` that owns what is uploaded with the key; keys of one account see the same files; default: an account of its own")
	fs.DurationVar(&ttl, "expires-in", 0, "`time` after which the key becomes invalid; default: never")
	if err := c.parse(fs, args, 0, 0); err != nil {
		return err
	}
	if k.Name == "" {
		fmt.Fprintln(c.err, "refserver keys create: --name is required")
		return errUsage
	}
	if ttl != 0 {
		k.Expires = time.Now().Add(ttl)
	}
	return withKeys(ctx, where, func(keys *account.Keys) error {
		raw, key, err := keys.Create(ctx, k)
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
	return withKeys(ctx, where, func(keys *account.Keys) error {
		all, err := keys.List(ctx, "")
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tKEY\tNAME\tACCOUNT\tCREATED\tLAST USED\tSTATE")
		for _, k := range all {
			fmt.Fprintf(w, "%s\t%s…\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Prefix, k.Name, k.Account, day(k.Created), day(k.LastUsed), keyState(k, time.Now()))
		}
		return w.Flush()
	})
}

func keyState(k *sqlstore.Key, now time.Time) string {
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
	return withKeys(ctx, where, func(keys *account.Keys) error {
		if err := keys.Revoke(ctx, fs.Arg(0)); err != nil {
			return err
		}
		fmt.Fprintf(c.err, "Key %s is revoked.\n", fs.Arg(0))
		return nil
	})
}
