package upload

import (
	"context"
	"crypto/md5"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/filewright/filewright/upload/blob"
)

// A DifferenceKind is a way in which records and contents differ.
type DifferenceKind string

// The kinds of differences that [Manager.Check] finds.
const (
	DifferenceMissing  DifferenceKind = "missing"      // a complete file has no content
	DifferenceSize     DifferenceKind = "wrong_size"   // the content of a complete file has another size
	DifferenceDamaged  DifferenceKind = "damaged"      // content cannot be read, or has another checksum
	DifferenceOrphan   DifferenceKind = "orphan"       // content without a record
	DifferencePart     DifferenceKind = "missing_part" // an open upload lacks an acknowledged part
	DifferenceLeftover DifferenceKind = "leftover"     // parts of an upload that is not open

	// DifferenceQuarantined is content in quarantine whose record exists again. The
	// file is also reported as missing.
	DifferenceQuarantined DifferenceKind = "quarantined"
)

// A Difference is one finding of [Manager.Check].
type Difference struct {
	Kind     DifferenceKind `json:"kind"`
	Key      string         `json:"file_key"`         // of the file or the upload
	Object   string         `json:"object,omitempty"` // key in the blob store
	Size     int64          `json:"size"`             // bytes in the blob store
	Want     int64          `json:"want_size"`        // bytes according to the record
	Time     time.Time      `json:"time,omitzero"`    // of the record; of the content if there is no record
	Detail   string         `json:"detail,omitempty"` // for people
	Repaired bool           `json:"repaired"`
}

// CheckCounts counts the objects that [Manager.Check] has examined.
type CheckCounts struct {
	Records  int64 `json:"records"`        // of files in any state
	Objects  int64 `json:"objects"`        // contents of files
	Uploads  int64 `json:"uploads"`        // open uploads
	Recent   int64 `json:"recent_orphans"` // content without a record that is too young to judge
	Bytes    int64 `json:"bytes_read"`     // with CheckOptions.Deep
	Verified int64 `json:"verified"`       // files whose checksum was compared

	Quarantined int64 `json:"quarantined"` // contents in quarantine
}

// CheckOptions configure [Manager.Check]. The zero value is usable.
type CheckOptions struct {
	// Deep reads all contents. It compares those of uploads with their ETag if that is
	// a checksum, which it is not if clients sent the parts directly to the blob store.
	Deep bool

	// Repair restores content from quarantine whose record exists again, moves content
	// without a record to quarantine, and removes leftovers. Lost content stays lost.
	Repair bool

	// Grace is the age from which content without a record is a difference: the record
	// of younger content may still be written. The check waits for younger content if
	// Grace is a minute or less, else it counts it as Recent. 0 means Options.Grace.
	Grace time.Duration

	// Progress, if not nil, is called after each step with the counts so far.
	Progress func(CheckCounts)

	// secondLook is the time after which content without a record is checked again. A
	// deletion removes the record first, and the content right after it. 0: 2 seconds.
	secondLook time.Duration
}

const (
	// maxSuspects is the maximum number of contents that wait for their second check.
	maxSuspects = 50_000

	// maxGrace is the longest Grace that a check waits for.
	maxGrace = time.Minute

	// clockSkew is by how much the clocks of servers may differ: a file that expires
	// within that time may be gone already.
	clockSkew = time.Minute
)

// Check compares the records with the contents, in both directions, and calls found for
// each difference. If found returns an error, the check stops. If the records and the
// contents do not belong together (see [Manager.Bind]), the error matches
// [ErrIdentity]. Check may run while servers run, even in another process: it checks
// each difference twice, so that concurrent uploads, completions and deletions are not
// reported. A check that could not examine everything fails.
//
// Check merges the sorted lists of records and contents. Its memory depends on the
// number of staging areas and of contents without a record, at most 50,000 at a time,
// not on the number of files.
func (m *Manager) Check(ctx context.Context, o CheckOptions, found func(Difference) error) (CheckCounts, error) {
	def(&o.Grace, m.opts.Grace, o.Grace == 0)
	def(&o.secondLook, 2*time.Second, o.secondLook == 0)
	def(&o.Progress, func(CheckCounts) {}, o.Progress == nil)
	c := &checker{Manager: m, o: o, found: found}
	for _, step := range []func(context.Context) error{c.identity, c.quarantine, c.files, c.uploads} {
		if err := step(ctx); err != nil {
			return c.counts, fmt.Errorf("check files: %w", err)
		}
	}
	return c.counts, nil
}

// A checker is one run of Check.
type checker struct {
	*Manager
	o        CheckOptions
	found    func(Difference) error
	counts   CheckCounts
	suspects []blob.Info // contents without a record
	noticed  time.Time   // when the last suspect was seen
	young    bool        // a suspect is younger than Grace
	buf      []byte      // for reading contents
}

// identity returns an error unless the records and the contents belong together.
func (c *checker) identity(ctx context.Context) error {
	records, content, err := c.identities(ctx)
	if err != nil {
		return err
	}
	if e := compare(records, content); e != nil {
		e.Records, e.Content = "the record store", "the blob store"
		return e
	}
	return nil
}

// quarantine looks for content in quarantine whose record exists again.
func (c *checker) quarantine(ctx context.Context) error {
	for q, err := range c.Quarantined(ctx) {
		if err != nil {
			return err
		}
		c.counts.Quarantined++
		c.o.Progress(c.counts)
		lost, err := c.lostToQuarantine(ctx, q)
		if err != nil {
			return err
		}
		if !lost {
			continue
		}
		d := Difference{Kind: DifferenceQuarantined, Key: q.File, Object: q.Key, Size: q.Size, Want: q.Size, Time: q.Since}
		if c.o.Repair {
			if d.Repaired, err = c.Restore(ctx, q.Key); err != nil {
				return err
			}
			if !d.Repaired { // its file has ended, or its content exists
				continue
			}
		}
		if err := c.found(d); err != nil {
			return err
		}
	}
	return nil
}

// lostToQuarantine reports whether a file lacks the content that is in quarantine.
func (c *checker) lostToQuarantine(ctx context.Context, q Quarantined) (bool, error) {
	needed, err := c.recordNeeds(ctx, q.File, func(f *File) bool { return needs(f, q.Object) && f.Size == q.Size && !c.ending(f) })
	if err != nil || !needed {
		return false, err
	}
	_, err = blob.Stat(ctx, c.blobs, q.Object)
	if errors.Is(err, fs.ErrNotExist) {
		if _, err = blob.Stat(ctx, c.blobs, q.Key); err == nil {
			return true, nil
		}
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) { // restored in the meantime
		return false, nil
	}
	return false, fmt.Errorf("stat content: %w", err)
}

// files compares complete files with their contents.
func (c *checker) files(ctx context.Context) error {
	nextFile, stopFiles := iter.Pull2(c.store.All(ctx))
	defer stopFiles()
	nextObject, stopObjects := iter.Pull2(c.blobs.List(ctx, objectPrefix))
	defer stopObjects()

	f, ferr, more := nextFile()
	i, ierr, moreObjects := nextObject()
	for more || moreObjects {
		if err := errors.Join(ferr, ierr); err != nil {
			return err
		}
		hasRecord := more && (!moreObjects || f.Object <= i.Key)
		hasObject := moreObjects && (!more || i.Key <= f.Object)
		var err error
		switch {
		case hasRecord && f.State == Ready:
			err = c.file(ctx, f, hasObject && i.Size == f.Size)
		case hasObject && (!hasRecord || f.State == Expired):
			err = c.suspect(ctx, i)
		}
		if err != nil {
			return err
		}
		if hasRecord {
			c.counts.Records++
			f, ferr, more = nextFile()
		}
		if hasObject {
			c.counts.Objects++
			i, ierr, moreObjects = nextObject()
		}
		c.o.Progress(c.counts)
	}
	if err := errors.Join(ferr, ierr); err != nil {
		return err
	}
	return c.confirmSuspects(ctx)
}

// ending reports whether a file or session has expired, or may have expired by another
// clock.
func (c *checker) ending(f *File) bool {
	return f.State == Expired || !f.Expires.IsZero() && f.Expires.Before(c.now().Add(clockSkew))
}

// file checks a complete file. listed reports whether its content was listed with the
// right size.
func (c *checker) file(ctx context.Context, f *File, listed bool) error {
	if c.ending(f) {
		return nil
	}
	if !listed {
		i, err := blob.Stat(ctx, c.blobs, f.Object)
		if err == nil {
			err = checkSize(f, i)
		}
		if isLost(err) {
			return c.lostFile(ctx, f, i, err)
		}
		if err != nil {
			return fmt.Errorf("stat content: %w", err)
		}
	}
	if c.o.Deep {
		return c.read(ctx, f)
	}
	return nil
}

// lostFile reports a file whose content was lost, unless it has expired or was deleted
// in the meantime.
func (c *checker) lostFile(ctx context.Context, f *File, i blob.Info, why error) error {
	d := Difference{Kind: DifferenceMissing, Key: f.Key, Object: f.Object, Size: i.Size, Want: f.Size, Time: f.Created}
	if !errors.Is(why, fs.ErrNotExist) {
		d.Kind = DifferenceSize
	}
	return c.ifReady(ctx, d)
}

// ifReady reports a difference of a complete file, unless it has expired or was deleted
// in the meantime.
func (c *checker) ifReady(ctx context.Context, d Difference) error {
	f, err := c.Ready(ctx, "", d.Key)
	var ended *Error
	if errors.As(err, &ended) || err == nil && c.ending(f) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.found(d)
}

// suspect records content without a record, for a second check.
func (c *checker) suspect(ctx context.Context, i blob.Info) error {
	if !c.old(i) {
		if c.o.Grace > maxGrace {
			c.counts.Recent++
			return nil
		}
		c.young = true
	}
	c.suspects, c.noticed = append(c.suspects, i), time.Now()
	if len(c.suspects) < maxSuspects {
		return nil
	}
	return c.confirmSuspects(ctx)
}

// old reports whether content is so old that there should be a record.
func (c *checker) old(i blob.Info) bool { return i.ModTime.Before(c.now().Add(-c.o.Grace)) }

// wait waits until the given pause after noticed has passed.
func (c *checker) wait(ctx context.Context, noticed time.Time, pause time.Duration) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(pause - time.Since(noticed)):
		return nil
	}
}

// confirmSuspects reports the suspects that have no record at the second check either.
func (c *checker) confirmSuspects(ctx context.Context) error {
	if len(c.suspects) == 0 {
		return nil
	}
	pause := c.o.secondLook
	if c.young {
		pause = max(pause, c.o.Grace)
	}
	if err := c.wait(ctx, c.noticed, pause); err != nil {
		return err
	}
	for _, i := range c.suspects {
		key := strings.TrimPrefix(i.Key, objectPrefix)
		needed, err := c.recordNeeds(ctx, key, func(f *File) bool { return needs(f, i.Key) })
		if err != nil {
			return err
		}
		if needed {
			continue
		}
		i, err = blob.Stat(ctx, c.blobs, i.Key)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return fmt.Errorf("stat content: %w", err)
		}
		if !c.old(i) { // rewritten, or written by a clock that is ahead
			c.counts.Recent++
			continue
		}
		d := Difference{Kind: DifferenceOrphan, Key: key, Object: i.Key, Size: i.Size, Time: i.ModTime}
		if c.o.Repair {
			if d.Repaired, err = c.Quarantine(ctx, i.Key); err != nil {
				return err
			}
			if !d.Repaired { // it has a record now, or is gone
				continue
			}
		}
		if err := c.found(d); err != nil {
			return err
		}
	}
	c.suspects, c.young = c.suspects[:0], false
	return nil
}

// recordNeeds reports whether the key has a record that satisfies is.
func (c *checker) recordNeeds(ctx context.Context, key string, is func(*File) bool) (bool, error) {
	f, err := c.store.Get(ctx, key)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("file record: %w", err)
	}
	return is(f), nil
}

// read reads the content of a complete file and compares its checksum.
func (c *checker) read(ctx context.Context, f *File) error {
	o, err := c.blobs.Open(ctx, f.Object)
	if isLost(err) {
		return c.lostFile(ctx, f, blob.Info{}, err)
	}
	if err != nil {
		return fmt.Errorf("open content: %w", err)
	}
	defer o.Close()
	d := Difference{Kind: DifferenceDamaged, Key: f.Key, Object: f.Object, Size: o.Info().Size, Want: f.Size, Time: f.Created}
	if err := checkSize(f, o.Info()); err != nil {
		return c.lostFile(ctx, f, o.Info(), err)
	}
	sizes, err := c.partSizes(ctx, f)
	if err != nil {
		return err
	}
	comparable := sizes != nil
	if !comparable {
		sizes = []int64{f.Size}
	}
	parts := make([]blob.Part, len(sizes))
	r := blob.NewReader(o)
	for n, size := range sizes {
		sum := md5.New()
		switch read, err := c.copy(ctx, sum, r, size); {
		case errors.Is(err, fs.ErrNotExist):
			return c.file(ctx, f, false) // deleted in the meantime, or lost
		case errors.Is(err, syscall.EIO):
			d.Detail = "it cannot be read: " + syscall.EIO.Error()
			return c.ifReady(ctx, d)
		case err != nil:
			return fmt.Errorf("read content: %w", err)
		case read < size:
			d.Detail = "it ends early"
			return c.ifReady(ctx, d)
		}
		parts[n] = blob.Part{Number: n + 1, ETag: hex.EncodeToString(sum.Sum(nil))}
	}
	if !comparable {
		return nil
	}
	c.counts.Verified++
	etag, err := blob.ETag(parts)
	if err != nil {
		return err
	}
	if etag != f.ETag {
		d.Detail = fmt.Sprintf("its checksum is %s, the record says %s", etag, f.ETag)
		return c.ifReady(ctx, d)
	}
	return nil
}

// partSizes returns the sizes of the parts from which the ETag of a file was computed,
// or nil if they are unknown or the ETag is not a checksum.
func (c *checker) partSizes(ctx context.Context, f *File) ([]int64, error) {
	switch {
	case f.UploadID == "" || f.Direct():
		return nil, nil
	case f.Parts == 1:
		return []int64{f.Size}, nil
	}
	_, parts, err := c.store.Parts(ctx, f.Key)
	if errors.Is(err, fs.ErrNotExist) { // deleted in the meantime
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("part records: %w", err)
	}
	var sizes []int64
	left := f.Size
	for _, p := range parts {
		sizes = append(sizes, p.Size)
		left -= p.Size
	}
	if left != 0 || len(parts) != f.Parts {
		return nil, nil
	}
	return sizes, nil
}

// copy is blob.Copy with progress reports.
func (c *checker) copy(ctx context.Context, w io.Writer, r io.Reader, n int64) (done int64, err error) {
	if c.buf == nil {
		c.buf = make([]byte, 1<<20)
	}
	for done < n {
		k, err := blob.Copy(ctx, w, r, min(n-done, 16<<20), c.buf)
		done += k
		c.counts.Bytes += k
		c.o.Progress(c.counts)
		if err != nil || k == 0 {
			return done, err
		}
	}
	return done, nil
}

// uploads checks the parts of open uploads, and searches for parts of other uploads.
func (c *checker) uploads(ctx context.Context) error {
	areas, err := c.areas(ctx)
	if err != nil {
		return err
	}
	lacking, err := c.lackingUploads(ctx, areas)
	if err != nil {
		return err
	}
	left, leftAreas, err := c.leftoverParts(ctx, areas)
	if err != nil {
		return err
	}
	if len(lacking)+len(left)+len(leftAreas) == 0 {
		return nil
	}
	if err := c.wait(ctx, time.Now(), c.o.secondLook); err != nil {
		return err
	}
	if areas, err = c.areas(ctx); err != nil {
		return err
	}
	for _, key := range lacking {
		_, staged := areas[key]
		if err := c.confirmLacking(ctx, key, staged); err != nil {
			return err
		}
	}
	if err := c.dropParts(ctx, left); err != nil {
		return err
	}
	return c.dropAreas(ctx, leftAreas, areas)
}

// lackingUploads returns the keys of open uploads with parts that were not found.
func (c *checker) lackingUploads(ctx context.Context, areas map[string]blob.Info) (lacking []string, err error) {
	for f, err := range c.store.OpenSessions(ctx) {
		if err != nil {
			return nil, fmt.Errorf("open sessions: %w", err)
		}
		c.counts.Uploads++
		c.o.Progress(c.counts)
		_, staged := areas[f.Key]
		lacks, err := c.lacksPart(ctx, f, staged)
		if err != nil {
			return nil, err
		}
		if lacks {
			lacking = append(lacking, f.Key)
		}
	}
	return lacking, nil
}

// leftoverParts returns old parts and staging areas without an open upload.
func (c *checker) leftoverParts(ctx context.Context, areas map[string]blob.Info) (parts []blob.Info, ids []string, err error) {
	isOpen := func(f *File) bool { return f.State == Open }
	for i, err := range c.blobs.List(ctx, blob.PartsPrefix) {
		if err != nil {
			return nil, nil, err
		}
		if needed, err := c.recordNeeds(ctx, partOwner(i), isOpen); err != nil {
			return nil, nil, err
		} else if !needed && c.old(i) {
			parts = append(parts, i)
		}
	}
	for id, i := range areas {
		if needed, err := c.recordNeeds(ctx, id, isOpen); err != nil {
			return nil, nil, err
		} else if !needed && c.old(i) {
			ids = append(ids, id)
		}
	}
	return parts, ids, nil
}

// dropParts reports parts without an upload that still exist, and deletes them if the check repairs.
func (c *checker) dropParts(ctx context.Context, parts []blob.Info) error {
	for _, i := range parts {
		i, err := blob.Stat(ctx, c.blobs, i.Key)
		if errors.Is(err, fs.ErrNotExist) || err == nil && !c.old(i) {
			continue
		}
		if err != nil {
			return fmt.Errorf("stat content: %w", err)
		}
		if err := c.leftover(i, partOwner(i), i.Key, func() error { return c.blobs.Delete(ctx, i.Key) }); err != nil {
			return err
		}
	}
	return nil
}

// dropAreas is dropParts for staging areas.
func (c *checker) dropAreas(ctx context.Context, ids []string, areas map[string]blob.Info) error {
	stager, _ := blob.As[blob.Stager](c.blobs) // without a Stager there are no areas
	for _, id := range ids {
		i, there := areas[id]
		if !there || !c.old(i) {
			continue
		}
		remove := func() error { return stager.AbortStaged(ctx, id) }
		if err := c.leftover(i, id, "", remove); err != nil {
			return err
		}
	}
	return nil
}

// partOwner returns the key of the file to which a part belongs.
func partOwner(i blob.Info) string {
	key, _, _ := strings.Cut(strings.TrimPrefix(i.Key, blob.PartsPrefix), "/")
	return key
}

// leftover reports parts that no upload needs.
func (c *checker) leftover(i blob.Info, key, object string, remove func() error) error {
	d := Difference{Kind: DifferenceLeftover, Key: key, Object: object, Size: i.Size, Time: i.ModTime, Detail: "parts of an upload that is not open"}
	if c.o.Repair {
		if err := remove(); err != nil {
			return fmt.Errorf("remove leftover: %w", err)
		}
		d.Repaired = true
	}
	return c.found(d)
}

// areas returns the staging areas.
func (c *checker) areas(ctx context.Context) (map[string]blob.Info, error) {
	areas := make(map[string]blob.Info)
	s, ok := blob.As[blob.Stager](c.blobs)
	if !ok {
		return areas, nil
	}
	for i, err := range s.ListStaged(ctx) {
		if err != nil {
			return nil, err
		}
		areas[i.Key] = i
	}
	return areas, nil
}

// lacksPart reports whether the store lacks an acknowledged part of an open upload.
// staged reports whether the upload has a staging area.
func (c *checker) lacksPart(ctx context.Context, f *File, staged bool) (bool, error) {
	if c.ending(f) {
		return false, nil
	}
	if f.Direct() {
		d, err := c.directStore()
		if err == nil {
			_, err = d.DirectParts(ctx, f.directUpload())
		}
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNoDirect) {
			return true, nil
		}
		return false, err
	}
	_, parts, err := c.store.Parts(ctx, f.Key)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("part records: %w", err)
	}
	for _, p := range parts {
		there := staged
		if !p.Staged {
			i, err := c.assembly(f).StatPart(ctx, p.assembled())
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return false, fmt.Errorf("stat part: %w", err)
			}
			there = err == nil && i.Size == p.Size
		}
		if !there {
			// A part that was sent again in the meantime is another object.
			_, now, err := c.store.Parts(ctx, f.Key)
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return false, fmt.Errorf("part records: %w", err)
			}
			return slices.Contains(now, p), nil
		}
	}
	return false, nil
}

// confirmLacking reports an upload that lacks parts, unless it was completed or has
// ended in the meantime, or one of its parts was just being replaced.
func (c *checker) confirmLacking(ctx context.Context, key string, staged bool) error {
	f, err := c.store.Get(ctx, key)
	if err == nil && f.State == Open {
		var lacks bool
		if lacks, err = c.lacksPart(ctx, f, staged); err == nil && !lacks {
			return nil
		}
	}
	if err == nil {
		// A completion joins the parts before it updates the record.
		if _, err = blob.Stat(ctx, c.blobs, f.Object); err == nil {
			return nil
		}
		if errors.Is(err, fs.ErrNotExist) {
			f, err = c.store.Get(ctx, key)
		}
	}
	if errors.Is(err, fs.ErrNotExist) || err == nil && (f.State != Open || c.ending(f)) {
		return nil
	}
	if err != nil {
		return err
	}
	return c.found(Difference{Kind: DifferencePart, Key: key, Object: f.Object, Want: f.Size, Time: f.Created, Detail: "the client must upload the file again"})
}
