// Package fsblob keeps blobs as files in a directory, for one process or for several.
//
// # Layout
//
//	obj/     the objects
//	stage/   one file for each staging area
//	tmp/     files that are being written, and links to open objects
//
// An object with the key "a/b/name" is the file obj/=a/=b/-na/name: "=" marks an
// element of the key, "-" the first two characters of the last element. They spread
// objects with random names over many directories, keep objects in key order, and allow
// both "a" and "a/b" to be objects. An element of a key is at most 250 bytes long.
//
// # Durability
//
// An object is written to a temporary file or a staging area, which is synced, renamed
// into place, and then its directory is synced. So after any crash an object is complete or missing,
// and acknowledged objects exist. On Linux, writes to staging areas of 256 MiB and more
// bypass the page cache. All directories must be on one file system. Files have mode
// 0600, directories 0700.
//
// Errors name keys, not paths.
package fsblob

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/filewright/filewright/upload/blob"
)

const (
	objDir   = "obj"
	stageDir = "stage"
	tmpDir   = "tmp"

	fileMode = 0o600
	dirMode  = 0o700

	bufSize    = 512 << 10 // of a copy; larger buffers are no faster
	maxElement = 250       // NAME_MAX is 255, and an element gets a mark
)

// A Store keeps blobs in a directory. It must be created by [New] or [NewShared].
type Store struct {
	dir    string // absolute
	shared bool
	root   *os.Root // of dir; external names reach the disk only through it
	bufs   sync.Pool

	aligned sync.Pool // buffers for direct writes

	// dirs lets renames into object directories run concurrently, but not together with
	// the creation or removal of directories. So a directory that a rename finds is
	// durable and not removed before the rename. Other processes may still remove it
	// when it is empty.
	dirs  sync.RWMutex
	known map[string]bool // object directories that exist durably

	syncs            sync.Mutex
	syncing, waiting map[string]*dirSync // by directory: running now, and running next
}

// New returns the store in a directory, which it creates if necessary. [Store.Close]
// releases it. Other processes may only read objects in the directory.
func New(dir string) (*Store, error) { return open(dir, false) }

// NewShared is [New] for a directory that other processes use at the same time, on this
// host or, with a network file system, on others.
//
// A process can lose its lock while it writes a part, and notice that late. In the
// meantime the client may have sent the part again to another process, which may have
// finished the object. Therefore a failed write does not change the range: the disk
// space reserved for it is freed only when the area is removed.
func NewShared(dir string) (*Store, error) { return open(dir, true) }

func open(dir string, shared bool) (*Store, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(dir, dirMode); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	s := &Store{
		dir:    dir,
		shared: shared,
		root:   root,
		bufs:   sync.Pool{New: func() any { b := make([]byte, bufSize); return &b }},
		known:  make(map[string]bool),

		syncing: make(map[string]*dirSync),
		waiting: make(map[string]*dirSync),
		aligned: sync.Pool{New: func() any { b := aligned(); return &b }},
	}
	if err := s.prepare(); err != nil {
		root.Close()
		return nil, err
	}
	return s, nil
}

func (s *Store) prepare() error {
	made := false
	for _, d := range []string{objDir, stageDir, tmpDir} {
		err := s.root.Mkdir(d, dirMode)
		if err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		made = made || err == nil
	}
	if made {
		return s.syncDir(".")
	}
	// A predecessor may have been killed between a rename and the sync of the
	// directory. Sync, so that objects visible now do not disappear later.
	f, err := s.root.Open(".")
	if err != nil {
		return err
	}
	defer f.Close()
	return syncAll(f)
}

// Close releases the store. Open objects stay open.
func (s *Store) Close() error { return s.root.Close() }

// place returns the directory and the name of the file of an object.
func place(key string) (dir, name string) {
	elems := strings.Split(key, "/")
	name = elems[len(elems)-1]
	var b strings.Builder
	b.WriteString(objDir)
	for _, e := range elems[:len(elems)-1] {
		b.WriteString("/=")
		b.WriteString(e)
	}
	b.WriteString("/-")
	b.WriteString(shard(name))
	return b.String(), name
}

// shard returns the first two characters of s.
func shard(s string) string {
	n := 0
	for i := range s {
		if n == 2 {
			return s[:i]
		}
		n++
	}
	return s
}

func check(ctx context.Context, op, key string) error {
	ok := blob.ValidKey(key)
	for e := range strings.SplitSeq(key, "/") {
		ok = ok && len(e) <= maxElement
	}
	if !ok {
		return fmt.Errorf("%s %q: %w", op, key, fs.ErrInvalid)
	}
	return ctx.Err()
}

func checkID(ctx context.Context, op, id string) error {
	if strings.Contains(id, "/") {
		return fmt.Errorf("%s %q: %w", op, id, fs.ErrInvalid)
	}
	return check(ctx, op, id)
}

// fail describes an error by the key instead of the path.
func fail(op, key string, err error) error {
	switch e := err.(type) { //nolint:errorlint // a reader's error is kept, also if it wraps one of these
	case *fs.PathError:
		err = e.Err
	case *os.LinkError:
		err = e.Err
	}
	return fmt.Errorf("%s %s: %w", op, key, err)
}

// A temp is a new file that becomes an object or is removed.
type temp struct {
	*os.File
	s    *Store
	name string // in the root
}

func (s *Store) temp() (*temp, error) {
	name := tempName()
	f, err := s.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_RDWR, fileMode)
	if err != nil {
		return nil, err
	}
	return &temp{f, s, name}, nil
}

// tempName returns a name that starts with the current time, because a link has the
// modification time of its file.
func tempName() string {
	return tmpDir + "/" + strconv.FormatInt(time.Now().Unix(), 10) + "-" + rand.Text()
}

func (t *temp) discard() {
	t.Close()
	_ = t.s.root.Remove(t.name) // a sweep removes leftovers
}

// publish syncs the file and makes it the object key. t must not be used afterwards.
func (t *temp) publish(key string) error {
	err := t.Sync()
	if err == nil {
		err = t.s.rename(t.name, key)
	}
	if err != nil {
		t.discard()
		return err
	}
	return t.Close()
}

// rename durably turns a file of the root into an object.
func (s *Store) rename(name, key string) error {
	dir, base := place(key)
	for tries := 0; ; {
		s.dirs.RLock()
		ok := s.known[dir]
		var err error
		if ok {
			err = s.root.Rename(name, dir+"/"+base)
		}
		s.dirs.RUnlock()
		if errors.Is(err, fs.ErrNotExist) && tries < 10 {
			// Another process may have removed the empty directory.
			tries++
			s.forget(dir)
			continue
		}
		if err != nil {
			return err
		}
		if ok {
			break
		}
		if err := s.makeDir(dir); err != nil {
			return err
		}
	}
	// If the directory is missing, the object has been deleted already.
	if err := s.syncDir(dir); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// makeDir durably creates an object directory and its parents.
func (s *Store) makeDir(dir string) error {
	s.dirs.Lock()
	defer s.dirs.Unlock()
	parent := objDir
	for e := range strings.SplitSeq(strings.TrimPrefix(dir, objDir+"/"), "/") {
		d := parent + "/" + e
		if !s.known[d] {
			err := s.root.Mkdir(d, dirMode)
			if errors.Is(err, fs.ErrNotExist) && s.known[parent] {
				s.drop(parent) // removed by another process: start again
				return nil
			}
			if err != nil && !errors.Is(err, fs.ErrExist) {
				return err
			}
			// Sync even if another process has created it, because that may be
			// unsynced.
			if err := s.syncDir(parent); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			s.known[d] = true
		}
		parent = d
	}
	return nil
}

// forget drops a directory and its parents from the directories known to exist.
func (s *Store) forget(dir string) {
	s.dirs.Lock()
	defer s.dirs.Unlock()
	s.drop(dir)
}

// drop is forget for callers that hold s.dirs.
func (s *Store) drop(dir string) {
	for ; strings.Count(dir, "/") > 1; dir = path.Dir(dir) {
		delete(s.known, dir)
	}
}

// prune removes the directory of a deleted object, and its parents, if they are empty.
// It keeps directories of the first level of keys, which will be used again.
func (s *Store) prune(dir string) {
	if strings.Count(dir, "/") <= 2 { // obj/=a/-na
		return
	}
	s.dirs.Lock()
	defer s.dirs.Unlock()
	for ; strings.Count(dir, "/") > 1; dir = path.Dir(dir) {
		if s.root.Remove(dir) != nil {
			return
		}
		delete(s.known, dir)
	}
}

// A dirSync is one sync of a directory. It serves all callers that arrive before it starts.
type dirSync struct {
	done chan struct{} // closed after err is set
	err  error
}

// syncDir syncs a directory. Callers that arrive during a sync share the next one, so that many
// small uploads at once cost fewer than one sync each.
func (s *Store) syncDir(name string) error {
	s.syncs.Lock()
	d := s.waiting[name]
	first, before := d == nil, s.syncing[name]
	if first {
		d = &dirSync{done: make(chan struct{})}
		s.waiting[name] = d
	}
	s.syncs.Unlock()
	if !first {
		<-d.done
		return d.err
	}
	if before != nil {
		<-before.done
	}
	s.syncs.Lock()
	delete(s.waiting, name)
	s.syncing[name] = d
	s.syncs.Unlock()
	defer func() {
		s.syncs.Lock()
		if s.syncing[name] == d {
			delete(s.syncing, name)
		}
		s.syncs.Unlock()
		close(d.done)
	}()
	d.err = s.syncDirNow(name)
	return d.err
}

func (s *Store) syncDirNow(name string) error {
	d, err := s.root.Open(name)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// An earlyWriter writes to a file, starting at off. It makes the disk start writing
// while more data arrives, so that the final sync is shorter.
type earlyWriter struct {
	f       *os.File
	off     int64
	waiting int64 // bytes before off whose writing has not been started
}

// early is the number of bytes passed to the disk at a time.
const early = 8 << 20

func (w *earlyWriter) Write(p []byte) (int, error) {
	n, err := w.f.WriteAt(p, w.off)
	w.off += int64(n)
	if w.waiting += int64(n); w.waiting >= early {
		startWriting(w.f, w.off-w.waiting, w.waiting)
		w.waiting = 0
	}
	return n, err
}

// copy copies at most n bytes of r to w.
func (s *Store) copy(ctx context.Context, w io.Writer, r io.Reader, n int64) (int64, error) {
	buf := s.bufs.Get().(*[]byte)
	defer s.bufs.Put(buf)
	return blob.Copy(ctx, w, r, n, *buf)
}

// Put implements blob.Store. It reserves disk space before it reads r.
func (s *Store) Put(ctx context.Context, key string, r io.Reader, size int64) error {
	if err := check(ctx, "put", key); err != nil {
		return err
	}
	if size < 0 {
		return fmt.Errorf("put %s: size %d: %w", key, size, fs.ErrInvalid)
	}
	t, err := s.temp()
	if err != nil {
		return fail("put", key, err)
	}
	n, err := int64(0), reserve(t.File, 0, size)
	if err == nil {
		n, err = s.copy(ctx, &earlyWriter{f: t.File}, r, size)
	}
	if err == nil && n < size {
		err = fmt.Errorf("%d of %d bytes: %w", n, size, io.ErrUnexpectedEOF)
	}
	if err != nil {
		t.discard()
		return fail("put", key, err)
	}
	if err := t.publish(key); err != nil {
		return fail("put", key, err)
	}
	return nil
}

// PutFile implements blob.Composer. It moves the file if possible. It copies a file on
// another file system, and a file with other names, through which it could still be
// written.
func (s *Store) PutFile(ctx context.Context, key, path string) error {
	if err := check(ctx, "put", key); err != nil {
		return err
	}
	f, err := blob.OpenRegular(path)
	if err != nil {
		return fail("put", key, err)
	}
	defer f.Close()
	if err := s.putFile(ctx, key, path, f); err != nil {
		return fail("put", key, err)
	}
	return nil
}

func (s *Store) putFile(ctx context.Context, key, path string, f *os.File) error {
	if name := tempName(); s.takeOver(f, path, name) {
		err := s.finishTaken(f, name, key)
		if err != nil {
			return errors.Join(err, s.root.Remove(name))
		}
		os.Remove(path) // it has become a second name, or is gone
		return nil
	}
	st, err := f.Stat()
	if err != nil {
		return err
	}
	t, err := s.temp()
	if err != nil {
		return err
	}
	if err := s.copyRange(ctx, t.File, 0, f, 0, st.Size()); err != nil {
		t.discard()
		return err
	}
	return t.publish(key)
}

// finishTaken turns a file that another program wrote into an object.
func (s *Store) finishTaken(f *os.File, name, key string) error {
	if err := f.Chmod(fileMode); err != nil {
		return err
	}
	// The modification time of an object is the time at which it was stored.
	if err := s.root.Chtimes(name, time.Time{}, time.Now()); err != nil {
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	return s.rename(name, key)
}

// Compose implements blob.Composer.
func (s *Store) Compose(ctx context.Context, key string, from []string) error {
	if err := check(ctx, "compose", key); err != nil {
		return err
	}
	t, err := s.temp()
	if err != nil {
		return fail("compose", key, err)
	}
	var off int64
	for _, k := range from {
		n, err := s.appendObject(ctx, t.File, off, k, -1)
		if err != nil {
			t.discard()
			return fail("compose", key, err)
		}
		off += n
	}
	if err := t.publish(key); err != nil {
		return fail("compose", key, err)
	}
	for _, k := range from {
		_ = s.Delete(ctx, k) // a sweep removes leftovers
	}
	return nil
}

// appendObject copies an object into a file. It fails if the object's size differs from
// the given one; -1 accepts any size.
func (s *Store) appendObject(ctx context.Context, dst *os.File, off int64, key string, size int64) (int64, error) {
	o, err := s.open(ctx, key)
	if err != nil {
		return 0, err
	}
	defer o.Close()
	n := o.info.Size
	if size >= 0 && size != n {
		return 0, fmt.Errorf("%s has %d bytes instead of %d: %w", key, n, size, fs.ErrInvalid)
	}
	return n, s.copyRange(ctx, dst, off, o.f, 0, n)
}

// copyPortably copies n bytes through memory.
func (s *Store) copyPortably(ctx context.Context, dst *os.File, dstOff int64, src *os.File, srcOff, n int64) error {
	k, err := s.copy(ctx, io.NewOffsetWriter(dst, dstOff), io.NewSectionReader(src, srcOff, n), n)
	if err == nil && k < n {
		err = io.ErrUnexpectedEOF
	}
	return err
}

// Delete implements blob.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	if err := check(ctx, "delete", key); err != nil {
		return err
	}
	dir, name := place(key)
	err := s.root.Remove(dir + "/" + name)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fail("delete", key, err)
	}
	if err == nil {
		s.prune(dir)
	}
	return nil
}

// Move implements blob.Volume. The object keeps its time.
func (s *Store) Move(ctx context.Context, from, to string) error {
	if err := check(ctx, "move", from); err != nil {
		return err
	}
	if err := check(ctx, "move", to); err != nil {
		return err
	}
	dir, name := place(from)
	_, err := s.root.Lstat(dir + "/" + name)
	if err == nil {
		err = s.rename(dir+"/"+name, to)
	}
	if err != nil {
		return fail("move", from, err)
	}
	s.prune(dir)
	return nil
}

// Open implements blob.Store. The object also has the methods LocalPath and
// File.
func (s *Store) Open(ctx context.Context, key string) (blob.Object, error) {
	if err := check(ctx, "open", key); err != nil {
		return nil, err
	}
	o, err := s.open(ctx, key)
	if err != nil {
		return nil, err
	}
	return o, nil
}

func (s *Store) open(ctx context.Context, key string) (*object, error) {
	if err := check(ctx, "open", key); err != nil {
		return nil, err
	}
	dir, name := place(key)
	f, err := s.root.Open(dir + "/" + name)
	if errors.Is(err, fs.ErrNotExist) {
		f, err = s.openAgain(dir, name, err)
	}
	if err != nil {
		return nil, fail("open", key, err)
	}
	st, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, fail("open", key, err)
	}
	return &object{ctx: ctx, s: s, f: f, info: blob.Info{Key: key, Size: st.Size(), ModTime: st.ModTime()}}, nil
}

// openAgain opens a file that was not found a moment ago, with err, and its result is
// final. Opening the directory makes a network file system refresh its cache. A store
// without its object directory is unavailable, not empty.
func (s *Store) openAgain(dir, name string, err error) (*os.File, error) {
	var f *os.File
	if s.shared {
		if d, err := s.root.Open(dir); err == nil {
			d.Close()
		}
		f, err = s.root.Open(dir + "/" + name)
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.present(); err != nil {
			return nil, err
		}
	}
	return f, err
}

// present returns an error that matches blob.ErrUnavailable unless the object directory
// exists.
func (s *Store) present() error {
	if _, err := s.root.Stat(objDir); err != nil {
		return fmt.Errorf("cannot read the directory of the objects: %s: %w", err.Error(), blob.ErrUnavailable) // does not match fs.ErrNotExist
	}
	return nil
}

type object struct {
	ctx  context.Context // of Open, as blob.Object requires
	s    *Store
	f    *os.File
	info blob.Info

	mu     sync.Mutex
	link   string // name in the root; "": none
	closed bool
}

func (o *object) Info() blob.Info { return o.info }

// File returns the open file. Callers may read and seek, so that the kernel can send it
// to the network, but must neither change nor close it. It does not observe the
// context.
func (o *object) File() *os.File { return o.f }

func (o *object) ReadAt(b []byte, off int64) (int, error) {
	if err := o.ctx.Err(); err != nil {
		return 0, err
	}
	return o.f.ReadAt(b, off)
}

// LocalPath returns a path of the content that is valid until Close, even if the object
// is deleted or replaced in the meantime. The path is a separate link. After Close it
// is "".
func (o *object) LocalPath() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.closed {
		return ""
	}
	if o.link == "" {
		name := tempName()
		if !o.s.linkOpen(o.f, name) {
			return o.fallbackPath()
		}
		o.link = name
	}
	return filepath.Join(o.s.dir, filepath.FromSlash(o.link))
}

func (o *object) Close() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.link != "" {
		_ = o.s.root.Remove(o.link) // a sweep removes leftovers
		o.link = ""
	}
	o.closed = true
	return o.f.Close()
}

// List implements blob.Store. It may omit objects that are created or deleted during
// the iteration.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		if err := s.present(); err != nil {
			yield(blob.Info{}, fail("list", prefix, err))
			return
		}
		if err := s.list(ctx, objDir, "", prefix, yield); err != nil && !errors.Is(err, errStop) {
			yield(blob.Info{}, fail("list", prefix, err))
		}
	}
}

var errStop = errors.New("stop")

// list yields the objects of a directory, whose keys start with base, in key order. It
// merges directories of elements and of objects with a common prefix: "ab" < "ab-c" <
// "ab/d" < "abc".
func (s *Store) list(ctx context.Context, dir, base, prefix string, yield func(blob.Info, error) bool) error {
	names, err := s.readDir(dir)
	if err != nil {
		return err
	}
	groups := make(map[string][]string) // shard → directories in it
	for _, n := range names {
		switch n[0] {
		case '=':
			g := shard(n[1:] + "/")
			groups[g] = append(groups[g], n[1:]+"/")
		case '-':
			groups[n[1:]] = append(groups[n[1:]], "")
		}
	}
	shards := make([]string, 0, len(groups))
	for g := range groups {
		if related(base+g, prefix) {
			shards = append(shards, g)
		}
	}
	slices.Sort(shards)
	for _, g := range shards {
		var entries []string // objects, and elements with a trailing slash
		for _, e := range groups[g] {
			if e != "" {
				entries = append(entries, e)
				continue
			}
			files, err := s.readDir(dir + "/-" + g)
			if err != nil {
				return err
			}
			entries = append(entries, files...)
		}
		slices.Sort(entries)
		for _, e := range entries {
			if err := ctx.Err(); err != nil {
				return err
			}
			key := base + e
			if elem, ok := strings.CutSuffix(e, "/"); ok {
				if related(key, prefix) {
					if err := s.list(ctx, dir+"/="+elem, key, prefix, yield); err != nil {
						return err
					}
				}
				continue
			}
			if !strings.HasPrefix(key, prefix) {
				continue
			}
			st, err := s.root.Lstat(dir + "/-" + g + "/" + e)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				return err
			}
			if !yield(blob.Info{Key: key, Size: st.Size(), ModTime: st.ModTime()}, nil) {
				return errStop
			}
		}
	}
	return ctx.Err()
}

// related reports whether a key with the prefix a can have the prefix b.
func related(a, b string) bool { return strings.HasPrefix(a, b) || strings.HasPrefix(b, a) }

// readDir returns the names in a directory, which may be missing.
func (s *Store) readDir(dir string) ([]string, error) {
	d, err := s.root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer d.Close()
	names, err := d.Readdirnames(-1)
	if errors.Is(err, fs.ErrNotExist) { // removed a moment ago
		return nil, nil
	}
	return names, err
}

// Sweep implements blob.Volume.
func (s *Store) Sweep(ctx context.Context, t time.Time) (int, error) {
	names, err := s.readDir(tmpDir)
	if err != nil {
		return 0, fail("sweep", tmpDir, err)
	}
	removed := 0
	for _, n := range names {
		if err := ctx.Err(); err != nil {
			return removed, err
		}
		stamp, _, _ := strings.Cut(n, "-")
		sec, err := strconv.ParseInt(stamp, 10, 64)
		if err != nil || !time.Unix(sec, 0).Before(t) {
			continue
		}
		switch err := s.root.Remove(tmpDir + "/" + n); {
		case err == nil:
			removed++
		case !errors.Is(err, fs.ErrNotExist):
			return removed, fail("sweep", tmpDir, err)
		}
	}
	return removed, nil
}

// FreeSpace implements blob.Volume.
func (s *Store) FreeSpace(ctx context.Context) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	d, err := s.root.Open(".")
	if err != nil {
		return 0, fail("free space", ".", err)
	}
	defer d.Close()
	n, err := freeSpace(d)
	if err != nil {
		return 0, fail("free space", ".", err)
	}
	return n, nil
}

var (
	_ blob.Store       = (*Store)(nil)
	_ blob.Composer    = (*Store)(nil)
	_ blob.Volume      = (*Store)(nil)
	_ blob.Stager      = (*Store)(nil)
	_ blob.LocalObject = (*object)(nil)
)
