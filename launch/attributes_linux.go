package launch

import "syscall"

// childAttributes has the kernel kill a child whose supervisor dies. Signals of
// the terminal reach the supervisor alone, which tells its children what to do.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
