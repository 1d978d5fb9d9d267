// Package dockercli runs code in locked-down containers by typing docker, or
// podman, command lines.
//
// To audit the isolation: read [RunRules], the table of flags with the reason
// of each; read [RunArgs], the only place that makes a run of them; start the
// program with -v, which prints every command line that it types.
package dockercli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Rule is one flag of a command line and the reason for it.
type Rule struct {
	Flag string // one argv element; {names} are filled in, see Spec
	Why  string // what breaks, or gets out, without it
	On   string // where it applies, see Engine.applies; "": everywhere
}

// RunRules are the flags of every sandbox: THE TABLE. A user's value never
// becomes a flag: what is filled in are numbers and names of our own making.
var RunRules = []Rule{
	// Life: the container lives as long as the server holds its stdin.
	{"-i", "end of stdin, however the server dies, ends the sandbox", ""},
	{"--rm", "nothing is left behind", ""},
	{"--name={name}", "a name of ours: no caller's word is ever a container", ""},
	{"--label={label}={name}", "tells our containers from a stranger's", ""},
	{"--label={label}.owner={owner}", "a later server removes it if its own is dead, and never a living one's", ""},
	{"--label={label}.ends={ends}", "the same by its age, where nobody can tell who is dead", ""},
	{"--pull=never", "a pull is a step of its own, with its own rules and time", ""},
	{"--entrypoint=/bin/sh", "the image's ENTRYPOINT would swallow the supervisor", ""},
	{"--no-healthcheck", "the image's HEALTHCHECK would run as root in the sandbox", ""},
	{"--stop-timeout=1", "a person's docker stop does not wait for ten seconds", ""},
	{"--stop-signal=SIGTERM", "the image's STOPSIGNAL could be one that ends nothing", ""},
	{"--log-driver=none", "the engine would keep what is printed, without limit, on its disk", ""},

	// Nothing gets out: network, names.
	{"--network={network}", "no way to other machines, the host's services or other containers", ""},
	{"--hostname=sandbox", "the container's id is nobody's business", ""},
	{"--ipc=none", "no shared memory with anybody", ""},
	{"--cgroupns=private", "the host's cgroup paths stay unseen", ""},
	{"--http-proxy=false", "podman copies the host's proxies, passwords and all", "podman"},
	{"--no-hosts", "podman copies the host's /etc/hosts", "podman"},
	{"--env=HTTP_PROXY=", "docker copies the proxies of the user's configuration, passwords and all", "docker"},
	{"--env=http_proxy=", "the same in small letters", "docker"},
	{"--env=HTTPS_PROXY=", "the same", "docker"},
	{"--env=https_proxy=", "the same", "docker"},
	{"--env=FTP_PROXY=", "the same", "docker"},
	{"--env=ftp_proxy=", "the same", "docker"},
	{"--env=ALL_PROXY=", "the same", "docker"},
	{"--env=all_proxy=", "the same", "docker"},
	{"--env=NO_PROXY=", "it lists names of the user's network", "docker"},
	{"--env=no_proxy=", "the same", "docker"},

	// Nothing is gained: privilege.
	{"--user=0:0", "PID 1 only: the code cannot signal, trace or stop it; the code itself is never root, see ExecRules", ""},
	{"--cap-drop=ALL", "root of the sandbox may do nothing that a user may not", ""},
	{"--cap-add=KILL", "PID 1 ends programs of another uid; the code, not root, has no capability", ""},
	{"--security-opt=no-new-privileges", "a setuid program of the image gains nothing", ""},
	{"--security-opt=seccomp={seccomp}", "the engines' own profiles let AF_VSOCK, io_uring, user namespaces and more through, see seccomp.go", "seccomp"},

	// Nothing is written: disk.
	{"--read-only", "the image stays as it is; what is written is in memory and bounded", ""},
	{"--read-only-tmpfs=false", "podman mounts unlimited writable /run, /tmp and /var/tmp", "podman"},
	{"--image-volume=ignore", "the image's VOLUME would be a writable place on the host's disk; with docker, Start refuses such an image", "podman"},
	{"--tmpfs=/workspace:rw,exec,nosuid,nodev,size={workspace}{tmpfs},mode=1777", "files of the user; exec, else no compiled program runs", ""},
	{"--tmpfs=/tmp:rw,exec,nosuid,nodev,size={tmp}{tmpfs},mode=1777", "scratch space and HOME", ""},
	{"--tmpfs=/dev/shm:rw,noexec,nosuid,nodev,size={shm}{tmpfs},mode=1777", "semaphores, which --ipc=none takes away", ""},

	// Nothing is taken: memory, processors, processes.
	{"--memory={memory}", "a program cannot take the host's memory", ""},
	{"--memory-swap={memory}", "the same number: no swap, else it is twice as much", ""},
	{"--cpus={cpus}", "a program cannot take all processors", ""},
	{"--pids-limit={pids}", "a fork bomb ends here", ""},
	{"--ulimit=nproc={pids}:{pids}", "runsc does not keep --pids-limit, but counts this per sandbox", "runsc"},
	{"--ulimit=nproc=4096:4096", "podman raises it beyond what some hosts allow; docker would count it over all containers", "podman without runsc"},
	{"--ulimit=nofile=1024:1024", "descriptors; podman raises it beyond what some hosts allow", ""},
	{"--ulimit=core=0:0", "no core dumps, neither here nor in a handler of the host", ""},
	{"--sysctl=kernel.shm_rmid_forced=1", "shared memory that outlives its program would fill the sandbox for good", ""},
	{"--oom-score-adj=500", "when the host is out of memory, the sandbox goes first", ""},
}

// ExecRules are the flags of every run of code in a sandbox.
var ExecRules = []Rule{
	{"-i", "code and input come by stdin: no limit of argv, no quoting", ""},
	{"--user={user}", "the code is nobody: no capability, no file of the image is its own", ""},
	{"--workdir=/workspace", "ours, never the caller's", ""},
	{"--env=HOME=/tmp", "nobody's home does not exist; many a library needs one", ""},
	{"--env=USER=sandbox", "a name for what asks for one", ""},
	{"--env=TMPDIR=/tmp", "the writable place", ""},
	{"--env=XDG_CACHE_HOME=/tmp/.cache", "the writable place", ""},
	{"--env=LANG=C.UTF-8", "text is UTF-8", ""},
	{"--env=TERM=dumb", "there is no terminal", ""},
	{"--env=NO_COLOR=1", "escape sequences say nothing to a model", ""},
	{"--env=OMP_NUM_THREADS={threads}", "nproc shows the host's processors, not the sandbox's share", ""},
	{"--env=GOMAXPROCS={threads}", "the same", ""},
}

// Limits bound one sandbox.
type Limits struct {
	CPUs   float64 // processors; at most 2 decimals count
	Memory int64   // bytes, without swap; all that the sandbox writes counts as well
	PIDs   int64   // processes and threads
	Disk   int64   // bytes: two thirds /workspace, one third /tmp; see Fit
	Shm    int64   // bytes of /dev/shm
	Output int64   // bytes kept of each stream: a quarter head, the rest tail
}

// DefaultLimits are those of a sandbox of which nobody asked for others.
var DefaultLimits = Limits{CPUs: 2, Memory: 1 << 30, PIDs: 256, Disk: 384 << 20, Shm: 64 << 20, Output: 32 << 10}

// Fit returns the limits with Disk and Shm at most half the memory together:
// files lie in memory, and full of them nothing could run any more.
func (l Limits) Fit() Limits {
	l.Shm = min(l.Shm, l.Memory/16)
	l.Disk = min(l.Disk, l.Memory/2-l.Shm)
	return l
}

// Workspace and Tmp share Disk, in whole megabytes where it is as large.
func (l Limits) Workspace() int64 { return roundDown(l.Disk * 2 / 3) }
func (l Limits) Tmp() int64       { return roundDown(l.Disk / 3) }

func roundDown(n int64) int64 {
	if n > 1<<20 {
		return n &^ (1<<20 - 1)
	}
	return n &^ (1<<12 - 1)
}

// fill replaces the {names} of the rules that apply to the engine. Unknown
// names are a bug of the table and stay visible.
func (e *Engine) fill(rules []Rule, s *Spec) []string {
	l := s.Limits.Fit()
	tmpfs := ",nr_inodes=64k" // 0.5 KB of memory each, that no size bounds; podman refuses it
	if e.Podman {
		tmpfs = ",notmpcopyup" // what the image has there stays out, as with docker
	}
	ends := "never"
	if !s.Ends.IsZero() {
		ends = strconv.FormatInt(s.Ends.Unix(), 10)
	}
	network := "none"
	if s.Network {
		network = "bridge"
	}
	r := strings.NewReplacer(
		"{name}", s.Name, "{label}", Label, "{owner}", s.Owner, "{ends}", ends, "{network}", network, "{seccomp}", s.Seccomp, "{user}", User,
		"{memory}", Size(l.Memory), "{pids}", strconv.FormatInt(l.PIDs, 10),
		"{cpus}", strconv.FormatFloat(math.Round(l.CPUs*100)/100, 'f', -1, 64), "{threads}", fmt.Sprint(int(math.Ceil(l.CPUs))),
		"{workspace}", Size(l.Workspace()), "{tmp}", Size(l.Tmp()), "{shm}", Size(roundDown(l.Shm)), "{tmpfs}", tmpfs,
	)
	var args []string
	for _, rule := range rules {
		if e.applies(rule.On, s) {
			args = append(args, r.Replace(rule.Flag))
		}
	}
	return args
}

// applies says whether a rule is for this engine and sandbox. runsc is known by
// the operator's flags only.
func (e *Engine) applies(on string, s *Spec) bool {
	runsc := slices.ContainsFunc(slices.Concat(e.Command, e.RunFlags), func(f string) bool { return strings.Contains(f, "runsc") })
	switch on {
	case "":
		return true
	case "docker":
		return !e.Podman
	case "podman":
		return e.Podman
	case "podman without runsc":
		return e.Podman && !runsc
	case "runsc":
		return runsc
	case "seccomp":
		return s.Seccomp != ""
	}
	panic("rule for an unknown engine " + on)
}

// Size prints bytes the way engines read them: 1g, 256m, 1536k, 1000.
func Size(n int64) string {
	for i, unit := range []string{"g", "m", "k"} {
		if scale := int64(1) << (30 - 10*i); n >= scale && n%scale == 0 {
			return strconv.FormatInt(n/scale, 10) + unit
		}
	}
	return strconv.FormatInt(n, 10)
}
