//go:build !linux

package launch

import "syscall"

// childAttributes keeps the terminal's signals from the children. Where the
// kernel has no parent-death signal, a child ends when its control link does.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
