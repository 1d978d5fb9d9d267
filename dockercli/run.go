package dockercli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// Program is what a sandbox is to run.
type Program struct {
	File           string        // its name in /workspace, a plain word
	Run            string        // shell line that runs it, such as "exec python3 .main.py"
	Code, Stdin    []byte        // its bytes, as they are
	Slots          chan struct{} // takes a token while the program runs, after the turn is its own; nil: no bound
	Stdout, Stderr io.Writer     // get its output as it comes; nil keeps Limits.Output of it in the Result
}

// Ending says how a run ended.
type Ending string

// The endings of a run.
const (
	Exited    Ending = "exited"    // by itself: see Result.Exit
	NoRoom    Ending = "no room"   // the program could not be stored whole, and was not run
	TimedOut  Ending = "timed out" // its time was up, and it was ended with all that it had started
	Cancelled Ending = "cancelled" // the caller lost interest; the same
	Killed    Ending = "killed"    // the shell above the program was killed: no exit status is known
	Broken    Ending = "broken"    // the engine's CLI ended in the middle; what ran was ended
	Lost      Ending = "lost"      // the sandbox has ended
)

// Result is what became of a run.
type Result struct {
	How            Ending
	Exit           int // exit status, 128+n for signal n; -1 if How is not Exited
	Stdout, Stderr Output
	Duration       time.Duration // of the program, without the engine's preparations
	OOM            bool          // something was killed meanwhile for lack of memory
	PIDs           bool          // a fork was refused meanwhile: the process limit
	Left           string        // names of processes that still run
	Swept          bool          // what earlier runs had left running was ended, for it left no room for this one
	Typed          string        // the command line, if Engine.Trace is set
	Said           string        // the CLI's own words, if it broke
}

// Run runs one program and returns when it has ended, or limit is over, or ctx
// ends; then nothing of it runs any more, nor of anything else in the sandbox.
// Runs take turns. An error means that the program was not started.
func (s *Sandbox) Run(ctx context.Context, p *Program, limit time.Duration) (*Result, error) {
	select {
	case s.turn <- struct{}{}:
	case <-s.done:
		return &Result{How: Lost, Exit: -1}, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if p.Slots != nil {
		select {
		case p.Slots <- struct{}{}:
			defer func() { <-p.Slots }()
		case <-ctx.Done():
			<-s.turn
			return nil, context.Cause(ctx)
		}
	}
	r, again, err := s.attempt(ctx, p, limit)
	if again {
		if r, _, err = s.attempt(ctx, p, limit); err == nil {
			r.result.Swept = true
		}
	}
	if err != nil || !r.tidying {
		<-s.turn
	}
	if err != nil {
		return nil, err
	}
	for i, out := range []*Output{&r.result.Stdout, &r.result.Stderr} {
		if r.stream[i].lock() {
			*out = r.capture[i].Output()
			r.stream[i].mu.Unlock()
		}
	}
	return r.result, nil
}

// attempt runs a program. again says that it did not get as far as to read a
// byte of it, that what ran in the sandbox has been ended, and that the next
// attempt may do better: programs that earlier runs have left can take up all
// processes and all memory, so that nothing can start.
func (s *Sandbox) attempt(ctx context.Context, p *Program, limit time.Duration) (r *run, again bool, err error) {
	r = &run{Sandbox: s, result: &Result{Exit: -1}, done: make(chan struct{}), stopped: make(chan struct{})}
	nonce := Random(12)
	for i, w := range []io.Writer{p.Stdout, p.Stderr} {
		r.capture[i].Limit = s.Limits.Output
		if w == nil {
			w = &r.capture[i]
		}
		r.stream[i] = newStream(nonce, w)
	}
	r.cmd = s.Engine.command(context.Background(), s.Engine.ExecArgs(&s.Spec, nonce)...)
	r.cmd.Stdout, r.cmd.Stderr = r.stream[0], r.stream[1]
	stdin, err := r.cmd.StdinPipe()
	if err != nil {
		return nil, false, &Error{Op: s.Engine.line("exec"), Said: err.Error()}
	}
	rest := input(p)
	if r.result.Typed, err = s.Engine.start(r.cmd, append([]byte(goLine), rest...)); err != nil {
		return nil, false, err
	}
	go func() {
		r.cmd.Wait()
		close(r.done)
	}()
	go func() { // errors are those of a CLI that ends, which follow sees
		defer stdin.Close()
		io.WriteString(stdin, goLine)
		select {
		case <-r.stream[0].began:
		case <-r.stopped:
		case <-r.done:
		}
		if !closed(r.stopped) { // RUN meets the end of its input instead
			stdin.Write(rest)
		}
	}()
	again, err = r.follow(ctx, limit)
	return r, again, err
}

// maxLeft bounds the names of what still runs, which the program may have forged.
const maxLeft = 250

// run is a Run under way.
type run struct {
	*Sandbox
	result  *Result
	stream  [2]*stream
	capture [2]Capture
	cmd     *exec.Cmd
	done    chan struct{} // the CLI has ended
	stopped chan struct{} // the program is not to begin any more
	tidying bool          // leave will give the turn back
}

// follow waits for the end.
func (r *run) follow(ctx context.Context, limit time.Duration) (again bool, err error) {
	starting := time.NewTimer(execLimit)
	defer starting.Stop()
	var timeUp <-chan time.Time
	began, out, errs := r.stream[0].began, r.stream[0].ended, r.stream[1].ended
	for out != nil || errs != nil {
		select {
		case <-began:
			began = nil
			starting.Stop()
			timer := time.NewTimer(limit)
			defer timer.Stop()
			timeUp = timer.C
		case <-out:
			out = nil
		case <-errs:
			errs = nil
		case <-r.done:
			for _, s := range r.stream {
				s.flush() // all was read before the CLI counts as ended
			}
			if closed(r.stream[0].ended) {
				out, errs = nil, nil
				break
			}
			return r.broke()
		case <-r.Sandbox.done: // some engines let the exec's CLI hang then
			select {
			case <-r.done:
				continue
			case <-time.After(drainLimit):
			}
			r.stop(Lost)
			return false, nil
		case <-starting.C:
			r.stop(Broken)
			return false, &Error{Op: r.Engine.line("exec"), Said: fmt.Sprintf("the program was not started within %v", execLimit), Hint: "the engine" + host() + " is slow or does not answer"}
		case <-timeUp:
			r.stop(TimedOut)
			return false, nil
		case <-ctx.Done():
			r.stop(Cancelled)
			return false, nil
		}
	}
	r.finish(r.stream[0].ending)
	r.tidying = true
	go r.leave()
	return false, nil
}

// finish reads the trailer: status, counts, names of what still runs. The
// program may have forged it: whatever it says, it says about itself.
func (r *run) finish(ending string) {
	f := append(strings.Fields(ending), "", "", "")
	r.result.Duration = r.lasted()
	r.counts(f[1], f[2])
	if reason, notRun := strings.CutPrefix(f[0], "!"); notRun {
		r.result.How, r.result.Said = NoRoom, reason
		return
	}
	exit, err := strconv.Atoi(f[0])
	if err != nil || exit < 0 || exit > 255 {
		r.result.How = Killed
		return
	}
	r.result.How, r.result.Exit = Exited, exit
	left := strings.TrimSpace(strings.Join(f[3:], " "))
	r.result.Left = left[:min(len(left), maxLeft)]
}

// lasted is how long the program has been running.
func (r *run) lasted() time.Duration {
	if !closed(r.stream[0].began) {
		return 0
	}
	return time.Since(r.stream[0].start)
}

// counts compares the kernel's counters with those of the begin mark.
func (r *run) counts(oom, pids string) {
	if !closed(r.stream[0].began) {
		return
	}
	first := append(strings.Fields(r.stream[0].mark), "", "")
	rose := func(a, b string) bool {
		x, errX := strconv.Atoi(a)
		y, errY := strconv.Atoi(b)
		return errX == nil && errY == nil && y > x
	}
	r.result.OOM, r.result.PIDs = rose(first[0], oom), rose(first[1], pids)
}

// leave gives the turn back once the run has removed its files, and lets the
// CLI live as long as a child of the program holds its pipes: killed, it would
// break the child's next write.
func (r *run) leave() {
	tidy := time.NewTimer(tidyLimit)
	defer tidy.Stop()
	select {
	case <-r.stream[0].gone:
	case <-r.done:
	case <-tidy.C:
	}
	<-r.turn
	select {
	case <-r.done:
		return
	case <-time.After(drainLimit):
	}
	r.mu.Lock()
	r.drained = append(r.drained, r.cmd)
	var oldest *exec.Cmd
	if len(r.drained) > maxDrained {
		oldest, r.drained = r.drained[0], r.drained[1:]
	}
	r.mu.Unlock()
	if oldest != nil {
		killGroup(oldest)
	}
	<-r.done
	r.mu.Lock()
	for i, cmd := range r.drained {
		if cmd == r.cmd {
			r.drained = append(r.drained[:i:i], r.drained[i+1:]...)
			break
		}
	}
	r.mu.Unlock()
}

// stop ends a run that did not end by itself.
func (r *run) stop(how Ending) {
	close(r.stopped)
	r.result.How = how
	r.result.Duration = r.lasted()
	early := !closed(r.stream[0].began)
	swept, err := r.sweep()
	select {
	case <-r.done:
	case <-time.After(drainLimit):
	}
	if !closed(r.done) { // else its number may be another's by now
		killGroup(r.cmd)
		select {
		case <-r.done:
		case <-time.After(stopLimit):
		}
	}
	for _, s := range r.stream {
		s.flush()
	}
	if early && err == nil { // the engine may have been starting it just then
		swept, err = r.sweep()
	}
	if err != nil {
		r.result.How = Lost
		if errors.Is(err, errGone) { // it is ending by itself: leave it the word
			select {
			case <-r.Sandbox.done:
				return
			case <-time.After(forceLimit):
			}
		}
		r.end(err.Error())
		go r.Close("") // the answer does not wait for an engine that hangs
		return
	}
	r.counts(swept[0], swept[1])
}

// broke judges a CLI that ended before the end marks. What it ran may run on.
func (r *run) broke() (again bool, err error) {
	byItself, code := !killed(r.cmd), r.cmd.ProcessState.ExitCode()
	select { // does it end because the sandbox does?
	case <-r.Sandbox.done:
		r.result.How = Lost
		return false, nil
	case <-time.After(drainLimit):
	}
	said := r.stream[1].said()
	r.stop(Killed)
	switch {
	case r.result.How == Lost:
	case !closed(r.stream[0].began):
		err = newError(r.Engine.line("exec"), said, fmt.Errorf("exit status %d before the program began", code))
		return byItself, err
	case !byItself || code != 137:
		r.result.How = Broken
		r.result.Said = cmp.Or(said, r.cmd.ProcessState.String())
	}
	return false, nil
}
