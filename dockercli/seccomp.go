package dockercli

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
)

// The profile: which system calls a sandbox may make. What an engine permits by
// default is for services that people deploy; on docker 20.10 that includes
// io_uring, on podman 4.3 user namespaces, on both of them sockets to the
// hypervisor, which --network=none does not close.
//
// A call is allowed if Docker's present default allows it to every container,
// and the defaults of docker 20.10 and podman 4.3 do as well, so that no engine
// is opened wider than it was; less what RefusedCalls says. The tables are for
// amd64 and arm64: names that only 32-bit kernels have (mmap2, socketcall) are
// left out. Engines skip names that their libseccomp does not know.

// Calls are rows of system calls that are treated alike.
type Calls struct {
	Names string // separated by spaces
	Why   string // allowed: what they are for; refused: what they would open
	Errno uint   // what a refused call is answered
	Cap   string // a container with this capability may call them nevertheless
}

// Errors that a refused call is answered with.
const (
	notPermitted   = 1  // EPERM
	invalid        = 22 // EINVAL
	notImplemented = 38 // ENOSYS: libraries then do it the old way
)

// AllowedCalls may be made with any arguments.
var AllowedCalls = []Calls{
	{Why: "files: open, read, write, lock", Names: `
		open openat openat2 creat close close_range read readv pread64 preadv preadv2 write writev pwrite64 pwritev pwritev2
		lseek dup dup2 dup3 fcntl ioctl flock`},
	{Why: "files: size, copies, and what is on the disk", Names: `
		truncate ftruncate fallocate fadvise64 readahead sendfile splice tee copy_file_range fsync fdatasync sync syncfs sync_file_range`},
	{Why: "files: names and directories; mknod makes pipes, devices need a capability", Names: `
		getcwd chdir fchdir getdents getdents64 mkdir mkdirat rmdir link linkat symlink symlinkat readlink readlinkat
		rename renameat renameat2 unlink unlinkat mknod mknodat umask`},
	{Why: "files: what they are, whose, and since when", Names: `
		access faccessat faccessat2 stat lstat fstat newfstatat statx statfs fstatfs chmod fchmod fchmodat
		chown fchown lchown fchownat utime utimes futimesat utimensat`},
	{Why: "files: extended attributes", Names: `
		getxattr lgetxattr fgetxattr setxattr lsetxattr fsetxattr listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr`},
	{Why: "event loops", Names: `
		poll ppoll select pselect6 epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 epoll_ctl_old epoll_wait_old
		pipe pipe2 eventfd eventfd2 signalfd signalfd4 timerfd_create timerfd_settime timerfd_gettime
		inotify_init inotify_init1 inotify_add_watch inotify_rm_watch`},
	{Why: "asynchronous files, the old way: databases", Names: `
		io_setup io_submit io_getevents io_cancel io_destroy`},
	{Why: "memory", Names: `
		brk mmap munmap mremap mprotect msync madvise mincore mlock mlock2 mlockall munlock munlockall remap_file_pages
		memfd_create memfd_secret membarrier`},
	{Why: "processes; clone is in CheckedCalls", Names: `
		fork vfork execve execveat exit exit_group wait4 waitid getpid getppid getpgid getpgrp setpgid getsid setsid
		pidfd_open pidfd_send_signal process_mrelease prctl restart_syscall`},
	{Why: "threads, and what the C library sets up for each", Names: `
		gettid futex set_robust_list get_robust_list set_tid_address rseq arch_prctl set_thread_area get_thread_area`},
	{Why: "signals", Names: `
		kill tkill tgkill rt_sigaction rt_sigprocmask rt_sigpending rt_sigsuspend rt_sigtimedwait rt_sigqueueinfo rt_tgsigqueueinfo
		rt_sigreturn sigaltstack pause alarm`},
	{Why: "users: without a capability one can only become who one is", Names: `
		getuid geteuid getgid getegid getgroups getresuid getresgid setuid setgid setgroups setreuid setregid setresuid setresgid
		setfsuid setfsgid capget capset`},
	{Why: "limits, priorities, processors: only for the worse without a capability", Names: `
		getrlimit setrlimit prlimit64 getrusage getpriority setpriority ioprio_get ioprio_set getcpu
		sched_yield sched_getaffinity sched_setaffinity sched_getattr sched_setattr sched_getparam sched_setparam
		sched_getscheduler sched_setscheduler sched_get_priority_max sched_get_priority_min sched_rr_get_interval`},
	{Why: "time; adjtimex reads it, to set it needs a capability", Names: `
		time gettimeofday times clock_gettime clock_getres clock_nanosleep nanosleep getitimer setitimer
		timer_create timer_settime timer_gettime timer_getoverrun timer_delete adjtimex clock_adjtime`},
	{Why: "the machine: name, memory, random numbers", Names: `
		uname sysinfo getrandom`},
	{Why: "between processes of the sandbox: the IPC namespace is its own", Names: `
		shmget shmat shmdt shmctl semget semop semtimedop semctl msgget msgsnd msgrcv msgctl
		mq_open mq_unlink mq_timedsend mq_timedreceive mq_notify mq_getsetattr`},
	{Why: "sockets, once there is one; socket and socketpair are in CheckedCalls", Names: `
		bind listen accept accept4 connect shutdown getsockname getpeername getsockopt setsockopt
		sendto sendmsg sendmmsg recvfrom recvmsg recvmmsg`},
	{Why: "a program may restrict itself further", Names: `
		seccomp landlock_create_ruleset landlock_add_rule landlock_restrict_self`},
}

// Check decides about a system call by its first argument.
type Check struct {
	Name   string
	Op     string   // SCMP_CMP_EQ: it is one of Values; LT: less; MASKED_EQ: none of the bits
	Values []uint64 // compared in 64 bits
	Audit  string   // how socket's third argument compares with NETLINK_AUDIT; "": does not matter
	Errno  uint     // 0: the call may be made; else what it is answered
	Why    string
}

// CheckedCalls may be made with some first arguments and not with others. Those
// that no row speaks of are refused.
var CheckedCalls = []Check{
	{"clone", "SCMP_CMP_MASKED_EQ", []uint64{0x7e020000}, "", 0,
		"processes and threads, but no CLONE_NEW…: in a user namespace of its own a program has every capability, and with them most of the kernel's bugs"},
	{"socket", "SCMP_CMP_EQ", []uint64{1, 2, 10}, "", 0,
		"AF_UNIX, AF_INET, AF_INET6"},
	{"socket", "SCMP_CMP_EQ", []uint64{16}, "SCMP_CMP_NE", 0,
		"AF_NETLINK tells what interfaces there are"},
	{"socket", "SCMP_CMP_EQ", []uint64{16}, "SCMP_CMP_EQ", invalid,
		"the audit log is the machine's; podman refuses it like this, for then useradd does without"},
	{"socket", "SCMP_CMP_EQ", except(46, 1, 2, 10, 16), "", notPermitted,
		"AF_VSOCK leads to the hypervisor past --network=none; AF_ALG, AF_PACKET and 39 more are code that hardly anybody looks after"},
	{"socketpair", "SCMP_CMP_EQ", []uint64{1}, "", 0,
		"AF_UNIX; the others either cannot (but are loaded to say so) or are not allowed above"},
	{"personality", "SCMP_CMP_EQ", []uint64{0, 8, 0x20000, 0x20008, 0xffffffff}, "", 0,
		"what this is, and uname's answers; not the bits that switch off address randomization or make memory executable"},
	{"ptrace", "SCMP_CMP_LT", []uint64{16}, "", 0,
		"debuggers of programs that they start"},
	{"ptrace", "SCMP_CMP_EQ", []uint64{17, 24, 30, 0x4200, 0x4201, 0x4202, 0x4203, 0x4204, 0x4205, 0x4207, 0x4208, 0x4209, 0x420a, 0x420b, 0x420e}, "", 0,
		"the same"},
	{"ptrace", "SCMP_CMP_EQ", []uint64{16, 0x4206}, "", notPermitted,
		"PTRACE_ATTACH and PTRACE_SEIZE take hold of somebody else's program"},
}

// except returns the numbers below n that are not among some.
func except(n uint64, some ...uint64) (others []uint64) {
	for i := range n {
		if !slices.Contains(some, i) {
			others = append(others, i)
		}
	}
	return others
}

// RefusedCalls are all others. The default is to refuse, so that a call that is
// missing here is no hole. They are here for the reason, and for the error, that
// is the same on all engines only if a rule says it: the default is "not
// implemented", for calls that nobody has heard of yet, but docker 20.10 does
// not read that and takes "not permitted".
var RefusedCalls = []Calls{
	{"mount umount2 pivot_root", "another view of the file system", notPermitted, ""},
	{"chroot", "the same; with the capability, which no sandbox has, apk installs packages", notPermitted, "CAP_SYS_CHROOT"},
	{"setns unshare", "namespaces: see clone", notPermitted, ""},
	{"bpf", "programs that run in the kernel", notPermitted, ""},
	{"perf_event_open lookup_dcookie", "measuring the kernel and its neighbours; many bugs", notPermitted, ""},
	{"userfaultfd", "holds the kernel up in the middle of a copy, which exploits need", notPermitted, ""},
	{"vmsplice", "gives pages of memory away and keeps them; podman refuses it", notPermitted, ""},
	{"keyctl add_key request_key", "the kernel's keys, which no namespace separates", notPermitted, ""},
	{"fanotify_init fanotify_mark", "watches whole file systems", notPermitted, ""},
	{"name_to_handle_at open_by_handle_at", "opens files past the directories that lead to them: the way out of containers of 2014", notPermitted, ""},
	{"process_vm_readv process_vm_writev kcmp", "the memory of other processes", notPermitted, ""},
	{"syslog", "the kernel's log, with its addresses", notPermitted, ""},
	{"reboot kexec_load kexec_file_load init_module finit_module delete_module create_module query_module get_kernel_syms", "the kernel itself", notPermitted, ""},
	{"acct quotactl swapon swapoff nfsservctl vhangup _sysctl sysfs ustat uselib", "the machine's administration", notPermitted, ""},
	{"settimeofday clock_settime sethostname setdomainname", "the machine's time and name", notPermitted, ""},
	{"ioperm iopl", "the machine's devices", notPermitted, ""},
	{"modify_ldt", "segments for 16-bit and 32-bit programs, of which there are none", notPermitted, ""},
	{"get_mempolicy set_mempolicy mbind migrate_pages move_pages", "where memory lies: docker refuses them, podman some", notPermitted, ""},
	{"pkey_alloc pkey_free pkey_mprotect", "memory protection keys: docker 20.10 refuses them, and programs live without", notPermitted, ""},
	{"io_pgetevents", "podman refuses it; io_getevents does the same", notPermitted, ""},
	{"afs_syscall getpmsg putpmsg security tuxcall vserver", "numbers that no kernel has used for long", notPermitted, ""},

	// Newer than what 2020's libraries know: they ask whether it is there, and
	// take "not permitted" for an answer about the file, not the call.
	{"clone3", "its flags are in memory, where no filter looks: clone is used instead", notImplemented, ""},
	{"io_uring_setup io_uring_enter io_uring_register", "does what other calls do, unseen by this filter; many bugs", notImplemented, ""},
	{"open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr open_tree_attr", "mount in its new form", notImplemented, ""},
	{"statmount listmount listns", "what is mounted where, and other namespaces: /proc says what is ours", notImplemented, ""},
	{"pidfd_getfd process_madvise", "the descriptors and the memory of other processes", notImplemented, ""},
	{"quotactl_fd", "the machine's administration", notImplemented, ""},
	{"set_mempolicy_home_node", "where memory lies: see mbind", notImplemented, ""},
	{"lsm_get_self_attr lsm_set_self_attr lsm_list_modules", "docker refuses them", notImplemented, ""},
	{"futex_waitv futex_wait futex_wake futex_requeue cachestat fchmodat2 map_shadow_stack mseal getxattrat setxattrat listxattrat removexattrat file_getattr file_setattr rseq_slice_yield",
		"too new for docker 20.10 or podman 4.3, and programs live without", notImplemented, ""},
}

// seccompArchitectures are those that calls may be made in. To name no 32-bit
// ones (SCMP_ARCH_X86, SCMP_ARCH_X32, SCMP_ARCH_ARM) is what refuses them: the
// checks of socket would not hold for int 0x80, where socketcall has its
// arguments in memory. Such a call, and an x32 one, is not answered, for
// libseccomp ends the thread that makes it with SIGSYS (measured: runc 1.1.5
// under docker and podman). No 64-bit program makes one; a 32-bit program ends
// at its first call.
var seccompArchitectures = []string{"SCMP_ARCH_X86_64", "SCMP_ARCH_AARCH64"}

// SeccompProfile is the profile in the form that docker 20.10 and podman 4.3,
// and later ones, read from a file.
func SeccompProfile() []byte {
	type arch struct {
		Architecture     string   `json:"architecture"`
		SubArchitectures []string `json:"subArchitectures"`
	}
	type arg struct {
		Index    uint   `json:"index"`
		Value    uint64 `json:"value"`
		ValueTwo uint64 `json:"valueTwo"`
		Op       string `json:"op"`
	}
	type rule struct {
		Comment  string         `json:"comment"`
		Names    []string       `json:"names"`
		Action   string         `json:"action"`
		ErrnoRet uint           `json:"errnoRet,omitempty"`
		Args     []arg          `json:"args,omitempty"`
		Includes map[string]any `json:"includes,omitempty"`
		Excludes map[string]any `json:"excludes,omitempty"`
	}
	profile := struct {
		DefaultAction   string `json:"defaultAction"`
		DefaultErrnoRet uint   `json:"defaultErrnoRet"`
		ArchMap         []arch `json:"archMap"`
		Syscalls        []rule `json:"syscalls"`
	}{DefaultAction: "SCMP_ACT_ERRNO", DefaultErrnoRet: notImplemented}
	for _, a := range seccompArchitectures {
		profile.ArchMap = append(profile.ArchMap, arch{a, []string{}})
	}
	for _, c := range AllowedCalls {
		profile.Syscalls = append(profile.Syscalls, rule{Comment: c.Why, Names: strings.Fields(c.Names), Action: "SCMP_ACT_ALLOW"})
	}
	for _, c := range CheckedCalls {
		for _, value := range c.Values { // one rule each: conditions of one rule must all hold
			r := rule{Comment: c.Why, Names: []string{c.Name}, Action: "SCMP_ACT_ALLOW", Args: []arg{{Value: value, Op: c.Op}}}
			if c.Audit != "" {
				r.Args = append(r.Args, arg{Index: 2, Value: 9, Op: c.Audit})
			}
			if c.Errno != 0 {
				r.Action, r.ErrnoRet = "SCMP_ACT_ERRNO", c.Errno
			}
			if c.Name == "ptrace" { // older kernels let a tracer change a call that the filter has seen
				r.Includes = map[string]any{"minKernel": "4.8"}
			}
			profile.Syscalls = append(profile.Syscalls, r)
		}
	}
	for _, c := range RefusedCalls {
		r := rule{Comment: c.Why, Names: strings.Fields(c.Names), Action: "SCMP_ACT_ERRNO", ErrnoRet: c.Errno}
		if c.Cap != "" {
			with := map[string]any{"caps": []string{c.Cap}}
			profile.Syscalls = append(profile.Syscalls, rule{Comment: c.Why, Names: r.Names, Action: "SCMP_ACT_ALLOW", Includes: with})
			r.Excludes = with
		}
		profile.Syscalls = append(profile.Syscalls, r)
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "\t")
	e.Encode(profile) // of strings and numbers: never fails
	return b.Bytes()
}

// SeccompFile makes sure that the profile lies in dir, under its hash, and
// returns its absolute path. What lies there is not trusted: it is compared,
// and replaced if it is not ours to the byte.
func SeccompFile(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", fmt.Errorf("seccomp profile: %w", err)
	}
	profile := SeccompProfile()
	path := filepath.Join(dir, fmt.Sprintf("seccomp-%.8x.json", sha256.Sum256(profile)))
	if isFile(path, profile) {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", fmt.Errorf("seccomp profile: %w", err)
	}
	// A temporary file, renamed: whoever reads the path at the same time finds
	// the whole profile, and of two writers the second replaces like with like.
	if err := replaceFile(path, profile); err != nil && !isFile(path, profile) {
		return "", fmt.Errorf("seccomp profile: %w", err)
	}
	return path, nil
}

// isFile says whether path is a file of this content that nobody else can
// write, not a link to one.
func isFile(path string, content []byte) bool {
	info, err := os.Lstat(path)
	if err != nil || !info.Mode().IsRegular() || info.Mode().Perm()&0o022 != 0 && runtime.GOOS != "windows" {
		return false
	}
	got, err := os.ReadFile(path)
	return err == nil && bytes.Equal(got, content)
}

func replaceFile(path string, content []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".seccomp-*") // mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if e := f.Close(); err == nil {
		err = e
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		os.Remove(f.Name())
	}
	return err
}
