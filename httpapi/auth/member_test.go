package auth_test

import (
	"errors"
	"io/fs"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/account"
	"github.com/filewright/filewright/httpapi/auth"
	"github.com/filewright/filewright/httpapi/sqlstore"
	"github.com/filewright/filewright/internal/systest"
)

func TestRoles(t *testing.T) {
	t.Parallel()
	// Each role may do all that less powerful ones may, and more.
	roles := account.Roles()
	for i, r := range roles {
		if i > 0 && len(r.Permissions()) >= len(roles[i-1].Permissions()) {
			t.Errorf("%s may do no less than %s", r, roles[i-1])
		}
		for _, p := range r.Permissions() {
			if i > 0 && !roles[i-1].May(p) {
				t.Errorf("%s may %s, but %s may not", r, p, roles[i-1])
			}
		}
		if got, want := r.MayGrant(account.RoleOwner), r == account.RoleOwner; got != want {
			t.Errorf("%s makes owners: %t", r, got)
		}
		if got, want := r.MayGrant(account.RoleViewer), i < 2; got != want {
			t.Errorf("%s makes viewers: %t", r, got)
		}
	}
	if r := account.Role("boss"); r.May(account.View) || account.RoleOwner.MayGrant(r) {
		t.Error("an unknown role is accepted")
	}
}

func TestMembers(t *testing.T) {
	t.Parallel()
	eachDatabase(t, func(t *testing.T, connect func() *sqlstore.DB) {
		ctx := t.Context()
		db := connect()
		a := newAccounts(db, auth.Config{Members: db.Members(), Identities: db.Identities(), Limits: account.Limits{Parallel: 3}})
		wants := func(what string, err, want error) {
			t.Helper()
			if !errors.Is(err, want) {
				t.Errorf("%s: %v, want %v", what, err, want)
			}
		}
		_, _, err := a.Bootstrap(ctx)
		systest.NoError(t, err)
		ada, once, err := a.Create(ctx, auth.NewAccount{Name: "Ada"})
		systest.NoError(t, err)
		adaToken, err := a.ChangePassword(ctx, ada.ID, once, goodPassword, home)
		systest.NoError(t, err)
		who := func(token string) *account.Account {
			t.Helper()
			acct, err := a.Session(ctx, token)
			systest.NoError(t, err)
			return acct
		}
		invite := func(by *account.Account, role account.Role) string {
			t.Helper()
			secret, i, err := a.Invite(ctx, by, role, " for you ", time.Hour)
			systest.NoError(t, err)
			if i.Note != "for you" || i.Account != ada.ID {
				t.Errorf("the invitation is %+v", i)
			}
			return secret
		}
		ada = who(adaToken)
		if ada.Role != account.RoleOwner || ada.Owner() != ada.ID {
			t.Fatalf("a new account is %+v", ada)
		}

		// An invitation counts once.
		secret := invite(ada, account.RoleAdministrator)
		_, err = a.Join(ctx, secret, "ada", goodPassword, home)
		wants("a taken name", err, account.ErrNameTaken)
		_, err = a.Join(ctx, secret, "Bob", "password", home)
		wants("a weak password", err, auth.ErrWeakPassword)
		_, err = a.Join(ctx, "x", "Bob", goodPassword, home)
		wants("an unknown invitation", err, auth.ErrInvitation)
		var won atomic.Int32
		var bobToken atomic.Value
		var wg sync.WaitGroup
		for _, name := range []string{"Bob", "Bert", "Ben"} {
			wg.Go(func() {
				token, err := a.Join(ctx, secret, name, goodPassword, home)
				if err == nil {
					won.Add(1)
					bobToken.Store(token)
				} else if !errors.Is(err, auth.ErrInvitation) {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d of 3 accepted one invitation", won.Load())
		}
		bob := who(bobToken.Load().(string))
		if bob.Owner() != ada.ID || bob.Role != account.RoleAdministrator || bob.Limits.Parallel != 3 || bob.Administrator {
			t.Errorf("the member is %+v", bob)
		}
		if all, err := a.List(ctx); err != nil || len(all) != 2 {
			t.Errorf("a member is in the list of %d accounts, %v", len(all), err)
		}
		_, err = a.Get(ctx, bob.ID)
		wants("a member as an account", err, fs.ErrNotExist)
		if token, _, err := a.Login(ctx, bob.Name, goodPassword, home); err != nil || who(token).ID != bob.ID {
			t.Errorf("a member logs in: %v", err)
		}

		// What the roles may do through the API.
		join := func(by *account.Account, role account.Role, name string) (*account.Account, string) {
			t.Helper()
			token, err := a.Join(ctx, invite(by, role), name, goodPassword, home)
			systest.NoError(t, err)
			return who(token), token
		}
		eve, eveToken := join(bob, account.RoleViewer, "Eve")
		max, maxToken := join(bob, account.RoleMember, "Max")
		for token, want := range map[string]httpapi.Scope{
			eveToken: httpapi.ScopeRead, maxToken: httpapi.DefaultScopes,
			bobToken.Load().(string): httpapi.DefaultScopes | httpapi.ScopeAdmin, adaToken: httpapi.DefaultScopes | httpapi.ScopeAdmin,
		} {
			p, err := a.Authenticate(session(token))
			if err != nil || p.Account != ada.ID || p.Scopes != want || p.Administrator {
				t.Errorf("%s authenticates as %+v, %v", who(token).Name, p, err)
			}
		}

		// Refusals.
		_, _, err = a.Invite(ctx, bob, account.RoleOwner, "", time.Hour)
		wants("an administrator invites an owner", err, auth.ErrRole)
		_, _, err = a.Invite(ctx, max, account.RoleViewer, "", time.Hour)
		wants("a member invites", err, auth.ErrRole)
		_, _, err = a.Invite(ctx, ada, "boss", "", time.Hour)
		wants("an unknown role", err, auth.ErrRole)
		if _, _, err = a.Invite(ctx, ada, account.RoleViewer, "", 0); problemStatus(err) != http.StatusBadRequest {
			t.Errorf("an invitation without end: %v", err)
		}
		wants("an administrator demotes an owner", a.SetRole(ctx, bob, ada.ID, account.RoleViewer), auth.ErrRole)
		wants("an administrator makes an owner", a.SetRole(ctx, bob, max.ID, account.RoleOwner), auth.ErrRole)
		wants("a viewer changes a role", a.SetRole(ctx, eve, eve.ID, account.RoleMember), auth.ErrRole)
		wants("an administrator removes an owner", a.RemoveMember(ctx, bob, ada.ID), auth.ErrRole)
		wants("a member removes another", a.RemoveMember(ctx, max, eve.ID), auth.ErrRole)
		wants("the last owner leaves", a.RemoveMember(ctx, ada, ada.ID), account.ErrLastOwner)
		wants("the last owner steps down", a.SetRole(ctx, ada, ada.ID, account.RoleMember), account.ErrLastOwner)
		stranger, _, err := a.Create(ctx, auth.NewAccount{Name: "Stranger"})
		systest.NoError(t, err)
		wants("a login of another account", a.RemoveMember(ctx, ada, stranger.ID), fs.ErrNotExist)
		revoked, i, err := a.Invite(ctx, ada, account.RoleViewer, "", time.Hour)
		systest.NoError(t, err)
		wants("a member revokes an invitation", a.RevokeInvitation(ctx, max, i.ID()), auth.ErrRole)
		systest.NoError(t, a.RevokeInvitation(ctx, stranger, i.ID()))
		if list, err := a.Invitations(ctx, ada.ID); err != nil || len(list) != 1 {
			t.Errorf("another account revoked an invitation: %v, %v", list, err)
		}
		systest.NoError(t, a.RevokeInvitation(ctx, bob, i.ID()))
		_, err = a.Join(ctx, revoked, "Late", goodPassword, home)
		wants("a revoked invitation", err, auth.ErrInvitation)
		late, _, err := a.Invite(ctx, ada, account.RoleViewer, "", time.Millisecond)
		systest.NoError(t, err)
		systest.Until(t, "the invitation to expire", func() bool { _, _, err := a.OpenInvitation(ctx, late); return errors.Is(err, auth.ErrInvitation) })
		_, err = a.Join(ctx, late, "Late", goodPassword, home)
		wants("an expired invitation", err, auth.ErrInvitation)

		// A role counts from the next request, and removal ends sessions.
		systest.NoError(t, a.SetRole(ctx, bob, max.ID, account.RoleViewer))
		if got := who(maxToken).Role; got != account.RoleViewer {
			t.Errorf("the role is still %s", got)
		}
		systest.NoError(t, a.RemoveMember(ctx, bob, max.ID))
		_, err = a.Session(ctx, maxToken)
		wants("a removed member", err, auth.ErrNoSession)
		_, _, err = a.Login(ctx, "Max", goodPassword, home)
		wants("login of a removed member", err, auth.ErrCredentials)
		systest.NoError(t, a.RemoveMember(ctx, eve, eve.ID)) // leaves

		// A user of the provider joins.
		user := auth.ExternalUser{Issuer: "https://id.example.com", Subject: "1", Name: "Olga", Create: true}
		olgaToken, err := a.JoinExternal(ctx, invite(ada, account.RoleOwner), user, home)
		systest.NoError(t, err)
		if olga := who(olgaToken); olga.Owner() != ada.ID || olga.Role != account.RoleOwner {
			t.Errorf("the user joined as %+v", olga)
		}
		again := invite(ada, account.RoleMember)
		user.Name = "Olga2"
		_, err = a.JoinExternal(ctx, again, user, home)
		wants("a user who is a member", err, auth.ErrUserTaken)
		if _, _, err := a.OpenInvitation(ctx, again); err != nil {
			t.Errorf("a refused user consumed the invitation: %v", err)
		}
		boss := true
		user.Administrator = &boss
		if _, acct, err := a.LoginExternal(ctx, user, home); err != nil || acct.Owner() != ada.ID || acct.Administrator {
			t.Errorf("the user logs in as %+v, %v", acct, err)
		}

		// With another owner, the first one leaves. The account stays.
		raw, _, err := a.Keys().Create(ctx, auth.NewKey{Name: "k", Account: ada.ID})
		systest.NoError(t, err)
		systest.NoError(t, a.RemoveMember(ctx, who(olgaToken), ada.ID))
		_, err = a.Session(ctx, adaToken)
		wants("the first owner after leaving", err, auth.ErrNoSession)
		r := session("")
		r.Header.Set("Authorization", "Bearer "+raw)
		if p, err := a.Authenticate(r); err != nil || p.Account != ada.ID {
			t.Errorf("a key after the first owner left: %+v, %v", p, err)
		}
		if list, err := a.Members(ctx, ada.ID); err != nil || len(list) != 2 {
			t.Errorf("the members are %v, %v", list, err)
		}
		wants("the new last owner leaves", a.RemoveMember(ctx, who(olgaToken), who(olgaToken).ID), account.ErrLastOwner)

		// Disabling the account ends the sessions of members, and deleting it removes them.
		off := true
		_, err = a.Update(ctx, ada.ID, auth.Change{Disabled: &off})
		systest.NoError(t, err)
		_, err = a.Session(ctx, olgaToken)
		wants("a member of a disabled account", err, auth.ErrNoSession)
		if token, _, err := a.LoginExternal(ctx, user, home); err == nil {
			_, err = a.Session(ctx, token)
			wants("a login to a disabled account", err, auth.ErrNoSession)
		}
		systest.NoError(t, a.Delete(ctx, ada.ID))
		_, err = a.ByName(ctx, bob.Name)
		wants("a member of a deleted account", err, fs.ErrNotExist)
	})
}

// Members of an administrator's account do not administer the server.
func TestMembersOfAdministrators(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := open(t, t.TempDir()+"/filewright.db")
	a := newAccounts(db, auth.Config{Members: db.Members()})
	name, _, err := a.Bootstrap(ctx)
	systest.NoError(t, err)
	admin, err := a.ByName(ctx, name)
	systest.NoError(t, err)
	if ok, err := a.MayAdminister(ctx, admin); !ok || err != nil {
		t.Errorf("the administrator may not administer: %v", err)
	}
	secret, _, err := a.Invite(ctx, admin, account.RoleOwner, "", time.Hour)
	systest.NoError(t, err)
	token, err := a.Join(ctx, secret, "Bob", goodPassword, home)
	systest.NoError(t, err)
	bob, err := a.Session(ctx, token)
	systest.NoError(t, err)
	if ok, err := a.MayAdminister(ctx, bob); ok || err != nil {
		t.Errorf("a member may administer the server: %v", err)
	}
	if p, err := a.Authenticate(session(token)); err != nil || p.Administrator || p.Scopes != httpapi.DefaultScopes {
		t.Errorf("the member authenticates as %+v, %v", p, err)
	}
	for what, err := range map[string]error{
		"removed": a.RemoveMember(ctx, bob, admin.ID), "leaves": a.RemoveMember(ctx, admin, admin.ID), "demoted": a.SetRole(ctx, bob, admin.ID, account.RoleViewer),
	} {
		if !errors.Is(err, auth.ErrServerAdministrator) {
			t.Errorf("the administrator is %s: %v", what, err)
		}
	}
}
