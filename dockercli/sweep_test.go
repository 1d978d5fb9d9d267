package dockercli

import (
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestAbandoned: a later server removes what dead ones have left, and never
// what a living one, another machine or a stranger has.
func TestAbandoned(t *testing.T) {
	me := owner()
	if me == "unknown" {
		t.Skip("this system does not say who lives")
	}
	part := strings.Split(me, "/")
	with := func(i int, s string) string {
		p := append([]string(nil), part...)
		p[i] = s
		return strings.Join(p, "/")
	}
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	gone := with(2, strconv.Itoa(dead.Process.Pid))
	now := time.Now()
	unix := func(d time.Duration) string { return strconv.FormatInt(now.Add(d).Unix(), 10) }
	const name = Prefix + "0123456789abcdef"
	for _, c := range []struct {
		name, state, owner, ends string
		age                      time.Duration
		want                     string
	}{
		{"L-24 of a living server", "running", me, unix(time.Hour), time.Hour, ""},
		{"L-06 of a dead server", "running", gone, unix(time.Hour), time.Second, "its server is gone"},
		{"a PID that was given anew", "running", with(3, "1"), unix(time.Hour), time.Second, "its server is gone"},
		{"L-32 another machine or boot", "running", strings.Replace(gone, part[0], "other", 1), unix(time.Hour), time.Hour, ""},
		{"L-32 another namespace", "running", strings.Replace(gone, "/"+part[1]+"/", "/1/", 1), unix(time.Hour), time.Hour, ""},
		{"unknown owner", "running", "unknown", unix(time.Hour), time.Hour, ""},
		{"no PID", "running", with(2, "x"), unix(time.Hour), time.Hour, ""},
		{"no labels", "running", "", "", time.Hour, ""},
		{"L-06 created long ago", "created", me, unix(time.Hour), 3 * time.Minute, "it is created"},
		{"on its way up", "created", gone, unix(time.Hour), time.Minute, ""},
		{"L-06 exited", "exited", "", "", 3 * time.Minute, "it is exited"},
		{"past its life span", "running", "unknown", unix(-2 * time.Hour), 9 * time.Hour, "its life span is over"},
		{"L-23 a clock that jumped", "running", me, unix(-30 * time.Minute), time.Hour, ""},
		{"an end that is no number", "running", me, "never", time.Hour, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := container{Name: name, Created: now.Add(-c.age)}
			b.State.Status = c.state
			b.Config.Labels = map[string]string{Label: name, ownerLabel: c.owner, endsLabel: c.ends}
			if got := b.abandoned(me, now); got != c.want {
				t.Errorf("%q; want %q", got, c.want)
			}
		})
	}
	for _, c := range []struct {
		name, label string
		want        bool
	}{
		{name, name, true},
		{"web", name, false},
		{name, "1", false},
		{name, "", false},
		{Prefix + "x", Prefix + "x", false},
	} {
		b := container{Name: c.name}
		b.Config.Labels = map[string]string{Label: c.label}
		if b.ours() != c.want {
			t.Errorf("L-31 a container %q with label %q: ours %v", c.name, c.label, !c.want)
		}
	}
}

// TestOwner: it names this process, the same each time.
func TestOwner(t *testing.T) {
	if me := owner(); me != owner() || me != "unknown" && !strings.Contains(me, "/"+strconv.Itoa(os.Getpid())+"/") {
		t.Error(me)
	}
}

// TestNoProcess: one that may not be seen (hidepid) or signalled is not gone.
func TestNoProcess(t *testing.T) {
	dead := exec.Command("true")
	if err := dead.Run(); err != nil {
		t.Fatal(err)
	}
	if noProcess(1) || noProcess(os.Getpid()) || noProcess(0) || !noProcess(dead.Process.Pid) {
		t.Error("who lives is mistaken for gone, or the other way round")
	}
}
