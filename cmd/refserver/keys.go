package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
)

// keys creates, lists and revokes API keys. It works while the server runs.
func keys(c *cli) *cobra.Command {
	return c.group("keys", "create, list and revoke API keys", "", createKey(c), listKeys(c), revokeKey(c))
}

func createKey(c *cli) *cobra.Command {
	where := database{make: true}
	var k auth.NewKey
	var ttl time.Duration
	return c.command(spec{
		use: "create --name NAME", short: "create a key and print only the key",
		long: "Creates an API key and prints only the key to standard output. The server stores\nonly a hash, so the key cannot be shown again.",
		flags: func(fs *flagSet) {
			where.register(fs)
			fs.StringVar(&k.Name, "name", "", "`name` that describes the purpose of the key (required)")
			fs.StringVar(&k.Account, "account", "", "name or ID of the `account` that the key belongs to; created if missing. All keys of an account see the same files; default: a new account for this key")
			fs.Func("scopes", "permissions of the key, comma-separated `names`: upload, operate, read, admin (manage the account) [upload,operate,read]", func(v string) (err error) {
				if k.Scopes, err = httpapi.ParseScope(v); err == nil && k.Scopes == 0 {
					err = errors.New("a key must have a scope")
				}
				return err
			})
			fs.Float64Var(&k.Rate.PerSecond, "rate", 0, "maximum `requests` per second with the key; default: the server's --rate")
			fs.IntVar(&k.Rate.Burst, "rate-burst", 0, "with --rate: maximum `number` of requests in a burst; default: the requests of one second")
			fs.Func("addresses", "IP `addresses` and networks of clients that may use the key, comma-separated, such as 192.0.2.0/24 [all]", func(v string) (err error) {
				k.Addresses, err = auth.ParseAddresses(v)
				return err
			})
			fs.DurationVar(&ttl, "expires-in", 0, "`duration` after which the key expires; default: never")
		},
		run: func(ctx context.Context, _ []string) error {
			if k.Name == "" {
				return usageError{errors.New("--name is required")}
			}
			if k.Rate.PerSecond < 0 || k.Rate.Burst < 0 || k.Rate.PerSecond == 0 && k.Rate.Burst != 0 {
				return usageError{errors.New("--rate must not be negative, and --rate-burst requires --rate")}
			}
			if ttl != 0 {
				k.Expires = time.Now().Add(ttl)
			}
			_, err := os.Stat(filepath.Join(where.dir, databaseName))
			fresh := where.url == "" && errors.Is(err, iofs.ErrNotExist)
			return withAccounts(ctx, where, func(a *auth.Accounts) error {
				if fresh { // perhaps a typo
					fmt.Fprintf(c.err, "%s was no data directory; it is one now. Start the server with --data-dir %[1]s.\n", where.dir)
				}
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
				fmt.Fprintf(c.err, "API key %s (%s) created. It cannot be shown again.\n", key.ID, key.Name)
				return nil
			})
		},
	})
}

func listKeys(c *cli) *cobra.Command {
	var where database
	var asJSON bool
	return c.command(spec{
		use: "list", short: "list all keys, without their secret text", long: "Lists all API keys.",
		flags: func(fs *flagSet) {
			fs.BoolVar(&asJSON, "json", false, "print one JSON array")
			where.register(fs)
		},
		run: func(ctx context.Context, _ []string) error {
			return withAccounts(ctx, where, func(a *auth.Accounts) error { return c.printKeys(ctx, a, asJSON) })
		},
	})
}

func (c *cli) printKeys(ctx context.Context, a *auth.Accounts, asJSON bool) error {
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
	if asJSON {
		type key struct {
			ID        string    `json:"id"`
			Prefix    string    `json:"prefix"`
			Name      string    `json:"name"`
			AccountID string    `json:"account_id"`
			Account   string    `json:"account,omitempty"` // name
			Scopes    []string  `json:"scopes"`
			Created   time.Time `json:"created"`
			LastUsed  time.Time `json:"last_used,omitzero"`
			Expires   time.Time `json:"expires,omitzero"`
			Revoked   time.Time `json:"revoked,omitzero"`
			Addresses []string  `json:"addresses,omitempty"` // all if empty
			Valid     bool      `json:"valid"`
		}
		list := make([]key, 0, len(all))
		for _, k := range all {
			list = append(list, key{
				ID: k.ID, Prefix: k.Prefix, Name: k.Name, AccountID: k.Account, Account: names[k.Account], Scopes: strings.Fields(cmp.Or(k.Scopes, httpapi.DefaultScopes.String())),
				Created: k.Created.UTC(), LastUsed: k.LastUsed.UTC(), Expires: k.Expires.UTC(), Revoked: k.Revoked.UTC(), Addresses: strings.Fields(k.Addresses), Valid: strings.HasPrefix(keyState(k, time.Now()), "valid"),
			})
		}
		return c.printJSON(list)
	}
	w := tabwriter.NewWriter(c.out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "ID\tKEY\tNAME\tACCOUNT\tSCOPES\tCREATED\tLAST USED\tADDRESSES\tSTATE")
	for _, k := range all {
		fmt.Fprintf(w, "%s\t%s…\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.ID, k.Prefix, k.Name, cmp.Or(names[k.Account], k.Account),
			strings.ReplaceAll(cmp.Or(k.Scopes, httpapi.DefaultScopes.String()), " ", ","), day(k.Created), day(k.LastUsed), cmp.Or(strings.ReplaceAll(k.Addresses, " ", ","), "all"), keyState(k, time.Now()))
	}
	return w.Flush()
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

func revokeKey(c *cli) *cobra.Command {
	var where database
	return c.command(spec{
		use: "revoke ID", short: "make a key invalid",
		long:  "Makes an API key invalid. \"refserver keys list\" shows the IDs.",
		min:   1,
		max:   1,
		flags: where.register,
		run: func(ctx context.Context, args []string) error {
			return withAccounts(ctx, where, func(a *auth.Accounts) error {
				if err := a.Keys().Revoke(ctx, args[0]); err != nil {
					return err
				}
				fmt.Fprintf(c.err, "API key %s revoked.\n", args[0])
				return nil
			})
		},
	})
}
