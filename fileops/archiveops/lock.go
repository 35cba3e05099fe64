package archiveops

import (
	"context"
	"errors"
	"hash/crc32"
	"io"
	"strings"

	"github.com/klauspost/compress/flate"
	"github.com/klauspost/compress/zip"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/safezip"
)

// Lock returns the action "lock" for ZIP archives. It encrypts every entry with
// AES-256 in WinZip's format (AE-2). Entries keep their compression; names, sizes
// and times stay readable. An archive with an encrypted entry fails with
// [fileops.ErrPasswordRequired]. l may be nil.
func Lock(l *Limits) fileops.Action {
	k := &recrypter{limits: l.orDefault()}
	return fileops.Func(lockSpec("lock", "Protects the files in a ZIP archive with a password.", fileops.Schema{
		newPassword("password", "Password for the files in the archive."),
	}), func(ctx context.Context, job *fileops.Job) error {
		zr, n, err := k.open(job)
		if err != nil {
			return err
		}
		if n > 0 {
			return fileops.Fail(fileops.ErrPasswordRequired, nil, "the file is already protected by a password; unlock it or reset its password instead")
		}
		if err := k.verify(ctx, zr); err != nil {
			return err
		}
		return k.rewrite(ctx, job, zr, nil, job.Params.Get("password"))
	})
}

// verify unpacks the entries that are copied without change, and fails if one is damaged: nobody
// could tell that from a wrong password later.
func (k *recrypter) verify(ctx context.Context, zr *zip.Reader) error {
	for _, f := range zr.File {
		if !recompressible(k.limits, f) {
			continue
		}
		r, err := f.Open()
		if err == nil {
			_, err = io.Copy(io.Discard, fileops.ContextReader(ctx, r))
			err = errors.Join(err, r.Close())
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err != nil:
			return fileops.Fail(fileops.ErrCorruptInput, err, "an entry of the archive is damaged")
		}
	}
	return nil
}

// Unlock returns the action "unlock" for ZIP archives. It removes the encryption
// of all entries, AES or traditional. It checks all entries before it writes the
// result. A wrong password fails with [fileops.ErrWrongPassword], and an archive
// without encrypted entries with [fileops.ErrNotEncrypted]. l may be nil.
func Unlock(l *Limits) fileops.Action {
	k := &recrypter{limits: l.orDefault()}
	return fileops.Func(lockSpec("unlock", "Removes the password from a ZIP archive.", fileops.Schema{
		oldPassword("password", "Password of the archive."),
	}), func(ctx context.Context, job *fileops.Job) error {
		return k.relock(ctx, job, job.Params.Get("password"), "")
	})
}

// ResetPassword returns the action "reset_password" for ZIP archives. It checks
// "old_password" as [Unlock] does, and encrypts all entries with "new_password"
// as [Lock] does. l may be nil.
func ResetPassword(l *Limits) fileops.Action {
	k := &recrypter{limits: l.orDefault()}
	return fileops.Func(lockSpec("reset_password", "Replaces the password of a ZIP archive.", fileops.Schema{
		oldPassword("old_password", "Current password of the archive."),
		newPassword("new_password", "Password for the files in the archive."),
	}), func(ctx context.Context, job *fileops.Job) error {
		return k.relock(ctx, job, job.Params.Get("old_password"), job.Params.Get("new_password"))
	})
}

func lockSpec(name, summary string, params fileops.Schema) fileops.Spec {
	return fileops.Spec{
		Name: name, Engine: engineName, Family: "archive", Summary: summary,
		Accepts: []fileops.Accept{{Formats: []format.Format{format.ZIP}, Params: params}},
	}
}

func newPassword(name, doc string) fileops.Param {
	return fileops.Param{Name: name, Doc: doc, Required: true, Min: 1, Max: maxPassword, Secret: true}
}

func oldPassword(name, doc string) fileops.Param {
	return fileops.Param{Name: name, Doc: doc, Required: true, Max: 1024, Secret: true}
}

func errPlain() error {
	return fileops.Fail(fileops.ErrNotEncrypted, nil, "the file is not protected by a password")
}

// A recrypter changes the encryption of archives.
type recrypter struct{ limits safezip.Limits }

// open reads the directory of an archive and counts the encrypted entries.
func (k *recrypter) open(job *fileops.Job) (zr *zip.Reader, encrypted int, err error) {
	in := job.Input()
	if zr, err = (&recompressor{k.limits}).open(in); err != nil {
		return nil, 0, err
	}
	for _, f := range zr.File {
		if f.Flags&flagEncrypted != 0 {
			encrypted++
		}
	}
	return zr, encrypted, nil
}

// relock replaces the password from by the password to. An empty password means
// no encryption.
func (k *recrypter) relock(ctx context.Context, job *fileops.Job, from, to string) error {
	zr, n, err := k.open(job)
	if err != nil {
		return err
	}
	if n == 0 {
		return errPlain()
	}
	keys, err := k.try(ctx, job, zr, from)
	if err != nil {
		return err
	}
	return k.rewrite(ctx, job, zr, keys, to)
}

// A key is the result of try for an entry: its encryption, its password and the
// checksum of its content.
type key struct {
	info     cipherInfo
	password []byte
	crc      uint32
}

// try decrypts and unpacks every encrypted entry. It checks the password and the
// content.
func (k *recrypter) try(ctx context.Context, job *fileops.Job, zr *zip.Reader, password string) (map[*zip.File]key, error) {
	keys := make(map[*zip.File]key)
	candidates := passwords(password)
	var done, total int64 = 0, 1
	var unpacked uint64
	for _, f := range zr.File {
		total += int64(f.CompressedSize64)
		if unpacked += f.UncompressedSize64; f.UncompressedSize64 > uint64(k.limits.Unpacked) || unpacked > uint64(k.limits.Unpacked) {
			return nil, k.limits.TooLarge()
		}
	}
	for _, f := range zr.File {
		if f.Flags&flagEncrypted == 0 {
			continue
		}
		info, err := encryption(&f.FileHeader)
		if err != nil {
			return nil, fileops.Fail(fileops.ErrUnsupportedInput, err, "the encryption of the archive is not supported")
		}
		err = errPassword
		for _, pw := range candidates {
			var crc uint32
			if crc, err = k.unpack(ctx, f, info, pw); err == nil {
				keys[f] = key{info, pw, crc}
				break
			}
			if !errors.Is(err, errPassword) {
				break
			}
		}
		switch {
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.Is(err, errPassword):
			return nil, fileops.Fail(fileops.ErrWrongPassword, err, "the password is wrong")
		case errors.Is(err, errEncrypted):
			return nil, fileops.Fail(fileops.ErrUnsupportedInput, err, "the compression method of an entry is not supported")
		case errors.Is(err, fileops.ErrLimit):
			return nil, err
		case err != nil && len(keys) == 0 && !info.aes:
			// One in 256 wrong passwords passes the check of the traditional encryption.
			// The decrypted content is then garbage.
			return nil, fileops.Fail(fileops.ErrWrongPassword, err, "the password is wrong, or the archive is damaged")
		case err != nil:
			return nil, fileops.Fail(fileops.ErrCorruptInput, err, "an entry of the archive is damaged")
		}
		done += int64(f.CompressedSize64)
		job.Progress(0.5 * float64(done) / float64(total))
	}
	return keys, nil
}

// unpack reads all of an encrypted entry and returns the checksum of its
// content.
func (k *recrypter) unpack(ctx context.Context, f *zip.File, info cipherInfo, password []byte) (uint32, error) {
	r, size, err := decrypted(f, info, password)
	if err != nil {
		return 0, err
	}
	r = fileops.ContextReader(ctx, r)
	content := r
	switch info.method {
	case zip.Store:
		if uint64(size) != f.UncompressedSize64 {
			return 0, errDamaged
		}
	case zip.Deflate:
		if k.limits.Dense(f.UncompressedSize64, f.CompressedSize64) {
			return 0, k.limits.TooDense()
		}
		content = flate.NewReader(r)
	default:
		if !info.crc {
			return 0, errEncrypted // the header needs a checksum, which cannot be computed
		}
		_, err := io.Copy(io.Discard, r)
		return f.CRC32, err
	}
	sum := crc32.NewIEEE()
	n, err := io.Copy(sum, io.LimitReader(content, int64(f.UncompressedSize64)+1))
	if err == nil && uint64(n) != f.UncompressedSize64 {
		err = errDamaged
	}
	if err == nil {
		_, err = io.Copy(io.Discard, r) // up to the authentication code
	}
	if err == nil && info.crc && sum.Sum32() != f.CRC32 {
		err = errDamaged
	}
	return sum.Sum32(), err
}

// rewrite writes the archive. Entries with a key are decrypted and, if password
// is not empty, encrypted with it. It copies other entries.
func (k *recrypter) rewrite(ctx context.Context, job *fileops.Job, zr *zip.Reader, keys map[*zip.File]key, password string) error {
	from := 0.0
	if keys != nil {
		from = 0.5
	}
	var done, total int64 = 0, 1
	for _, f := range zr.File {
		total += int64(f.CompressedSize64)
	}
	return job.Write(job.Input().Name(), func(w io.Writer) error {
		zw := zip.NewWriter(w)
		if err := zw.SetComment(zr.Comment); err != nil {
			return err
		}
		for _, f := range zr.File {
			if err := k.entry(ctx, zw, f, keys, password); err != nil {
				if ctx.Err() != nil {
					return context.Cause(ctx)
				}
				return err
			}
			done += int64(f.CompressedSize64)
			job.Progress(from + (1-from)*float64(done)/float64(total))
		}
		return zw.Close()
	})
}

func (k *recrypter) entry(ctx context.Context, zw *zip.Writer, f *zip.File, keys map[*zip.File]key, password string) error {
	h := f.FileHeader
	h.Extra = withoutZIP64(h.Extra)
	h.Flags &^= flagDescriptor // sizes are known
	damaged := func(err error) error {
		return fileops.Fail(fileops.ErrCorruptInput, err, "an entry of the archive is damaged")
	}
	var r io.Reader
	size := int64(h.CompressedSize64)
	key, found := keys[f]
	if found {
		var err error
		if r, size, err = decrypted(f, key.info, key.password); err != nil {
			return damaged(err)
		}
		h.Flags &^= flagEncrypted
		h.Extra = withoutExtra(h.Extra, aesExtra)
		h.Method, h.CRC32, h.ReaderVersion = key.info.method, key.crc, 20
	} else {
		var err error
		if r, err = f.OpenRaw(); err != nil {
			return damaged(err)
		}
	}
	h.CompressedSize64 = uint64(size)
	folder := strings.HasSuffix(h.Name, "/")
	if folder {
		h.Method, h.CRC32, h.CompressedSize64, h.UncompressedSize64 = zip.Store, 0, 0, 0
		_, err := zw.CreateRaw(&h)
		return err
	}
	var seal *sealer
	if password != "" {
		var err error
		if seal, err = newSealer(password); err != nil {
			return err
		}
		seal.mark(&h)
	}
	w, err := createRaw(zw, &h)
	if err != nil {
		return err
	}
	if seal != nil {
		if err := seal.start(w); err != nil {
			return err
		}
		w = seal
	}
	n, err := io.Copy(w, fileops.ContextReader(ctx, r))
	switch {
	case errors.Is(err, errDamaged), err == nil && n != size:
		return damaged(err)
	case err != nil:
		return err
	case seal != nil:
		return seal.finish()
	}
	return nil
}
