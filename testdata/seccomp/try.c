// What a seccomp profile lets through, seen from inside: one line for each
// thing tried, KIND WHAT ANSWER. Answers are allowed, EPERM, ENOSYS, SIGSYS,
// "errno N"; and for sockets, that are really made, made.
//
// No call is carried out. A child adds a filter of its own, the mildest there
// is but for "allow": it hands calls that carry a mark to us instead of to the
// kernel. Where the profile says no, that goes first. So mount can be told from
// a mount that the kernel refuses for lack of a capability, and exit, pause and
// reboot can be tried like anything else.
#define _GNU_SOURCE
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <netinet/in.h>
#include <unistd.h>

#define HIGH (1L << 32)
#define MARK 0x5ecc0de5 // in the sixth argument, which hardly any call has

static struct {
	volatile int listener; // the child's own filter
	volatile long result;
	unsigned args[3]; // of socketcall
} *shared; // with children, and below 4 GB, where 32-bit calls can point

static const char *named(long result)
{
	static char other[32];
	if (result >= 0)
		return "made";
	if (result == -EPERM)
		return "EPERM";
	if (result == -ENOSYS)
		return "ENOSYS";
	snprintf(other, sizeof other, "errno %ld", -result);
	return other;
}

// ended waits for a child and says how its call went.
static const char *ended(pid_t child)
{
	int status;
	waitpid(child, &status, 0);
	if (WIFSIGNALED(status))
		return WTERMSIG(status) == SIGSYS ? "SIGSYS" : "another signal";
	return named(shared->result);
}

// try3 says what the profile answers to a call with these arguments, the first
// and the third.
static const char *try3(long number, long arg0, long arg2)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[5])),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MARK, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_USER_NOTIF),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof code / sizeof *code, code};

	shared->listener = -1;
	pid_t child = syscall(SYS_clone, CLONE_FILES | SIGCHLD, 0, 0, 0, 0); // fork, but descriptors are shared
	if (child < 0)
		return "no child";
	if (child == 0) {
		int fd = syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program);
		shared->listener = fd < 0 ? -2 : fd;
		if (fd >= 0) {
			long result = syscall(number, arg0, 0, arg2, 0, 0, (long)MARK);
			shared->result = result < 0 ? -errno : result;
		}
		syscall(SYS_exit_group, 0, 0, 0, 0, 0, 0); // the mark must not stay in its register
	}
	while (shared->listener == -1)
		sched_yield();
	if (shared->listener == -2) {
		waitpid(child, 0, 0);
		return "no filter";
	}
	const char *answer = 0;
	struct pollfd p = {shared->listener, POLLIN, 0};
	siginfo_t dead = {0};
	while (!answer && !dead.si_pid) {
		poll(&p, 1, 20);
		if (p.revents & POLLIN) {
			union { struct seccomp_notif n; char room[256]; } asked = {0};
			union { struct seccomp_notif_resp n; char room[256]; } reply = {0};
			if (ioctl(p.fd, SECCOMP_IOCTL_NOTIF_RECV, &asked) == 0) {
				reply.n.id = asked.n.id;
				reply.n.error = -EINTR;
				ioctl(p.fd, SECCOMP_IOCTL_NOTIF_SEND, &reply);
				answer = "allowed";
			}
		}
		waitid(P_PID, child, &dead, WEXITED | WNOHANG | WNOWAIT);
	}
	const char *end = ended(child);
	close(p.fd);
	return answer ? answer : end;
}

static const char *try(long number, long arg0) { return try3(number, arg0, 0); }

static const int types[] = {SOCK_STREAM, SOCK_DGRAM, SOCK_RAW, SOCK_SEQPACKET, SOCK_RDM};

// sockets makes one of a family, of whatever type, by whatever way.
static long sockets(int family, long (*make)(int, int))
{
	long result = 0;
	for (unsigned i = 0; i < sizeof types / sizeof *types; i++) {
		result = make(family, types[i]);
		if (result >= 0) {
			close(result);
			break;
		}
	}
	return result;
}

static long native(int family, int type)
{
	int fd = socket(family, type, 0);
	return fd < 0 ? -errno : fd;
}

#ifdef __x86_64__
static int int80(int number, unsigned a, unsigned b, unsigned c)
{
	int result;
	__asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c), "S"(0), "D"(0) : "memory", "r8", "r9", "r10", "r11");
	return result;
}

static long socket32(int family, int type) { return int80(359, family, type, 0); }

static long socketcall32(int family, int type)
{
	shared->args[0] = family, shared->args[1] = type, shared->args[2] = 0;
	return int80(102, 1, (unsigned)(unsigned long)shared->args, 0);
}

static long getpid32(int a, int b) { return int80(20, a, b, 0); }

// apart does it in a child, which may be killed.
static const char *apart(int family, long (*make)(int, int))
{
	fflush(stdout);
	pid_t child = fork();
	if (child == 0) {
		shared->result = sockets(family, make);
		_exit(0);
	}
	return ended(child);
}
#endif

static void *thread(void *arg) { *(int *)arg = 1; return 0; }

// works does what any program may.
static void works(void)
{
	pthread_t t;
	int ran = 0, pair[2], status = -1;
	char c = 0;
	pthread_create(&t, 0, thread, &ran);
	pthread_join(t, 0);
	printf("works thread %s\n", ran ? "yes" : "no");

	fflush(stdout);
	pid_t child = fork();
	if (child == 0)
		_exit(7);
	waitpid(child, &status, 0);
	printf("works fork %s\n", WIFEXITED(status) && WEXITSTATUS(status) == 7 ? "yes" : "no");

	int ok = socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0 && write(pair[0], "x", 1) == 1 && read(pair[1], &c, 1) == 1;
	printf("works unix %s\n", ok ? "yes" : "no");

	struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
	socklen_t size = sizeof here;
	int a = socket(AF_INET, SOCK_DGRAM, 0), b = socket(AF_INET, SOCK_DGRAM, 0);
	ok = bind(a, (struct sockaddr *)&here, size) == 0 && getsockname(a, (struct sockaddr *)&here, &size) == 0 &&
		sendto(b, "y", 1, 0, (struct sockaddr *)&here, size) == 1 && recv(a, &c, 1, 0) == 1 && c == 'y';
	printf("works inet %s\n", ok ? "yes" : "no");
}

// What must not be reachable, by name; from 424 up, numbers are the same on all
// machines, and this one's headers may be older.
static const struct { const char *name; long number; } named_calls[] = {
	{"mount", SYS_mount}, {"umount2", SYS_umount2}, {"pivot_root", SYS_pivot_root}, {"chroot", SYS_chroot},
	{"setns", SYS_setns}, {"unshare", SYS_unshare}, {"bpf", SYS_bpf}, {"keyctl", SYS_keyctl},
	{"perf_event_open", SYS_perf_event_open}, {"userfaultfd", SYS_userfaultfd},
	{"fanotify_init", SYS_fanotify_init}, {"fanotify_mark", SYS_fanotify_mark},
	{"name_to_handle_at", SYS_name_to_handle_at}, {"open_by_handle_at", SYS_open_by_handle_at},
	{"syslog", SYS_syslog}, {"reboot", SYS_reboot},
	{"process_vm_readv", SYS_process_vm_readv}, {"process_vm_writev", SYS_process_vm_writev},
	{"io_uring_setup", 425}, {"io_uring_enter", 426}, {"io_uring_register", 427},
	{"open_tree", 428}, {"move_mount", 429}, {"fsopen", 430}, {"fsconfig", 431}, {"fsmount", 432}, {"fspick", 433},
	{"clone3", 435}, {"mount_setattr", 442}, {"open_tree_attr", 467},
};

int main(void)
{
	int flags = MAP_SHARED | MAP_ANONYMOUS;
#ifdef __x86_64__
	flags |= MAP_32BIT;
#endif
	shared = mmap(0, 4096, PROT_READ | PROT_WRITE, flags, -1, 0);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);

	for (int number = 0; number <= 600; number++)
		printf("call %d %s\n", number, try(number, 0));
	for (unsigned i = 0; i < sizeof named_calls / sizeof *named_calls; i++)
		printf("name %s %s\n", named_calls[i].name, try(named_calls[i].number, 0));
	for (long family = 0; family <= 45; family++) {
		printf("family %ld %s\n", family, try(SYS_socket, family));
		printf("pair %ld %s\n", family, try(SYS_socketpair, family));
	}
	printf("family %#lx %s\n", HIGH | AF_VSOCK, try(SYS_socket, HIGH | AF_VSOCK)); // the kernel looks at 32 bits
	for (long protocol = 0; protocol <= 22; protocol++)
		printf("netlink %ld %s\n", protocol, try3(SYS_socket, AF_NETLINK, protocol));
	for (int bit = 0; bit < 32; bit++)
		printf("clone %#lx %s\n", 1L << bit, try(SYS_clone, 1L << bit));
	printf("clone %#lx %s\n", HIGH | CLONE_NEWUSER, try(SYS_clone, HIGH | CLONE_NEWUSER));
	for (int request = 0; request <= 40; request++)
		printf("ptrace %#x %s\n", request, try(SYS_ptrace, request));
	for (int request = 0x4200; request <= 0x4215; request++)
		printf("ptrace %#x %s\n", request, try(SYS_ptrace, request));
	printf("ptrace %#lx %s\n", HIGH | 16, try(SYS_ptrace, HIGH | 16));
	long personas[] = {0, 8, 0x20000, 0x20008, 0xffffffff, 0x40000, 0x400000, 1};
	for (unsigned i = 0; i < sizeof personas / sizeof *personas; i++)
		printf("personality %#lx %s\n", personas[i], try(SYS_personality, personas[i]));

	for (int family = 0; family <= 45; family++)
		printf("socket %d %s\n", family, named(sockets(family, native)));
#ifdef __x86_64__
	printf("x32 %d %s\n", SYS_getpid, try(SYS_getpid | 0x40000000, 0));
	printf("x32 %d %s\n", SYS_socket, try(SYS_socket | 0x40000000, AF_VSOCK));
	printf("int80 20 %s\n", apart(0, getpid32));
	for (int family = 0; family <= 45; family++) {
		printf("socketcall32 %d %s\n", family, apart(family, socketcall32));
		printf("socket32 %d %s\n", family, apart(family, socket32));
	}
#endif
	works();
	printf("end 0 reached\n");
	return 0;
}
