package dockercli

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// How long the engine has for what it does in the background of a call.
const (
	slowLimit  = 10 * time.Second       // from run to asking whether the engine answers at all
	startLimit = 45 * time.Second       // from run to the supervisor's "ready"
	execLimit  = 15 * time.Second       // from exec to the begin mark
	sweepLimit = 2 * time.Second        // for PID 1 to be alone
	drainLimit = 300 * time.Millisecond // for output in flight after a sweep
	stopLimit  = 1 * time.Second        // from end of stdin to the container's end
	forceLimit = 5 * time.Second        // for kill and for rm
	tidyLimit  = 1 * time.Second        // for a run to remove its own files
	maxDrained = 4                      // CLIs kept for children that hold their pipes
)

// Sandbox is a container that lives as long as we hold its stdin.
type Sandbox struct {
	Spec
	Engine *Engine
	Found  []string // programs of Spec.Probe that the image has
	GVisor bool     // its kernel is gVisor's
	Typed  string   // the command line, if Engine.Trace is set

	insist    sync.Once
	noSeccomp string // why our seccomp profile is not in force

	stdin io.WriteCloser
	lines supervisorLines
	turn  chan struct{} // holds one token: runs take turns
	done  chan struct{} // closed when the attached CLI has ended
	cmd   *exec.Cmd
	words words // what the CLI said on stderr

	mu      sync.Mutex
	why     string // who ended it, if it was us
	err     error  // what the CLI said when nobody asked it to end
	drained []*exec.Cmd
}

// Random returns n random bytes in hexadecimal.
func Random(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}

// Start makes a sandbox and returns when code can run in it. Name is made here.
// If ctx ends first, the container ends by itself as soon as it exists.
func (e *Engine) Start(ctx context.Context, spec Spec) (*Sandbox, error) {
	if err := e.Identify(ctx); err != nil {
		return nil, err
	}
	for retry := 0; ; retry++ {
		path, why := e.Seccomp()
		spec.Seccomp = path
		s, err := e.startOnce(ctx, spec)
		var said *Error
		switch {
		case err == nil:
			s.noSeccomp = why
			return s, nil
		case retry < 2 && errors.As(err, &said) && said.kind == tooManyCPUs:
			n := onlyCPUs.FindStringSubmatch(said.Said)[1]
			cpus, numErr := strconv.ParseFloat(n, 64)
			if numErr != nil || cpus <= 0 || cpus >= spec.Limits.CPUs {
				return nil, err
			}
			spec.Limits.CPUs = cpus
		case retry < 2 && path != "" && isKind(err, noSeccompFile): // a CLI that cannot see the directory, as snap's
			e.EngineSeccomp(said.Said)
		default:
			return nil, err
		}
	}
}

func (e *Engine) startOnce(ctx context.Context, spec Spec) (*Sandbox, error) {
	spec.Name, spec.Owner = Prefix+Random(8), owner()
	s := &Sandbox{Spec: spec, Engine: e, turn: make(chan struct{}, 1), done: make(chan struct{}), words: words{Capture: Capture{Limit: 4 << 10}},
		lines: supervisorLines{ready: make(chan string, 1), swept: make(chan string, 8)}}
	// Not ctx: the CLI must live on, even to its own end, when a call does not.
	s.cmd = e.command(context.Background(), e.RunArgs(&s.Spec)...)
	in, out, err := os.Pipe()
	if err != nil {
		return nil, &Error{Op: e.line("run"), Said: err.Error()}
	}
	defer in.Close()
	s.stdin = out
	s.cmd.Stdin, s.cmd.Stdout, s.cmd.Stderr = in, &s.lines, &s.words
	if s.Typed, err = e.start(s.cmd, nil); err != nil {
		out.Close()
		return nil, err
	}
	go s.wait()

	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	late := time.AfterFunc(startLimit, func() {
		cancel(&Error{Op: e.line("run") + " " + spec.Image, Said: fmt.Sprintf("the sandbox was not ready within %v", startLimit), Hint: "the engine" + host() + " is slow"})
	})
	defer late.Stop()
	slow := time.AfterFunc(slowLimit, func() { // slow is one thing, and dead another
		if _, err := e.output(ctx, forceLimit, ListArgs()...); err != nil {
			cancel(err)
		}
	})
	defer slow.Stop()
	select {
	case line := <-s.lines.ready:
		if err := s.ready(strings.Fields(line)); err != nil {
			go s.Close("its image has a volume")
			return nil, err
		}
		return s, nil
	case <-s.done:
		return nil, s.err
	case <-ctx.Done():
		go s.abandon()
		return nil, context.Cause(ctx)
	}
}

// ready takes what the supervisor found.
func (s *Sandbox) ready(words []string) error {
	for _, word := range words {
		switch {
		case word == "gvisor":
			s.GVisor = true
		case !strings.HasPrefix(word, "/"):
			s.Found = append(s.Found, word)
		case !slices.ContainsFunc(s.Engine.RunFlags, func(f string) bool { return strings.Contains(f, word) }): // the operator's own mount
			return &Error{Op: s.Engine.line("run") + " " + s.Image, Said: "the image wants a volume at " + word + ": a writable place on the host's disk, without limit",
				Hint: "a sandbox has none: use an image without a VOLUME line, or podman, which can ignore it"}
		}
	}
	return nil
}

// Warning is what the CLI said while the sandbox started: limits that it does
// not keep, for example. Nobody should have to find that out alone.
func (s *Sandbox) Warning() string {
	s.words.mu.Lock()
	defer s.words.mu.Unlock()
	return strings.TrimSpace(string(s.words.Output().Text))
}

// NoSeccomp says why the engine's own seccomp profile is in force; "": ours is.
func (s *Sandbox) NoSeccomp() string { return s.noSeccomp }

// abandon gets rid of a container that may not exist yet.
func (s *Sandbox) abandon() {
	s.stdin.Close()
	select {
	case <-s.done:
	case <-time.After(startLimit):
		s.force()
	}
}

// wait notes the end of the attached CLI, and with it of the sandbox.
func (s *Sandbox) wait() {
	err := s.cmd.Wait()
	s.stdin.Close()
	s.mu.Lock()
	said := strings.TrimSpace(helpLine.ReplaceAllString(s.Warning(), ""))
	if err != nil && said != "" {
		said = fmt.Sprintf("%s (%v)", said, err)
	}
	e := newError(s.Engine.line("run")+" "+s.Image, said, cmp.Or(err, errors.New("the container ended with exit status 0")))
	s.err = e
	s.mu.Unlock()
	close(s.done)
}

// Done is closed when the sandbox has ended.
func (s *Sandbox) Done() <-chan struct{} { return s.done }

// Why says what ended it.
func (s *Sandbox) Why() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.why != "":
		return s.why
	case s.err == nil:
		return "it is being ended"
	}
	return "its container ended, though nobody here asked for it: it was removed or killed from outside, ran out of memory, or the engine stopped (" + s.err.(*Error).Said + ")"
}

// Close ends the sandbox, for the reason given, and returns when its container
// is gone. An error says that it is not; Close may be called again.
func (s *Sandbox) Close(why string) error {
	s.end(why)
	select {
	case <-s.done:
		return nil
	case <-time.After(stopLimit):
	}
	err := s.force()
	if err != nil {
		s.insist.Do(func() { go s.retry() })
	}
	return err
}

// end begins to end the sandbox, and returns at once.
func (s *Sandbox) end(why string) {
	s.mu.Lock()
	s.why = cmp.Or(s.why, why)
	s.mu.Unlock()
	s.stdin.Close()
}

// Ending says whether somebody has begun to end the sandbox, so that nothing
// more should be run in it.
func (s *Sandbox) Ending() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.why != "" || closed(s.done)
}

// retry goes on trying to remove what could not be removed, less and less
// often: the engine may come back.
func (s *Sandbox) retry() {
	for pause := forceLimit; !closed(s.done) && pause < time.Hour; pause *= 2 {
		select {
		case <-s.done:
		case <-time.After(pause):
			s.force()
		}
	}
}

// remove ends and removes a container, by its name; one that is gone, or going,
// is no error.
func (e *Engine) remove(ctx context.Context, name string) error {
	e.output(ctx, forceLimit, KillArgs(name)...) // rm of podman is slow without it
	_, err := e.output(ctx, forceLimit, RemoveArgs(name)...)
	if err != nil && !isKind(err, noContainer) && !strings.Contains(err.Error(), "already in progress") {
		return err
	}
	return nil
}

// force removes a container that does not end by the end of its stdin.
func (s *Sandbox) force() error {
	if err := s.Engine.remove(context.Background(), s.Name); err != nil {
		return err
	}
	select {
	case <-s.done:
	case <-time.After(stopLimit):
		killGroup(s.cmd)
	}
	return nil
}

var errGone = errors.New("its supervisor is gone")

// sweep has PID 1 kill everything else, and returns the kernel's counters.
func (s *Sandbox) sweep() (counts [2]string, err error) {
	count := ""
	for range 2 { // the second time for what was just starting
		for len(s.lines.swept) > 0 {
			<-s.lines.swept
		}
		if _, err := io.WriteString(s.stdin, "k\n"); err != nil {
			return counts, errGone
		}
		select {
		case line := <-s.lines.swept:
			f := append(strings.Fields(line), "", "", "")
			count, counts = f[0], [2]string{f[1], f[2]}
		case <-s.done:
			return counts, errGone
		case <-time.After(sweepLimit):
			return counts, fmt.Errorf("its programs could not be ended within %v", sweepLimit)
		}
		if count == "1" {
			return counts, nil
		}
	}
	return counts, fmt.Errorf("its programs could not be ended: %s processes are left", count)
}

// words is a Capture that is read while it is written.
type words struct {
	mu sync.Mutex
	Capture
}

func (w *words) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Capture.Write(p)
}

// supervisorLines sorts what PID 1 prints. It is written by one goroutine.
type supervisorLines struct {
	ready, swept chan string
	held         []byte
}

func (l *supervisorLines) Write(p []byte) (int, error) {
	l.held = append(l.held, p...)
	for {
		line, rest, ok := bytes.Cut(l.held, []byte("\n"))
		if !ok {
			break
		}
		l.held = rest
		word, args, _ := strings.Cut(string(line), " ")
		switch word {
		case "ready":
			send(l.ready, args)
		case "swept":
			send(l.swept, args)
		}
	}
	if len(l.held) > 64<<10 { // no supervisor of ours
		l.held = nil
	}
	return len(p), nil
}

func send(c chan string, s string) {
	select {
	case c <- s:
	default:
	}
}
