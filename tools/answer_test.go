package tools

import (
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"mcp-docker-interpreter/dockercli"

	"github.com/mark3labs/mcp-go/mcp"
)

// TestClean: no escape sequence, one line for a redrawn progress bar, and what
// would not be seen or would mislead is written out.
func TestClean(t *testing.T) {
	for _, c := range []struct {
		name, in, want string
		hidden         bool
	}{
		{"50 colour", "\x1b[31mred\x1b[0m \x1b[1;38;5;9mbold\x1b[m\n", "red bold\n", false},
		{"50 progress", "\r0%\r50%\r100%", "100%", false},
		{"50 progress with a line", "start\n 1%\r 99%\r\x1b[K100%\r\nend\n", "start\n100%\r\nend\n", false},
		{"50 progress that ends in CR", "1%\r2%\r", "2%", false},
		{"50 cursor", "\x1b[?25l\x1b[2J\x1b[1;1Hx\x1b(B\x1b7\x1b=\x1b[?25h", "x", false},
		{"P-14 OSC 52", "a\x1b]52;c;ZXZpbA==\x07b\x1b]52;c;ZXZpbA==\x1b\\c", "abc", false},
		{"P-14 OSC 8", "\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\\n", "link\n", false},
		{"P-14 DCS, APC, PM, SOS", "a\x1bP1$r0m\x1b\\b\x1b_x\x1b\\c\x1b^x\x1b\\d\x1bXx\x1b\\e", "abcde", false},
		{"P-14 half of one", "x\x1b", `x\x1b`, true},
		{"P-14 one in another", "\x1b\x1b[31m[31mx", `\x1b[31mx`, true},
		{"P-14 bidi", "a\u202eb\u2066c\u200f", `a\u202eb\u2066c\u200f`, true},
		{"P-14 BOM", "\ufeffx", `\ufeffx`, true},
		{"P-14 C1", "\u009b31mx\u0085", `\u009b31mx\u0085`, true},
		{"P-14 line separators", "a\u2028b\u2029", `a\u2028b\u2029`, true},
		{"P-14 controls", "a\b\a\x7f", `a\x08\x07\x7f`, true},
		{"P-15", "a\xff\x00", `a\xff\x00`, true},
		{"P-15 C1 as a byte", "\x9b31mx", `\x9b31mx`, true},
		{"P-15 split character", "x\xea\xb0", `x\xea\xb0`, true},
		{"64 CRLF", "a\r\nb\r\n\r\n", "a\r\nb\r\n\r\n", false},
		{"88", "✓ 你好 🎉 é\u00a0\ufffd", "✓ 你好 🎉 é\u00a0\ufffd", false},
		{"88 joined", "👩\u200d💻 \u0915\u094d\u200d\u0937 ❤️", "👩\u200d💻 \u0915\u094d\u200d\u0937 ❤️", false},
		{"tabs", "\tif x:\n\t\ty  \n\n", "\tif x:\n\t\ty  \n\n", false},
		{"nothing", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, notes := clean([]byte(c.in)); got != c.want || slices.Contains(notes, writtenOut) != c.hidden {
				t.Errorf("%q: got %q, %v; want %q, %v", c.in, got, notes, c.want, c.hidden)
			}
		})
	}
}

// writtenOut is the note of a text in which something was made visible.
const writtenOut = `what is no text is shown as \x.. or \u....`

// FuzzClean: whatever a program prints, the text is UTF-8 that no terminal acts
// on; plain text stays as it is, and so does what is clean already.
func FuzzClean(f *testing.F) {
	for _, seed := range []string{"x\n", "\x1b[31mred\x1b]8;;\x07\x1bP", "1%\r2%\r\n", "\xff\x00\u009b\u202e\ufeff\u200d", "\x1b\x1b[31m[31m", "\r\r\n\r"} {
		f.Add([]byte(seed))
	}
	danger := regexp.MustCompile(`[\x00-\x08\x0b-\x1f\x7f-\x{9f}\x{200e}\x{200f}\x{2028}-\x{202e}\x{2066}-\x{2069}\x{feff}\x{e0000}-\x{e007f}]`)
	plain := regexp.MustCompile(`^[ -~\t\n]*$`)
	f.Fuzz(func(t *testing.T, raw []byte) {
		got, notes := clean(raw)
		if !utf8.ValidString(got) || danger.MatchString(strings.ReplaceAll(got, "\r\n", "\n")) {
			t.Errorf("%q: %q", raw, got)
		}
		if plain.Match(raw) && (got != string(raw) || notes != nil) {
			t.Errorf("plain %q became %q", raw, got)
		}
		if again, more := clean([]byte(got)); again != got || more != nil {
			t.Errorf("%q: %q, and cleaned again %q", raw, got, again)
		}
	})
}

// TestExecution: what a person reads of a run, and (case 93) that the
// structured content says the same.
func TestExecution(t *testing.T) {
	const ended = "; the program and everything else in the sandbox was ended, its files stay\n"
	const memory = "use less memory, or remove files, which count as memory; the operator's -memory sets the limit"
	flood := dockercli.Capture{Limit: 40}
	fmt.Fprint(&flood, strings.Repeat("x", 100))
	whole := func(s string) dockercli.Output { return dockercli.Output{Text: []byte(s), Total: int64(len(s))} }
	for _, c := range []struct {
		name   string
		result dockercli.Result
		status Status
		want   string
	}{
		{"49 print", dockercli.Result{How: dockercli.Exited, Stdout: whole("4\n")}, ok, "4"},
		{"46 print and stderr", dockercli.Result{How: dockercli.Exited, Stdout: whole("out\n"), Stderr: whole("warn\n")}, ok, "out\n[stderr]\nwarn"},
		{"45 raises", dockercli.Result{How: dockercli.Exited, Exit: 1, Stdout: whole("kept\n"), Stderr: whole("ZeroDivisionError: division by zero\n")},
			programError, "kept\n[stderr]\nZeroDivisionError: division by zero\n[exit code 1]"},
		{"47 exits", dockercli.Result{How: dockercli.Exited, Exit: 3}, programError, "(no output)\n[exit code 3]"},
		{"51 no output", dockercli.Result{How: dockercli.Exited}, ok, "(no output)\n[nothing was printed; print what you want to see]"},
		{"52 timeout", dockercli.Result{How: dockercli.TimedOut, Exit: -1, Stdout: whole("partial")},
			timedOut, "timeout: stopped at the time limit of 1.5 s" + ended + "partial\n[raise timeout (at most 45 s), or do less]"},
		{"22 timeout at the process limit", dockercli.Result{How: dockercli.TimedOut, Exit: -1, PIDs: true},
			timedOut, "timeout: stopped at the time limit of 1.5 s" + ended + "(no output)\n[it reached the limit of processes; the operator's -pids sets it]"},
		{"P-03 memory", dockercli.Result{How: dockercli.Exited, Exit: 137, OOM: true, Stdout: whole("begun\n")},
			outOfMemory, "out_of_memory: exit code 137 after something was killed by the memory limit of 1g\nbegun\n[" + memory + "]"},
		{"P-03 memory for the shell too", dockercli.Result{How: dockercli.Killed, Exit: -1, OOM: true}, outOfMemory, "out_of_memory: killed by the sandbox's memory limit" + ended + "(no output)"},
		{"P-49", dockercli.Result{How: dockercli.NoRoom, Exit: -1}, diskFull, "disk_full: the program could not be stored in the sandbox, and was not run: /workspace or /tmp is full, or something stands in the way of .main.py\n(no output)\n" +
			"[remove files, for example with a short program of language sh, or use another sandbox]"},
		{"43 truncated", dockercli.Result{How: dockercli.Exited, Stdout: flood.Output()}, ok, strings.Repeat("x", 10) + "\n[… 60 bytes left out …]\n" + strings.Repeat("x", 30) +
			"\n[output was cut: 40 of 100 bytes are shown; for the rest, print less, or write it to a file and print parts of that]"},
		{"P-15 hidden", dockercli.Result{How: dockercli.Exited, Stdout: whole("a\x00\n")}, ok, `a\x00` + "\n" + `[what is no text is shown as \x.. or \u....]`},
		{"17 left", dockercli.Result{How: dockercli.Exited, Stdout: whole("started\n"), Left: "sleep\x1b[31m"}, ok, "started\n[still running: sleep (until the sandbox ends or a run is timed out)]"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := &sandbox{Sandbox: &dockercli.Sandbox{Spec: dockercli.Spec{Limits: dockercli.DefaultLimits}}}
			x, r := &execution{}, &c.result
			notes := x.output(r, 32<<10)
			if advice := x.judge(r, language("python"), b, 1500*time.Millisecond, 1500*time.Millisecond); advice != "" {
				notes = append([]string{advice}, notes...)
			}
			x.Hint = strings.Join(notes, "; ")
			result := answer(x.text(), x, x.isError())
			text := result.Content[0].(mcp.TextContent).Text
			if x.Status != c.status || text != c.want || len(result.Content) != 1 || result.IsError != (c.status != ok && c.status != programError) {
				t.Errorf("got %s, error %v\n%s\nwant %s\n%s", x.Status, result.IsError, text, c.status, c.want)
			}
			var fields execution
			if err := json.Unmarshal([]byte(quoted(result.StructuredContent)), &fields); err != nil {
				t.Fatal(err)
			}
			out, _ := clean(r.Stdout.Text)
			exit := *cmp.Or(fields.ExitCode, new(-1))
			if fields.Stdout != out || fields.Stderr != string(r.Stderr.Text) || fields.StdoutBytes != r.Stdout.Total || fields.Truncated != (r.Stdout.Lost > 0) || exit != r.Exit ||
				fields.Truncated != strings.Contains(text, "output was cut") || (exit > 0) != strings.Contains(text, fmt.Sprint("exit code ", exit)) ||
				result.IsError && !strings.HasPrefix(text, string(fields.Status)+": "+fields.Error+"\n") {
				t.Errorf("text and fields differ:\n%s\n%+v", text, fields)
			}
		})
	}
}
