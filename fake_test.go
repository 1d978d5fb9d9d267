package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"mcp-docker-interpreter/dockercli"
)

// fakeEngine is the program docker, or podman, of the scripts. It appends each
// command line to the file log, as one would type it, and answers from the
// files docker/VERB.stdout, .stderr, .exit and .sleep (podman/… likewise) of
// the script, or VERB.N.… for the N-th time; a file that is missing means
// nothing, 0, at once. What else it knows:
//
//	run.ready    what the supervisor says it has found (python3 node sh)
//	run.swept    its answer to a sweep ("1 0 0")
//	run.hang     it does not end with its stdin
//	run.after    it ends by itself after this time
//	exec.end     the trailer: STATUS OOM PIDS NAMES ("0 0 0")
//	exec.noise   what the CLI prints before the begin marks, on both streams
//	exec.cli     the CLI fails before the program begins, saying this
//	exec.cut     the CLI ends in the middle, without a trailer
//
// An unknown verb fails loudly.
func fakeEngine() {
	f := fake{dir: os.Getenv("FAKE"), name: filepath.Base(os.Args[0]), args: os.Args[1:]}
	for len(f.args) > 1 && strings.HasPrefix(f.args[0], "--") {
		f.args = f.args[1:] // the CLI's own flags, such as --runtime=runc
	}
	f.verb = strings.TrimLeft(f.args[0], "-")
	os.Exit(f.run())
}

type fake struct {
	dir, name, verb string
	args            []string
	n               int // how often the verb has come
}

func (f *fake) run() int {
	if f.verb == "version" { // it says what it is, and is no command of the engine
		fmt.Print(f.get("stdout", map[string]string{"docker": "Docker version 28.2.2, build e6534b4\n", "podman": "podman version 4.3.1\n"}[f.name]))
		return f.exit()
	}
	f.n = f.count()
	if f.verb == "exec" {
		return f.program()
	}
	f.log(nil)
	if d, err := time.ParseDuration(f.get("sleep", "0s")); err == nil {
		time.Sleep(d)
	}
	switch f.verb {
	case "run":
		if f.get("exit", "0") != "0" {
			break
		}
		return f.supervise()
	case "kill", "rm":
		if f.get("exit", "0") == "0" {
			f.touch(f.verb + "-" + f.args[len(f.args)-1])
		}
	case "pull", "ps", "inspect":
	default:
		fmt.Fprintf(os.Stderr, "fake engine: no such verb: %q\n", f.args)
		return 99
	}
	fmt.Print(f.get("stdout", ""))
	fmt.Fprint(os.Stderr, f.get("stderr", ""))
	return f.exit()
}

func (f *fake) exit() int {
	n, _ := strconv.Atoi(f.get("exit", "0"))
	return n
}

// supervise is PID 1.
func (f *fake) supervise() int {
	name := ""
	for _, a := range f.args {
		if n, ok := strings.CutPrefix(a, "--name="); ok {
			name = n
		}
	}
	if said := f.get("stderr", ""); said != "" {
		fmt.Fprint(os.Stderr, said)
		time.Sleep(100 * time.Millisecond) // a real one says it long before its container runs
	}
	if d, err := time.ParseDuration(f.get("after", "")); err == nil {
		time.AfterFunc(d, func() {
			f.touch("ended-" + name)
			os.Exit(f.exit())
		})
	}
	fmt.Println("ready " + f.get("ready", "python3 node sh"))
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if lines.Text() == "k" {
			f.touch("swept")
			fmt.Println("swept " + f.get("swept", "1 0 0"))
		}
	}
	for f.has("hang") && !f.exists("rm-"+name) {
		time.Sleep(5 * time.Millisecond)
	}
	f.touch("ended-" + name)
	return 0
}

// program is RUN.
func (f *fake) program() int {
	if f.has("cli") {
		f.log(nil)
		fmt.Fprint(os.Stderr, f.get("cli", ""))
		return f.exit()
	}
	nonce, name := f.args[len(f.args)-1], f.args[len(f.args)-6]
	fmt.Print(f.get("noise", ""))
	fmt.Fprint(os.Stderr, f.get("noise", ""))
	stdin := bufio.NewReader(os.Stdin)
	line, _ := stdin.ReadString('\n')
	fmt.Printf("\n%s 0 0\n", nonce)
	fmt.Fprintf(os.Stderr, "\n%s\n", nonce)
	script, _ := io.ReadAll(stdin)
	f.log(append([]byte(line), script...))
	if line != "go\n" || !strings.HasPrefix(string(script), "f=") {
		fmt.Fprintf(os.Stderr, "fake engine: no header: %q\n", script)
		return 99
	}
	fmt.Print(f.get("stdout", ""))
	if said := f.get("stderr", ""); said != "" {
		fmt.Fprint(os.Stderr, said)
		time.Sleep(100 * time.Millisecond) // a real one says it long before its container runs
	}
	if d, err := time.ParseDuration(f.get("sleep", "0s")); err == nil {
		for start := time.Now(); time.Since(start) < d; time.Sleep(5 * time.Millisecond) {
			if f.exists("swept") || f.exists("ended-"+name) {
				return 137
			}
		}
	}
	if f.has("cut") {
		return f.exit()
	}
	fmt.Printf("\n%s end %s\n", nonce, strings.TrimSpace(f.get("end", f.get("exit", "0")+" 0 0")))
	fmt.Fprintf(os.Stderr, "\n%s end\n", nonce)
	fmt.Printf("\n%s out\n", nonce)
	return 0
}

// log appends the command line, without what is random; our own two scripts
// stand there as the variables that TestPaste gives to a shell.
func (f *fake) log(stdin []byte) {
	entry := dockercli.Typed(slices.Concat([]string{f.name}, os.Args[1:]), stdin)
	entry = strings.ReplaceAll(entry, dockercli.Quote(dockercli.SupervisorScript()), `"$SUPERVISOR"`)
	entry = strings.ReplaceAll(entry, dockercli.Quote(dockercli.RunScript()), `"$RUN"`)
	w, err := os.OpenFile(filepath.Join(f.dir, "log"), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o666)
	if err == nil {
		_, err = w.WriteString(withoutRandom(entry) + "\n\n")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "fake engine:", err)
		os.Exit(98)
	}
	w.Close()
}

// count says the how-manieth command with this verb it is.
func (f *fake) count() int {
	for n := 1; ; n++ {
		w, err := os.OpenFile(filepath.Join(f.dir, fmt.Sprintf(".%s.%d", f.verb, n)), os.O_CREATE|os.O_EXCL, 0o666)
		if err == nil {
			w.Close()
		}
		if !os.IsExist(err) {
			return n
		}
	}
}

func (f *fake) path(what string) string {
	numbered := filepath.Join(f.dir, f.name, fmt.Sprintf("%s.%d.%s", f.verb, f.n, what))
	if _, err := os.Stat(numbered); err == nil {
		return numbered
	}
	return filepath.Join(f.dir, f.name, f.verb+"."+what)
}

func (f *fake) get(what, otherwise string) string {
	b, err := os.ReadFile(f.path(what))
	if err != nil {
		return otherwise
	}
	if what == "stdout" || what == "stderr" || what == "noise" {
		return string(b)
	}
	return strings.TrimSpace(string(b))
}

func (f *fake) has(what string) bool {
	_, err := os.Stat(f.path(what))
	return err == nil
}

func (f *fake) touch(name string) { os.WriteFile(filepath.Join(f.dir, name), nil, 0o666) }

func (f *fake) exists(name string) bool {
	_, err := os.Stat(filepath.Join(f.dir, name))
	return err == nil
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}
