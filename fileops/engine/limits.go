package engine

import (
	"cmp"
	"syscall"
)

// Or returns l with the limits of other where l has none.
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
	case e.Signal == syscall.SIGXCPU:
		return "processor time"
	case e.Signal == syscall.SIGXFSZ:
		return "space for results"
	}
	return ""
}
