package dockercli

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestNewError: what engines say, and the remedy that goes with it.
func TestNewError(t *testing.T) {
	for _, c := range []struct {
		said, hint string // hint: a part of it; "": none
		kind       kind
	}{
		{"docker: Error response from daemon: No such image: nosuch:latest\n\nRun 'docker run --help' for more information", "not on this machine", noImage},
		{"Error: nosuch: image not known", "not on this machine", noImage},
		{`Error: short-name "nosuch" did not resolve to an alias and no unqualified-search registries are defined in "/etc/containers/registries.conf"`, "full name", other},
		{"docker: Error response from daemon: Range of CPUs is from 0.01 to 2.00, as there are only 2 CPUs available", "the engine has 2 processors; lower -cpus", tooManyCPUs},
		{"Cannot connect to the Docker daemon at tcp://127.0.0.1:1. Is the docker daemon running?", "start it", other},
		{`Error: unable to connect to Podman socket: Get "http://d/v4.3.1/libpod/_ping": dial unix /nosuch.sock: connect: no such file or directory`, "start it", other},
		{`Got permission denied while trying to connect to the Docker daemon socket at unix:///var/run/docker.sock: Get "http://%2Fvar%2Frun%2Fdocker.sock/v1.24/info": dial unix /var/run/docker.sock: connect: permission denied`, "usermod -aG docker $USER,", other},
		{`Failed to initialize: unable to resolve docker endpoint: context "nosuch": context not found: open /root/.docker/contexts/meta/9e/meta.json: no such file or directory`, "no such docker context", other},
		{`current context "gone" is not found on the file system, please check your config file at /root/.docker/config.json`, "no such docker context", other},
		{"sudo: a password is required", "sudo must not ask", other},
		{"Error response from daemon: pull access denied for nosuch, repository does not exist or may require 'docker login': denied: requested access to the resource is denied", "docker login", other},
		{"Error: initializing source docker://nosuch:latest: reading manifest latest in docker.io/library/nosuch: errors:\ndenied: requested access to the resource is denied\nunauthorized: authentication required", "docker login", other},
		{"Error response from daemon: manifest for alpine:nosuch not found: manifest unknown: manifest unknown", "that name and tag", other},
		{`Error response from daemon: Get "https://registry-1.docker.io/v2/": dial tcp: lookup registry-1.docker.io on 10.0.0.1:53: no such host`, "registry cannot be reached", other},
		{`Error: initializing source docker://127.0.0.1:1/x:latest: pinging container registry 127.0.0.1:1: Get "https://127.0.0.1:1/v2/": dial tcp 127.0.0.1:1: connect: connection refused`, "registry cannot be reached", other},
		{"exec /bin/sh: exec format error", "another architecture", other},
		{`docker: Error response from daemon: failed to create shim task: OCI runtime create failed: runc create failed: unable to start container process: exec: "/bin/sh": stat /bin/sh: no such file or directory: unknown`, "with /bin/sh", other},
		{"Error: crun: executable file `/bin/sh` not found in $PATH: No such file or directory: OCI runtime attempted to invoke a command that was not found", "with /bin/sh", other},
		{"Error: runc: runc create failed: unable to start container process: error during container init: error setting rlimits for ready process: error setting rlimit type 7: operation not permitted: OCI permission denied", "hard limits", other},
		{"Error: OCI runtime error: crun: unknown version specified", "runtime=runc", other},
		{"unknown flag: --cgroupns\n\nUsage:  docker run [OPTIONS] IMAGE [COMMAND] [ARG...]", "too old", other},
		{"docker: Error response from daemon: Unknown runtime specified nosuch", "know that runtime", other},
		{"docker: Error response from daemon: unknown or invalid runtime name: nosuch", "know that runtime", other},
		{`Error: default OCI runtime "nosuch" not found: invalid argument`, "know that runtime", other},
		{"Error response from daemon: Cannot kill container: x: No such container: x", "ended or stopped from outside", noContainer},
		{`Error: no container with name or ID "x" found: no such container`, "ended or stopped from outside", noContainer},
		{"Error: can only create exec sessions on running containers: container state improper", "ended or stopped from outside", noContainer},
		{"failed to register layer: write /x: no space left on device", "disk is full", other},
		{"something else", "", other},
	} {
		err := newError("docker run", c.said, errors.New("exit status 125"))
		if !strings.Contains(err.Hint, c.hint) || c.hint == "" && err.Hint != "" || err.kind != c.kind || IsNoImage(err) != (c.kind == noImage) {
			t.Errorf("%s\nhint %q, kind %d", c.said, err.Hint, err.kind)
		}
		if said := strings.Split(c.said, "\n\nRun")[0]; !strings.HasPrefix(err.Error(), "docker run: "+said) {
			t.Errorf("%q", err)
		}
	}
	if got := newError("docker run", " \n", errors.New("exit status 125")).Error(); got != "docker run: exit status 125" {
		t.Errorf("without a word: %q", got)
	}
}

// script makes a program of a shell script, and an engine of it.
func script(t *testing.T, text string) *Engine {
	t.Helper()
	needs(t, "sh")
	name := filepath.Join(t.TempDir(), "docker")
	if err := os.WriteFile(name, []byte("#!/bin/sh\n"+text+"\n"), 0o777); err != nil {
		t.Fatal(err)
	}
	return &Engine{Command: []string{name, "--own flag"}}
}

// TestParse: the command line is split like a shell's, and its program found,
// also where a client's PATH does not lead; one that is not there is told.
func TestParse(t *testing.T) {
	needs(t, "sh")
	home := t.TempDir()
	hidden := filepath.Join(home, ".docker", "bin", "hidden-engine")
	if err := errors.Join(os.MkdirAll(filepath.Dir(hidden), 0o777), os.WriteFile(hidden, []byte("#!/bin/sh\n"), 0o777),
		os.WriteFile(filepath.Join(home, "plain-file"), nil, 0o666)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("HOME", home)
	for line, want := range map[string][]string{
		"sh -n docker":          {"sh", "-n", "docker"},
		`sh --a='b c' "d" e\ f`: {"sh", "--a=b c", "d", "e f"},
		"hidden-engine -x":      {hidden, "-x"},
		hidden:                  {hidden},
		"no-such-engine":        nil,
		"/nonexistent/docker":   nil,
		home + "/plain-file":    nil,
		home:                    nil,
		`sh "`:                  nil,
		`''`:                    nil,
	} {
		e, err := Parse(line)
		var said *Error
		switch {
		case want == nil && (err == nil || line != `sh "` && (!errors.As(err, &said) || !strings.Contains(said.Hint, "SANDBOX_ENGINE"))):
			t.Errorf("%s: %v, %v", line, e, err)
		case want != nil && (err != nil || !slices.Equal(e.Command, want)):
			t.Errorf("%s: %v, %v; want %q", line, e, err, want)
		}
	}
}

// TestOutput: whatever the CLI does, output comes back, with what it said.
func TestOutput(t *testing.T) {
	for name, c := range map[string]struct{ script, out, err string }{
		"answers":           {`echo "$1 $2"; echo warning >&2`, "--own flag ps\n", ""},
		"fails":             {`echo "Error: x: image not known" >&2; exit 125`, "", "ps: Error: x: image not known\nit is not on this machine"},
		"fails in silence":  {`exit 3`, "", "ps: exit status 3"},
		"a child holds on":  {`sleep 4 & echo ok`, "ok\n", ""}, // L-12
		"never answers":     {`echo wait >&2; exec sleep 60`, "", "ps: wait: no answer within 500ms\nthe engine at DOCKER_HOST=here does not answer"},
		"will not end":      {`trap '' TERM; sleep 4`, "", "no answer within 500ms"},
		"prints no end":     {`exec yes`, "", "no answer within 500ms"},
		"killed by another": {`kill -9 $$`, "", "ps: signal: killed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Setenv("DOCKER_HOST", "here")
			e, began := script(t, c.script), time.Now()
			limit := 500 * time.Millisecond
			if !strings.Contains(c.err, "no answer") {
				limit = 10 * time.Second
			}
			out, err := e.output(context.Background(), limit, "ps")
			if took := time.Since(began); took > 3*time.Second {
				t.Errorf("it took %v", took)
			}
			if out != c.out || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q, %v", out, err)
			}
		})
	}
}
