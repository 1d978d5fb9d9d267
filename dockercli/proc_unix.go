//go:build unix

package dockercli

import (
	"os"
	"os/exec"
	"syscall"
)

func ownGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// endGroup asks a CLI to end: TERM first, since sudo passes it on and KILL it
// cannot; WaitDelay makes sure.
func endGroup(cmd *exec.Cmd) error {
	err := syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM)
	if err == syscall.ESRCH {
		return os.ErrProcessDone // it had ended by itself, and what it says holds
	}
	return err
}

// killGroup ends a CLI, and what a wrapper script started, at once.
func killGroup(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

// noProcess says that there is none with this PID, not just none that we may see.
func noProcess(pid int) bool { return pid > 0 && syscall.Kill(pid, 0) == syscall.ESRCH }

// killed says whether a CLI was ended by a signal, and not by itself.
func killed(cmd *exec.Cmd) bool {
	ws, ok := cmd.ProcessState.Sys().(syscall.WaitStatus)
	return ok && ws.Signaled()
}
