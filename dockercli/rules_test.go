package dockercli

import (
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "rewrite the goldens")

// spec is a sandbox whose name is not random.
func spec() *Spec {
	return &Spec{Name: Prefix + "0123456789abcdef", Image: "alpine:latest", Limits: DefaultLimits, Owner: "boot/1/2/3", Seccomp: "/cache/seccomp.json", Ends: time.Unix(1767225600, 0),
		Probe: []string{"python3", "sh"}, Env: []string{"PYTHONUNBUFFERED=1"}}
}

// engines are those whose command lines differ.
func engines() map[string]*Engine {
	return map[string]*Engine{
		"docker": {Command: []string{"docker"}},
		"podman": {Command: []string{"podman"}, Podman: true},
		"runsc":  {Command: []string{"docker"}, RunFlags: []string{"--runtime=runsc"}},
	}
}

// typedGoldens are the command lines of a sandbox and of a run in it.
func typedGoldens() map[string]string {
	short := func(e *Engine, args []string, stdin []byte) string {
		typed := Typed(slices.Concat(e.Command, args), stdin) + "\n"
		typed = strings.ReplaceAll(typed, Quote(SupervisorScript()), `"$SUPERVISOR"`)
		return strings.ReplaceAll(typed, Quote(RunScript()), `"$RUN"`)
	}
	got := map[string]string{}
	for name, e := range engines() {
		got["run-"+name+".golden"] = short(e, e.RunArgs(spec()), nil)
	}
	e := engines()["docker"]
	program := &Program{File: ".main.py", Run: "exec python3 .main.py", Code: []byte("print(6 * 7)\n")}
	got["exec.golden"] = short(e, e.ExecArgs(spec(), "NONCE"), append([]byte(goLine), input(program)...))
	return got
}

// TestGoldens: every command line stands in a file, as one would type it.
func TestGoldens(t *testing.T) {
	for name, got := range typedGoldens() {
		file := filepath.Join("testdata", name)
		if *update {
			if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(file)
		if err != nil || string(want) != got {
			t.Errorf("%s differs (%v); go test ./... -update rewrites it. got:\n%s", file, err, got)
		}
	}
}

// TestEveryRowShows: a row that is lost is one line less in a golden.
func TestEveryRowShows(t *testing.T) {
	all := typedGoldens()
	for _, table := range []*[]Rule{&RunRules, &ExecRules} {
		rows := *table
		t.Cleanup(func() { *table = rows })
		for i, row := range rows {
			*table = slices.Delete(slices.Clone(rows), i, i+1)
			changed := 0
			for name, less := range typedGoldens() {
				if less == all[name] {
					continue
				}
				changed++
				was, is := strings.Split(all[name], "\n"), strings.Split(less, "\n")
				if k := slices.IndexFunc(was, func(line string) bool { return !slices.Contains(is, line) }); k < 0 || !slices.Equal(slices.Delete(was, k, k+1), is) {
					t.Errorf("%s without %s: not just one line less", name, row.Flag)
				}
			}
			if changed == 0 {
				t.Errorf("no golden shows %s", row.Flag)
			}
		}
		*table = rows
	}
}

// TestRows: each row is one argv element that starts with "-", and says why.
func TestRows(t *testing.T) {
	flag := regexp.MustCompile(`^(-[a-z]|--[a-z-]+(=\S*)?)$`)
	for _, row := range slices.Concat(RunRules, ExecRules) {
		if !flag.MatchString(row.Flag) || row.Why == "" || !slices.Contains([]string{"", "docker", "podman", "podman without runsc", "runsc", "seccomp"}, row.On) {
			t.Errorf("%+v", row)
		}
	}
	for name, e := range engines() {
		for _, arg := range slices.Concat(e.fill(RunRules, spec()), e.fill(ExecRules, spec())) {
			if strings.ContainsAny(arg, "{}") {
				t.Errorf("%s: %s is not filled in", name, arg)
			}
		}
	}
}

// parseSize reads what Size prints.
func parseSize(t *testing.T, s string) int64 {
	t.Helper()
	digits := strings.TrimRight(s, "kmg")
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil {
		t.Fatalf("size %q: %v", s, err)
	}
	return n << map[string]int{"": 0, "k": 10, "m": 20, "g": 30}[s[len(digits):]]
}

// TestFit: whatever the memory, files fill at most half of it; no tmpfs has size
// 0, which would be no bound at all; a printed size means the same number.
func TestFit(t *testing.T) {
	sizes := regexp.MustCompile(`size=([0-9kmg]+)`)
	for memory := int64(32 << 20); memory <= 1<<40; memory += memory/3 + 12345 {
		for _, disk := range []int64{1 << 20, 1<<20 + 1, DefaultLimits.Disk, 64 << 30} {
			s := spec()
			s.Limits.Memory, s.Limits.Disk = memory, disk
			for name, e := range engines() {
				all, n := int64(0), 0
				for _, m := range sizes.FindAllStringSubmatch(strings.Join(e.RunArgs(s), "\n"), -1) {
					size := parseSize(t, m[1])
					if n++; size <= 0 {
						t.Errorf("%s, memory %d, disk %d: %s", name, memory, disk, m[0])
					}
					all += size
				}
				if n != 3 || all > memory/2 {
					t.Errorf("%s, memory %d, disk %d: %d tmpfs of %d bytes", name, memory, disk, n, all)
				}
			}
		}
	}
	for _, n := range []int64{0, 1, 1000, 1023, 1 << 10, 1<<10 + 1, 1536 << 10, 1 << 20, 3 << 29, 1 << 40, 1<<62 + 1} {
		if got := parseSize(t, Size(n)); got != n {
			t.Errorf("Size(%d) = %s, which is %d", n, Size(n), got)
		}
	}
}
