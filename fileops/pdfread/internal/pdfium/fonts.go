package pdfium

import (
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// fontDir is the directory in which pdfium looks for the fonts of its system.
const fontDir = "usr/share/fonts"

// maxFonts limits the font files, because pdfium reads the tables of all of them
// to find one.
const maxFonts = 2000

// A fontFS is a file system with the font files of the host in fontDir, without
// subdirectories, and nothing else. Every instance can read it.
//
// pdfium opens it only for a file that lacks a font. A mount of the host's
// directory would not do: pdfium stops reading a directory whose parent it
// cannot see.
type fontFS struct {
	names []string          // sorted
	paths map[string]string // name to path on the host
}

// findFonts returns the font files below dirs. It ignores directories that it
// cannot read.
func findFonts(dirs []string) *fontFS {
	f := &fontFS{paths: make(map[string]string)}
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
			if err != nil || len(f.names) >= maxFonts {
				return fs.SkipDir
			}
			switch strings.ToLower(filepath.Ext(p)) {
			case ".ttf", ".ttc", ".otf":
				if name := d.Name(); f.paths[name] == "" && !d.IsDir() {
					f.paths[name] = p
					f.names = append(f.names, name)
				}
			}
			return nil
		})
	}
	slices.Sort(f.names)
	return f
}

// Open implements [fs.FS].
func (f *fontFS) Open(name string) (fs.File, error) {
	if dir, file := path.Split(name); dir == fontDir+"/" && f.paths[file] != "" {
		return os.Open(f.paths[file])
	}
	if name != "." && name != fontDir && !strings.HasPrefix(fontDir, name+"/") {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	d := &fontDirectory{name: path.Base(name)}
	if name == fontDir {
		for _, n := range f.names {
			d.entries = append(d.entries, fs.FileInfoToDirEntry(entry{n, 0o444}))
		}
		return d, nil
	}
	next, _, _ := strings.Cut(strings.TrimPrefix(strings.TrimPrefix(fontDir, name), "/"), "/")
	d.entries = []fs.DirEntry{fs.FileInfoToDirEntry(entry{next, fs.ModeDir | 0o555})}
	return d, nil
}

// A fontDirectory is an open directory of a fontFS.
type fontDirectory struct {
	name    string
	entries []fs.DirEntry // not yet read
}

func (d *fontDirectory) Stat() (fs.FileInfo, error) { return entry{d.name, fs.ModeDir | 0o555}, nil }

func (d *fontDirectory) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.name, Err: fs.ErrInvalid}
}

func (d *fontDirectory) Close() error { return nil }

// ReadDir implements [fs.ReadDirFile].
func (d *fontDirectory) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		n = len(d.entries)
	} else if len(d.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.entries))
	out := d.entries[:n]
	d.entries = d.entries[n:]
	return out, nil
}

// An entry describes a file or directory of a fontFS; sizes are unknown.
type entry struct {
	name string
	mode fs.FileMode
}

func (e entry) Name() string       { return e.name }
func (e entry) Size() int64        { return 0 }
func (e entry) Mode() fs.FileMode  { return e.mode }
func (e entry) ModTime() time.Time { return time.Time{} }
func (e entry) IsDir() bool        { return e.mode.IsDir() }
func (e entry) Sys() any           { return nil }
