// Mcp-docker-interpreter is an MCP server that lets an AI assistant run code
// in a locked-down container, by typing docker or podman command lines.
//
//	mcp-docker-interpreter [flags] [command]
//
// The commands:
//
//	stdio                     serve MCP on stdin and stdout: what a client starts (default)
//	run [-language L] [FILE]  run one program in a sandbox of its own, as a tool call would
//	call TOOL [name=value …] [-- TOOL …]
//	                          call tools from a shell, one after the other, and print the answers
//	doctor                    say what is there, what is missing and the remedy; attack a sandbox
//	clean [-all]              remove the sandboxes of dead servers; -all: every one of ours
//	version                   say which version this is
//
// run takes the language from -language or the file's ending. Its output
// streams as it comes, standard input is the program's, and the exit status is
// the program's; 124 if its time was up, 125 if it could not be run, 130 if it
// was interrupted. Without FILE, or with -, the program is standard input.
//
// doctor exits with 1 if a call would fail, 2 if a protection or a limit does
// not hold.
//
// call takes name=value, name=@FILE for a file's content and name:=JSON for a
// value that is no string; without a tool it reads calls from standard input, a
// line each. -json prints whole results. It exits with 1 if an answer is an error.
//
// Every flag has an environment variable, SANDBOX_ and its name in capitals
// with _ for -: SANDBOX_ALLOW_IMAGE for -allow-image. The flag wins.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mcp-docker-interpreter/dockercli"
	"mcp-docker-interpreter/tools"

	"github.com/google/shlex"
)

func main() {
	// A closed stdout must not kill the server before it has cleaned up.
	signal.Ignore(syscall.SIGPIPE)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	context.AfterFunc(ctx, stop) // a second signal ends it at once
	status := Run(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr)
	stop()
	os.Exit(status)
}

// Run is the program, and returns its exit status.
func Run(ctx context.Context, args []string, stdin *os.File, stdout, stderr io.Writer) int {
	c, err := configure(args, os.LookupEnv, stderr)
	switch {
	case errors.Is(err, flag.ErrHelp):
		return 0
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 2
	}
	if c.verbose.on {
		out, flush := lossy(stderr)
		defer flush()
		c.Trace = func(typed string) { fmt.Fprintln(out, typed) }
		c.TraceDir = c.verbose.dir
	}
	s := tools.NewServer(c.Config)
	defer s.Close()
	input := &interruptible{ctx: ctx, File: stdin}
	switch c.command {
	case "stdio":
		// What ends it, end of input or a signal, is no fault.
		if err := s.Stdio(ctx, version(), stdin, stdout); err != nil && ctx.Err() == nil {
			fmt.Fprintln(stderr, err)
			return 1
		}
		return 0
	case "run":
		return run(ctx, s, c, input, stdout, stderr)
	case "call":
		failed, err := s.Call(ctx, version(), split(c.args), input, stdout, c.json)
		switch {
		case ctx.Err() != nil:
			return 130
		case err != nil:
			fmt.Fprintln(stderr, err)
			return 1
		case failed:
			return 1
		}
		return 0
	}
	switch c.command {
	case "doctor":
		return s.Doctor(ctx, stdout)
	case "clean":
		removed, err := s.Clean(ctx, c.all)
		for _, r := range removed {
			fmt.Fprintf(stdout, "removed %s: %s\n", r.Name, r.Why)
		}
		if err != nil {
			fmt.Fprintln(stderr, err)
			return 1
		}
		if removed == nil {
			fmt.Fprintln(stdout, "nothing to remove")
		}
		return 0
	}
	fmt.Fprintln(stdout, version())
	return 0
}

// run runs the program of the command line.
func run(ctx context.Context, s *tools.Server, c *config, stdin *interruptible, stdout, stderr io.Writer) int {
	file := "-"
	if len(c.args) > 0 {
		file = c.args[0]
	}
	var code, input []byte
	var err error
	if file == "-" {
		code, err = io.ReadAll(io.LimitReader(stdin, tools.MaxCode+1))
	} else {
		if code, err = os.ReadFile(file); err == nil && !terminal(stdin.File) {
			input, err = io.ReadAll(io.LimitReader(stdin, tools.MaxCode+1))
		}
	}
	if err == nil && max(len(code), len(input)) > tools.MaxCode {
		err = fmt.Errorf("a program, and its input, may have at most %d bytes", tools.MaxCode)
	}
	language := c.language
	if language == "" {
		language = tools.LanguageOf(filepath.Ext(file))
	}
	switch {
	case ctx.Err() != nil:
		return 130
	case err != nil:
		fmt.Fprintln(stderr, err)
		return 125
	}
	status, err := s.RunProgram(ctx, language, code, input, stdout, stderr)
	if err != nil {
		fmt.Fprintln(stderr, err)
	}
	return status
}

// interruptible reads a file until ctx ends, for nobody else ends the reading of
// a pipe that stays open.
type interruptible struct {
	*os.File
	ctx context.Context
}

func (r *interruptible) Read(p []byte) (int, error) {
	type result struct {
		b   []byte
		err error
	}
	got := make(chan result, 1)
	go func() {
		b := make([]byte, len(p))
		n, err := r.File.Read(b)
		got <- result{b[:n], err}
	}()
	select {
	case g := <-got:
		return copy(p, g.b), g.err
	case <-r.ctx.Done():
		return 0, r.ctx.Err()
	}
}

func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// split cuts the words of call at --.
func split(words []string) (calls [][]string) {
	for len(words) > 0 {
		n := 0
		for n < len(words) && words[n] != "--" {
			n++
		}
		if n > 0 {
			calls = append(calls, words[:n])
		}
		words = words[min(n+1, len(words)):]
	}
	return calls
}

func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" {
		return "(devel)"
	}
	return info.Main.Version
}

// lossy writes to w without ever waiting for it: some clients never read what
// their servers have to say. What does not fit is lost.
func lossy(w io.Writer) (out io.Writer, flush func()) {
	lines, done := make(chan []byte, 256), make(chan struct{})
	go func() {
		defer close(done)
		for line := range lines {
			w.Write(line)
		}
	}()
	return writerFunc(func(p []byte) (int, error) {
			select {
			case lines <- append([]byte(nil), p...):
			default:
			}
			return len(p), nil
		}), func() {
			close(lines)
			select {
			case <-done:
			case <-time.After(200 * time.Millisecond):
			}
		}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

// config is the whole configuration.
type config struct {
	tools.Config
	command  string
	args     []string // of the command
	language string
	json     bool
	all      bool
	verbose  verbose
}

// commands, and the flags that only they have.
var commands = map[string]func(*config, *flag.FlagSet){
	"stdio":   nil,
	"version": nil,
	"doctor":  nil,
	"run": func(c *config, f *flag.FlagSet) {
		f.StringVar(&c.language, "language", "", "language of the program; default: by the file's ending, else python")
	},
	"clean": func(c *config, f *flag.FlagSet) {
		f.BoolVar(&c.all, "all", false, "remove every sandbox of ours, also those of living servers")
	},
	"call": func(c *config, f *flag.FlagSet) {
		f.BoolVar(&c.json, "json", false, "print whole results as JSON")
	},
}

// flags defines the configuration, with its defaults. The README's table follows
// from it.
func flags(c *config) *flag.FlagSet {
	f := flag.NewFlagSet("mcp-docker-interpreter", flag.ContinueOnError)
	c.Config = tools.Config{
		Image: "alpine:latest", Limits: dockercli.DefaultLimits, Timeout: 30 * time.Second, Idle: 15 * time.Minute,
		Lifetime: 4 * time.Hour, Sandboxes: 8, Runs: 2 * runtime.NumCPU(),
	}
	f.StringVar(&c.EngineLine, "engine", "", "command `line` of the engine, such as podman or \"sudo -n docker\"; default: the first of docker, podman that is found")
	f.Var(words{&c.RunFlags}, "run-flags", "extra `flags` for run, such as --runtime=runsc; your own risk")
	f.Var(image{&c.Image}, "image", "image of a sandbox for which none is asked")
	f.Var(list{&c.AllowImage}, "allow-image", "`globs` of the images that may be used, separated by commas; default: those on the machine, and names without a registry host")
	f.Var(seccomp{&c.EngineSeccomp}, "seccomp", "seccomp `profile`: own, or engine for the engine's default")
	f.BoolVar(&c.Network, "network", false, "let a call ask for a network")
	f.Var(count{&c.Limits.CPUs, 0.01, 1024}, "cpus", "processors of a sandbox")
	f.Var(size{&c.Limits.Memory, 32 << 20, 1 << 40}, "memory", "memory of a sandbox, files in it included; no swap")
	f.Var(whole{&c.Limits.PIDs, 16, 1 << 22}, "pids", "processes and threads of a sandbox")
	f.Var(size{&c.Limits.Disk, 1 << 20, 1 << 40}, "disk", "files of a sandbox: two thirds in /workspace, one in /tmp; with 64m of /dev/shm at most half the memory")
	f.Var(size{&c.Limits.Output, 1 << 10, 256 << 10}, "output", "output kept of each stream, a quarter from its start, the rest from its end")
	f.Var(span{&c.Timeout, 100 * time.Millisecond, tools.MaxTimeout}, "timeout", "time of a run that asks for none; a call may ask for up to 45s")
	f.Var(span{&c.Idle, time.Second, 30 * 24 * time.Hour}, "idle", "time without a call after which a sandbox ends")
	f.Var(span{&c.Lifetime, time.Second, 30 * 24 * time.Hour}, "lifetime", "time after which a sandbox ends in any case")
	f.Var(number{&c.Sandboxes, 1, 1000}, "sandboxes", "sandboxes at the same time")
	f.Var(number{&c.Runs, 1, 1000}, "runs", "programs running at the same time; default: twice the processors")
	f.Var(&c.verbose, "v", "print every command line as you would type it, and put it into the answers; -v=`DIR`: long scripts go to files there")
	return f
}

// configure reads flags and environment. An error names the flag or variable,
// what came, and what is allowed.
func configure(args []string, env func(string) (string, bool), stderr io.Writer) (*config, error) {
	c := &config{command: "stdio"}
	f := flags(c)
	f.SetOutput(io.Discard)
	var err error
	f.VisitAll(func(fl *flag.Flag) {
		if v, ok := env(variable(fl.Name)); ok && v != "" && err == nil {
			if setErr := f.Set(fl.Name, v); setErr != nil {
				err = fmt.Errorf("%s=%q: %w", variable(fl.Name), v, setErr)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	if err := parse(f, args, stderr); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		c.command = f.Arg(0)
		more, known := commands[c.command]
		if !known {
			return nil, fmt.Errorf("unknown command %q; want one of call, clean, doctor, run, stdio, version", c.command)
		}
		if more != nil {
			more(c, f)
		}
		if err := parse(f, f.Args()[1:], stderr); err != nil {
			return nil, err
		}
	}
	if _, err := shlex.Split(c.EngineLine); err != nil {
		return nil, fmt.Errorf("-engine %q: %w", c.EngineLine, err)
	}
	c.args = f.Args()
	if most := map[string]int{"run": 1, "call": math.MaxInt}[c.command]; len(c.args) > most {
		return nil, fmt.Errorf("%s: unexpected argument %q", c.command, c.args[most])
	}
	return c, nil
}

func parse(f *flag.FlagSet, args []string, stderr io.Writer) error {
	err := f.Parse(args)
	if errors.Is(err, flag.ErrHelp) {
		usage(f, stderr)
	}
	return err
}

func variable(flag string) string {
	return "SANDBOX_" + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// usage prints the whole configuration.
func usage(f *flag.FlagSet, w io.Writer) {
	fmt.Fprintf(w, `usage: mcp-docker-interpreter [flags] [command]

commands: stdio (default), run [-language L] [FILE|-], call [-json] TOOL [name=value …] [-- TOOL …], clean [-all], doctor, version

flags, each also an environment variable, SANDBOX_<FLAG>:
`)
	f.VisitAll(func(fl *flag.Flag) {
		arg, about := flag.UnquoteUsage(fl)
		fmt.Fprintf(w, "  -%s %s\n        %s", fl.Name, arg, about)
		if fl.DefValue != "" && fl.DefValue != "false" {
			fmt.Fprintf(w, " (%s)", fl.DefValue)
		}
		fmt.Fprintln(w)
	})
}

// The kinds of values that flags have. Each refuses what is not positive,
// finite and within its bounds.
type (
	words   struct{ p *[]string }
	seccomp struct{ engine *bool }
	list    struct{ p *[]string }
	image   struct{ p *string }
	size    struct {
		p         *int64
		low, high int64
	}
	whole struct {
		p         *int64
		low, high int64
	}
	number struct {
		p         *int
		low, high int
	}
	count struct {
		p         *float64
		low, high float64
	}
	span struct {
		p         *time.Duration
		low, high time.Duration
	}
	verbose struct {
		on  bool
		dir string
	}
)

func (v words) String() string {
	if v.p == nil {
		return ""
	}
	return strings.Join(*v.p, " ")
}

func (v words) Set(s string) (err error) {
	*v.p, err = shlex.Split(s)
	for _, w := range *v.p {
		if !strings.HasPrefix(w, "-") {
			return fmt.Errorf("%q is no flag; write a flag and its value as one word, --name=value", w)
		}
	}
	return err
}

func (v seccomp) String() string {
	if v.engine != nil && *v.engine {
		return "engine"
	}
	return "own"
}

func (v seccomp) Set(s string) error {
	if s != "own" && s != "engine" {
		return errors.New("want own or engine")
	}
	*v.engine = s == "engine"
	return nil
}

func (v list) String() string {
	if v.p == nil {
		return ""
	}
	return strings.Join(*v.p, ",")
}

func (v list) Set(s string) error {
	*v.p = strings.Split(s, ",")
	for _, glob := range *v.p {
		if _, err := filepath.Match(glob, ""); err != nil || glob == "" {
			return fmt.Errorf("%q is no glob; want such as python:*,registry.example/team/*", glob)
		}
	}
	return nil
}

func (v image) String() string {
	if v.p == nil {
		return ""
	}
	return *v.p
}

func (v image) Set(s string) error {
	_, err := dockercli.ParseImage(s)
	*v.p = s
	return err
}

func (v size) String() string {
	if v.p == nil {
		return ""
	}
	return dockercli.Size(*v.p)
}

func (v size) Set(s string) error {
	digits := strings.TrimRight(strings.ToLower(s), "bkmg")
	scale, known := map[string]int64{"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}[strings.ToLower(s[len(digits):])]
	n, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !known || n < 0 || n > v.high/scale || n*scale < v.low {
		return fmt.Errorf("want a size from %s to %s, such as 512m", dockercli.Size(v.low), dockercli.Size(v.high))
	}
	*v.p = n * scale
	return nil
}

func (v whole) String() string {
	if v.p == nil {
		return ""
	}
	return strconv.FormatInt(*v.p, 10)
}

func (v whole) Set(s string) error {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil || n < v.low || n > v.high {
		return fmt.Errorf("want a whole number from %d to %d", v.low, v.high)
	}
	*v.p = n
	return nil
}

func (v number) String() string {
	if v.p == nil {
		return ""
	}
	return strconv.Itoa(*v.p)
}

func (v number) Set(s string) error {
	n := int64(*v.p)
	if err := (whole{&n, int64(v.low), int64(v.high)}).Set(s); err != nil {
		return err
	}
	*v.p = int(n)
	return nil
}

func (v count) String() string {
	if v.p == nil {
		return ""
	}
	return strconv.FormatFloat(*v.p, 'f', -1, 64)
}

func (v count) Set(s string) error {
	n, err := strconv.ParseFloat(s, 64)
	if err != nil || !(n >= v.low && n <= v.high) {
		return fmt.Errorf("want a number from %v to %v", v.low, v.high)
	}
	*v.p = math.Round(n*100) / 100
	return nil
}

func (v span) String() string {
	if v.p == nil {
		return ""
	}
	return v.p.String()
}

func (v span) Set(s string) error {
	d, err := time.ParseDuration(s)
	if err != nil || d < v.low || d > v.high {
		return fmt.Errorf("want a time from %v to %v, such as 90s or 5m", v.low, v.high)
	}
	*v.p = d
	return nil
}

func (v *verbose) String() string   { return "" }
func (v *verbose) IsBoolFlag() bool { return true }

func (v *verbose) Set(s string) error {
	switch s {
	case "true", "1":
		v.on = true
	case "false", "0":
		v.on = false
	default:
		v.on, v.dir = true, s
		if info, err := os.Stat(s); err != nil || !info.IsDir() {
			return errors.New("want a directory that is there, for long scripts")
		}
	}
	return nil
}
