package dockercli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// Labels of a sandbox beside [Label]: who made it, and when it is over.
const (
	ownerLabel = Label + ".owner"
	endsLabel  = Label + ".ends"
)

const (
	startGrace = 2 * time.Minute // a container in state Created may be on its way up
	endsGrace  = time.Hour       // clocks jump
)

var ourName = regexp.MustCompile(`^` + Prefix + `[0-9a-f]{16}$`)

// owner says which process this is, so that another can tell later whether it
// lives: the boot, the PID namespace, the PID and when it started. Where the
// system does not say (no Linux), it is "unknown", and nobody can tell.
func owner() string {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	ns, nsErr := os.Readlink("/proc/self/ns/pid")
	started := startTime(os.Getpid())
	if err != nil || nsErr != nil || started == "" {
		return "unknown"
	}
	ns = strings.Trim(strings.TrimPrefix(ns, "pid:"), "[]")
	return fmt.Sprintf("%s/%s/%d/%s", strings.TrimSpace(string(boot)), ns, os.Getpid(), started)
}

// startTime is field 22 of /proc/PID/stat, in clock ticks since boot; "" if
// there is no such process.
func startTime(pid int) string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, rest, _ := strings.Cut(string(stat), ") ")
	if f := strings.Fields(rest); len(f) > 19 {
		return f[19]
	}
	return ""
}

// container is one that carries our label, as the engine describes it.
type container struct {
	Name    string
	Created time.Time
	State   struct{ Status string }
	Config  struct{ Labels map[string]string }
}

// ours says whether it is really ours: a stranger may have used our label, or
// made a container of an image that has it.
func (c *container) ours() bool {
	return ourName.MatchString(c.Name) && c.Config.Labels[Label] == c.Name
}

// abandoned says why a container of ours may be removed, "" if it may not: its
// owner may live, here or elsewhere. me is this process's owner.
func (c *container) abandoned(me string, now time.Time) string {
	if ends, err := strconv.ParseInt(c.Config.Labels[endsLabel], 10, 64); err == nil && now.After(time.Unix(ends, 0).Add(endsGrace)) {
		return "its life span is over"
	}
	switch c.State.Status {
	case "created", "configured", "initialized", "exited", "dead", "stopped":
		if now.Sub(c.Created) > startGrace {
			return "it is " + c.State.Status
		}
		return ""
	}
	its, mine := strings.Split(c.Config.Labels[ownerLabel], "/"), strings.Split(me, "/")
	if len(its) != 4 || len(mine) != 4 || its[0] != mine[0] || its[1] != mine[1] {
		return "" // of another boot, another namespace or another machine: not for us to judge
	}
	pid, err := strconv.Atoi(its[2])
	started := startTime(pid)
	if err != nil || started == its[3] || started == "" && !noProcess(pid) { // hidden is not gone
		return ""
	}
	return "its server is gone"
}

// Removed is a container that Sweep has removed.
type Removed struct {
	Name string
	Why  string
}

// Sweep removes the sandboxes that dead servers have left; with all, every one
// of ours. It goes on after an error, and returns the first ones.
func (e *Engine) Sweep(ctx context.Context, all bool) (removed []Removed, err error) {
	if err := e.Identify(ctx); err != nil {
		return nil, err
	}
	out, err := e.output(ctx, 10*time.Second, ListArgs()...)
	if err != nil {
		return nil, err
	}
	me, errs := owner(), []error{}
	for _, name := range strings.Fields(out) {
		if !ourName.MatchString(name) {
			continue
		}
		out, err := e.output(ctx, 10*time.Second, InspectArgs(name)...)
		if isKind(err, noContainer) {
			continue // it has ended by itself
		}
		var found []container
		if err == nil {
			err = json.Unmarshal([]byte(out), &found)
		}
		if err != nil || len(found) != 1 {
			errs = append(errs, fmt.Errorf("%s: %w", name, err))
			continue
		}
		c := found[0]
		c.Name = strings.TrimPrefix(c.Name, "/")
		why := c.abandoned(me, time.Now())
		if all {
			why = "all were to be removed"
		}
		if !c.ours() || why == "" {
			continue
		}
		if err := e.remove(ctx, name); err != nil {
			errs = append(errs, err)
			continue
		}
		removed = append(removed, Removed{name, why})
	}
	return removed, errors.Join(errs...)
}
