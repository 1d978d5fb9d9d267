package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"mcp-docker-interpreter/dockercli"
)

// TestSeccomp tries every system call in a sandbox, with the product's profile
// and with the engine's own. (P-22)
func TestSeccomp(t *testing.T) {
	if testing.Short() {
		t.Skip("-short: no real engine")
	}
	program := tryProgram(t)
	each(t, func(t *testing.T, e engine) {
		if e.name == "runsc" {
			t.Skip("runsc does not use the profile: the calls go to a kernel of its own")
		}
		file, err := dockercli.SeccompFile(filepath.Join(t.TempDir(), "cache"))
		if err != nil {
			t.Fatal(err)
		}
		ours := e.byHand(t, "--security-opt=seccomp="+file)
		got, theirs := ours.try(t, program), e.byHand(t).try(t, program)

		var less, more, odd []string
		for _, what := range got.asked {
			mine, other := got.answers[what], theirs.answers[what]
			switch {
			case reached(mine) && !reached(other):
				more = append(more, what+" ("+other+")")
			case !reached(mine) && reached(other):
				less = append(less, what+" ("+mine+")")
			}
			switch kind, name, _ := strings.Cut(what, " "); kind {
			case "name":
				if mine != "EPERM" && mine != "ENOSYS" {
					t.Errorf("%s can be called: %s", name, mine)
				}
			case "call":
				if n, _ := strconv.Atoi(name); n >= 424 && !reached(mine) && mine != "ENOSYS" {
					t.Errorf("call %d is newer than what libraries expect to be refused, but is answered with %s", n, mine)
				}
				if mine != "EPERM" && mine != "ENOSYS" && !reached(mine) {
					odd = append(odd, what+" ("+mine+")")
				}
			case "clone":
				if flags, _ := strconv.ParseUint(name, 0, 64); flags&0x7e020000 != 0 && reached(mine) {
					t.Errorf("clone with %s: a new namespace", name)
				}
			case "family", "socket":
				if usual := slices.Contains([]string{"1", "2", "10", "16"}, name); usual != reached(mine) {
					t.Errorf("%s: %s", what, mine)
				}
			case "pair":
				if reached(mine) != (name == "1") {
					t.Errorf("%s: %s", what, mine)
				}
			case "int80", "socketcall32", "socket32", "x32":
				if mine != "SIGSYS" && mine != "EPERM" && mine != "ENOSYS" {
					t.Errorf("%s: %s: it is not refused", what, mine)
				}
			case "works":
				if mine != "yes" {
					t.Errorf("%s: %s", what, mine)
				}
			}
		}
		if len(more) > 0 {
			t.Errorf("open with our profile, refused by the engine's own: %s", strings.Join(more, ", "))
		}
		kinds := map[string][]string{}
		for _, what := range less {
			kind, rest, _ := strings.Cut(what, " ")
			kinds[kind] = append(kinds[kind], rest)
		}
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			t.Logf("refused by our profile, open with the engine's own: %s %s", kind, strings.Join(kinds[kind], ", "))
		}
		t.Logf("not filtered at all by this kernel: %s", strings.Join(odd, ", "))

		// An image is made with the same profile, and apk needs chroot for it.
		if got := e.byHand(t, "--security-opt=seccomp="+file, "--cap-add=SYS_CHROOT").try(t, program).answers; got["name chroot"] != "allowed" || got["name mount"] != "EPERM" {
			t.Errorf("with CAP_SYS_CHROOT, chroot is %s, mount %s", got["name chroot"], got["name mount"])
		}

		for _, p := range []struct{ name, file, code, want string }{
			{"python3", "works.py", pythonWorks, "[0, 1, 4]\n[0, 1, 4]\nthread\ninet\nunix\nchild\n"},
			{"node", "works.js", nodeWorks, "hello\nworker\nchild\nserver\n"},
		} {
			ours.exec(t, p.code, "sh", "-c", "cat >"+p.file)
			if out := ours.exec(t, "", p.name, p.file); out != p.want {
				t.Errorf("%s: %q; want %q", p.name, out, p.want)
			}
		}
	})
}

// pythonWorks has processes in both ways that multiprocessing makes them, a
// thread, sockets, and a program of another kind.
const pythonWorks = `
import multiprocessing, socket, subprocess, threading

def square(n):
    return n * n

if __name__ == "__main__":
    for how in "fork", "spawn":
        with multiprocessing.get_context(how).Pool(2) as pool:
            print(pool.map(square, range(3)))
    thread = threading.Thread(target=print, args=("thread",))
    thread.start()
    thread.join()
    with socket.create_server(("127.0.0.1", 0)) as server:
        with socket.create_connection(server.getsockname()) as client:
            client.sendall(b"inet")
            print(server.accept()[0].recv(4).decode())
    a, b = socket.socketpair()
    a.sendall(b"unix")
    print(b.recv(4).decode(), flush=True)
    subprocess.run(["echo", "child"], check=True)
`

const nodeWorks = `
const { Worker } = require("worker_threads");
console.log("hello");
const worker = new Worker('require("worker_threads").parentPort.postMessage("worker")', { eval: true });
worker.once("message", (said) => {
  console.log(said);
  process.stdout.write(require("child_process").execFileSync("echo", ["child"]));
  const server = require("net").createServer((c) => c.end("server\n"));
  server.listen(0, "127.0.0.1", () => {
    require("net").connect(server.address().port, "127.0.0.1").on("data", (d) => process.stdout.write(d)).on("close", () => server.close());
  });
});
`

// reached says whether an answer means that the call got through to the kernel.
func reached(answer string) bool { return answer == "allowed" || answer == "made" }

// tryProgram builds testdata/seccomp/try.c so that it runs in any image.
func tryProgram(t *testing.T) []byte {
	file := filepath.Join(t.TempDir(), "try")
	out, err := exec.Command("gcc", "-O1", "-Wall", "-static", "-pthread", "-o", file, "testdata/seccomp/try.c").CombinedOutput()
	if err != nil {
		said := fmt.Sprintf("no gcc here that builds a static program: %v\n%s", err, out)
		if os.Getenv("SANDBOX_TEST_ENGINES") == "all" {
			t.Fatal(said)
		}
		t.Skip(said)
	}
	program, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return program
}

// handmade is a container with the flags of a sandbox, but for the profile.
type handmade struct {
	engine
	name string
}

// byHand starts one, with more flags.
func (e engine) byHand(t *testing.T, flags ...string) handmade {
	t.Helper()
	label := "--label=test=" + dockercli.Random(8)
	eng, err := dockercli.Parse(e.line)
	if err != nil {
		t.Fatal(err)
	}
	if err := eng.Identify(t.Context()); err != nil {
		t.Fatal(err)
	}
	eng.RunFlags = append(strings.Fields(e.runFlags), label)
	h := handmade{e, dockercli.Prefix + dockercli.Random(8)}
	args := eng.RunArgs(&dockercli.Spec{Name: h.name, Image: testImage, Limits: dockercli.DefaultLimits})
	args = slices.DeleteFunc(args, func(a string) bool { return strings.HasPrefix(a, "--security-opt=seccomp") })
	args = slices.Insert(args, 1, flags...)

	cmd := exec.Command(eng.Command[0], slices.Concat(eng.Command[1:], args)...)
	var said bytes.Buffer
	cmd.Stderr = &said
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		stdin.Close() // which ends it
		late := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
		cmd.Wait()
		late.Stop()
		if left := e.containers(label); len(left) > 0 {
			t.Errorf("left behind: %q", left)
			e.cli(append([]string{"rm", "--force"}, left...)...)
		}
	})
	late := time.AfterFunc(time.Minute, func() { cmd.Process.Kill() })
	defer late.Stop()
	line, err := bufio.NewReader(stdout).ReadString('\n')
	if !strings.HasPrefix(line, "ready") {
		t.Fatalf("%v: %q, %v\n%s", cmd.Args[:3], line, err, said.String())
	}
	return h
}

// exec runs a program in it as the user that code is.
func (h handmade) exec(t *testing.T, stdin string, program ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	words, err := dockercli.Parse(h.line)
	if err != nil {
		t.Fatal(err)
	}
	args := append(words.Command[1:], "exec", "-i", "--user="+dockercli.User, "--workdir=/workspace", "--env=HOME=/tmp", "--", h.name)
	cmd := exec.CommandContext(ctx, words.Command[0], append(args, program...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v\n%s%s", program, err, out, said.String())
	}
	return string(out)
}

// answers are what try.c printed, in order.
type answers struct {
	asked   []string // "call 41"
	answers map[string]string
}

// try runs try.c in it.
func (h handmade) try(t *testing.T, program []byte) answers {
	t.Helper()
	h.exec(t, string(program), "sh", "-c", "cat >/tmp/try && chmod 700 /tmp/try")
	a := answers{answers: map[string]string{}}
	for line := range strings.Lines(h.exec(t, "", "/tmp/try")) {
		words := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(words) != 3 || words[2] == "no filter" || words[2] == "no child" {
			t.Fatalf("nothing can be measured here: %q", line)
		}
		what := words[0] + " " + words[1]
		a.asked = append(a.asked, what)
		a.answers[what] = words[2]
	}
	if a.answers["call 600"] == "" || a.answers["end 0"] == "" {
		t.Fatalf("it did not try all: %q", a.asked)
	}
	return a
}
