package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/sqlstore"
)

// accounts lists and changes accounts. It works while the server runs.
func accounts(c *cli) *cobra.Command {
	return c.group("accounts", "list, create and disable accounts, reset passwords",
		"ACCOUNT is a name or an ID. A printed password must be changed at the first login.\n",
		listAccounts(c), createAccount(c), resetPassword(c), removeFactor(c), disableAccount(c, true), disableAccount(c, false))
}

// A database locates the database of accounts, keys and records.
type database struct {
	dir, url string
	make     bool // create a missing data directory
}

func (d *database) register(fs *flagSet) {
	registerDataDir(fs, &d.dir)
	registerDatabase(fs, &d.url)
}

// use opens the database, also while a server uses it.
func (d database) use(ctx context.Context, do func(*sqlstore.DB) error) error {
	o := sqlstore.Options{URL: d.url}
	if d.url == "" {
		o.Path = filepath.Join(d.dir, databaseName)
		if _, err := os.Stat(o.Path); errors.Is(err, fs.ErrNotExist) && !d.make {
			return fmt.Errorf("%s is not a data directory: it contains no %s", d.dir, databaseName)
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
		return do(auth.New(auth.Config{Accounts: db.Accounts(), Keys: db.Keys(), Sessions: db.Sessions(), Usage: db, Factors: db.Factors(), Passkeys: db.Passkeys(), Audit: db.Audit()}))
	})
}

// find returns the account with an ID or a name.
func find(ctx context.Context, a *auth.Accounts, text string) (*account.Account, error) {
	acct, err := a.Get(ctx, text)
	if errors.Is(err, fs.ErrNotExist) {
		acct, err = a.ByName(ctx, text)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("no account has the name or ID %q: %w", text, fs.ErrNotExist)
	}
	return acct, err
}

// registerLimits registers the flags for account limits.
func registerLimits(fs *flagSet, prefix, whose string, l *account.Limits) {
	size := func(name string, to *int64, usage string) {
		fs.sizeOrZero(to, 0, prefix+name, usage+" "+whose+": a `size` such as 10GB; 0: unlimited [0]")
	}
	number := func(name string, set func(int64), usage string) {
		fs.Func(prefix+name, usage+" "+whose+": a `number`; 0: unlimited [0]", func(v string) error {
			n, err := strconv.ParseInt(v, 10, 32)
			if err != nil || n < 0 {
				return fmt.Errorf("%q is not a number that is at least 0", v)
			}
			set(n)
			return nil
		})
	}
	size("stored", &l.StoredBytes, "maximum size of all stored files")
	size("bytes-per-day", &l.BytesPerDay, "maximum size of all uploads per day (UTC)")
	number("operations-per-day", func(n int64) { l.OperationsPerDay = n }, "maximum number of operations per day (UTC)")
	number("parallel", func(n int64) { l.Parallel = int(n) }, "maximum number of files processed at the same time")
}

func createAccount(c *cli) *cobra.Command {
	where := database{make: true}
	var n auth.NewAccount
	var limits account.Limits
	return c.command(spec{
		use: "create --name NAME", short: "create an account and print only its password",
		long: "Creates an account and prints only its password to standard output. The password must\nbe changed at the first login and cannot be shown again.",
		flags: func(fs *flagSet) {
			where.register(fs)
			fs.StringVar(&n.Name, "name", "", "login `name` (required)")
			fs.BoolVar(&n.Administrator, "administrator", false, "allow the account to manage all accounts")
			registerLimits(fs, "", "of the account", &limits)
		},
		run: func(ctx context.Context, _ []string) error {
			if n.Name == "" {
				return usageError{errors.New("--name is required")}
			}
			n.Limits = &limits
			return withAccounts(ctx, where, func(a *auth.Accounts) error {
				acct, password, err := a.Create(ctx, n)
				if err != nil {
					return err
				}
				fmt.Fprintln(c.out, password)
				fmt.Fprintf(c.err, "Account %s (%s) created. The password cannot be shown again.\n", acct.ID, acct.Name)
				return nil
			})
		},
	})
}

func listAccounts(c *cli) *cobra.Command {
	var where database
	var asJSON bool
	return c.command(spec{
		use: "list", short: "show all accounts",
		long: "Lists all accounts. An account without a name cannot log in; it has API keys only.",
		flags: func(fs *flagSet) {
			fs.BoolVar(&asJSON, "json", false, "print one JSON array")
			where.register(fs)
		},
		run: func(ctx context.Context, _ []string) error {
			return withAccounts(ctx, where, func(a *auth.Accounts) error { return c.printAccounts(ctx, a, asJSON) })
		},
	})
}

func (c *cli) printAccounts(ctx context.Context, a *auth.Accounts, asJSON bool) error {
	all, err := a.List(ctx)
	if err != nil {
		return err
	}
	type row struct {
		ID            string    `json:"id"`
		Name          string    `json:"name,omitempty"` // empty: it has API keys only
		Created       time.Time `json:"created"`
		LastLogin     time.Time `json:"last_login,omitzero"`
		StoredBytes   int64     `json:"stored_bytes"`
		Administrator bool      `json:"administrator"`
		Disabled      time.Time `json:"disabled,omitzero"`
		state         string
	}
	rows := make([]row, 0, len(all))
	for _, acct := range all {
		used, err := a.Used(ctx, acct.ID)
		if err != nil {
			return err
		}
		rows = append(rows, row{acct.ID, acct.Name, acct.Created.UTC(), acct.LastLogin.UTC(), used.StoredBytes, acct.Administrator, acct.Disabled.UTC(), accountState(acct)})
	}
	if asJSON {
		return c.printJSON(rows)
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tNAME\tCREATED\tLAST LOGIN\tSTORED BYTES\tSTATE")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%d\t%s\n", r.ID, cmp.Or(r.Name, "-"), day(r.Created), day(r.LastLogin), r.StoredBytes, r.state)
	}
	return w.Flush()
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

func resetPassword(c *cli) *cobra.Command {
	var where database
	return c.command(spec{
		use: "password ACCOUNT", short: "reset an account's password and print only the new one",
		long:  "Resets the password of an account, ends its sessions and prints only the new password\nto standard output. The password must be changed at the next login.",
		min:   1,
		max:   1,
		flags: where.register,
		run: func(ctx context.Context, args []string) error {
			return withAccounts(ctx, where, func(a *auth.Accounts) error {
				acct, err := find(ctx, a, args[0])
				if err != nil {
					return err
				}
				password, err := a.ResetPassword(ctx, acct.ID)
				if err != nil {
					return err
				}
				fmt.Fprintln(c.out, password)
				fmt.Fprintf(c.err, "New password of %s. It cannot be shown again.\n", acct.Name)
				return nil
			})
		},
	})
}

func removeFactor(c *cli) *cobra.Command {
	var where database
	return c.command(spec{
		use: "second-factor-off ACCOUNT", short: "remove an account's second factor and passkeys",
		long:  "Removes the second factor and the passkeys of an account whose user has lost the\nauthenticator app and the recovery codes, or the devices. The password alone then logs in.",
		min:   1,
		max:   1,
		flags: where.register,
		run: func(ctx context.Context, args []string) error {
			return withAccounts(ctx, where, func(a *auth.Accounts) error {
				acct, err := find(ctx, a, args[0])
				if err == nil {
					err = a.RemoveFactor(ctx, acct.ID)
				}
				if err != nil {
					return err
				}
				fmt.Fprintf(c.err, "Account %s (%s) has neither a second factor nor passkeys.\n", acct.ID, acct.Name)
				return nil
			})
		},
	})
}

// disableAccount returns the command that disables or enables an account.
func disableAccount(c *cli, disable bool) *cobra.Command {
	var where database
	done := "enabled"
	s := spec{use: "enable ACCOUNT", short: "re-enable a disabled account", long: "Re-enables a disabled account, and sends its pending webhooks."}
	if disable {
		done = "disabled"
		s = spec{
			use: "disable ACCOUNT", short: "reject its keys and sessions, and stop its webhooks",
			long: "Rejects the keys and sessions of an account from now on, and stops its webhooks.\nIts files and operations are kept.",
		}
	}
	s.min, s.max, s.flags = 1, 1, where.register
	s.run = func(ctx context.Context, args []string) error {
		return withAccounts(ctx, where, func(a *auth.Accounts) error {
			acct, err := find(ctx, a, args[0])
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
	return c.command(s)
}
