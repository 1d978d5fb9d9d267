package tools

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"syscall"
	"time"

	"mcp-docker-interpreter/dockercli"

	"github.com/mark3labs/mcp-go/mcp"
)

func (s *Server) execute(ctx context.Context, args arguments) (*mcp.CallToolResult, error) {
	name := cmp.Or(args.text("language"), "python")
	l := language(name)
	if l == nil {
		return nil, unknownLanguage(name)
	}
	limit := s.Timeout
	if asked, given := args.number("timeout"); given {
		limit = time.Duration(asked * float64(time.Second))
	}
	code, remark := l.unwrap(args.text("code"))
	stdin := args.text("stdin")
	x, err := s.run(ctx, args.text("sandbox_id"), l, limit, &dockercli.Program{Code: []byte(code), Stdin: []byte(stdin)})
	if err != nil {
		return nil, err
	}
	if remark != "" {
		x.Hint = strings.TrimPrefix(x.Hint+"; "+remark, "; ")
	}
	return answer(x.text(), x, x.isError()), nil
}

// run runs a program in a sandbox, one of its own if id is "" and there is none.
func (s *Server) run(ctx context.Context, id string, l *Language, limit time.Duration, p *dockercli.Program) (*execution, error) {
	b, remark, err := s.obtain(ctx, id, l)
	if err != nil {
		return nil, err
	}
	defer s.release(b)
	if err := b.lacks(l); err != nil {
		return nil, err
	}
	asked := limit
	if deadline, has := ctx.Deadline(); has {
		// The answer has to be out before the client gives up, however long
		// the call has waited for its turn.
		limit = max(min(limit, time.Until(deadline)-3*time.Second), minTimeout)
	}
	p.File, p.Run, p.Slots = l.File, l.Run, s.runs
	if b.GVisor {
		p.Run = cmp.Or(l.GVisor, l.Run)
	}
	r, err := b.Run(ctx, p, limit)
	if err != nil {
		if ctx.Err() != nil {
			return nil, waited(ctx, fmt.Sprintf("other runs took all the time: those in the sandbox %s take turns, and no more than %d run at a time (the operator's -runs)", b.id, s.Runs))
		}
		return nil, err
	}
	s.answered(b)
	x := &execution{SandboxID: b.id, DurationMS: r.Duration.Milliseconds(), Command: r.Typed}
	notes := x.output(r, b.Limits.Output)
	advice := x.judge(r, l, b, limit, asked)
	for _, n := range append([]string{advice, remark}, notes...) {
		if n != "" {
			x.Hint = strings.TrimPrefix(x.Hint+"; "+n, "; ")
		}
	}
	return x, nil
}

// waited is the answer to a call whose time went by in a queue.
func waited(ctx context.Context, why string) error {
	if !errors.Is(context.Cause(ctx), errCallLimit) {
		return context.Cause(ctx)
	}
	f := fail(busy, "%s", why)
	f.Hint = "call again later, or use another sandbox for parallel work"
	return f
}

// judge says how a run ended, why, and what to do about it.
func (x *execution) judge(r *dockercli.Result, l *Language, b *sandbox, limit, asked time.Duration) (advice string) {
	ended := "; the program and everything else in the sandbox was ended, its files stay"
	switch r.How {
	case dockercli.Exited:
		return x.judgeExit(r, l, b)
	case dockercli.NoRoom:
		x.Status, x.Error = diskFull, "the program could not be stored in the sandbox, and was not run: /workspace or /tmp is full, or something stands in the way of "+l.File
		if r.Said == "127" {
			x.Status, x.Error = engineFailed, "the program could not be stored in the sandbox, and was not run: the image lacks cat, head, tail or wc"
		}
		return "remove files, for example with a short program of language sh, or use another sandbox"
	case dockercli.TimedOut:
		x.Status, x.Error = timedOut, "stopped at the time limit of "+seconds(limit)+ended
		if limit < asked {
			return fmt.Sprintf("it asked for %s, but the call had waited for its turn", seconds(asked))
		}
		if r.PIDs {
			return "it reached the limit of processes; the operator's -pids sets it"
		}
		if r.OOM {
			return "it reached the limit of memory; the operator's -memory sets it"
		}
		if limit < MaxTimeout {
			return fmt.Sprintf("raise timeout (at most %s), or do less", seconds(MaxTimeout))
		}
		return "do less at a time"
	case dockercli.Cancelled:
		x.Status, x.Error = cancelled, "the call was taken back"+ended
	case dockercli.Killed:
		x.Status, x.Error = killed, "the program killed the shell that ran it, so that its exit status is unknown"+ended
		if r.OOM {
			x.Status, x.Error = outOfMemory, "killed by the sandbox's memory limit"+ended
		}
	case dockercli.Broken:
		if r.PIDs { // the shell above the program could not fork
			x.Status, x.Error = tooManyProcs, fmt.Sprintf("the limit of %d processes and threads was reached, and the run was not finished", b.Limits.PIDs)+ended
			return "call again; the operator's -pids sets the limit"
		}
		x.Status, x.Error = engineFailed, "the engine's command ended in the middle of the run ("+r.Said+")"+ended
	case dockercli.Lost:
		x.Status, x.Error = sandboxLost, "the sandbox "+b.id+" ended during the run: "+b.Why()
		return "call initialize_sandbox for a new one; files do not move"
	}
	return ""
}

func (x *execution) judgeExit(r *dockercli.Result, l *Language, b *sandbox) (advice string) {
	x.ExitCode = &r.Exit
	switch {
	case r.Exit == 0:
		x.Status = ok
		if strings.TrimSpace(x.Stdout+x.Stderr) == "" {
			advice = "nothing was printed; print what you want to see"
		}
	case r.OOM:
		x.Status, x.Error = outOfMemory, fmt.Sprintf("exit code %d after something was killed by the memory limit of %s", r.Exit, dockercli.Size(b.Limits.Memory))
		advice = "use less memory, or remove files, which count as memory; the operator's -memory sets the limit"
	case r.PIDs:
		x.Status, x.Error = tooManyProcs, fmt.Sprintf("exit code %d after the limit of %d processes and threads was reached", r.Exit, b.Limits.PIDs)
		advice = "start fewer at a time; the operator's -pids sets the limit"
	default:
		x.Status = programError
		if advice = l.advice(x.Stderr, b.Image, b.Network); advice == "" && r.Exit > 128 && r.Exit <= 128+64 {
			advice = fmt.Sprintf("%d is how a program ends that is killed by signal %d, %v", r.Exit, r.Exit-128, syscall.Signal(r.Exit-128))
		}
	}
	if r.Swept {
		advice = strings.TrimPrefix(advice+"; what still ran in the sandbox left no room for this program, and was ended", "; ")
	}
	if r.Left != "" {
		left, _ := clean([]byte(r.Left))
		advice = strings.TrimPrefix(advice+"; still running: "+left+" (until the sandbox ends or a run is timed out)", "; ")
	}
	return advice
}

// RunProgram runs one program in a sandbox of its own, its output going where
// it is to go as it comes, and returns its exit status: 124 if its time was
// up, 125 if it could not be run, 130 if ctx ended.
func (s *Server) RunProgram(ctx context.Context, languageName string, code, stdin []byte, stdout, stderr io.Writer) (int, error) {
	l := language(languageName)
	if l == nil {
		return 125, unknownLanguage(languageName)
	}
	x, err := s.run(ctx, "", l, s.Timeout, &dockercli.Program{Code: code, Stdin: stdin, Stdout: stdout, Stderr: stderr})
	switch {
	case ctx.Err() != nil:
		return 130, nil
	case err != nil:
		return 125, failed(err)
	case x.ExitCode != nil && (x.Status == ok || x.Status == programError):
		return *x.ExitCode, nil
	case x.ExitCode != nil:
		return *x.ExitCode, fail(x.Status, "%s: %s", x.Status, x.Error)
	case x.Status == timedOut:
		return 124, fail(x.Status, "%s: %s", x.Status, x.Error)
	}
	return 125, fail(x.Status, "%s: %s", x.Status, x.Error)
}

// LanguageOf names the language of a file by its ending, ".py"; python if no
// language has it.
func LanguageOf(ext string) string {
	for _, l := range Languages {
		if ext != "" && strings.HasSuffix(l.File, ext) {
			return l.Name
		}
	}
	return "python"
}
