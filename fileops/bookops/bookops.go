// Package bookops converts electronic books of Mobipocket and Amazon Kindle (MOBI, PRC, AZW
// and AZW3) to EPUB.
//
// mobitool of libmobi unpacks a book in the sandbox. Its pages are HTML as the programs of
// that time wrote it, so this package makes well-formed XHTML of them and builds the EPUB
// file. Books with digital rights management are refused before mobitool sees them.
package bookops

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/safezip"
)

// Options configure [New]. The zero value is usable.
type Options struct {
	Mobitool string          // path or name; "" means mobitool in PATH, [engine.None] disables it
	Sandbox  *engine.Sandbox // confines mobitool; nil means no sandbox
	Run      engine.Limits   // of mobitool; zero fields mean 2 minutes of processor time and 1 GiB of memory

	// Probed is the result of [Engine.Probed] in another process on this host. It saves
	// one start of mobitool.
	Probed string
}

// maxBook is the largest size of a book in bytes, and of its unpacked content.
const maxBook = 512 << 20

// An Engine converts books. It is safe for concurrent use.
type Engine struct {
	tool    *engine.Program // nil if it is not installed
	run     engine.Limits
	missing error // why mobitool is unavailable
}

// New looks for mobitool and returns an engine. Without mobitool it has no actions.
func New(ctx context.Context, o Options) (*Engine, error) {
	e := &Engine{run: o.Run}
	if o.Probed == "" {
		e.tool, e.missing = o.Sandbox.Find(ctx, []string{"-v"}, cmp.Or(o.Mobitool, "mobitool"))
		return e, nil
	}
	var p probed
	if err := json.Unmarshal([]byte(o.Probed), &p); err != nil {
		return nil, fmt.Errorf("bookops: options: probed: %w", err)
	}
	if p.Path != "" {
		e.tool = &engine.Program{Name: filepath.Base(p.Path), Path: p.Path, Version: p.Version, Sandbox: o.Sandbox}
	}
	return e, nil
}

// probed holds the facts about mobitool that [New] finds out.
type probed struct {
	Path    string `json:"path"` // "" if there is no mobitool
	Version string `json:"version"`
}

// Probed returns the facts about mobitool that [New] found out, for [Options].
func (e *Engine) Probed() string {
	var p probed
	if e.tool != nil {
		p = probed{e.tool.Path, e.tool.Version}
	}
	b, err := json.Marshal(p)
	if err != nil {
		panic(err) // impossible: only two strings
	}
	return string(b)
}

// Dependencies implements [fileops.Engine].
func (e *Engine) Dependencies() []fileops.Dependency {
	d := fileops.Dependency{Name: "libmobi", Purpose: "books of Mobipocket and Kindle (mobi, azw3)", Packages: []string{"libmobi-tools"}, Err: e.missing}
	if e.tool != nil {
		d.Version, d.Path = e.tool.Version, e.tool.Path
	}
	return []fileops.Dependency{d}
}

// Actions implements [fileops.Engine].
func (e *Engine) Actions() []fileops.Action {
	if e.tool == nil {
		return nil
	}
	return []fileops.Action{e.Convert()}
}

// Convert returns the action "convert" from MOBI and AZW3 to EPUB. The engine must have
// mobitool.
func (e *Engine) Convert() fileops.Action {
	return fileops.Func(fileops.Spec{
		Name: "convert", Engine: strings.TrimSpace("libmobi " + e.tool.Version), Family: "document",
		Summary: "Converts books of Mobipocket and Kindle.", MaxBytes: maxBook,
		Accepts: []fileops.Accept{{Formats: []format.Format{format.MOBI, format.AZW3}, Params: fileops.Schema{
			fileops.Enum("convert_to", "Extension of the result.", string(format.EPUB)),
		}}},
	}, e.convert)
}

func (e *Engine) convert(ctx context.Context, job *fileops.Job) error {
	if err := checkBook(job.Input()); err != nil {
		return err
	}
	made, err := e.unpack(ctx, job)
	if err != nil {
		return err
	}
	defer made.Close()
	st, err := made.Stat()
	if err != nil {
		return err
	}
	b, err := readBook(ctx, made, st.Size())
	if err != nil {
		return err
	}
	if b.dropped > 0 {
		job.Warn(fileops.WarnContentDropped, "%d scripts of the book were left out.", b.dropped)
	}
	return job.Write(fileops.ResultName(job.Input(), format.EPUB), b.write)
}

// checkBook reads the headers of a Palm database and of its first record (MobileRead wiki,
// "MOBI"; the encryption is a number at 12 of the record). It fails if the book is
// encrypted.
func checkBook(f *fileops.File) error {
	const (
		records   = 76 // their number; the list of their offsets follows
		encrypted = 12
	)
	var head [records + 6]byte
	var first [encrypted + 2]byte
	r := f.Reader()
	if _, err := r.ReadAt(head[:], 0); err != nil {
		return damaged(err)
	}
	if binary.BigEndian.Uint16(head[records:]) == 0 {
		return damaged(errors.New("the database has no records"))
	}
	if _, err := r.ReadAt(first[:], int64(binary.BigEndian.Uint32(head[records+2:]))); err != nil {
		return damaged(err)
	}
	if binary.BigEndian.Uint16(first[encrypted:]) != 0 {
		return fileops.Fail(fileops.ErrUnsupportedInput, nil, "the book is protected against copying (DRM); only books without this protection can be converted")
	}
	return nil
}

func damaged(err error) error {
	return fileops.Fail(fileops.ErrCorruptInput, err, "the book is damaged or incomplete")
}

// unpack runs mobitool and returns the EPUB file that it made. The caller must close it.
func (e *Engine) unpack(ctx context.Context, job *fileops.Job) (*os.File, error) {
	in, err := job.Path(job.Input())
	if err != nil {
		return nil, err
	}
	inputs, err := job.InputDir()
	if err != nil {
		return nil, err
	}
	work, err := job.TempDir("book-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(work) // an open file stays readable
	// The name of the result is that of the input.
	const name = "book.mobi"
	if err := os.Symlink(in, filepath.Join(work, name)); err != nil {
		return nil, err
	}
	err = e.tool.Run(ctx, engine.Cmd{
		Args: []string{"-e", "-o", work, name}, Dir: work,
		Access: engine.Access{Read: []string{inputs}},
		Limits: e.run.Or(engine.Limits{CPU: 2 * time.Minute, Memory: 1 << 30, FileSize: maxBook, Processes: 1}),
	})
	var exit *engine.ExitError
	switch {
	case err == nil:
	case !errors.As(err, &exit):
		return nil, err
	case exit.Limit():
		return nil, fileops.Fail(fileops.ErrLimit, err, "the book takes more %s than is allowed; try a smaller one", exit.Which())
	default: // also if it was killed by its own bug
		return nil, damaged(err)
	}
	made, err := engine.Open(work, "book.epub")
	if errors.Is(err, os.ErrNotExist) {
		return nil, damaged(err)
	}
	return made, err
}

// limits are those of the content of a book.
func limits() safezip.Limits { return safezip.Limits{Unpacked: maxBook}.OrDefault(maxBook) }
