package systest

import (
	"errors"
	"syscall"
)

// Signals that this system does not have.
const (
	Stop = syscall.Signal(0)
	Cont = syscall.Signal(0)
)

// Signal fails on this system.
func Signal(int, syscall.Signal) error { return errors.ErrUnsupported }

// AsUser does nothing on this system.
func AsUser(*syscall.SysProcAttr, uint32, uint32) {}

// Mkfifo fails on this system.
func Mkfifo(string) error { return errors.ErrUnsupported }
