package account

import (
	"cmp"
	"context"
	"encoding/hex"
	"errors"
	"slices"
	"time"
)

// A Role is what a login may do in its account.
type Role string

// The roles, from the most to the least powerful.
const (
	RoleOwner         Role = "owner"
	RoleAdministrator Role = "administrator"
	RoleMember        Role = "member"
	RoleViewer        Role = "viewer"
)

// Roles returns all roles, the most powerful first.
func Roles() []Role { return []Role{RoleOwner, RoleAdministrator, RoleMember, RoleViewer} }

// A Permission is what a role allows.
type Permission string

// The permissions.
const (
	View    Permission = "view"    // see operations, results, usage, keys without secrets, webhooks and members
	Operate Permission = "operate" // upload files; start, cancel and delete operations
	Manage  Permission = "manage"  // create, change and revoke keys and webhooks
	Invite  Permission = "invite"  // invite, change and remove members who are not owners
	Own     Permission = "own"     // invite, change and remove owners; export and delete the account
)

// permissions is the table of what each role may do.
var permissions = map[Role][]Permission{
	RoleOwner:         {View, Operate, Manage, Invite, Own},
	RoleAdministrator: {View, Operate, Manage, Invite},
	RoleMember:        {View, Operate},
	RoleViewer:        {View},
}

// May reports whether a role allows p. An unknown role allows nothing.
func (r Role) May(p Permission) bool { return slices.Contains(permissions[r], p) }

// Permissions returns what a role allows.
func (r Role) Permissions() []Permission { return slices.Clone(permissions[r]) }

// MayGrant reports whether a login with role r may give others the role other, or take it from them.
func (r Role) MayGrant(other Role) bool {
	return slices.Contains(Roles(), other) && (r.May(Own) || r.May(Invite) && other != RoleOwner)
}

// Owner returns the ID of the account to which a login belongs: the owner of files and operations.
func (a *Account) Owner() string { return cmp.Or(a.MemberOf, a.ID) }

// Errors of a [MemberStore].
var (
	// ErrLastOwner reports that a change would leave an account without an owner.
	ErrLastOwner = errors.New("this is the last owner of the account")

	// ErrTooMany reports that an account has the maximum number of members or invitations.
	ErrTooMany = errors.New("too many members or invitations")
)

// An Invitation lets somebody become a member of an account, once.
type Invitation struct {
	Token   [32]byte // SHA-256 of the secret in the link
	Account string
	Role    Role
	Note    string // for whom it is, for people
	Inviter string // login name of its creator
	Created time.Time
	Expires time.Time
}

// ID returns an ID that does not reveal the secret.
func (i *Invitation) ID() string { return hex.EncodeToString(i.Token[:8]) }

// A MemberStore keeps the members of accounts and invitations. The error for a missing one matches
// fs.ErrNotExist.
type MemberStore interface {
	// Members returns the logins of an account, oldest first.
	Members(ctx context.Context, account string) ([]*Account, error)

	// SetRole changes the role of a login of an account. It fails with ErrLastOwner. check is called
	// with the login before the change, in the same transaction.
	SetRole(ctx context.Context, account, login string, role Role, check func(*Account) error) error

	// RemoveMember removes a login of an account with its sessions, passkeys, second factor and
	// identities, in the same way. The account itself stays.
	RemoveMember(ctx context.Context, account, login string, check func(*Account) error) error

	// AddInvitation stores an invitation. It fails with ErrTooMany if the account has most
	// invitations and members.
	AddInvitation(ctx context.Context, i *Invitation, most int) error

	// Invitation returns the invitation with a token, also after it has expired.
	Invitation(ctx context.Context, token [32]byte) (*Invitation, error)

	// Invitations returns the invitations of an account, oldest first.
	Invitations(ctx context.Context, account string) ([]*Invitation, error)

	// RemoveInvitation removes an invitation of an account. A missing one is no error.
	RemoveInvitation(ctx context.Context, account, id string) error

	// Join removes the invitation with a token and stores the login m, to which it gives account and
	// role. The error for an invitation that is missing or has expired at the given time matches
	// fs.ErrNotExist. It fails with ErrNameTaken. If user is not nil, it is connected to the login;
	// the error matches fs.ErrExist if the user belongs to an account.
	Join(ctx context.Context, token [32]byte, at time.Time, m *Account, user *Identity) error
}
