package specimen

import (
	"bytes"
	"crypto/sha256"
	_ "embed" // for lock.py
	"encoding/gob"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/systest"
)

// pdfSpecimen returns two pages: one that LibreOffice converted from the Word
// document, and one with only [Text].
func pdfSpecimen() ([]byte, error) {
	first, err := officeFile("specimen.pdf")
	if err != nil {
		return nil, err
	}
	var second bytes.Buffer
	writePDF(&second, 1)
	return inDir([][2]string{{"1.pdf", string(first)}, {"2.pdf", second.String()}}, "out.pdf",
		"qpdf", "--empty", "--pages", "1.pdf", "2.pdf", "--", "out.pdf")
}

// locked caches the results of [Locked]. Office files are created together,
// because the start of LibreOffice takes most of the time.
var locked sync.Map // string → func() (map[format.Format][]byte, error)

// Locked returns the specimen of f with a password: a pdf by qpdf, a zip or 7z
// by 7z, a rar by Go code, any other by LibreOffice. LibreOffice must be
// installed with python3-uno.
func Locked(t testing.TB, f format.Format, password string) *fileops.File {
	t.Helper()
	name := "locked." + string(f)
	f = f.Plain() // encryption hides the difference
	kind := f
	if _, ok := officeFilters()[f]; ok {
		kind = "office"
	}
	made, _ := locked.LoadOrStore(string(kind)+"\x00"+password, sync.OnceValues(func() (map[format.Format][]byte, error) {
		if kind == "office" {
			return lockOffice(password)
		}
		b, err := lock(f, password)
		return map[format.Format][]byte{f: b}, err
	}))
	b, err := made.(func() (map[format.Format][]byte, error))()
	if err != nil {
		t.Fatalf("locked %s: %v", f, err)
	}
	return fileops.Bytes(name, b[f])
}

// lockScript stores a document under a password; only UNO can do this.
//
//go:embed lock.py
var lockScript string

func lock(f format.Format, password string) ([]byte, error) {
	switch f {
	case format.ZIP:
		return packed("out.zip", "7z", "a", "-bd", "-y", "-mem=AES256", "-p"+password, "out.zip", "a.txt", "dir")
	case format.SevenZip:
		return packed("out.7z", "7z", "a", "-bd", "-y", "-mhe=on", "-p"+password, "out.7z", "a.txt", "dir")
	case format.RAR:
		return storedRAR(ArchiveEntries(), password)
	}
	src, err := specimen(f)
	if err != nil {
		return nil, err
	}
	if f == format.PDF {
		return inDir([][2]string{{"in.pdf", string(src)}}, "out.pdf", "qpdf", "--encrypt", password, "owner", "256", "--", "in.pdf", "out.pdf")
	}
	if f == format.PPT {
		return LockPPT(src, password)
	}
	return nil, fmt.Errorf("nothing here locks this format")
}

// officeFilters maps formats to LibreOffice's filter names.
func officeFilters() map[format.Format]string {
	return map[format.Format]string{
		format.DOCX: "MS Word 2007 XML", format.XLSX: "Calc MS Excel 2007 XML", format.PPTX: "Impress MS PowerPoint 2007 XML",
		format.DOC: "MS Word 97", format.XLS: "MS Excel 97", // it cannot encrypt PPT
		format.ODT: "writer8", format.ODS: "calc8", format.ODP: "impress8",
	}
}

// lockOffice returns the Office documents under a password. They are kept for later runs of the
// tests, because LibreOffice takes seconds to start.
func lockOffice(password string) (map[format.Format][]byte, error) {
	key, err := systest.Program("soffice")
	if err != nil {
		return nil, err
	}
	key += lockScript + password
	sources := make(map[format.Format][]byte)
	for _, f := range slices.Sorted(maps.Keys(officeFilters())) {
		if sources[f], err = specimen(f); err != nil {
			return nil, err
		}
		key += fmt.Sprintf(" %s %x", f, sha256.Sum256(sources[f]))
	}
	made, err := systest.Made("locked.gob", key, func(path string) error {
		locked, err := lockAll(sources, password)
		if err != nil {
			return err
		}
		var b bytes.Buffer
		if err := gob.NewEncoder(&b).Encode(locked); err != nil {
			return err
		}
		return os.WriteFile(path, b.Bytes(), 0o600)
	})
	if err != nil {
		return nil, err
	}
	f, err := os.Open(made)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var locked map[format.Format][]byte
	err = gob.NewDecoder(f).Decode(&locked)
	return locked, err
}

func lockAll(sources map[format.Format][]byte, password string) (map[format.Format][]byte, error) {
	dir, err := os.MkdirTemp("", "fileopstest-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	args := []string{"-c", lockScript, dir}
	for f, filter := range officeFilters() {
		in := filepath.Join(dir, "in."+string(f))
		if err := os.WriteFile(in, sources[f], 0o600); err != nil {
			return nil, err
		}
		args = append(args, in, filepath.Join(dir, "out."+string(f)), filter)
	}
	// The system's Python includes the bridge to LibreOffice.
	cmd := exec.Command("/usr/bin/python3", args...)
	cmd.Stdin = strings.NewReader(password + "\n")
	if msg, err := cmd.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("python3: %w: %s", err, msg)
	}
	out := make(map[format.Format][]byte)
	for f := range officeFilters() {
		if out[f], err = os.ReadFile(filepath.Join(dir, "out."+string(f))); err != nil {
			return nil, err
		}
	}
	return out, nil
}
