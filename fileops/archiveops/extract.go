package archiveops

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/safezip"
)

const (
	// maxMembers is the largest number of results of an extraction.
	maxMembers = 5000

	// smallMember is the largest size in bytes of a result that stays in memory.
	smallMember = 4 << 10
)

// Extract returns the action "extract" for archives of every format that [Convert]
// reads. Each file of the archive becomes a result, unchanged. An archive
// in the archive stays an archive.
//
// The parameter members chooses files by globs that are separated by commas. A glob
// without a slash matches names in all folders. ** matches any number of folders, and a
// glob with a slash at its end all files below a folder. Case is ignored. A backslash
// makes the next character literal. A glob that matches no file fails with
// [fileops.ErrParameter].
//
// The folders of a file become a part of its name: "docs_2024_report.txt". Names are
// safe and unique by the rules of [EntryNames]. Hard links become copies of their
// files. Symbolic links, devices, and entries of a ZIP archive with an unknown
// compression or encryption are omitted; a warning names them.
//
// An archive may have at most 5,000 files that are extracted. Limits apply as for
// [Convert]; in ZIP archives they apply only to the extracted files. l may be nil.
func Extract(l *Limits) fileops.Action {
	c := &converter{limits: l.orDefault()}
	return c.extract()
}

func (c *converter) extract() fileops.Action {
	spec := fileops.Spec{
		Name: "extract", Engine: c.name(), Family: "archive", Verbatim: true,
		Summary: "Extracts the files of an archive.",
	}
	for _, f := range c.reads() {
		params := fileops.Schema{membersParam()}
		if hasPassword(f) {
			params = append(params, fileops.Param{Name: "password", Doc: "Password that opens an encrypted archive.", Min: 1, Max: 1024, Secret: true, Scope: fileops.ScopeInput})
		}
		spec.Accepts = addFormat(spec.Accepts, f, params)
	}
	return fileops.Func(spec, c.extractMembers)
}

func (c *converter) extractMembers(ctx context.Context, job *fileops.Job) error {
	globs, err := parseGlobs(job.Params.Get("members"))
	if err != nil {
		return err
	}
	var m *members
	return c.twice(ctx, job, func() bool { return m.delivered == 0 }, func(in content) error {
		m = &members{job: job, limits: c.limits, globs: globs}
		if in.Format() == format.ZIP {
			err = m.fromZIP(ctx)
		} else {
			err = m.fromOther(ctx, c, in)
		}
		if err == nil {
			err = c.warnPasswordUnused(ctx, job, in)
		}
		if err != nil {
			return err
		}
		return m.finish()
	})
}

// members are the results of an extraction.
type members struct {
	job    *fileops.Job
	limits safezip.Limits
	globs  []*glob
	names  namer

	start       float64  // of progress
	total, done int64    // bytes of all files
	files       int      // in the archive
	examples    []string // paths of the first files
	results     int
	delivered   int   // results that are written
	size        int64 // of the results
	omitted     map[kind][]string
}

func (m *members) fromZIP(ctx context.Context) error {
	z, err := openZIP(ctx, m.limits, m.job.Input(), m.job.Params.Get("password"))
	if err != nil {
		return err
	}
	for _, f := range z.files {
		m.total += int64(min(f.UncompressedSize64, 1<<40))
	}
	return m.walk(&converter{limits: m.limits}, &survey{}, z)
}

func (m *members) fromOther(ctx context.Context, c *converter, content content) error {
	s, err := c.survey(ctx, m.job, content)
	if err != nil {
		return err
	}
	m.start, m.total = surveyPart, s.total
	if directory, err := c.directory(ctx, m.job, content, false); directory != nil || err != nil {
		if err != nil {
			return err
		}
		return m.walk(c, s, directory)
	}
	in, err := c.open(ctx, content)
	if err != nil {
		return err
	}
	if !s.single {
		return m.walk(c, s, in)
	}
	name := format.Base(m.job.Input().Name())
	if format.Base(name) == name && format.Base(in.name) != in.name {
		name = in.name // with its extension
	}
	return in.failure(m.put(safeName(name), in, s.total))
}

// walk extracts the chosen entries of an archive.
func (m *members) walk(c *converter, s *survey, in archive) error {
	e := &extraction{converter: c, survey: s, omitted: m.omit, held: make(map[string]*io.SectionReader)}
	defer e.close()
	return e.pack(m.job, in, func(path string, _ time.Time, mode fs.FileMode, r io.Reader, size int64) error {
		if mode.IsDir() {
			return nil
		}
		return m.put(path, r, size)
	})
}

// chosen reports whether a file is to be extracted.
func (m *members) chosen(path string) bool {
	m.files++
	if len(m.examples) < 20 {
		m.examples = append(m.examples, path)
	}
	found := len(m.globs) == 0
	key := fold(path)
	for _, g := range m.globs {
		if g.match(key) {
			g.matched, found = true, true
		}
	}
	return found
}

// put adds a result if a file was chosen.
func (m *members) put(path string, r io.Reader, size int64) error {
	defer func(done int64) { m.progress(done + size) }(m.done)
	if !m.chosen(path) {
		return nil
	}
	if m.results++; m.results > maxMembers {
		return fileops.Fail(fileops.ErrLimit, nil, "more files would be extracted than the limit of %d; choose some of them with the parameter members", maxMembers)
	}
	if m.size += size; m.size > m.limits.Unpacked {
		return fileops.Fail(fileops.ErrLimit, nil, "the files would have more than the limit of %d bytes; choose some of them with the parameter members", m.limits.Unpacked)
	}
	if most := m.job.MaxOutput(); most > 0 && size > most {
		return m.job.TooMuch(nil)
	}
	if err := m.write(m.names.unique(flatName(path)), r, size); err != nil {
		return err
	}
	m.delivered++
	return nil
}

// write writes a result. It reads to the end of the content, where checksums are verified.
func (m *members) write(name string, r io.Reader, size int64) error {
	if size <= smallMember {
		b := make([]byte, size)
		if _, err := io.ReadFull(r, b); err != nil {
			return err
		}
		if err := atEnd(r); err != nil {
			return err
		}
		return m.job.WriteBytes(name, b)
	}
	return m.job.WriteFile(name, func(path string) error {
		f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = io.CopyN(f, readerFunc(func(p []byte) (int, error) {
			n, err := r.Read(p)
			m.progress(m.done + int64(n))
			return n, err
		}), size)
		if err == nil {
			err = atEnd(r)
		}
		return cmp.Or(err, f.Close())
	})
}

// atEnd reads the end of r. It fails if content follows.
func atEnd(r io.Reader) error {
	var b [1]byte
	n, err := io.ReadFull(r, b[:])
	switch {
	case n > 0:
		return errTooMany
	case errors.Is(err, io.EOF):
		return nil
	}
	return err
}

func (m *members) progress(done int64) {
	if m.done = done; m.total > 0 {
		m.job.Progress(m.start + (1-m.start)*float64(min(done, m.total))/float64(m.total))
	}
}

// omit records an entry that cannot be extracted.
func (m *members) omit(k kind, name string) error {
	path := strings.Join(safeParts(name), "/")
	if !m.chosen(path) {
		return nil
	}
	if m.omitted == nil {
		m.omitted = make(map[kind][]string)
	}
	if k == aLink {
		k = aSymlink
	}
	m.omitted[k] = append(m.omitted[k], path)
	return nil
}

// finish checks that everything was found, and warns about omitted files.
func (m *members) finish() error {
	if m.files == 0 {
		return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the archive has no files")
	}
	for _, g := range m.globs {
		if !g.matched {
			return &fileops.ParamError{Param: paramMembers, Reason: fmt.Sprintf("%q matches no file; the archive has %s", g.text, listing(m.examples, m.files))}
		}
	}
	var texts []string
	for _, o := range []struct {
		kind       kind
		code, what string
	}{
		{aSymlink, fileops.WarnLinksDropped, "links"},
		{other, fileops.WarnContentDropped, "special entries, such as devices"},
		{unreadable, fileops.WarnContentDropped, "files that are compressed or encrypted by an unknown method"},
	} {
		names := m.omitted[o.kind]
		if len(names) == 0 {
			continue
		}
		text := fmt.Sprintf("%s: %s", o.what, listing(names[:min(len(names), 20)], len(names)))
		texts = append(texts, text)
		m.job.Warn(o.code, "Left out %s.", text)
	}
	if m.results == 0 {
		return fileops.Fail(fileops.ErrUnsupportedInput, nil, "nothing can be extracted; the archive has %s", strings.Join(texts, "; "))
	}
	return nil
}

// listing returns some of total names as a text of limited length.
func listing(names []string, total int) string {
	const (
		most    = 200 // bytes of all names
		longest = 60  // bytes of one
	)
	var shown []string
	size := 0
	for _, n := range names {
		if len(n) > longest {
			n = "…" + strings.ToValidUTF8(n[len(n)-longest:], "")
		}
		if size += len(n) + 2; size > most && len(shown) > 0 {
			break
		}
		shown = append(shown, n)
	}
	text := strings.Join(shown, ", ")
	if more := total - len(shown); more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// flatName returns a name that shows the folders of a path. If it would be too long, the
// first folders are left out.
func flatName(path string) string {
	parts := strings.Split(filepath.ToSlash(path), "/")
	for len(parts) > 1 && len(strings.Join(parts, "_")) > maxName {
		parts = slices.Delete(parts, 0, 1)
	}
	return safeName(strings.Join(parts, "_"))
}
