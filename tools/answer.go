package tools

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"mcp-docker-interpreter/dockercli"

	"github.com/mark3labs/mcp-go/mcp"
)

// Status says how a call ended.
type Status string

// The statuses of answers. All but ok and program_error make the answer an error.
const (
	ok            Status = "ok"
	programError  Status = "error"              // the program ended with an exit status other than 0
	timedOut      Status = "timeout"            // it was ended when its time was up
	cancelled     Status = "cancelled"          // the client took the call back
	killed        Status = "killed"             // it killed the shell above it, so that its status is unknown
	outOfMemory   Status = "out_of_memory"      // killed by the memory limit
	tooManyProcs  Status = "too_many_processes" // failed at the process limit
	diskFull      Status = "disk_full"          // the program could not be stored, and was not run
	noInterpreter Status = "no_interpreter"     // the image lacks the language
	preparing     Status = "preparing"          // an image is being fetched: call again
	sandboxEnded  Status = "sandbox_ended"      // that sandbox is gone, or never was
	sandboxLost   Status = "sandbox_lost"       // it ended during the call
	engineFailed  Status = "engine"             // docker or podman failed
	busy          Status = "busy"               // too many sandboxes or runs
	badArgument   Status = "bad_argument"
)

// failure is an answer about what stopped a call. It is an error, so that
// what a tool is made of can return it.
type failure struct {
	Status Status `json:"status"`
	Cause  string `json:"error"`
	Hint   string `json:"hint,omitempty"`
}

func (f *failure) Error() string { return strings.TrimSpace(f.Cause + "\n" + f.Hint) }

func fail(status Status, format string, args ...any) *failure {
	return &failure{Status: status, Cause: fmt.Sprintf(format, args...)}
}

// answer makes a result whose text and structured content say the same.
func answer(text string, structured any, isError bool) *mcp.CallToolResult {
	r := mcp.NewToolResultText(text)
	r.StructuredContent = structured
	r.IsError = isError
	return r
}

// execution is what execute_code answers.
type execution struct {
	Status      Status `json:"status"`
	Error       string `json:"error,omitempty"`
	ExitCode    *int   `json:"exit_code,omitempty"`
	Stdout      string `json:"stdout"`
	Stderr      string `json:"stderr"`
	StdoutBytes int64  `json:"stdout_bytes"`
	StderrBytes int64  `json:"stderr_bytes"`
	Truncated   bool   `json:"truncated"`
	DurationMS  int64  `json:"duration_ms"`
	SandboxID   string `json:"sandbox_id"`
	Hint        string `json:"hint,omitempty"`
	Command     string `json:"command,omitempty"`
}

// isError: something stopped the program from finishing. An exit status other
// than 0 is a result like any other.
func (x *execution) isError() bool { return x.Status != ok && x.Status != programError }

// text is what a person wants to read: an error's cause first; stdout; stderr
// if there is any; last how it ended, where that is news.
func (x *execution) text() string {
	var parts []string
	add := func(s string) {
		if s != "" {
			parts = append(parts, strings.TrimSuffix(s, "\n"))
		}
	}
	if x.isError() {
		add(string(x.Status) + ": " + x.Error)
	}
	add(x.Stdout)
	if x.Stderr != "" {
		add("[stderr]\n" + x.Stderr)
	}
	if x.StdoutBytes+x.StderrBytes == 0 {
		add("(no output)")
	}
	if x.Status == programError {
		add(fmt.Sprintf("[exit code %d]", *x.ExitCode))
	}
	if x.Hint != "" {
		add("[" + x.Hint + "]")
	}
	if x.Command != "" {
		add("[command]\n" + x.Command)
	}
	return strings.Join(parts, "\n")
}

// ansi are the escape sequences of terminals: CSI, OSC and its kin with their
// strings, and the short ones.
var ansi = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|[\\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\\\)?|[ -/]*[0-~])")

// clean makes output harmless and readable: no escape sequences, one line for
// a progress bar that was redrawn, and everything that would not be seen, or
// would mislead, written out. hidden says whether it wrote something out.
func clean(raw []byte) (text string, hidden bool) {
	raw = ansi.ReplaceAll(raw, nil)
	var b strings.Builder
	for line := range bytes.Lines(raw) {
		body, end := bytes.CutSuffix(line, []byte("\n"))
		crlf := bytes.HasSuffix(body, []byte("\r"))
		body = bytes.TrimRight(body, "\r")
		if i := bytes.LastIndexByte(body, '\r'); i >= 0 {
			body = body[i+1:]
		}
		for len(body) > 0 {
			r, n := utf8.DecodeRune(body)
			switch {
			case r == utf8.RuneError && n == 1:
				fmt.Fprintf(&b, `\x%02x`, body[0])
				hidden = true
			case r == '\t' || unicode.IsPrint(r) || unicode.Is(unicode.Zs, r) || r == '\u200d' || r == '\u200c' || unicode.Is(unicode.Co, r):
				b.WriteRune(r)
			case r < utf8.RuneSelf:
				fmt.Fprintf(&b, `\x%02x`, r)
				hidden = true
			default:
				fmt.Fprintf(&b, `\u%04x`, r)
				hidden = true
			}
			body = body[n:]
		}
		if crlf && end {
			b.WriteByte('\r')
		}
		if end {
			b.WriteByte('\n')
		}
	}
	return b.String(), hidden
}

// output fills in what was printed.
func (x *execution) output(r *dockercli.Result) (notes []string) {
	var hiddenOut, hiddenErr bool
	x.Stdout, hiddenOut = clean(r.Stdout.Text)
	x.Stderr, hiddenErr = clean(r.Stderr.Text)
	x.StdoutBytes, x.StderrBytes = r.Stdout.Total, r.Stderr.Total
	x.Truncated = r.Stdout.Cut || r.Stderr.Cut
	if x.Truncated {
		kept := int64(len(r.Stdout.Text) + len(r.Stderr.Text))
		notes = append(notes, fmt.Sprintf("output was cut: about %d of %d bytes are shown; for the rest, print less, or write it to a file and print parts of that",
			kept, x.StdoutBytes+x.StderrBytes))
	}
	if hiddenOut || hiddenErr {
		notes = append(notes, `bytes that are no text are shown as \x.. or \u....`)
	}
	return notes
}
