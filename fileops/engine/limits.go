package engine

import (
	"cmp"
	"io/fs"
	"path/filepath"
	"syscall"
)

// The signals that enforce limits, with the numbers of Linux and macOS. Windows has no
// such signals.
const (
	sigXCPU = syscall.Signal(24)
	sigXFSZ = syscall.Signal(25)
)

// Or fills l's zero fields from other.
func (l Limits) Or(other Limits) Limits {
	return Limits{
		CPU: cmp.Or(l.CPU, other.CPU), Memory: cmp.Or(l.Memory, other.Memory), FileSize: cmp.Or(l.FileSize, other.FileSize),
		Resident: cmp.Or(l.Resident, other.Resident), Scratch: cmp.Or(l.Scratch, other.Scratch), Processes: cmp.Or(l.Processes, other.Processes),
		Files: cmp.Or(l.Files, other.Files),
	}
}

// Which returns a user-readable name of the limit that the program was killed for, such
// as "memory" or "processor time". It returns "" if there was no limit or it is unknown.
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

// used returns the bytes that the files below dirs occupy on disk, and the number of
// files and directories. It may stop counting once a limit is exceeded.
func used(dirs []string, most int64, mostFiles int) (bytes int64, files int) {
	for _, dir := range dirs {
		_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
			if err == nil { // otherwise already removed
				files++
				if info, err := d.Info(); err == nil && most > 0 {
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
