// Package upload manages upload sessions and the files that they become.
//
// A [Manager] adds presigned, multipart upload sessions to any blob.Store:
//
//   - [Manager.Start] opens a session and returns one signed URL for each part;
//   - [Manager.PutPart] stores a body that a client sends to such a URL, unless the URLs
//     lead to the blob store itself;
//   - [Manager.Complete] checks the list of parts and makes them a file;
//   - [Manager.Receive] stores a file that a client sends in one request, without a session;
//   - [Manager.Open] opens a file, [Manager.Add] registers one from another source, such as
//     the result of an operation;
//   - [Manager.Sweep], called periodically, removes expired sessions and files.
//
// Clients see the semantics of S3: the ETag of a part is the hex MD5 of its bytes, and
// blob.ETag defines the ETag of a file.
//
// # Durability
//
// PutPart returns when the bytes of a part are durable and recorded. A part that is
// sent again is stored beside the earlier one and replaces it in the record in one
// step. Until then, and if that fails, the earlier part counts.
//
// Complete creates the object first, in one atomic step, and then marks the record
// Ready. So an Open session with an object was interrupted between the two, after all
// checks. Any later call that finds such a session marks it Ready; [Manager.Recover]
// searches for them.
//
// # Several processes
//
// Managers of several processes may share a Store and a blob store if Options.Locker
// coordinates them. Without one, only a single process may accept uploads; others may
// read.
package upload

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/filewright/filewright/internal/lastrun"
	"github.com/filewright/filewright/internal/steady"
	"github.com/filewright/filewright/upload/blob"
)

// MaxPart is the maximum size of a part in bytes.
const MaxPart = 5 << 30

// MaxURLTTL is the longest lifetime of an upload URL.
const MaxURLTTL = 7 * 24 * time.Hour

// MinSecret is the minimum length of a secret in bytes.
const MinSecret = 16

// objectPrefix is the prefix of the keys of all complete objects of a Manager. The rest
// is the key of the file, so that the record of an object can be found.
const objectPrefix = "files/"

// Options configure a [Manager]. The zero value is usable.
type Options struct {
	// Store keeps the records. nil means a new [MemStore].
	Store Store

	// Secrets sign upload URLs: the first signs new URLs, and all are accepted, so that
	// secrets can be rotated. Each has at least MinSecret random bytes. nil means one
	// random secret: then URLs do not survive the process.
	Secrets [][]byte

	// URLPath is the prefix of the path of upload URLs. "" means "/v1/upload/".
	URLPath string

	URLTTL     time.Duration // lifetime of upload URLs; 0: 1 hour; at most MaxURLTTL
	SessionTTL time.Duration // lifetime of sessions until completion; 0: 24 hours
	FileTTL    time.Duration // lifetime of files, from completion; 0: 24 hours, <0: for ever

	// KeepExpired is how long the record of an expired file is kept, so that clients
	// learn that it has expired. 0 means 7 days, <0 not at all.
	KeepExpired time.Duration

	// Grace is the age from which Sweep removes content without a record. It must be
	// longer than the longest single transfer. 0 means 24 hours.
	Grace time.Duration

	// Quarantine is how long finished content without a record is kept in quarantine
	// before it is deleted. 0: 7 days; negative: it is deleted at once.
	Quarantine time.Duration

	// A Sweep removes no content without a record if it would remove more than
	// SweepCount objects and more than the share SweepShare of all objects. In that
	// case the records are probably damaged. The parts of an upload count as one
	// object. 0: 100 and 0.01.
	SweepCount int
	SweepShare float64

	// Exclusive declares that no other process uses Store and the blobs. Then the first
	// Sweep removes all content without a record that is older than the call of
	// NewManager, however young: a crash has left it behind.
	Exclusive bool

	MaxSize  int64 // of a file in bytes; 0: 5 TiB
	MaxParts int   // of a session; 0: 10000

	// TempDir is the directory in which Receive collects files. On the file system of a
	// blob store in a directory it saves a copy. "" means os.TempDir.
	TempDir string

	// MinFree is how many bytes uploads leave free in a blob store that knows its free
	// space (blob.Volume), for results and other data. An upload that would use them
	// fails with an error that matches syscall.ENOSPC, before any of it is read. 0: 256
	// MiB; negative: none.
	MinFree int64
	// Locker coordinates processes that share the same files. nil: there is only one
	// process.
	Locker Locker

	Log *slog.Logger // nil discards

	now  func() time.Time // nil: time.Now
	past func() time.Time // for removals; nil: steady.Clock.Earliest, or now if that is set
	rand io.Reader        // nil: crypto/rand
}

// A Manager runs upload sessions and keeps files. It must be created by [NewManager].
// Its methods may be called concurrently.
type Manager struct {
	opts     Options
	blobs    blob.Store
	store    Store
	signer   signer
	log      *slog.Logger
	locks    locks // of sessions by file key, and of parts by file key and number
	arriving arrivals

	lost lostContents

	mu          sync.Mutex
	orphansNext time.Time // when Sweep next searches for orphans
	leftBehind  time.Time // older content without a record was left behind by earlier processes; zero: unknown

	swept   lastrun.Record
	refused atomic.Int64 // see SweepRefused
	orphans atomic.Int64 // see OrphansRemoved
}

// NewManager returns a Manager that keeps content in b.
func NewManager(b blob.Store, o *Options) (*Manager, error) {
	m := &Manager{blobs: b}
	if o != nil {
		m.opts = *o
	}
	opts := &m.opts
	def(&opts.Store, Store(new(MemStore)), opts.Store == nil)
	def(&opts.URLPath, "/v1/upload/", opts.URLPath == "")
	def(&opts.URLTTL, time.Hour, opts.URLTTL == 0)
	def(&opts.SessionTTL, 24*time.Hour, opts.SessionTTL == 0)
	def(&opts.FileTTL, 24*time.Hour, opts.FileTTL == 0)
	def(&opts.KeepExpired, 7*24*time.Hour, opts.KeepExpired == 0)
	def(&opts.Grace, 24*time.Hour, opts.Grace == 0)
	def(&opts.Quarantine, 7*24*time.Hour, opts.Quarantine == 0)
	def(&opts.SweepCount, 100, opts.SweepCount == 0)
	def(&opts.SweepShare, 0.01, opts.SweepShare == 0)
	def(&opts.MaxSize, 5<<40, opts.MaxSize == 0)
	def(&opts.MaxParts, 10_000, opts.MaxParts == 0)
	def(&opts.MinFree, 256<<20, opts.MinFree == 0)
	def(&opts.Log, slog.New(slog.DiscardHandler), opts.Log == nil)
	def(&opts.past, opts.now, opts.past == nil)
	def(&opts.past, steady.New().Earliest, opts.past == nil)
	def(&opts.now, time.Now, opts.now == nil)
	def(&opts.rand, rand.Reader, opts.rand == nil)
	switch {
	case opts.URLTTL < time.Second || opts.URLTTL > MaxURLTTL:
		return nil, fmt.Errorf("URLTTL is %v; it must be between 1s and %v", opts.URLTTL, MaxURLTTL)
	case opts.SessionTTL < 0 || opts.Grace < 0 || opts.MaxSize < 0 || opts.MaxParts < 0 || opts.SweepCount < 0 || opts.SweepShare < 0:
		return nil, errors.New("negative SessionTTL, Grace, MaxSize, MaxParts, SweepCount or SweepShare")
	case !strings.HasPrefix(opts.URLPath, "/") || !strings.HasSuffix(opts.URLPath, "/"):
		return nil, fmt.Errorf("URLPath %q must start and end with a slash", opts.URLPath)
	}
	secrets := opts.Secrets
	if len(secrets) == 0 {
		key := make([]byte, 32)
		if _, err := io.ReadFull(opts.rand, key); err != nil {
			return nil, err
		}
		secrets = [][]byte{key}
	}
	m.signer.prefix = opts.URLPath
	for i, s := range secrets {
		if len(s) < MinSecret {
			return nil, fmt.Errorf("secret %d has %d bytes; the minimum is %d", i, len(s), MinSecret)
		}
		m.signer.secrets = append(m.signer.secrets, newSecret(s))
	}
	m.store, m.log = opts.Store, opts.Log
	if opts.Exclusive {
		// File systems use a clock that lags a little. The clock of a remote store may
		// lag by as much as the store tolerates.
		lag := time.Second
		if _, ok := blob.As[blob.DirectUploader](b); ok {
			lag = 15 * time.Minute
		}
		m.leftBehind = m.now().Add(-lag)
	}
	return m, nil
}

func def[T any](p *T, v T, unset bool) {
	if unset {
		*p = v
	}
}

// now returns the time truncated to milliseconds, the precision of every Store.
func (m *Manager) now() time.Time { return m.opts.now().UTC().Truncate(time.Millisecond) }

// past returns the time for decisions to remove data. A clock that jumps ahead does not
// make files expire.
func (m *Manager) past() time.Time { return m.opts.past().UTC().Truncate(time.Millisecond) }

// Ids have 128 random bits in 26 characters that need no escaping anywhere, and stay
// distinct on file systems that ignore case.
var idEncoding = base32.NewEncoding("abcdefghijklmnopqrstuvwxyz234567").WithPadding(base32.NoPadding)

func (m *Manager) newID() (string, error) {
	b := make([]byte, 16)
	if _, err := io.ReadFull(m.opts.rand, b); err != nil {
		return "", fmt.Errorf("random id: %w", err)
	}
	return idEncoding.EncodeToString(b), nil
}

// KeyOf encodes 128 bits as a file key, which is as hard to guess as the bits.
func KeyOf(bits [16]byte) string { return idEncoding.EncodeToString(bits[:]) }

func isID(s string) bool {
	for _, c := range []byte(s) {
		if (c < 'a' || c > 'z') && (c < '2' || c > '7') {
			return false
		}
	}
	return len(s) == 26
}

// A Request describes an upload.
type Request struct {
	Owner       string // account that the file belongs to
	Name        string // see [CleanName]
	ContentType string // MIME type; an invalid one becomes application/octet-stream
	Size        int64  // bytes
	Parts       int    // 0 means 1

	// Key is for [Manager.Receive] only: the key of the file, chosen by the caller, see
	// [Manager.Add]. "" means a new key.
	Key string

	// IdempotencyKey, if not empty, makes the same request of the same owner within 24
	// hours return the same session. Fingerprint identifies the request; "" means a
	// fingerprint of the fields above.
	IdempotencyKey string
	Fingerprint    string
}

func (r *Request) fingerprint() string {
	if r.Fingerprint != "" {
		return r.Fingerprint
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q %d %d", r.Name, r.ContentType, r.Size, max(r.Parts, 1)))
	return hex.EncodeToString(sum[:])
}

// check returns an error unless the request is valid.
func (m *Manager) check(r Request) error {
	invalid := func(kind error, param, format string, args ...any) error {
		return &Error{Kind: kind, Param: param, Message: fmt.Sprintf(format, args...)}
	}
	switch {
	case r.Size < 0:
		return invalid(ErrInvalid, "size", "size is negative")
	case r.Size > m.opts.MaxSize:
		return invalid(ErrTooLarge, "size", "size is %d bytes; the limit is %d", r.Size, m.opts.MaxSize)
	case r.Parts < 0:
		return invalid(ErrInvalid, "parts", "number of parts is negative")
	case r.Parts > m.opts.MaxParts:
		return invalid(ErrInvalid, "parts", "%d parts; the limit is %d", r.Parts, m.opts.MaxParts)
	}
	if need := (r.Size + MaxPart - 1) / MaxPart; need > int64(max(r.Parts, 1)) {
		return invalid(ErrInvalid, "parts", "a part has at most %d bytes, so this size needs at least %d parts", int64(MaxPart), need)
	}
	return nil
}

// Start opens a session. It returns one URL for each part, in order. URLs of a
// blob.DirectUploader are absolute and lead to the store. All others have neither
// scheme nor host; resolve them against the server that serves PutPart.
//
// A repeated request (see [Request]) returns the existing session, in whatever state,
// with fresh URLs. If another request used the key, the error matches [ErrConflict].
func (m *Manager) Start(ctx context.Context, r Request) (*File, []*url.URL, error) {
	f, sign, err := m.Begin(ctx, r)
	if err != nil {
		return nil, nil, err
	}
	urls := make([]*url.URL, f.Parts)
	for i := range urls {
		if urls[i], err = sign(i + 1); err != nil {
			return nil, nil, fmt.Errorf("start upload: %w", err)
		}
	}
	return f, urls, nil
}

// Begin is like [Manager.Start], but signs each URL when sign is called with the number
// of its part, counted from 1. So thousands of URLs need not be in memory at once. sign
// can be called until ctx is done, even several times for one part.
func (m *Manager) Begin(ctx context.Context, r Request) (f *File, sign func(part int) (*url.URL, error), err error) {
	if err := m.check(r); err != nil {
		return nil, nil, err
	}
	if err := m.room(ctx, r.Size); err != nil {
		return nil, nil, fmt.Errorf("start upload: %w", err)
	}
	key, err := m.newID()
	if err != nil {
		return nil, nil, err
	}
	id, err := m.newID()
	if err != nil {
		return nil, nil, err
	}
	now := m.now()
	want := &File{
		Key:            key,
		Owner:          r.Owner,
		Name:           CleanName(r.Name),
		ContentType:    cleanType(r.ContentType),
		Size:           r.Size,
		State:          Open,
		Object:         objectPrefix + key,
		UploadID:       id,
		Parts:          max(r.Parts, 1),
		IdempotencyKey: r.IdempotencyKey,
		Created:        now,
		Expires:        now.Add(m.opts.SessionTTL),
	}
	if r.IdempotencyKey != "" {
		want.Fingerprint = r.fingerprint()
	}
	if err := m.beginDirect(ctx, want); err != nil {
		return nil, nil, fmt.Errorf("start upload: %w", err)
	}
	f, err = m.store.Create(ctx, want)
	if err != nil || f.Key != want.Key {
		if aerr := m.abortDirect(context.WithoutCancel(ctx), want); aerr != nil {
			m.log.Warn("cannot remove unused upload", "err", aerr)
		}
	}
	if err != nil {
		return nil, nil, fmt.Errorf("start upload: %w", err)
	}
	if f.Key != want.Key {
		if f.Fingerprint != want.Fingerprint {
			return nil, nil, &Error{Kind: ErrConflict, Message: "the idempotency key was used for another request"}
		}
		if m.expired(f) {
			return nil, nil, errExpired("upload")
		}
		again := *f
		again.repeated = true
		f = &again
	}
	if f.Direct() {
		if sign, err = m.directURLs(ctx, f, now); err != nil {
			return nil, nil, fmt.Errorf("start upload: %w", err)
		}
		return f, sign, nil
	}
	if f.State == Open {
		if err := m.assembly(f).Begin(ctx); err != nil {
			if f.Key == want.Key {
				m.forget(ctx, f.Key)
			}
			return nil, nil, fmt.Errorf("start upload: %w", err)
		}
	}
	return f, m.urls(f, now), nil
}

// room returns an error unless n more bytes can be uploaded.
func (m *Manager) room(ctx context.Context, n int64) error {
	if m.opts.MinFree < 0 {
		return nil
	}
	free, err := blob.FreeSpace(ctx, m.blobs)
	switch {
	case errors.Is(err, errors.ErrUnsupported):
		return nil
	case err != nil:
		return fmt.Errorf("free space: %w", err)
	case free-n < m.opts.MinFree:
		return fmt.Errorf("%d bytes are free; the upload needs %d, and %d must remain free: %w", free, n, m.opts.MinFree, syscall.ENOSPC)
	}
	return nil
}

// FreeSpace returns how many more bytes the blob store can hold. If the store does not
// know, the error matches errors.ErrUnsupported.
func (m *Manager) FreeSpace(ctx context.Context) (int64, error) { return blob.FreeSpace(ctx, m.blobs) }

// forget removes the record of a file that could not be created.
func (m *Manager) forget(ctx context.Context, key string) {
	if err := m.store.Delete(context.WithoutCancel(ctx), key); err != nil {
		m.log.Warn("cannot delete file record", "err", err)
	}
}

// urlExpires returns when URLs issued now expire.
func (m *Manager) urlExpires(f *File, now time.Time) time.Time {
	expires := now.Add(m.opts.URLTTL)
	if f.State == Open && f.Expires.Before(expires) {
		expires = f.Expires
	}
	return expires
}

// urls returns a function that signs the URLs of f. The same part always gets the same
// URL.
func (m *Manager) urls(f *File, now time.Time) func(part int) (*url.URL, error) {
	expires := m.urlExpires(f, now).Unix()
	return func(part int) (*url.URL, error) {
		return m.signer.url(ticket{f.Key, f.UploadID, part, min(f.Size, MaxPart), expires}), nil
	}
}

func (m *Manager) assembly(f *File) *blob.Assembly {
	return &blob.Assembly{Store: m.blobs, ID: f.Key, Size: f.Size, Parts: f.Parts}
}

// expired reports whether a file has expired, swept or not.
func (m *Manager) expired(f *File) bool {
	return f.State == Expired || !f.Expires.IsZero() && !m.now().Before(f.Expires)
}

func errExpired(what string) error {
	return &Error{Kind: ErrExpired, Message: "the " + what + " has expired"}
}

func errNotFound() error {
	return &Error{Kind: fs.ErrNotExist, Message: "no such file"}
}

// get returns the record of an owner. For a record of another owner it fails with
// fs.ErrNotExist.
func (m *Manager) get(ctx context.Context, owner, key string) (*File, error) {
	if !isID(key) {
		return nil, errNotFound()
	}
	f, err := m.store.Get(ctx, key)
	return owned(owner, f, err)
}

// getParts is like get, with the parts of the file.
func (m *Manager) getParts(ctx context.Context, owner, key string) (*File, []Part, error) {
	if !isID(key) {
		return nil, nil, errNotFound()
	}
	f, parts, err := m.store.Parts(ctx, key)
	f, err = owned(owner, f, err)
	return f, parts, err
}

// owned turns a result of the store into a result of get.
func owned(owner string, f *File, err error) (*File, error) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, errNotFound()
	case err != nil:
		return nil, fmt.Errorf("file record: %w", err)
	case owner != "" && f.Owner != owner:
		return nil, errNotFound()
	}
	return f, nil
}

// Get returns the record of a file, with its current State. The owner "" may see every
// file: it is for links that are capabilities themselves. If the file does not exist or
// belongs to another owner, the error matches fs.ErrNotExist.
func (m *Manager) Get(ctx context.Context, owner, key string) (*File, error) {
	f, err := m.get(ctx, owner, key)
	if err != nil {
		return nil, err
	}
	if m.expired(f) {
		f.State = Expired
	}
	return f, nil
}

// Ready returns the record of a file that can be opened. Otherwise the error matches
// [ErrIncomplete], [ErrExpired] or fs.ErrNotExist. For owner see [Manager.Get].
func (m *Manager) Ready(ctx context.Context, owner, key string) (*File, error) {
	f, err := m.get(ctx, owner, key)
	if err != nil {
		return nil, err
	}
	if err := m.ready(f); err != nil {
		return nil, err
	}
	return f, nil
}

// ReadyAll is [Manager.Ready] for many files, which it reads together. If it fails, it
// returns the files before the one with the error.
func (m *Manager) ReadyAll(ctx context.Context, owner string, keys []string) ([]*File, error) {
	all, err := m.store.GetAll(ctx, slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return !isID(key) }))
	if err != nil {
		return nil, fmt.Errorf("file records: %w", err)
	}
	files := make([]*File, 0, len(keys))
	for _, key := range keys {
		f := all[key]
		if f == nil || owner != "" && f.Owner != owner {
			return files, errNotFound()
		}
		if err := m.ready(f); err != nil {
			return files, err
		}
		files = append(files, f)
	}
	return files, nil
}

// ready returns nil if the file can be opened, else the error.
func (m *Manager) ready(f *File) error {
	switch {
	case m.expired(f):
		return errExpired("file")
	case f.State != Ready:
		return &Error{Kind: ErrIncomplete, Message: "the upload of the file is not complete"}
	}
	return nil
}

// Open opens a file for reading. For the errors see [Manager.Ready], for owner see
// [Manager.Get]. If the content is gone or has the wrong size, the error matches
// [ErrContentLost].
func (m *Manager) Open(ctx context.Context, owner, key string) (*File, blob.Object, error) {
	f, err := m.get(ctx, owner, key)
	if err != nil {
		return nil, nil, err
	}
	o, err := m.OpenFile(ctx, owner, f)
	if err != nil {
		return nil, nil, err
	}
	return f, o, nil
}

// OpenFile is [Manager.Open] for a record that was just read, by [Manager.Get].
func (m *Manager) OpenFile(ctx context.Context, owner string, f *File) (blob.Object, error) {
	if owner != "" && f.Owner != owner {
		return nil, errNotFound()
	}
	if err := m.ready(f); err != nil {
		return nil, err
	}
	o, err := m.blobs.Open(ctx, f.Object)
	if err == nil {
		if err = checkSize(f, o.Info()); err == nil {
			return o, nil
		}
		o.Close() // better no content than wrong content
	}
	return nil, m.contentError(ctx, owner, f, err)
}

// Keep postpones the expiry of a file that can be opened, so that it does not expire before
// until. For the errors see [Manager.Ready], for owner see [Manager.Get].
func (m *Manager) Keep(ctx context.Context, owner, key string, until time.Time) error {
	if _, err := m.Ready(ctx, owner, key); err != nil {
		return err
	}
	until = until.UTC().Truncate(time.Millisecond)
	_, err := m.store.Update(ctx, key, func(f *File) error {
		if err := m.ready(f); err != nil {
			return err
		}
		if !f.Expires.IsZero() && f.Expires.Before(until) {
			f.Expires = until
		}
		return nil
	})
	return err
}

// Delete removes a file or session and its content now. For owner see
// [Manager.Get].
func (m *Manager) Delete(ctx context.Context, owner, key string) error {
	unlock, err := m.lock(ctx, key)
	if err != nil {
		return err
	}
	defer unlock()
	f, err := m.get(ctx, owner, key)
	if err != nil {
		return err
	}
	// The record goes first: clients must never see a file without content. If we are
	// interrupted, the rest of the content has no record and is swept.
	if err := m.store.Delete(ctx, key); err != nil {
		return fmt.Errorf("delete file record: %w", err)
	}
	return m.deleteContent(ctx, f)
}

// tombstoneTTL is how long a tombstone lasts, unless files expire sooner.
const tombstoneTTL = 24 * time.Hour

// Tombstone removes the file of a key, if it exists, and keeps [Manager.Add] from
// creating one with that key later. A late worker may not know that its claim is lost.
// It is for keys that the caller has chosen (File.Key). The tombstone is the record of
// an expired file. It lasts a day, or as long as files if that is less. there reports
// whether the file existed.
func (m *Manager) Tombstone(ctx context.Context, owner, key string) (there bool, err error) {
	if !isID(key) {
		return false, &Error{Kind: ErrInvalid, Message: "invalid key"}
	}
	now := m.now()
	stone := &File{Key: key, Owner: owner, State: Expired, Object: objectPrefix + key, Created: now, Expires: now.Add(tombstoneTTL)}
	if m.opts.FileTTL > 0 {
		stone.Expires = now.Add(min(tombstoneTTL, m.opts.FileTTL))
	}
	for {
		_, err := m.store.Create(ctx, stone) // usually the file does not exist
		if errors.Is(err, fs.ErrExist) {
			if there, err = m.replace(ctx, stone); errors.Is(err, fs.ErrNotExist) {
				continue // it has just been deleted
			}
		}
		if err != nil {
			err = fmt.Errorf("tombstone: %w", err)
		}
		return there, err
	}
}

// replace replaces an existing record by another, unless it has expired, and removes
// its content.
func (m *Manager) replace(ctx context.Context, by *File) (bool, error) {
	unlock, err := m.lock(ctx, by.Key)
	if err != nil {
		return false, err
	}
	defer unlock()
	var old File
	if _, err := m.store.Update(ctx, by.Key, func(f *File) error {
		old = *f
		if f.State != Expired {
			*f = *by
		}
		return nil
	}); err != nil || old.State == Expired {
		return false, err
	}
	return true, m.deleteContent(ctx, &old)
}

func (m *Manager) deleteContent(ctx context.Context, f *File) error {
	var errs []error
	if f.State == Open {
		errs = append(errs, m.abortDirect(ctx, f), m.assembly(f).Abort(ctx))
	}
	errs = append(errs, m.blobs.Delete(ctx, f.Object))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("delete content: %w", err)
	}
	return nil
}

// Add registers a file that does not come from a client, such as the result of an
// operation. The content is f.Size bytes of r or, if path is not "", the regular file
// at path. Add ignores f.Size for a path, and moves the file into the store if
// possible.
//
// Add uses the fields Owner, Name, ContentType and Task of f. It also uses Expires
// unless it is zero, and ETag unless it is empty. The default ETag is the hex MD5 of
// the bytes read from r, or a unique value if the file was moved. Key, if not empty, is
// for callers that must find the file again after a crash, before they have learnt its
// key. It must be 26 characters of a to z and 2 to 7 that cannot be guessed, see
// [KeyOf], and that no other file has had. If a record has the key, such as a tombstone
// (see [Manager.Tombstone]), the error matches fs.ErrExist.
func (m *Manager) Add(ctx context.Context, f File, r io.Reader, path string) (*File, error) {
	f.UploadID, f.Parts = "", 0
	return m.addFile(ctx, f, r, path)
}

// addFile is Add for a file that may also be an upload: it uses UploadID and Parts of f.
func (m *Manager) addFile(ctx context.Context, f File, r io.Reader, path string) (*File, error) {
	key, err := f.Key, error(nil)
	if key == "" {
		key, err = m.newID()
	} else if !isID(key) {
		err = &Error{Kind: ErrInvalid, Message: "invalid key"}
	}
	if err != nil {
		return nil, err
	}
	if path == "" && f.Size < 0 {
		return nil, &Error{Kind: ErrInvalid, Message: "size is negative"}
	}
	now := m.now()
	added := &File{
		Key:         key,
		Owner:       f.Owner,
		Name:        CleanName(f.Name),
		ContentType: cleanType(f.ContentType),
		Size:        f.Size,
		State:       Ready,
		Object:      objectPrefix + key,
		UploadID:    f.UploadID,
		Parts:       f.Parts,
		ETag:        f.ETag,
		Task:        f.Task,
		Created:     now,
		Expires:     f.Expires,
	}
	if added.Expires.IsZero() {
		added.Expires = m.fileExpires(now)
	}
	etag, err := m.addContent(ctx, added, r, path)
	if err != nil {
		return nil, fmt.Errorf("store content: %w", err)
	}
	added.ETag = cmp.Or(added.ETag, etag)
	stored, err := m.store.Create(ctx, added)
	if err != nil {
		// If this fails too, Sweep will find it.
		if err := m.blobs.Delete(context.WithoutCancel(ctx), added.Object); err != nil {
			m.log.Warn("cannot remove content without record", "err", err)
		}
		return nil, fmt.Errorf("record file: %w", err)
	}
	return stored, nil
}

// addContent stores the content of a new file, and sets its size.
func (m *Manager) addContent(ctx context.Context, f *File, r io.Reader, path string) (etag string, err error) {
	if path == "" {
		body := newBody(r)
		defer body.digest.close()
		err = m.blobs.Put(ctx, f.Object, body, f.Size)
		return body.etag(), err
	}
	if err := blob.PutFile(ctx, m.blobs, f.Object, path); err != nil {
		return "", err
	}
	i, err := blob.Stat(ctx, m.blobs, f.Object)
	if err != nil {
		return "", err
	}
	f.Size = i.Size
	// Reading the file only for its ETag would cost more than moving it. The content of
	// a key never changes, so any value derived from the key works.
	sum := sha256.Sum256([]byte("filewright etag\n" + f.Key))
	return hex.EncodeToString(sum[:16]), nil
}

func (m *Manager) fileExpires(now time.Time) time.Time {
	if m.opts.FileTTL < 0 {
		return time.Time{}
	}
	return now.Add(m.opts.FileTTL)
}
