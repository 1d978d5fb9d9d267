package dockercli

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// eachShell runs a test with every shell of this machine that images have as sh.
func eachShell(t *testing.T, test func(*testing.T, []string)) {
	for _, shell := range [][]string{{"sh"}, {"dash"}, {"bash"}, {"busybox", "sh"}} {
		t.Run(strings.Join(shell, " "), func(t *testing.T) {
			needs(t, shell[0])
			test(t, shell)
		})
	}
}

// ran is what became of a program that RUN ran on this machine.
type ran struct {
	stream   [2]*stream
	out      [2]bytes.Buffer
	took     time.Duration
	dir, tmp string // working directory, and the pattern of the files that RUN makes in /tmp
}

// runHere runs RUN in dir, in a process group of its own, as the CLI would; the
// last cut bytes of its input never arrive.
func runHere(t *testing.T, shell []string, dir string, p *Program, cut int) *ran {
	t.Helper()
	nonce, in, began := Random(12), append([]byte(goLine), input(p)...), time.Now()
	r := &ran{dir: dir, tmp: "/tmp/.*." + nonce}
	cmd := exec.Command(shell[0], slices.Concat(shell[1:], []string{"-c", RunScript(), "sh", nonce})...)
	r.stream = [2]*stream{newStream(nonce, &r.out[0]), newStream(nonce, &r.out[1])}
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, bytes.NewReader(in[:len(in)-cut]), r.stream[0], r.stream[1]
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() { cmd.Wait(); close(done) }()
	for i, c := range []chan struct{}{r.stream[0].ended, r.stream[1].ended, r.stream[0].gone} {
		select {
		case <-c:
		case <-done:
		case <-time.After(20 * time.Second):
			t.Error("it did not end")
		}
		if i < 2 {
			r.took = time.Since(began)
		}
	}
	killGroup(cmd) // a child of the program may still run
	<-done
	for _, s := range r.stream {
		s.flush()
	}
	return r
}

// trailer is what RUN says at the end: status, counts, names; "" is nothing.
func (r *ran) trailer() []string { return append(strings.Fields(r.stream[0].ending), "", "", "") }

// check looks at what came, and that no file is left behind but those named.
func (r *ran) check(t *testing.T, status, stdout, stderr string, files ...string) {
	t.Helper()
	if got := r.trailer()[0]; got != status || r.out[0].String() != stdout || r.out[1].String() != stderr || closed(r.stream[1].ended) != (status != "") {
		t.Errorf("status %q, stdout %.99q, stderr %.99q; want %s, %.99q, %.99q", got, r.out[0].String(), r.out[1].String(), status, stdout, stderr)
	}
	if got := list(r.dir); !slices.Equal(got, files) {
		t.Errorf("left in the working directory: %q; want %q", got, files)
	}
	left, _ := filepath.Glob(r.tmp)
	for _, file := range left {
		t.Errorf("left in /tmp: %s", file)
		os.Remove(file)
	}
}

func list(dir string) (names []string) {
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

func sh(code string) *Program {
	return &Program{File: ".main.sh", Run: "ulimit -c 0; exec /bin/sh .main.sh", Code: []byte(code)}
}

// TestRunEnds: output and exit status arrive, whatever a program does to end,
// also with its whole group (P-48), and no remark of a shell with them.
func TestRunEnds(t *testing.T) {
	type ending struct{ code, status, stdout, stderr string }
	cases := []ending{
		{"echo out; echo err >&2", "0", "out\n", "err\n"}, {"printf out; printf err >&2; exit 3", "3", "out", "err"}, {"printf '\\n\\n'; exit 125", "125", "\n\n", ""},
		{"exit 126", "126", "", ""}, {"exit 127", "127", "", ""}, {"exit 255", "255", "", ""}, {"", "0", "", ""},
		{"echo x; kill -9 $$", "137", "x\n", ""}, {"kill -SEGV $$", "139", "", ""}, {"exec >&- 2>&-; exit 4", "4", "", ""}, {"trap 'kill 0' EXIT; echo x", "143", "x\n", ""},
		{"cat; echo $?", "0", "0\n", ""},                                             // no stdin: the end of it at once
		{"ls -A; if (true >&3) 2>/dev/null; then echo 3; fi", "0", ".main.sh\n", ""}, // RUN's own descriptor
	}
	for signal, status := range map[string]string{"TERM": "143", "INT": "130", "HUP": "129", "QUIT": "131", "PIPE": "141", "ALRM": "142", "USR1": "138", "USR2": "140"} {
		cases = append(cases, ending{"echo before; kill -s " + signal + " 0; sleep 5; echo after", status, "before\n", ""})
	}
	signal.Notify(make(chan os.Signal, 1)) // what the test itself ignores, the programs would, too
	defer signal.Reset()
	eachShell(t, func(t *testing.T, shell []string) {
		for _, c := range cases {
			runHere(t, shell, t.TempDir(), sh(c.code), 0).check(t, c.status, c.stdout, c.stderr)
		}
		// Without the shell above it there is no trailer, and that can be seen.
		runHere(t, shell, t.TempDir(), sh("echo before; kill -9 $PPID; kill -9 $$"), 0).check(t, "", "before\n", "", ".main.sh")
	})
}

// TestRunBytes: code and stdin arrive byte for byte, whatever they are.
func TestRunBytes(t *testing.T) {
	var every []byte
	for b := range 256 {
		every = append(every, byte(b))
	}
	mega := bytes.Repeat(every, 4096)
	eachShell(t, func(t *testing.T, shell []string) {
		for _, c := range [][2][]byte{{nil, nil}, {[]byte("x"), []byte("\x00")}, {[]byte("\n\n"), []byte("\n")}, {[]byte("\x00"), []byte("no newline")}, {every, every},
			{nil, every}, {mega[:4096], nil}, {mega[:4095], []byte("x")}, {mega, nil}, {[]byte("x"), mega}, {mega, mega}} {
			p := &Program{File: ".main.x", Run: "cat '.main.x' && exec cat # it's", Code: c[0], Stdin: c[1]}
			runHere(t, shell, t.TempDir(), p, 0).check(t, "0", string(c[0])+string(c[1]), "")
		}
	})
}

// TestRunReplaces: what lies where the program is to be stored gives way, and
// what a link leads to stays as it is.
func TestRunReplaces(t *testing.T) {
	eachShell(t, func(t *testing.T, shell []string) {
		t.Setenv("OUT", t.TempDir())
		for _, there := range []string{"echo old >.main.sh", "mkdir -p .main.sh/x/y", "ln -s $OUT/kept .main.sh", "ln -s $OUT .main.sh", "ln -s $OUT/new .main.sh"} {
			dir, kept := t.TempDir(), filepath.Join(os.Getenv("OUT"), "kept")
			cmd := exec.Command("sh", "-c", "echo kept >$OUT/kept; "+there)
			cmd.Dir = dir
			if err := cmd.Run(); err != nil {
				t.Fatal(there, err)
			}
			runHere(t, shell, dir, sh("echo new"), 0).check(t, "0", "new\n", "")
			if got, _ := os.ReadFile(kept); string(got) != "kept\n" || len(list(os.Getenv("OUT"))) != 1 {
				t.Errorf("%s: behind it is %q, and %q", there, got, list(os.Getenv("OUT")))
			}
		}
	})
}

// TestRunCut: if not all of the program and its input arrives, or finds room,
// nothing runs.
func TestRunCut(t *testing.T) {
	eachShell(t, func(t *testing.T, shell []string) {
		long := "echo ran\n#" + strings.Repeat("x", 5000)
		for _, c := range []struct {
			code, stdin string
			cut         int
		}{{long, "", 1}, {long, "", 4999}, {long, "", len(long)}, {long, "input", 1}, {long, "input", 2000}, {"echo ran", long, 1}, {"echo ran", long, len(long)}} {
			p := sh(c.code)
			p.Stdin = []byte(c.stdin)
			runHere(t, shell, t.TempDir(), p, c.cut).check(t, "!1", "", "")
		}
		p := sh("echo ran")
		runHere(t, shell, t.TempDir(), p, len(goLine)+len(input(p))).check(t, "", "", "") // never told to go
		p.File = "no/such/directory"
		if r := runHere(t, shell, t.TempDir(), p, 0); r.trailer()[0] == "" || r.trailer()[0][0] != '!' || r.out[0].Len() > 0 {
			t.Errorf("no room: %q, %q", r.trailer(), r.out[0].String())
		}
	})
}

// TestRunChild: a child that holds the program's output delays nothing (P-50);
// in a process namespace, as in a container, it is named.
func TestRunChild(t *testing.T) {
	eachShell(t, func(t *testing.T, shell []string) {
		namespace := []string{"unshare", "--pid", "--fork", "--mount-proc"}
		for _, prefix := range [][]string{nil, namespace} {
			if prefix != nil && exec.Command(prefix[0], append(prefix[1:], "true")...).Run() != nil {
				t.Skip("no process namespace can be made here")
			}
			r := runHere(t, slices.Concat(prefix, shell), t.TempDir(), sh("(printf 'no newline'; exec sleep 9) & sleep 0.2; echo done >&2; exit 5"), 0)
			r.check(t, "5", "no newline", "done\n")
			if r.took > 4*time.Second {
				t.Errorf("it took %v", r.took)
			}
			if left := strings.Join(r.trailer()[3:], " "); prefix != nil && strings.TrimSpace(left) != "sleep" {
				t.Errorf("left: %q", left)
			}
		}
	})
}

// TestTrailer: whatever a trailer says, forged or not, makes a sane result.
func TestTrailer(t *testing.T) {
	for ending, want := range map[string]string{
		"0 1 2": "exited 0 false false ", "0": "exited 0 false false ", "255 1 2 sleep": "exited 255 false false sleep", "137 2 2 a b  c": "exited 137 true false a b c",
		"1 1 3": "exited 1 false true ", "1 - -": "exited 1 false false ", "!1 1 2": "no room -1 false false ", "": "killed -1 false false ",
		"256 1 2": "killed -1 false false ", "-1 1 2": "killed -1 false false ", "x 99999999999999999999 1e9": "killed -1 false false ",
	} {
		began := make(chan struct{})
		close(began)
		r := &run{result: &Result{Exit: -1}, stream: [2]*stream{{began: began, mark: " 1 2"}, {}}}
		r.finish(ending)
		if got := fmt.Sprint(r.result.How, " ", r.result.Exit, " ", r.result.OOM, " ", r.result.PIDs, " ", r.result.Left); got != want {
			t.Errorf("%q: %s; want %s", ending, got, want)
		}
	}
}
