package upload

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/filewright/filewright/upload/blob"
)

// IdentityKey is the key of the object that holds the identity of a blob store.
const IdentityKey = "identity"

// ErrIdentity reports records and content that do not belong together. The error is an
// [IdentityError].
var ErrIdentity = errors.New("records and content do not belong together")

// An IdentityError reports that a Store and a blob store do not belong together. It
// matches [ErrIdentity].
type IdentityError struct {
	Records, Content     string // descriptions of both, see [BindOptions]
	RecordsID, ContentID string // their identities; "" if missing
	Reason               string
}

// Error names both sides and the reason.
func (e *IdentityError) Error() string {
	return fmt.Sprintf("%s (identity %s) and %s (identity %s) do not belong together: %s",
		e.Records, cmp.Or(e.RecordsID, "none"), e.Content, cmp.Or(e.ContentID, "none"), e.Reason)
}

// Is reports whether target is [ErrIdentity].
func (e *IdentityError) Is(target error) bool { return target == ErrIdentity }

// BindOptions configure [Manager.Bind]. The zero value is usable.
type BindOptions struct {
	// Adopt gives both sides a new identity, whatever they have. Content without a
	// record stays where it is for Options.Grace, and in quarantine for the whole time
	// of Options.Quarantine.
	Adopt bool

	// Records and Content describe the stores in errors, such as "the database
	// data/filewright.db" and "the directory data/blobs".
	Records, Content string
}

// Bind checks that the records and the content belong together, so that an empty or
// wrong database does not make all content look like garbage. Both carry the same
// random identity, which the first Bind creates. Call Bind before using the Manager.
// Several processes may call it at the same time.
//
// If one or both sides have no identity, Bind accepts other evidence. The blob store
// has the content of one of the newest files, or there are neither file records nor
// contents. Otherwise the error is an [*IdentityError], and nothing has changed.
func (m *Manager) Bind(ctx context.Context, o BindOptions) error {
	o.Records, o.Content = cmp.Or(o.Records, "the record store"), cmp.Or(o.Content, "the blob store")
	if o.Adopt {
		return m.adopt(ctx, o)
	}
	records, content, err := m.identities(ctx)
	if err != nil {
		return err
	}
	if content.ID == "" {
		if records, err = m.claim(ctx, o, records); err != nil {
			return err
		}
		if content, err = m.readIdentity(ctx); err != nil {
			return err
		}
	}
	if e := compare(records, content); e != nil {
		e.Records, e.Content = o.Records, o.Content
		return e
	}
	return nil
}

// compare returns why two identities do not belong together, or nil. The caller sets
// the descriptions.
func compare(records, content identity) *IdentityError {
	e := &IdentityError{RecordsID: records.ID, ContentID: content.ID}
	switch {
	case records.ID == content.ID:
		return nil
	case records.ID == "":
		e.Reason = "the files are those of another database"
	case content.ID == "":
		e.Reason = "the identity of the files is missing"
	default:
		e.Reason = "the identities differ"
	}
	return e
}

// claim gives a blob store without an identity the identity of the records, which it
// creates if necessary.
func (m *Manager) claim(ctx context.Context, o BindOptions, records identity) (identity, error) {
	if reason, err := m.foreign(ctx); err != nil || reason != "" {
		if err == nil {
			err = &IdentityError{Records: o.Records, Content: o.Content, RecordsID: records.ID, Reason: reason}
		}
		return records, err
	}
	if records.ID == "" {
		id, err := m.newID()
		if err != nil {
			return records, err
		}
		// If several processes start at the same time, one of them wins.
		if records, err = m.replaceIdentity(ctx, "", identity{ID: id}); err != nil {
			return records, err
		}
	}
	// A process with other records may have been first.
	if content, err := m.readIdentity(ctx); err != nil || content.ID != "" {
		return records, err
	}
	return records, m.writeIdentity(ctx, records)
}

// foreign returns why the content does not belong to the records, judging by both, or
// "".
func (m *Manager) foreign(ctx context.Context) (reason string, err error) {
	const enough = 20 // number of files to try: some content may be lost
	newest, err := m.store.NewestReady(ctx, enough)
	if err != nil {
		return "", fmt.Errorf("newest files: %w", err)
	}
	for _, f := range newest {
		_, err := blob.Stat(ctx, m.blobs, f.Object)
		if err == nil {
			return "", nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("stat content: %w", err)
		}
	}
	if len(newest) > 0 {
		return "the content of the newest files is not there", nil
	}
	for _, err := range m.blobs.List(ctx, objectPrefix) {
		if err != nil {
			return "", fmt.Errorf("list content: %w", err)
		}
		return "there are files, but no record of any", nil
	}
	return "", nil
}

// adopt gives both sides a new identity.
func (m *Manager) adopt(ctx context.Context, o BindOptions) error {
	records, content, err := m.identities(ctx)
	if err != nil {
		return err
	}
	id, err := m.newID()
	if err != nil {
		return err
	}
	adopted, err := m.replaceIdentity(ctx, records.text, identity{ID: id, Adopted: m.now()})
	if err != nil {
		return err
	}
	m.log.Warn("files adopted; content without a record will be removed", "records", o.Records, "old_identity", records.ID,
		"content", o.Content, "old_content_identity", content.ID, "identity", adopted.ID, "not_before", adopted.Adopted.Add(m.opts.Grace))
	// Another process may adopt them at the same time. The identity of the records
	// decides.
	for {
		if err := m.writeIdentity(ctx, adopted); err != nil {
			return err
		}
		records, content, err := m.identities(ctx)
		if err != nil || compare(records, content) == nil {
			return err
		}
		adopted = records
	}
}

// An identity identifies a pair of stores.
type identity struct {
	ID      string    `json:"id"`
	Adopted time.Time `json:"adopted,omitzero"` // when an operator declared that they belong together
	text    string    // as stored; "" if missing
}

func parseIdentity(text string) (i identity, err error) {
	if text == "" {
		return i, nil
	}
	if err := json.Unmarshal([]byte(text), &i); err != nil || i.ID == "" {
		return i, fmt.Errorf("the identity is damaged: %.100q", text)
	}
	i.text = text
	return i, nil
}

func (i identity) String() string {
	text, err := json.Marshal(i)
	if err != nil {
		panic(err) // cannot fail: the time is from time.Now
	}
	return string(text)
}

// identities returns the identities of the records and of the content.
func (m *Manager) identities(ctx context.Context) (records, content identity, err error) {
	// Read the content's first: the records get theirs first, so content with an
	// identity implies records with one, even while another process creates both.
	if content, err = m.readIdentity(ctx); err != nil {
		return records, content, err
	}
	text, err := m.store.Identity(ctx)
	if err == nil {
		records, err = parseIdentity(text)
	}
	if err != nil {
		err = fmt.Errorf("identity of the records: %w", err)
	}
	return records, content, err
}

func (m *Manager) replaceIdentity(ctx context.Context, old string, by identity) (identity, error) {
	text, err := m.store.ReplaceIdentity(ctx, old, by.String())
	if err == nil {
		by, err = parseIdentity(text)
	}
	if err != nil {
		return by, fmt.Errorf("identity of the records: %w", err)
	}
	return by, nil
}

// readIdentity returns the identity of the content.
func (m *Manager) readIdentity(ctx context.Context) (identity, error) {
	text, err := readSmall(ctx, m.blobs, IdentityKey)
	if errors.Is(err, fs.ErrNotExist) {
		return identity{}, nil
	}
	if err == nil {
		var i identity
		if i, err = parseIdentity(string(text)); err == nil {
			return i, nil
		}
	}
	return identity{}, fmt.Errorf("identity of the content: %w", err)
}

func readSmall(ctx context.Context, s blob.Store, key string) ([]byte, error) {
	o, err := s.Open(ctx, key)
	if err != nil {
		return nil, err
	}
	defer o.Close()
	return io.ReadAll(io.LimitReader(blob.NewReader(o), 4096))
}

func (m *Manager) writeIdentity(ctx context.Context, i identity) error {
	if err := m.blobs.Put(ctx, IdentityKey, bytes.NewReader([]byte(i.text)), int64(len(i.text))); err != nil {
		return fmt.Errorf("identity of the content: %w", err)
	}
	return nil
}
