package tools

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
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
	past   bool   // about a sandbox that was there
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
	if strings.TrimSpace(x.Stdout+x.Stderr) == "" {
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
// strings, which end at a line's end if nothing else ends them, and the short ones.
var ansi = regexp.MustCompile("\x1b(?:\\[[0-?]*[ -/]*[@-~]|[\\]PX^_][^\x07\x1b\n]*(?:\x07|\x1b\\\\)?|[ -/]*[0-~])")

// unseen are printable by Unicode's word, but nobody sees them: fillers, blanks
// and variation selectors that can carry a hidden text.
var unseen = &unicode.RangeTable{
	R16: []unicode.Range16{{0x115f, 0x1160, 1}, {0x2800, 0x2800, 1}, {0x3164, 0x3164, 1}, {0xffa0, 0xffa0, 1}},
	R32: []unicode.Range32{{0xe0100, 0xe01ef, 1}},
}

// clean makes output harmless and readable: no escape sequences, one line for
// a progress bar that was redrawn, and everything that would not be seen, or
// would mislead, written out. notes say what it did to the text.
func clean(raw []byte) (text string, notes []string) {
	raw = ansi.ReplaceAll(raw, nil)
	var b strings.Builder
	escaped, redrawn := false, false
	for line := range bytes.Lines(raw) {
		body, end := bytes.CutSuffix(line, []byte("\n"))
		crlf := end && bytes.HasSuffix(body, []byte("\r"))
		body = bytes.TrimRight(body, "\r")
		if i := bytes.LastIndexByte(body, '\r'); i >= 0 {
			redrawn = redrawn || len(bytes.TrimLeft(body[:i], "\r")) > 0
			body = body[i+1:]
		}
		for len(body) > 0 {
			r, n := utf8.DecodeRune(body)
			switch format := ""; {
			case (r == '\t' || r == '\u200c' || r == '\u200d' || unicode.IsPrint(r) || unicode.In(r, unicode.Zs, unicode.Co)) &&
				!unicode.Is(unseen, r) && (r != utf8.RuneError || n > 1):
				b.WriteRune(r)
			case n == 1: // a byte that is no UTF-8, or a control character
				r = rune(body[0])
				format = `\x%02x`
				fallthrough
			default:
				if format == "" {
					format = `\u%04x`
				}
				if r > 0xffff {
					format = `\U%08x`
				}
				fmt.Fprintf(&b, format, r)
				escaped = true
			}
			body = body[n:]
		}
		if crlf {
			b.WriteByte('\r')
		}
		if end {
			b.WriteByte('\n')
		}
	}
	if escaped {
		notes = append(notes, `what is no text is shown as \x.. or \u....`)
	}
	if redrawn {
		notes = append(notes, "of lines that were redrawn (carriage return) the last state is shown")
	}
	return b.String(), notes
}

// output fills in what was printed. limit is what a stream may have: written
// out, binary output is several times as long.
func (x *execution) output(r *dockercli.Result, limit int64) (notes []string) {
	cut := int64(0)
	for _, s := range []struct {
		out  dockercli.Output
		text *string
		n    *int64
	}{{r.Stdout, &x.Stdout, &x.StdoutBytes}, {r.Stderr, &x.Stderr, &x.StderrBytes}} {
		text, more := clean(s.out.Text)
		for _, n := range more {
			if !slices.Contains(notes, n) {
				notes = append(notes, n)
			}
		}
		if int64(len(text)) > 2*limit {
			c := dockercli.Capture{Limit: limit}
			c.Write([]byte(text))
			text = string(c.Output().Text)
			x.Truncated = true
		}
		*s.text, *s.n = text, s.out.Total
		cut += s.out.Lost
	}
	if all := x.StdoutBytes + x.StderrBytes; cut > 0 {
		x.Truncated = true
		notes = append(notes, fmt.Sprintf("output was cut: %d of %d bytes are shown; for the rest, print less, or write it to a file and print parts of that", all-cut, all))
	}
	return notes
}
