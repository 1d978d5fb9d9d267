package dockercli

import (
	"slices"
	"strings"
	"testing"
)

// TestDashes: "--" stands directly before a name or an image in every verb.
func TestDashes(t *testing.T) {
	for _, args := range [][]string{KillArgs("NAME"), RemoveArgs("NAME"), PullArgs("NAME")} {
		if i := slices.Index(args, "--"); i != len(args)-2 || args[i+1] != "NAME" {
			t.Errorf("%q", args)
		}
	}
}

// flags checks what stands between a verb and "--": the rows that apply, in
// their order, constant ones as they are, others with their own name; then more.
func flags(t *testing.T, e *Engine, args []string, verb string, rules []Rule, more ...string) (rest []string) {
	t.Helper()
	rules = append([]Rule{{Flag: verb}}, rules...)
	for _, row := range rules {
		if !e.applies(row.On, &Spec{Seccomp: "/x"}) {
			continue
		}
		fixed, _, knob := strings.Cut(row.Flag, "{")
		if !strings.HasPrefix(args[0], fixed) || !knob && args[0] != fixed {
			t.Errorf("%q in the place of %s", args[0], row.Flag)
		}
		args = args[1:]
	}
	if n := len(more); !slices.Equal(args[:n], more) || args[n] != "--" {
		t.Errorf("%q; want %q and --", args[:n+1], more)
	}
	return args[len(more)+1:]
}

// FuzzRunArgs: whatever a Spec holds, the flags before "--" are those of the
// table, and the image, or the container's name, comes directly after it.
func FuzzRunArgs(f *testing.F) {
	for _, bad := range []string{"alpine", "-v/etc/passwd:/p", "--privileged", "--", "", "x\n--privileged", "{name}", "{inodes} {memory}", "a b", "\xff"} {
		f.Add(bad, bad, int64(1<<30), int64(384<<20), int64(256), 2.0, false)
	}
	f.Add("alpine", "name", int64(-1), int64(-1<<63), int64(0), -1e300, true)
	f.Fuzz(func(t *testing.T, image, name string, memory, disk, pids int64, cpus float64, network bool) {
		s := &Spec{Name: name, Image: image, Seccomp: "/x", Network: network, Probe: []string{name}, Env: []string{name},
			Limits: Limits{CPUs: cpus, Memory: memory, PIDs: pids, Disk: disk, Shm: disk}}
		for _, e := range engines() {
			if slices.Contains(e.RunArgs(s), "--network=none") == network {
				t.Error("only Spec.Network may give a sandbox a network, and does")
			}
			rest := flags(t, e, e.RunArgs(s), "run", RunRules, e.RunFlags...)
			if want := []string{image, "-c", SupervisorScript(), "sh", name}; !slices.Equal(rest, want) {
				t.Errorf("run: after --: %q", rest)
			}
			rest = flags(t, e, e.ExecArgs(s, "NONCE"), "exec", ExecRules, "--env="+name)
			if want := []string{name, "sh", "-c", RunScript(), "sh", "NONCE"}; !slices.Equal(rest, want) {
				t.Errorf("exec: after --: %q", rest)
			}
		}
	})
}
