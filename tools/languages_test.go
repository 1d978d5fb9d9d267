package tools

import (
	"path"
	"slices"
	"strings"
	"testing"
)

// TestLanguages: every row is complete, and no two are taken for each other.
func TestLanguages(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range Languages {
		if l.Name == "" || l.Program == "" || l.File[:1] != "." || path.Base(l.File) != l.File || !strings.Contains(l.Run, l.File) || !strings.Contains(l.Run, l.Program) {
			t.Errorf("%+v; want a name, a program, a hidden file in /workspace, and a command with both", l)
		}
		for _, name := range append([]string{l.Name, l.File}, l.Aliases...) {
			if seen[name] || name != strings.ToLower(name) {
				t.Errorf("%s is taken twice, or not in lower case", name)
			}
			seen[name] = true
		}
		if got := LanguageOf(path.Ext(l.File)); got != l.Name {
			t.Errorf("a file like %s is taken for %s", l.File, got)
		}
	}
	for _, env := range environment() {
		name, _, is := strings.Cut(env, "=")
		if !is || name == "" || seen[name] {
			t.Errorf("%s is no NAME=value, or set twice", env)
		}
		seen[name] = true
	}
	if got := found([]string{"node", "sh", "other"}); !slices.Equal(got, []string{"javascript", "sh"}) {
		t.Error(got)
	}
	// Case 87: names as people write them.
	for name, want := range map[string]string{"python": "python", "py": "python", "Python3": "python", "js": "javascript", "Node": "javascript", "SH": "sh", "cobol": "", "": "", " sh": ""} {
		if l := language(name); (l == nil) != (want == "") || l != nil && l.Name != want {
			t.Errorf("%q is %+v; want %q", name, l, want)
		}
	}
}

// TestUnwrap: case 63, what chat puts around a program goes, and nothing else.
func TestUnwrap(t *testing.T) {
	const fenced, dedented = "the Markdown fence around the code was taken off", "the indentation of the whole program was taken off"
	const inString = "s = '''\n```python\nx\n```\n'''\n"
	for _, c := range []struct{ name, language, code, want, remark string }{
		{"plain", "python", "if x:\n    y\n", "if x:\n    y\n", ""},
		{"indented", "python", "    if x:\n        y\n\n    z", "if x:\n    y\n\nz", dedented},
		{"indented by tabs", "python", "\n\tx\n \n\ty\n", "\nx\n \ny\n", dedented},
		{"indented unevenly", "python", "    x\n  y\n", "    x\n  y\n", ""},
		{"only the first line", "python", "  x\ny\n", "  x\ny\n", ""},
		{"fenced", "python", "```python\nprint(1)\n```", "print(1)\n", fenced},
		{"fenced, CRLF", "python", "\r\n```py\r\nprint(1)\r\n```\r\n", "print(1)\r\n", fenced},
		{"fenced sh", "sh", "```\n  echo hi\n```\n", "  echo hi\n", fenced},
		{"both", "python", "  ```python\n  x\n  y\n  ```\n", "x\ny\n", "the Markdown fence around the code and its indentation were taken off"},
		{"sh stays indented", "sh", "  echo hi\n", "  echo hi\n", ""},
		{"fences in a string", "python", inString, inString, ""},
		{"two fences", "python", "```\na\n```\ntext\n```\nb\n```", "```\na\n```\ntext\n```\nb\n```", ""},
		{"blank", "python", " \n\t\n", " \n\t\n", ""},
		{"nothing", "python", "", "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got, remark := language(c.language).unwrap(c.code); got != c.want || remark != c.remark {
				t.Errorf("got %q, %q; want %q, %q", got, remark, c.want, c.remark)
			}
		})
	}
}

// TestAdvice: every row of hints, in its order, is found by what real programs print.
func TestAdvice(t *testing.T) {
	const trace = "Traceback (most recent call last):\n  File \"/workspace/.main.py\", line 1, in <module>\n"
	const noNet, full, readOnly, memory, procs = "the sandbox has no network", "the sandbox's /workspace, /tmp or /dev/shm is full", "only /workspace and /tmp can be written",
		"the sandbox's memory is full", "the sandbox's limit of processes and threads is reached"
	samples := map[string][][]string{ // a row: how the advice begins, then what is printed
		"python": {
			{"the program read input that it was not given: pass it as stdin", trace + "EOFError: EOF when reading a line\n"},
			{"the image IMG has no Python module numpy, and", trace + "ModuleNotFoundError: No module named 'numpy'\n"},
			{"this is plain Python: ", "  File \"/workspace/.main.py\", line 1\n    !pip install x\n    ^\nSyntaxError: invalid syntax\n", "  File \"x\", line 1\n    %matplotlib inline\n    ^\nSyntaxError: invalid syntax\n"},
		},
		"javascript": {
			{"the image IMG has no npm module left-pad, and", "node:internal/modules/cjs/loader:1143\n  throw err;\n\nError: Cannot find module 'left-pad'\nRequire stack:\n- /workspace/.main.js\n"},
			{"the program runs as a CommonJS script: ", "SyntaxError: Cannot use import statement outside a module\n", "SyntaxError: await is only valid in async functions and the top level bodies of modules\n"},
		},
		"sh": {
			{"the image IMG has no jq", ".main.sh: 1: jq: not found\n", ".main.sh: line 1: jq: not found\n"}, // dash, busybox
		},
		"any": {
			{noNet, "wget: bad address 'example.com'\n", "curl: (6) getaddrinfo: Temporary failure in name resolution\n", "Error: getaddrinfo ENOTFOUND example.com\n", "ping: sendto: Network is unreachable\n"},
			{full, trace + "OSError: [Errno 28] No space left on device\n", "Error: ENOSPC: no space left on device, write\n"},
			{readOnly, trace + "OSError: [Errno 30] Read-only file system: '/x'\n", "Error: EROFS: read-only file system, open '/x'\n"},
			{memory, trace + "MemoryError\n", "FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory\n"},
			{procs, ".main.sh: line 1: can't fork: Resource temporarily unavailable\n", ".main.sh: 1: Cannot fork\n", trace + "RuntimeError: can't start new thread\n", "Error: spawn sh EAGAIN\n"},
		},
	}
	for _, l := range Languages {
		rows, printed := slices.Concat(l.Hints, hints), slices.Concat(samples[l.Name], samples["any"])
		if len(rows) != len(printed) {
			t.Fatalf("%s has %d hints, and samples of %d here", l.Name, len(rows), len(printed))
		}
		for i, sample := range printed {
			for _, stderr := range sample[1:] {
				if got := l.advice(stderr, "IMG", false); !strings.HasPrefix(got, sample[0]) || !rows[i].Stderr.MatchString(stderr) {
					t.Errorf("%s, hint %d: %q: %q; want %s", l.Name, i, stderr, got, sample[0])
				}
			}
		}
		for _, stderr := range []string{"", trace + "ZeroDivisionError: division by zero\n", "Error: Cannot find module './mine'\n"} {
			if got := l.advice(stderr, "IMG", false); got != "" {
				t.Errorf("%s: %q: %q; want none", l.Name, stderr, got)
			}
		}
	}
}
