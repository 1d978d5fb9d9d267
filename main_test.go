package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// realDocker and realPodman are the engines of this machine, found before the
// fakes of the scripts come first on PATH.
var realDocker, realPodman string

func TestMain(m *testing.M) {
	realDocker, _ = exec.LookPath("docker")
	realPodman, _ = exec.LookPath("podman")
	testscript.Main(m, map[string]func(){
		"mcp-docker-interpreter": main,
		"docker":                 fakeEngine,
		"podman":                 fakeEngine,
	})
}

// TestScript runs the product against a fake engine, which writes down every
// command line as one would type it.
func TestScript(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata/script",
		UpdateScripts:       *update,
		RequireUniqueNames:  true,
		RequireExplicitExec: true,
		Setup: func(env *testscript.Env) error {
			env.Setenv("FAKE", env.WorkDir)
			env.Setenv("HOME", env.WorkDir)
			for _, engine := range []string{"docker", "podman"} {
				if err := os.MkdirAll(filepath.Join(env.WorkDir, engine), 0o777); err != nil {
					return err
				}
			}
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){"tidy": tidy},
	})
}

// random are what no golden can hold: ids, names, times, durations.
var random = []struct {
	found *regexp.Regexp
	as    string
}{
	{regexp.MustCompile(`mcp-sandbox-[0-9a-f]{16}`), "mcp-sandbox-NAME"},
	{regexp.MustCompile(`\b[0-9a-f]{32}\b`), "ID"},
	{regexp.MustCompile(`\b[0-9a-f]{24}\b`), "NONCE"},
	{regexp.MustCompile(`\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ`), "TIME"},
	{regexp.MustCompile(`seccomp=\S+/seccomp-[0-9a-f]{16}\.json`), "seccomp=/PROFILE"},
	{regexp.MustCompile(`owner=\S+`), "owner=OWNER"},
	{regexp.MustCompile(`ends=\d+`), "ends=TIME"},
	{regexp.MustCompile(`age \d+s`), "age AGE"},
	{regexp.MustCompile(`"duration_ms":\d+`), `"duration_ms":MS`},
}

func withoutRandom(s string) string {
	for _, r := range random {
		s = r.found.ReplaceAllString(s, r.as)
	}
	return s
}

// tidy FILE TO writes FILE, which may be stdout or stderr, without what is random.
func tidy(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: tidy FILE TO")
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(withoutRandom(ts.ReadFile(args[0]))), 0o666))
}

// TestConfiguration: a bad value names the flag or variable, what came, and
// what is allowed.
func TestConfiguration(t *testing.T) {
	for _, c := range []struct {
		args []string
		env  map[string]string
		want string
	}{
		{args: []string{"-memory=9999999t"}, want: `invalid value "9999999t" for flag -memory: want a size from 32m to 1024g, such as 512m`},
		{args: []string{"-memory=0"}, want: `want a size from 32m`},
		{args: []string{"-memory=-1"}, want: `want a size from 32m`},
		{args: []string{"-memory=64mm"}, want: `want a size from 32m`},
		{args: []string{"-memory=9223372036854775808"}, want: `want a size from 32m`},
		{args: []string{"-memory=9007199254740993g"}, want: `want a size from 32m`},
		{args: []string{"-cpus=NaN"}, want: `want a number from 0.01 to 1024`},
		{args: []string{"-cpus=-1"}, want: `want a number from 0.01 to 1024`},
		{args: []string{"-cpus=0"}, want: `want a number from 0.01 to 1024`},
		{args: []string{"-cpus=+Inf"}, want: `want a number from 0.01 to 1024`},
		{args: []string{"-pids=0"}, want: `want a whole number from 16`},
		{args: []string{"-pids=1.5"}, want: `want a whole number from 16`},
		{args: []string{"-timeout=0"}, want: `want a time from 100ms to 45s`},
		{args: []string{"-timeout=46s"}, want: `want a time from 100ms to 45s`},
		{args: []string{"-idle=-1s"}, want: `want a time from 1s`},
		{args: []string{"-sandboxes=0"}, want: `want a whole number from 1 to 1000`},
		{args: []string{"-image=-v/etc/passwd:/p"}, want: `is no image name`},
		{args: []string{"-allow-image=[a"}, want: `is no glob`},
		{args: []string{"-run-flags=--volume /:/host"}, want: `"/:/host" is no flag; write a flag and its value as one word, --name=value`},
		{args: []string{"-run-flags=--label='x"}, want: `EOF found when expecting closing quote`},
		{args: []string{"-seccomp=unconfined"}, want: `want own or engine`},
		{args: []string{"-v=/nonexistent"}, want: `want a directory that is there`},
		{args: []string{"-nosuch"}, want: `flag provided but not defined: -nosuch`},
		{args: []string{"-language=sh"}, want: `flag provided but not defined: -language`},
		{args: []string{"serve"}, want: `unknown command "serve"; want one of call, clean, doctor, run, stdio, version`},
		{args: []string{"run", "a", "b"}, want: `run: unexpected argument "b"`},
		{args: []string{"stdio", "x"}, want: `stdio: unexpected argument "x"`},
		{env: map[string]string{"SANDBOX_PIDS": "many"}, want: `SANDBOX_PIDS="many": want a whole number from 16 to 4194304`},
		{env: map[string]string{"SANDBOX_ALLOW_IMAGE": ","}, want: `SANDBOX_ALLOW_IMAGE=",": "" is no glob`},
	} {
		_, err := configure(c.args, lookup(c.env), os.Stderr)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q %v: %v; want %s", c.args, c.env, err, c.want)
		}
	}
}

// TestFlagBeatsVariable, and an empty variable is none.
func TestFlagBeatsVariable(t *testing.T) {
	c, err := configure([]string{"-pids=99", "run", "-language=sh", "-memory=64m", "-"},
		lookup(map[string]string{"SANDBOX_PIDS": "77", "SANDBOX_CPUS": "0.5", "SANDBOX_IMAGE": ""}), os.Stderr)
	if err != nil {
		t.Fatal(err)
	}
	if got := fmt.Sprintln(c.Limits.PIDs, c.Limits.CPUs, c.Image, c.language, c.Limits.Memory, c.command, c.args); got != "99 0.5 alpine:latest sh 67108864 run [-]\n" {
		t.Error(got)
	}
}

func lookup(env map[string]string) func(string) (string, bool) {
	return func(name string) (string, bool) { v, ok := env[name]; return v, ok }
}

// TestModules: the modules that are linked into the program are a golden, so
// that one more does not come in unseen.
func TestModules(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-f", "{{with .Module}}{{.Path}} {{.Version}}{{end}}", ".").Output()
	if err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	var list []string
	for line := range strings.Lines(string(out)) {
		if line = strings.TrimSpace(line); line != "" && !seen[line] {
			seen[line] = true
			list = append(list, line)
		}
	}
	golden(t, "testdata/modules.golden", strings.Join(sorted(list), "\n")+"\n")
}

// golden compares with a file, or writes it with -update.
func golden(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if string(want) != got {
		t.Errorf("%s differs; go test ./... -update rewrites it. got:\n%s", file, got)
	}
}

// TestStartsNothing: a client that only probes the server starts no process.
func TestStartsNothing(t *testing.T) {
	t.Setenv("PATH", "")
	r, w, _ := os.Pipe()
	w.Close()
	if status := Run(context.Background(), []string{"-engine=/nonexistent/docker"}, r, os.Stderr, os.Stderr); status != 0 {
		t.Errorf("exit status %d without an engine", status)
	}
}
