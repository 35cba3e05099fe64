package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/sqlstore"
)

// accounts lists and changes accounts. It works while the server runs.
func accounts(ctx context.Context, c *cli, args []string) error {
	return c.dispatch(ctx, "accounts", []command{
		{"list", "", "show all accounts", listAccounts},
		{"create", "--name NAME", "make an account and print its password, alone, on standard output", createAccount},
		{"password", "ACCOUNT", "give an account a new password, for who has lost it", resetPassword},
		{"disable", "ACCOUNT", "refuse its keys and sessions at once, and send no webhooks", disableAccount(true)},
		{"enable", "ACCOUNT", "let it in again", disableAccount(false)},
	}, `ACCOUNT is a name or an id. A password that is printed must be changed at the
first login. `, args)
}

// A database locates the database of accounts, keys and records.
type database struct {
	dir, url string
	make     bool // create a missing data directory
}

func (d *database) register(fs *flag.FlagSet) {
	registerDataDir(fs, &d.dir)
	registerDatabase(fs, &d.url)
}

// use opens the database, also while a server uses it.
func (d database) use(ctx context.Context, do func(*sqlstore.DB) error) error {
	o := sqlstore.Options{URL: d.url}
	if d.url == "" {
		o.Path = filepath.Join(d.dir, databaseName)
		if _, err := os.Stat(o.Path); errors.Is(err, fs.ErrNotExist) && !d.make {
			return fmt.Errorf("%s is not a data directory: there is no %s in it", d.dir, databaseName)
		}
		if err := os.MkdirAll(d.dir, 0o700); err != nil {
			return err
		}
	}
	db, err := sqlstore.Open(ctx, o)
	if err != nil {
		return err
	}
	return errors.Join(do(db), db.Close())
}

// withAccounts opens the accounts, also while a server uses them.
func withAccounts(ctx context.Context, where database, do func(*auth.Accounts) error) error {
	return where.use(ctx, func(db *sqlstore.DB) error {
		return do(auth.New(auth.Config{Accounts: db.Accounts(), Keys: db.Keys(), Sessions: db.Sessions(), Usage: db}))
	})
}

// find returns the account with an ID or a name.
func find(ctx context.Context, a *auth.Accounts, text string) (*account.Account, error) {
	acct, err := a.Get(ctx, text)
	if errors.Is(err, fs.ErrNotExist) {
		acct, err = a.ByName(ctx, text)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("there is no account with the name or id %q: %w", text, fs.ErrNotExist)
	}
	return acct, err
}

// registerLimits registers the flags for account limits.
func registerLimits(fs *flag.FlagSet, prefix, whose string, l *account.Limits) {
	size := func(name string, to *int64, usage string) {
		fs.Func(prefix+name, usage+" "+whose+", as a `size` such as 10GB; 0: any [0]", func(v string) (err error) {
			if *to = 0; v != "0" {
				*to, err = parseSize(v)
			}
			return err
		})
	}
	number := func(name string, set func(int64), usage string) {
		fs.Func(prefix+name, usage+" "+whose+", a `number`; 0: any [0]", func(v string) error {
			n, err := strconv.ParseInt(v, 10, 32)
			if err != nil || n < 0 {
				return fmt.Errorf("%q is not a number from 0", v)
			}
			set(n)
			return nil
		})
	}
	size("stored", &l.StoredBytes, "most bytes of files that are kept,")
	size("bytes-per-day", &l.BytesPerDay, "most bytes of uploads in a day of UTC")
	number("operations-per-day", func(n int64) { l.OperationsPerDay = n }, "most operations in a day of UTC")
	number("parallel", func(n int64) { l.Parallel = int(n) }, "most files that are worked on at once")
}

func createAccount(ctx context.Context, c *cli, args []string) error {
	where := database{make: true}
	var n auth.NewAccount
	var limits account.Limits
	fs := c.flags("accounts create", "", "Makes an account and prints a password, alone, on standard output. It must be changed\nat the first login and cannot be shown again.")
	where.register(fs)
	fs.StringVar(&n.Name, "name", "", "`name` to log in with (required)")
	fs.BoolVar(&n.Administrator, "administrator", false, "it may manage all accounts")
	registerLimits(fs, "", "of the account", &limits)
	if err := c.parse(fs, args, 0, 0); err != nil {
		return err
	}
	if n.Name == "" {
		fmt.Fprintln(c.err, "refserver accounts create: --name is required")
		return errUsage
	}
	n.Limits = &limits
	return withAccounts(ctx, where, func(a *auth.Accounts) error {
		acct, password, err := a.Create(ctx, n)
		if err != nil {
			return err
		}
		fmt.Fprintln(c.out, password)
		fmt.Fprintf(c.err, "Account %s (%s) was created. The password is shown only this once.\n", acct.ID, acct.Name)
		return nil
	})
}

func listAccounts(ctx context.Context, c *cli, args []string) error {
	var where database
	fs := c.flags("accounts list", "", "Shows all accounts. Those without a name have API keys only.")
	where.register(fs)
	if err := c.parse(fs, args, 0, 0); err != nil {
		return err
	}
	return withAccounts(ctx, where, func(a *auth.Accounts) error {
		all, err := a.List(ctx)
		if err != nil {
			return err
		}
		w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "ID\tNAME\tCREATED\tLAST LOGIN\tSTORED BYTES\tSTATE")
		for _, acct := range all {
			used, err := a.Used(ctx, acct.ID)
			if err != nil {
				return err
			}
			name := acct.Name
			if name == "" {
				name = "-"
			}
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n", acct.ID, name, day(acct.Created), day(acct.LastLogin), used.StoredBytes, accountState(acct))
		}
		return w.Flush()
	})
}

func accountState(a *account.Account) string {
	switch {
	case !a.Disabled.IsZero():
		return "disabled " + day(a.Disabled)
	case a.Administrator:
		return "administrator"
	}
	return "active"
}

func resetPassword(ctx context.Context, c *cli, args []string) error {
	var where database
	fs := c.flags("accounts password", " ACCOUNT", "Gives an account a new password, which is printed, alone, on standard output, and\nends its sessions. It must be changed at the next login.")
	where.register(fs)
	if err := c.parse(fs, args, 1, 1); err != nil {
		return err
	}
	return withAccounts(ctx, where, func(a *auth.Accounts) error {
		acct, err := find(ctx, a, fs.Arg(0))
		if err != nil {
			return err
		}
		password, err := a.ResetPassword(ctx, acct.ID)
		if err != nil {
			return err
		}
		fmt.Fprintln(c.out, password)
		fmt.Fprintf(c.err, "This is the new password of %s. It is shown only this once.\n", acct.Name)
		return nil
	})
}

// disableAccount returns the command that disables or enables an account.
func disableAccount(disable bool) func(context.Context, *cli, []string) error {
	name, about, done := "enable", "Lets an account in again that was disabled. What waits for its webhooks is sent.", "enabled"
	if disable {
		name, about, done = "disable", "Refuses the keys and sessions of an account at once, and sends no webhooks for it.\nIts files and operations stay.", "disabled"
	}
	return func(ctx context.Context, c *cli, args []string) error {
		var where database
		fs := c.flags("accounts "+name, " ACCOUNT", about)
		where.register(fs)
		if err := c.parse(fs, args, 1, 1); err != nil {
			return err
		}
		return withAccounts(ctx, where, func(a *auth.Accounts) error {
			acct, err := find(ctx, a, fs.Arg(0))
			if err == nil {
				acct, err = a.Update(ctx, acct.ID, auth.Change{Disabled: &disable})
			}
			if err != nil {
				return err
			}
			fmt.Fprintf(c.err, "Account %s (%s) is %s.\n", acct.ID, acct.Name, done)
			return nil
		})
	}
}
