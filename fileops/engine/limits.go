package engine

import (
	"cmp"
	"io/fs"
	"path/filepath"
	"syscall"
)

// The signals that enforce limits. Linux and macOS give them these numbers; Windows has none.
const (
	sigXCPU = syscall.Signal(24)
	sigXFSZ = syscall.Signal(25)
)

// Or fills the zero fields of l from other.
func (l Limits) Or(other Limits) Limits {
	return Limits{
		CPU: cmp.Or(l.CPU, other.CPU), Memory: cmp.Or(l.Memory, other.Memory), FileSize: cmp.Or(l.FileSize, other.FileSize),
		Resident: cmp.Or(l.Resident, other.Resident), Scratch: cmp.Or(l.Scratch, other.Scratch), Processes: cmp.Or(l.Processes, other.Processes),
		Files: cmp.Or(l.Files, other.Files),
	}
}

// Which returns the limit that the program was ended for, in words for people, such
// as "memory" or "processor time"; "" if it was not, or did not tell.
func (e *ExitError) Which() string {
	switch {
	case e.Exceeded != "":
		return e.Exceeded
	case e.Signal == sigXCPU:
		return "processor time"
	case e.Signal == sigXFSZ:
		return "space for results"
	}
	return ""
}

// used returns how many bytes the files below dirs take on disk, and how many files and
// directories there are, or more than the limits if that is more.
func used(dirs []string, most int64, mostFiles int) (bytes int64, files int) {
	for _, dir := range dirs {
		filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err != nil {
				return nil // removed meanwhile
			}
			files++
			if most > 0 {
				if info, err := d.Info(); err == nil {
					bytes += onDisk(info)
				}
			}
			if most > 0 && bytes > most || mostFiles > 0 && files > mostFiles {
				return filepath.SkipAll
			}
			return nil
		})
	}
	return bytes, files
}
