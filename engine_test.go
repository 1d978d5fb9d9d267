package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"mcp-docker-interpreter/dockercli"

	"github.com/google/shlex"
	"github.com/rogpeppe/go-internal/testscript"
)

// testImage is what .ci/engine makes: Debian with python3, node and dash.
const testImage = "debian-python:local"

// engine is a real one to test on.
type engine struct {
	name     string // docker, podman or runsc
	line     string // for -engine
	runFlags string // for -run-flags
}

// engines returns those of this machine. What is not there is skipped, saying
// so; or fails, where SANDBOX_TEST_ENGINES=all says that it should be there.
func engines(t *testing.T) []engine {
	t.Helper()
	var found []engine
	add := func(name, runFlags string, lines ...string) {
		said := "it is not on PATH"
		for _, line := range lines {
			if line == "" || strings.HasPrefix(line, " ") {
				continue
			}
			words, _ := shlex.Split(line)
			args := slices.Concat(words[1:], []string{"run", "--rm", "--pull=never", "--network=none", "--ulimit=nofile=1024:1024"}, strings.Fields(runFlags), []string{"--", testImage, "true"})
			out, err := exec.Command(words[0], args...).CombinedOutput()
			if err == nil {
				if name == "podman" {
					runFlags = "" // the product brings that flag itself
				}
				found = append(found, engine{name, line, runFlags})
				return
			}
			said = fmt.Sprintf("%s: %v: %s", line, err, out)
		}
		said = fmt.Sprintf("no %s here that runs %s (.ci/engine brings them up): %s", name, testImage, said)
		if os.Getenv("SANDBOX_TEST_ENGINES") == "all" {
			t.Error(said)
		} else {
			t.Run(name, func(t *testing.T) { t.Skip(said) })
		}
	}
	add("docker", "", realDocker)
	add("runsc", "--runtime=runsc", realDocker)
	add("podman", "--ulimit=nproc=4096:4096", realPodman, realPodman+" --runtime=runc")
	return found
}

// each runs a test on every engine.
func each(t *testing.T, test func(*testing.T, engine)) {
	if testing.Short() {
		t.Skip("-short: no real engine")
	}
	for _, e := range engines(t) {
		t.Run(e.name, func(t *testing.T) { test(t, e) })
	}
}

// TestEngine runs the scripts of testdata/engine on real engines.
func TestEngine(t *testing.T) {
	each(t, func(t *testing.T, e engine) {
		testscript.Run(t, testscript.Params{
			Dir:                 "testdata/engine",
			RequireUniqueNames:  true,
			RequireExplicitExec: true,
			Setup: func(env *testscript.Env) error {
				label := "--label=test=" + dockercli.Random(8)
				for _, kv := range e.environ(label) {
					name, value, _ := strings.Cut(kv, "=")
					env.Setenv(name, value)
				}
				env.Setenv("LABEL", label)
				env.Setenv("CLI", e.line)
				return nil
			},
			Condition: func(cond string) (bool, error) { return cond == e.name, nil },
			Cmds: map[string]func(*testscript.TestScript, bool, []string){
				// none: no container of this script is left.
				"none": func(ts *testscript.TestScript, neg bool, args []string) {
					label := ts.Getenv("LABEL")
					if left := e.containers(label); len(left) > 0 != neg {
						ts.Fatalf("containers with %s: %q", label, left)
					}
				},
			},
		})
	})
}

// environ is what the product needs to know to use the engine, and the CLI to
// find its own configuration.
func (e engine) environ(label string) []string {
	env := []string{"SANDBOX_ENGINE=" + e.line, "SANDBOX_RUN_FLAGS=" + strings.TrimSpace(e.runFlags+" "+label), "SANDBOX_IMAGE=" + testImage}
	for _, name := range []string{"FAKE", "HOME", "PATH", "XDG_RUNTIME_DIR", "DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "CONTAINER_HOST"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// cli runs a command of the engine.
func (e engine) cli(args ...string) string {
	words, _ := shlex.Split(e.line)
	out, err := exec.Command(words[0], slices.Concat(words[1:], args)...).CombinedOutput()
	if err != nil {
		return fmt.Sprintf("%v: %s", err, out)
	}
	return string(out)
}

// containers names those with a label, in whatever state.
func (e engine) containers(label string) []string {
	return strings.Fields(e.cli("ps", "--all", "--filter="+strings.TrimPrefix(label, "--"), "--format={{.Names}}"))
}

// server is the product as a client starts it, over stdio.
type server struct {
	*exec.Cmd
	in    io.WriteCloser
	lines chan map[string]any
	id    int
}

func (e engine) start(t *testing.T, label string, args ...string) *server {
	t.Helper()
	exe, err := exec.LookPath("mcp-docker-interpreter")
	if err != nil {
		t.Fatal(err)
	}
	s := &server{Cmd: exec.Command(exe, args...), lines: make(chan map[string]any, 1000)}
	s.Env = e.environ(label)
	s.Stderr = os.Stderr
	s.in, err = s.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := s.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		s.in.Close()
		s.Process.Kill()
		s.Wait()
		left := e.containers(label)
		for range 20 { // the ends of killed servers' sandboxes are TestEnds' business
			if len(left) == 0 {
				return
			}
			time.Sleep(100 * time.Millisecond)
			left = e.containers(label)
		}
		t.Errorf("left behind: %q", left)
		e.cli(append([]string{"rm", "--force"}, left...)...)
	})
	go s.read(out)
	s.send("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "test", "version": "1"}})
	s.next(t)
	return s
}

// read reads what the server says.
func (s *server) read(out io.Reader) {
	defer close(s.lines)
	for r := bufio.NewReader(out); ; {
		line, err := r.ReadBytes('\n')
		if err != nil {
			return
		}
		var m map[string]any
		if json.Unmarshal(line, &m) != nil {
			m = map[string]any{"not JSON": string(line)}
		}
		s.lines <- m
	}
}

// send sends a request and returns its id.
func (s *server) send(method string, params any) int {
	s.id++
	json.NewEncoder(s.in).Encode(map[string]any{"jsonrpc": "2.0", "id": s.id, "method": method, "params": params})
	return s.id
}

func (s *server) notify(method string, params any) {
	json.NewEncoder(s.in).Encode(map[string]any{"jsonrpc": "2.0", "method": method, "params": params})
}

func (s *server) call(tool string, args map[string]any) int {
	return s.send("tools/call", map[string]any{"name": tool, "arguments": args})
}

// next waits for the next message.
func (s *server) next(t *testing.T) map[string]any {
	t.Helper()
	select {
	case m, ok := <-s.lines:
		if !ok {
			t.Fatal("the server ended")
		}
		return m
	case <-time.After(60 * time.Second):
		t.Fatal("no answer within a minute")
	}
	return nil
}

// text is the answer in a message.
func text(m map[string]any) string {
	b, _ := json.Marshal(m)
	var r struct {
		Result struct{ Content []struct{ Text string } }
		Error  any
	}
	json.Unmarshal(b, &r)
	if r.Error != nil || len(r.Result.Content) != 1 {
		return string(b)
	}
	return r.Result.Content[0].Text
}

// TestEnds: however the server ends, with code running or not, the container
// is gone within two seconds. (8, L-01, L-02, L-04)
func TestEnds(t *testing.T) {
	each(t, func(t *testing.T, e engine) {
		for _, end := range []struct {
			name string
			do   func(*server)
		}{
			{"end of stdin", func(s *server) { s.in.Close() }},
			{"SIGTERM", func(s *server) { s.Process.Signal(syscall.SIGTERM) }},
			{"SIGINT", func(s *server) { s.Process.Signal(os.Interrupt) }},
			{"SIGKILL", func(s *server) { s.Process.Kill() }},
		} {
			for _, program := range []struct{ name, code string }{
				{"idle", "print(1)"},
				{"running", "import os\nwhile 1: os.fork() or os.setsid()"},
			} {
				t.Run(end.name+" "+program.name, func(t *testing.T) {
					label := "--label=test=" + dockercli.Random(8)
					s := e.start(t, label, "-pids=32")
					s.call("execute_code", map[string]any{"code": "print(1)"})
					if got := text(s.next(t)); got != "1" {
						t.Fatal(got)
					}
					if n := e.containers(label); len(n) != 1 {
						t.Fatalf("containers: %q", n)
					}
					if program.name == "running" {
						s.call("execute_code", map[string]any{"code": program.code})
						time.Sleep(500 * time.Millisecond)
					}
					start := time.Now()
					end.do(s)
					for len(e.containers(label)) > 0 {
						if time.Since(start) > 10*time.Second {
							t.Fatal("the container is still there")
						}
					}
					took := time.Since(start)
					t.Logf("gone after %v", took.Round(time.Millisecond))
					ended := make(chan error, 1)
					go func() { ended <- s.Wait() }()
					select {
					case err := <-ended:
						if err != nil && end.name != "SIGKILL" {
							t.Errorf("the server ended with %v", err)
						}
					case <-time.After(5 * time.Second):
						t.Error("the server has not ended")
					}
				})
			}
		}
	})
}

// TestParallel: calls sent together on one sandbox take turns, are answered
// each with its own output, and hold up nothing else. (7, 73, 91)
func TestParallel(t *testing.T) {
	each(t, func(t *testing.T, e engine) {
		label := "--label=test=" + dockercli.Random(8)
		s := e.start(t, label)
		want := map[float64]string{}
		for i := range 10 { // none has a sandbox yet: one is made, not ten
			want[float64(s.call("execute_code", map[string]any{"code": fmt.Sprint("print(", i, ")")}))] = fmt.Sprint(i)
		}
		ping := s.send("ping", nil)
		if first := s.next(t); first["id"] != float64(ping) {
			t.Errorf("ping was not answered at once, but %v", first)
		}
		for range 10 {
			m := s.next(t)
			if id := m["id"].(float64); text(m) != want[id] {
				t.Errorf("call %v: %s; want %s", id, text(m), want[id])
			}
		}
		if n := e.containers(label); len(n) != 1 {
			t.Errorf("containers: %q", n)
		}
		s.call("execute_code", map[string]any{"code": "print(*__import__('os').listdir('/workspace'))"})
		if got := text(s.next(t)); got != ".main.py" {
			t.Errorf("left over: %s", got)
		}
	})
}

// TestCancel: a call that the client takes back is ended for real, and the
// sandbox answers the next. (L-03)
func TestCancel(t *testing.T) {
	each(t, func(t *testing.T, e engine) {
		s := e.start(t, "--label=test="+dockercli.Random(8))
		s.call("execute_code", map[string]any{"code": "open('kept','w')"})
		s.next(t)
		id := s.call("execute_code", map[string]any{"language": "sh", "code": "sleep 777.25 & sleep 777.25"})
		time.Sleep(time.Second)
		start := time.Now()
		s.notify("notifications/cancelled", map[string]any{"requestId": id})
		next := s.call("execute_code", map[string]any{"code": "import os,glob\nprint(os.listdir('.'), sum(b'777.25' in open(f,'rb').read() for f in glob.glob('/proc/[0-9]*/cmdline')))"})
		for {
			m := s.next(t)
			if m["id"] != float64(next) {
				continue // some servers answer a cancelled call all the same
			}
			if got := text(m); !strings.Contains(got, "'kept'") || !strings.HasSuffix(got, " 0") {
				t.Error(got)
			}
			break
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("the next call was answered after %v", took)
		}
	})
}

// TestProgress: a long run shows signs of life to a client that asks for them,
// with rising values; to another it does not. (99)
func TestProgress(t *testing.T) {
	dir := t.TempDir()
	os.MkdirAll(filepath.Join(dir, "docker"), 0o777)
	os.WriteFile(filepath.Join(dir, "docker", "exec.sleep"), []byte("5s"), 0o666)
	t.Setenv("FAKE", dir)
	s := engine{name: "fake", line: "docker"}.start(t, "--label=test=1", "-sandboxes=2")
	for range 2 { // two, for runs in one take turns
		s.call("initialize_sandbox", map[string]any{})
	}
	ids := []string{}
	for range 2 {
		ids = append(ids, strings.Fields(text(s.next(t)))[1])
	}
	for i, id := range ids {
		params := map[string]any{"name": "execute_code", "arguments": map[string]any{"code": "1", "sandbox_id": id}}
		if i == 0 {
			params["_meta"] = map[string]any{"progressToken": "p"}
		}
		s.send("tools/call", params)
	}
	var values []float64
	for answers := 0; answers < 2; {
		m := s.next(t)
		if _, ok := m["id"]; ok {
			answers++
			continue
		}
		params, _ := m["params"].(map[string]any)
		if params["progressToken"] != "p" {
			t.Errorf("a notification that nobody asked for: %v", m)
		}
		n, _ := params["progress"].(float64)
		values = append(values, n)
	}
	if len(values) < 2 || !slices.IsSorted(values) {
		t.Errorf("progress: %v", values)
	}
}

// TestKilledCLI: when somebody kills the server's own docker exec, the call
// ends with an engine error, and what ran is ended. (18)
func TestKilledCLI(t *testing.T) {
	each(t, func(t *testing.T, e engine) {
		s := e.start(t, "--label=test="+dockercli.Random(8))
		s.call("execute_code", map[string]any{"code": "print(1)"})
		s.next(t)
		s.call("execute_code", map[string]any{"language": "sh", "code": "setsid sleep 777.25 & sleep 777.25"})
		time.Sleep(time.Second)
		clis, _ := exec.Command("pgrep", "--parent", fmt.Sprint(s.Process.Pid), "--full", " exec ").Output()
		if len(strings.Fields(string(clis))) != 1 {
			t.Fatalf("CLIs that run exec: %q", clis)
		}
		exec.Command("kill", "-9", strings.TrimSpace(string(clis))).Run()
		if got := text(s.next(t)); !strings.HasPrefix(got, "engine: the engine's command ended in the middle of the run (signal: killed)") {
			t.Error(got)
		}
		s.call("execute_code", map[string]any{"code": "import glob\nprint(sum(b'777.25' in open(f,'rb').read() for f in glob.glob('/proc/[0-9]*/cmdline')))"})
		if got := text(s.next(t)); got != "0" {
			t.Errorf("%s programs run on", got)
		}
	})
}

// TestRemoved: a sandbox that somebody removes is lost, which the call under
// way says, and the next one, which gets a new sandbox.
func TestRemoved(t *testing.T) {
	each(t, func(t *testing.T, e engine) {
		label := "--label=test=" + dockercli.Random(8)
		s := e.start(t, label)
		s.call("initialize_sandbox", map[string]any{})
		id := strings.Fields(text(s.next(t)))[1]
		s.call("execute_code", map[string]any{"language": "sh", "code": "echo before; sleep 777.25"})
		time.Sleep(time.Second)
		e.cli("rm", "--force", e.containers(label)[0])
		if got := text(s.next(t)); !strings.HasPrefix(got, "sandbox_lost: the sandbox "+id+" ended during the run: its container ended, though nobody here asked for it") || !strings.Contains(got, "\nbefore\n") {
			t.Error(got)
		}
		s.call("execute_code", map[string]any{"code": "1", "sandbox_id": id})
		if got := text(s.next(t)); !strings.HasPrefix(got, "sandbox_ended: sandbox "+id+" ended at ") {
			t.Error(got)
		}
		s.call("execute_code", map[string]any{"code": "print(2)"})
		if got := text(s.next(t)); !strings.HasPrefix(got, "2\n[the sandbox of the last call ended at ") || !strings.HasSuffix(got, "this is a new one]") {
			t.Error(got)
		}
	})
}

// TestHangingEngine: an engine that takes calls and never answers costs a call
// some seconds, and nobody else anything. (27)
func TestHangingEngine(t *testing.T) {
	if realDocker == "" {
		t.Skip("no docker CLI here")
	}
	socket := filepath.Join(t.TempDir(), "s")
	l, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	t.Setenv("DOCKER_HOST", "unix://"+socket)
	e := engine{name: "hanging", line: realDocker}
	exe, _ := exec.LookPath("mcp-docker-interpreter")
	s := &server{Cmd: exec.Command(exe), lines: make(chan map[string]any, 100)}
	s.Env = e.environ("--label=test=1")
	s.in, _ = s.StdinPipe()
	out, _ := s.StdoutPipe()
	if err := s.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { s.in.Close(); s.Process.Kill(); s.Wait() }()
	go s.read(out)
	start := time.Now()
	s.call("initialize_sandbox", map[string]any{})
	s.call("list_sandboxes", map[string]any{})
	ping := s.send("ping", nil)
	if m := s.next(t); m["id"] != float64(ping) {
		t.Errorf("ping was not answered first, but %v", m)
	}
	for range 2 {
		if got := text(s.next(t)); !strings.Contains(got, "no answer within") || !strings.Contains(got, socket) {
			t.Error(got)
		}
	}
	t.Logf("answered after %v", time.Since(start).Round(time.Second))
}

// TestClean: clean removes what dead servers have left, in whatever state, and
// neither a living server's sandbox nor a stranger's container, whatever its
// label says. (L-06, L-24, L-31)
func TestClean(t *testing.T) {
	each(t, func(t *testing.T, e engine) {
		label := "--label=test=" + dockercli.Random(8)
		living := e.start(t, label)
		living.call("initialize_sandbox", map[string]any{})
		living.next(t)
		alive := e.containers(label)

		dead := exec.Command("true")
		dead.Run()
		me, _ := os.ReadFile("/proc/sys/kernel/random/boot_id")
		ns, _ := os.Readlink("/proc/self/ns/pid")
		owner := fmt.Sprintf("%s/%s/%d/1", strings.TrimSpace(string(me)), strings.Trim(ns, "pid:[]"), dead.Process.Pid)
		left := dockercli.Prefix + dockercli.Random(8)
		stranger := "stranger-" + dockercli.Random(8)
		for name, labels := range map[string][]string{
			left:     {"--label=" + dockercli.Label + "=" + left, "--label=" + dockercli.Label + ".owner=" + owner},
			stranger: {"--label=" + dockercli.Label + "=" + left, "--label=" + dockercli.Label + ".owner=" + owner},
		} {
			args := slices.Concat([]string{"run", "--detach", "--ulimit=nofile=1024:1024", "--network=none", "--name=" + name, label}, strings.Fields(e.runFlags), labels)
			if e.name == "podman" {
				args = append(args, "--ulimit=nproc=4096:4096")
			}
			if out := e.cli(append(args, "--", testImage, "sleep", "600")...); strings.Contains(out, "exit status") {
				t.Fatal(out)
			}
		}
		defer e.cli("rm", "--force", stranger)
		clean := exec.Command("mcp-docker-interpreter", "clean")
		clean.Env = e.environ(label)
		out, err := clean.CombinedOutput()
		if err != nil || !strings.Contains(string(out), "removed "+left+": its server is gone\n") || strings.Contains(string(out), stranger) || strings.Contains(string(out), alive[0]) {
			t.Errorf("clean: %v, %s", err, out)
		}
		if now := e.containers(label); slices.Contains(now, left) || !slices.Contains(now, stranger) || !slices.Contains(now, alive[0]) {
			t.Errorf("containers after clean: %q; want %s and %s", now, stranger, alive[0])
		}
		living.call("execute_code", map[string]any{"code": "print('alive')"})
		if got := text(living.next(t)); got != "alive" {
			t.Error(got)
		}
	})
}

// TestCancelEarly: a call that is taken back while the engine is still starting
// its program leaves nothing running, however early that is. (L-03)
func TestCancelEarly(t *testing.T) {
	each(t, func(t *testing.T, e engine) {
		s := e.start(t, "--label=test="+dockercli.Random(8))
		s.call("initialize_sandbox", map[string]any{})
		s.next(t)
		for _, delay := range []time.Duration{5, 20, 40, 60, 80, 100, 150} {
			id := s.call("execute_code", map[string]any{"language": "sh", "code": "exec sleep 777.25"})
			time.Sleep(delay * time.Millisecond)
			s.notify("notifications/cancelled", map[string]any{"requestId": id})
			s.next(t)
			time.Sleep(300 * time.Millisecond) // for what would come up late
			s.call("execute_code", map[string]any{"code": "import glob\nprint(sum(b'777.25' in open(f,'rb').read() for f in glob.glob('/proc/[0-9]*/cmdline')))"})
			if got := text(s.next(t)); got != "0" {
				t.Errorf("cancelled after %d ms, %s programs run on", delay, got)
			}
		}
	})
}

// TestNobodyReads: a client, or a pipe, that nobody reads keeps neither the
// server nor a sandbox alive.
func TestNobodyReads(t *testing.T) {
	each(t, func(t *testing.T, e engine) {
		gone := func(t *testing.T, cmd *exec.Cmd, label string) {
			ended := make(chan struct{})
			go func() { cmd.Wait(); close(ended) }()
			select {
			case <-ended:
			case <-time.After(20 * time.Second):
				cmd.Process.Kill()
				t.Error("it did not end")
			}
			for range 20 {
				if len(e.containers(label)) == 0 {
					return
				}
				time.Sleep(100 * time.Millisecond)
			}
			t.Errorf("left behind: %q", e.containers(label))
		}
		t.Run("a client", func(t *testing.T) {
			label := "--label=test=" + dockercli.Random(8)
			cmd := exec.Command("mcp-docker-interpreter")
			cmd.Env = e.environ(label)
			in, _ := cmd.StdinPipe()
			out, _ := cmd.StdoutPipe() // never read
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			for id := range 8 {
				fmt.Fprintf(in, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":"print('x'*30000)"}}}`+"\n", id)
			}
			time.Sleep(2 * time.Second)
			cmd.Process.Signal(syscall.SIGTERM)
			gone(t, cmd, label)
			in.Close()
			out.Close()
		})
		t.Run("run", func(t *testing.T) {
			label := "--label=test=" + dockercli.Random(8)
			program := filepath.Join(t.TempDir(), "flood.sh")
			os.WriteFile(program, []byte("while :; do echo yyyyyyyyyyyyyyyyyyyyyyyyyyy; done\n"), 0o666)
			cmd := exec.Command("mcp-docker-interpreter", "-timeout=1s", "run", program)
			cmd.Env = e.environ(label)
			r, w, _ := os.Pipe() // never read
			cmd.Stdout = w
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			gone(t, cmd, label)
			r.Close()
			w.Close()
		})
		t.Run("run, reading its own input", func(t *testing.T) {
			cmd := exec.Command("mcp-docker-interpreter", "run", "-")
			cmd.Env = e.environ("--label=test=1")
			in, _ := cmd.StdinPipe() // stays open
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(200 * time.Millisecond)
			cmd.Process.Signal(syscall.SIGTERM)
			gone(t, cmd, "--label=test=none")
			in.Close()
		})
	})
}

// TestCancelAtOnce: a cancellation that comes in one piece with its call is heard.
func TestCancelAtOnce(t *testing.T) {
	dir := t.TempDir()
	os.MkdirAll(filepath.Join(dir, "docker"), 0o777)
	os.WriteFile(filepath.Join(dir, "docker", "exec.1.sleep"), []byte("40s"), 0o666)
	t.Setenv("FAKE", dir)
	s := engine{name: "fake", line: "docker"}.start(t, "--label=test=1")
	fmt.Fprint(s.in, `{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"execute_code","arguments":{"code":"1","timeout":45}}}`+"\n"+
		`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":7}}`+"\n")
	if got := text(s.next(t)); !strings.HasPrefix(got, "cancelled: ") {
		t.Error(got)
	}
}
