package tools

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"mcp-docker-interpreter/dockercli"
)

// attack is what doctor tries in a sandbox, in plain shell, so that any image
// can show it. It prints a line for all that it could do, and "tried" at its
// end; one that is to meet a limit does not get that far.
type attack struct {
	what   string
	script string // {names} are filled in, see Server.attacks
	limit  string // what ends it; "": it prints "tried"
	remedy string // if it succeeds
}

var attacks = []attack{
	{what: "network", script: `for i in /sys/class/net/*; do case $i in */lo|*/\*) ;; *) echo "interface ${i##*/}";; esac; done`,
		remedy: "a flag of -run-flags gives it one"},
	{what: "the image's files", script: `for f in /x /etc/x /usr/x /var/tmp/x /run/x /dev/x; do (: >$f) 2>/dev/null && echo "wrote $f"; done`,
		remedy: "the engine did not mount the image read-only"},
	{what: "privilege", script: `while read -r k v; do case $k in CapInh:|CapPrm:|CapEff:|CapAmb:) case $v in *[1-9a-f]*) echo "$k $v";; esac;; Uid:) case $v in 0*) echo root;; esac;; NoNewPrivs:) [ "$v" = 1 ] || echo "setuid programs work";; esac; done </proc/self/status`,
		remedy: "the engine did not take the capabilities away"},
	{what: "PID 1", script: `for s in KILL STOP TERM; do kill -$s 1 2>/dev/null && echo "signalled it with $s"; done; (echo k >/proc/1/fd/0) 2>/dev/null && echo "wrote to its stdin"`,
		remedy: "programs can keep the sandbox alive or end it; a newer runsc, or runc, does not allow it"},
	{what: "the host", script: `for f in /var/run/docker.sock /run/docker.sock /run/podman/podman.sock /dev/mem /dev/kmsg /dev/sda /dev/vda; do [ -r $f ] && echo "can read $f"; done`,
		remedy: "a flag of -run-flags brings it in"},
	{what: "kernel settings", script: `for f in /proc/sys/kernel/core_pattern /proc/sysrq-trigger /sys/kernel/uevent_helper /sys/fs/cgroup/release_agent; do (: >>$f) 2>/dev/null && echo "can write $f"; done`,
		remedy: "the engine did not mask them"},
	{what: "disk limit", script: `head -c {disk} /dev/zero >/workspace/fill 2>/dev/null && echo "wrote {disk} bytes to /workspace"; rm -f /workspace/fill`,
		remedy: "the engine did not size the tmpfs"},
	{what: "time limit", script: `trap '' TERM INT HUP; (while :; do :; done) & while :; do :; done`, limit: "time",
		remedy: "programs run on after their time"},
	{what: "memory limit", script: `v=0123456789abcdef; while [ ${#v} -lt {memory} ]; do v=$v$v; done; echo "took ${#v} bytes"`, limit: "memory",
		remedy: "the engine takes --memory and does not keep it: rootless Podman on cgroup v1, or runsc with --ignore-cgroups; use cgroup v2, or a runtime that keeps it"},
	{what: "process limit", script: `i=0; while [ $i -lt {pids} ]; do sleep 5 & i=$((i+1)); done; echo "started $i processes"`, limit: "processes",
		remedy: "the engine takes --pids-limit and does not keep it"},
}

// doctorLimits are small, so that a limit that does not hold costs the host
// little.
func doctorLimits(l dockercli.Limits) dockercli.Limits {
	l.Memory, l.PIDs = min(l.Memory, 128<<20), min(l.PIDs, 64)
	return l
}

// Doctor says line by line what is there, what is missing and the remedy, and
// attacks a sandbox that is made as the configuration says, but for smaller
// limits. It returns 1 if a call would fail, 2 if a protection does not hold.
func (s *Server) Doctor(ctx context.Context, w io.Writer) int {
	say := func(verdict, format string, args ...any) {
		fmt.Fprintf(w, "%-5s %s\n", verdict, fmt.Sprintf(format, args...))
	}
	bad := func(what string, err error) int {
		f := failed(err)
		say("FAIL", "%s: %s", what, f.Cause)
		if f.Hint != "" {
			say("", "%s", f.Hint)
		}
		return 1
	}
	e, err := s.find()
	if err != nil {
		return bad("engine", err)
	}
	if err := e.Reach(ctx); err != nil {
		return bad("engine", err)
	}
	kind := "docker"
	if e.Podman {
		kind = "Podman"
	}
	say("ok", "engine: %s, which is %s, answers", strings.Join(e.Command, " "), kind)
	for _, flag := range s.RunFlags {
		say("note", "your own flag for run: %s", flag)
	}
	if s.Network {
		say("note", "a call may ask for a network (-network)")
	}
	if len(s.AllowImage) > 0 {
		say("note", "images that may be used: %s", strings.Join(append(s.AllowImage, s.Image), ", "))
	}

	s.Limits = doctorLimits(s.Limits)
	b, err := s.make(ctx, s.Image, false, nil)
	if err != nil {
		return bad("sandbox", err)
	}
	say("ok", "sandbox: of the image %s, with %s", b.Image, strings.Join(b.languages, ", "))
	if len(b.languages) < 2 {
		say("note", "the image has no interpreter but sh: -image names the image of a sandbox for which none is asked")
	}
	if said := b.warning(); said != "" {
		say("note", "%s", said)
	}
	if why := b.NoSeccomp(); why != "" {
		say("note", "seccomp: the engine's own profile is in force: %s", why)
	} else {
		say("ok", "seccomp: %s", b.Seccomp)
	}
	status := 0
	for _, a := range attacks {
		held, said, err := s.try(ctx, b, a)
		if err != nil {
			status = max(status, bad(a.what, err))
			break
		}
		if held {
			say("ok", "%s: blocked", a.what)
			continue
		}
		say("FAIL", "%s: %s", a.what, said)
		say("", "%s", a.remedy)
		status = 2
	}
	if err := b.Close("doctor is done"); err != nil {
		return max(status, bad("removal", err))
	}
	say("ok", "removal: the container is gone")
	return status
}

// try runs one attack and judges it.
func (s *Server) try(ctx context.Context, b *sandbox, a attack) (held bool, said string, err error) {
	fit := b.Limits.Fit()
	script := strings.NewReplacer("{disk}", fmt.Sprint(fit.Workspace()+1<<20), "{memory}", fmt.Sprint(fit.Memory+fit.Memory/4), "{pids}", fmt.Sprint(fit.PIDs+8)).Replace(a.script)
	l, limit := language("sh"), 20*time.Second
	if a.limit != "" {
		limit = 3 * time.Second
	}
	if a.limit == "memory" {
		limit = 20 * time.Second
	}
	r, err := b.Run(ctx, &dockercli.Program{File: l.File, Run: l.Run, Code: []byte(script + "\necho tried\n")}, limit)
	if err != nil {
		return false, "", err
	}
	out, _ := clean(r.Stdout.Text)
	did := strings.TrimSpace(strings.TrimSuffix(out, "tried\n"))
	tried := strings.HasSuffix(out, "tried\n")
	switch {
	case r.How == dockercli.Lost && a.limit != "memory":
		return false, "", errors.New("the sandbox ended: " + b.Why())
	case a.limit != "":
		return !tried, did, nil
	case !tried:
		return false, "", fmt.Errorf("the attack could not be made: %s: %s", r.How, r.Stderr.Text)
	}
	return did == "", strings.ReplaceAll(did, "\n", ", "), nil
}
