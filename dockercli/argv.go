package dockercli

import (
	_ "embed"
	"fmt"
	"slices"
	"time"
)

const (
	// Label marks our containers: its value is the container's own name.
	Label = "mcp-docker-interpreter"
	// Prefix begins the name of each of our containers.
	Prefix = "mcp-sandbox-"
	// User is who the code is: uid and gid of nobody.
	User = "65534:65534"
)

// Spec says what sandbox to make.
type Spec struct {
	Name    string    // container name: Prefix and random digits, made by us
	Image   string    // checked by ParseImage
	Limits  Limits    // see Limits; Fit is applied
	Network bool      // a network of the engine's instead of none
	Owner   string    // the process that makes it, see owner; made by us
	Seccomp string    // path of the seccomp profile; "": the engine's own; made by us
	Ends    time.Time // when its server will have ended it; zero: nobody has said
	Probe   []string  // programs that the supervisor looks for as it starts
	Env     []string  // NAME=value for every run of code: of the languages table, never of a caller
}

//go:embed counts.sh
var counts string

//go:embed supervisor.sh
var supervisor string

//go:embed run.sh
var runScript string

// SupervisorScript is PID 1 of every sandbox, shell builtins only. End of stdin
// ends it, and so the sandbox. The line k, or SIGUSR1, kills every other
// process, again and again until it is alone, and answers "swept COUNT OOM
// PIDS": processes left with itself, kills for lack of memory and refused forks
// since the start ("-" if unknown). The line p is answered with pong. Its
// parameters are the programs to look for; it says "ready", those it found, the
// paths of whatever can be written on a disk of the host, and "gvisor" where the
// kernel's version is the one that gVisor makes up.
func SupervisorScript() string { return counts + supervisor }

// RunScript runs one program in a sandbox. It reads from stdin: a line to go, a
// header line of assignments (f file name, c bytes of code, in bytes of input,
// r what to run), then the bytes. Its parameter is a nonce, that marks on both
// streams where the program's output begins and ends; it does not begin where
// there is no room for a handful of processes. What is shorter than 4096
// bytes, and so comes in one piece or not at all, it does not count.
func RunScript() string { return counts + runScript }

// RunArgs is the command line that starts a sandbox.
func (e *Engine) RunArgs(s *Spec) []string {
	args := append([]string{"run"}, e.fill(RunRules, s)...)
	args = append(args, e.RunFlags...)
	args = append(args, "--", s.Image, "-c", SupervisorScript(), "sh")
	return append(args, s.Probe...)
}

// ExecArgs is the command line that runs code in a sandbox.
func (e *Engine) ExecArgs(s *Spec, nonce string) []string {
	args := append([]string{"exec"}, e.fill(ExecRules, s)...)
	for _, v := range s.Env {
		args = append(args, "--env="+v)
	}
	return append(args, "--", s.Name, "sh", "-c", RunScript(), "sh", nonce)
}

// KillArgs ends a container that does not end by itself.
func KillArgs(name string) []string { return []string{"kill", "--", name} }

// RemoveArgs removes a container and the volumes that its image asked for.
func RemoveArgs(name string) []string { return []string{"rm", "--force", "--volumes", "--", name} }

// PullArgs fetches an image.
func PullArgs(image string) []string { return []string{"pull", "--quiet", "--", image} }

// InspectArgs asks for all that the engine knows of one of our containers.
func InspectArgs(name string) []string { return []string{"inspect", "--type=container", "--", name} }

// ListArgs asks for our containers in any state, and so whether the engine answers.
func ListArgs() []string {
	return []string{"ps", "--all", "--no-trunc", "--filter=label=" + Label, "--format={{.Names}}"}
}

// header is what follows the line to go: what to run, and how much is coming.
// File is a plain word, and Run one line: they come of the languages table.
func header(p *Program) string {
	return fmt.Sprintf("f=%s c=%d in=%d r=%s\n", p.File, len(p.Code), len(p.Stdin), Quote(p.Run))
}

// goLine has RUN begin; what follows comes only after its begin mark.
const goLine = "go\n"

// input is all that a run reads from its stdin after that.
func input(p *Program) []byte {
	return slices.Concat([]byte(header(p)), p.Code, p.Stdin)
}
