package dockercli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
	"unicode"
)

// start begins a command line of the engine: the only place that starts a
// process. The CLI gets the server's environment untouched, for DOCKER_HOST,
// contexts and the like are its own business; a process group of its own, so
// that a Ctrl-C in the terminal does not reach it; and once it has ended, its
// children that keep its pipes hold nobody up. stdin is what a person would be
// shown of it; typed is the whole line, if anybody wants to see it.
func (e *Engine) start(cmd *exec.Cmd, stdin []byte) (typed string, err error) {
	if e.Trace != nil {
		typed = e.typed(cmd.Args, stdin)
		e.Trace(typed)
	}
	ownGroup(cmd)
	cmd.WaitDelay = 500 * time.Millisecond
	if err := cmd.Start(); err != nil {
		hint := ""
		switch {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, exec.ErrNotFound):
			hint = "name the program of the engine with -engine or SANDBOX_ENGINE"
		case errors.Is(err, os.ErrPermission):
			hint = "it is no program that may be run; name another with -engine or SANDBOX_ENGINE"
		}
		return typed, &Error{Op: e.line(cmd.Args[len(e.Command)]), Said: err.Error(), Hint: hint}
	}
	return typed, nil
}

func (e *Engine) command(ctx context.Context, args ...string) *exec.Cmd {
	all := slices.Concat(e.Command, args)
	cmd := exec.CommandContext(ctx, all[0], all[1:]...)
	cmd.Cancel = func() error { return endGroup(cmd) }
	return cmd
}

// output runs a short command to its end and returns its stdout; limit 0 is
// what ctx allows. A failure is an [Error] with what the CLI said.
func (e *Engine) output(ctx context.Context, limit time.Duration, args ...string) (string, error) {
	if limit > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, limit, fmt.Errorf("no answer within %v", limit))
		defer cancel()
	}
	cmd := e.command(ctx, args...)
	stdout, stderr := &Capture{Limit: 64 << 10}, &Capture{Limit: 8 << 10}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	if _, err := e.start(cmd, nil); err != nil {
		return "", err
	}
	err := cmd.Wait()
	if cause := context.Cause(ctx); err != nil && cause != nil {
		killGroup(cmd) // what a wrapper script started may not have heard of the end
		said := strings.TrimSpace(string(stderr.Output().Text))
		return "", &Error{Op: e.line(args[0]), Said: strings.TrimPrefix(said+": "+cause.Error(), ": "),
			Hint: "the engine" + host() + " does not answer: is it running, and is it the right one?"}
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		return "", newError(e.line(args[0]), string(stderr.Output().Text), err)
	}
	return string(stdout.Output().Text), nil
}

// host names the engine's address as far as the environment says it.
func host() string {
	for _, v := range []string{"DOCKER_HOST", "DOCKER_CONTEXT", "CONTAINER_HOST"} {
		if s := os.Getenv(v); s != "" {
			return " at " + v + "=" + s
		}
	}
	return ""
}

// line names a command in an error: the engine and the verb.
func (e *Engine) line(verb string) string {
	return strings.Join(e.Command, " ") + " " + verb
}

// typed is what a person would type for a command. A long stdin, or one that a
// terminal would not show as it is, goes to a file.
func (e *Engine) typed(args []string, stdin []byte) string {
	unseen := func(r rune) bool { return r != '\n' && r != '\t' && !unicode.IsPrint(r) }
	if len(stdin) <= 4<<10 && !bytes.ContainsFunc(stdin, unseen) {
		return Typed(args, stdin)
	}
	name, err := e.traceFile(stdin)
	if err != nil {
		return Typed(args, nil) + fmt.Sprintf(" # and %d bytes of stdin: %v", len(stdin), err)
	}
	return Typed(args, nil) + " <" + Quote(name)
}

func (e *Engine) traceFile(stdin []byte) (string, error) {
	e.traceDir.Do(func() {
		if e.TraceDir == "" {
			e.TraceDir, _ = os.MkdirTemp("", "mcp-docker-interpreter-")
		}
	})
	f, err := os.CreateTemp(e.TraceDir, "stdin-")
	if err != nil {
		return "", err
	}
	_, err = f.Write(stdin)
	return f.Name(), errors.Join(err, f.Close())
}
