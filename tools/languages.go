package tools

import (
	_ "embed"
	"regexp"
	"slices"
	"strings"

	"mcp-docker-interpreter/dockercli"
)

//go:embed wholewrites.py
var wholeWrites string

// Language is a row of the other table: all that there is to say about one.
type Language struct {
	Name    string
	Aliases []string // what else people call it
	Program string   // what an image needs; looked for as a sandbox starts
	File    string   // the program's file in /workspace: a name that no user's file has
	Run     string   // shell line
	GVisor  string   // the same where the kernel is gVisor; "": no other
	Env     []string // set for every run in a sandbox, since one language may start another
	Dedent  bool     // indentation has a meaning, and that of the whole program has none
	Hints   []Hint
}

// Hint is advice for a program that failed.
type Hint struct {
	Stderr *regexp.Regexp // what it printed
	Advice string         // $1 is the expression's first group, {image} the sandbox's image
}

// Languages is the table. The schemas, the README and the error texts follow
// from it.
var Languages = []Language{
	{
		Name: "python", Aliases: []string{"py", "python3"},
		Program: "python3", File: ".main.py", Run: "exec python3 .main.py",
		// A full pipe of gVisor takes a part of a long write, and unbuffered
		// Python does not go on with the rest.
		GVisor: "{ rm -rf /tmp/.py; mkdir /tmp/.py && printf %b " + dockercli.Quote(strings.ReplaceAll(wholeWrites, "\n", `\n`)) + " >/tmp/.py/sitecustomize.py; } 2>/dev/null; " +
			"export PYTHONPATH=/tmp/.py${PYTHONPATH:+:$PYTHONPATH}; exec python3 .main.py",
		// Unbuffered, or the output of a killed program is lost.
		Env:    []string{"PYTHONUNBUFFERED=1", "PYTHONUTF8=1", "PYTHONDONTWRITEBYTECODE=1"},
		Dedent: true,
		Hints: []Hint{
			{re(`EOFError: EOF when reading a line`), "the program read input that it was not given: pass it as stdin"},
			{re(`ModuleNotFoundError: No module named '([\w.]{1,80})'`), "the image {image} has no Python module $1, and a sandbox has no network to fetch it: use an image that has it, or do without"},
			{re(`(?m)^ *[!%].*\n(?: +\^+\n)?SyntaxError`), "this is plain Python: lines with ! or % are a notebook's; use language sh for commands"},
		},
	},
	{
		Name: "javascript", Aliases: []string{"js", "node", "nodejs"},
		Program: "node", File: ".main.js", Run: "exec node .main.js",
		Hints: []Hint{
			{re(`Cannot find module '([\w@][\w@/.-]{0,80})'`), "the image {image} has no npm module $1, and a sandbox has no network to fetch it: use an image that has it, or do without"},
			{re(`Cannot use import statement outside a module|await is only valid in async functions`), "the program runs as a CommonJS script: use require, and an async function around await"},
		},
	},
	{
		Name: "sh", Aliases: []string{"shell"},
		Program: "sh", File: ".main.sh", Run: "exec sh .main.sh",
		Hints: []Hint{
			{re(`(?m)^\.main\.sh: (?:line )?\d+: ([\w./+-]{1,80}): (?:command )?not found`), "the image {image} has no $1"},
		},
	},
}

// noNetwork is for programs that want one.
var noNetwork = Hint{re(`(?i:temporary failure in name resolution|name or service not known|network is unreachable|bad address ')|\b(?:ENOTFOUND|EAI_AGAIN|ENETUNREACH)\b`),
	"the sandbox has no network"}

// hints are those of any language.
var hints = []Hint{
	noNetwork,
	{re(`No space left on device|ENOSPC`), "the sandbox's /workspace, /tmp or /dev/shm is full: remove files, or use another sandbox"},
	{re(`Read-only file system|EROFS`), "only /workspace and /tmp can be written"},
	{re(`MemoryError|heap out of memory|Cannot allocate memory|ENOMEM`), "the sandbox's memory is full: work on smaller pieces; the operator's -memory sets it"},
	{re(`(?i)can(?:'t|not) fork|can't start new thread|spawn \S+ EAGAIN`), "the sandbox's limit of processes and threads is reached; the operator's -pids sets it"},
}

func re(s string) *regexp.Regexp { return regexp.MustCompile(s) }

// language finds a row by a name as people write it.
func language(name string) *Language {
	name = strings.ToLower(name)
	for i, l := range Languages {
		if l.Name == name || slices.Contains(l.Aliases, name) {
			return &Languages[i]
		}
	}
	return nil
}

func languageNames() []string {
	var names []string
	for _, l := range Languages {
		names = append(names, l.Name)
	}
	return names
}

// programs are what the supervisor looks for in an image.
func programs() []string {
	var names []string
	for _, l := range Languages {
		names = append(names, l.Program)
	}
	return names
}

// environment is what all runs get, whatever their language.
func environment() []string {
	var env []string
	for _, l := range Languages {
		env = append(env, l.Env...)
	}
	return env
}

// found names the languages of an image that has these programs.
func found(programs []string) []string {
	var names []string
	for _, l := range Languages {
		if slices.Contains(programs, l.Program) {
			names = append(names, l.Name)
		}
	}
	return names
}

var fence = regexp.MustCompile("(?s)^\\s*```[\\w+-]*[ \\t]*\\r?\\n(.*?\\n)[ \\t]*```\\s*$")

// unwrap takes off what chat puts around a program: a Markdown fence, and, where
// indentation matters, the indentation of the whole. remark says what it did.
func (l *Language) unwrap(code string) (bare, remark string) {
	without := "the indentation of the whole program was taken off"
	if m := fence.FindStringSubmatch(code); m != nil && !strings.Contains(m[1], "\n```") {
		code, remark = m[1], "the Markdown fence around the code was taken off"
		without = "the Markdown fence around the code and its indentation were taken off"
	}
	if !l.Dedent {
		return code, remark
	}
	lines := strings.SplitAfter(code, "\n")
	first := slices.IndexFunc(lines, func(l string) bool { return strings.TrimSpace(l) != "" })
	if first < 0 {
		return code, remark
	}
	indent := lines[first][:len(lines[first])-len(strings.TrimLeft(lines[first], " \t"))]
	if indent == "" {
		return code, remark
	}
	for i, line := range lines {
		if cut, ok := strings.CutPrefix(line, indent); ok {
			lines[i] = cut
		} else if strings.TrimSpace(line) != "" {
			return code, remark
		}
	}
	return strings.Join(lines, ""), without
}

// advice is a hint for what a failed program printed on stderr.
func (l *Language) advice(stderr, image string, network bool) string {
	for _, h := range slices.Concat(l.Hints, hints) {
		if network && h.Advice == noNetwork.Advice {
			continue
		}
		if m := h.Stderr.FindStringSubmatchIndex(stderr); m != nil {
			return strings.ReplaceAll(string(h.Stderr.ExpandString(nil, h.Advice, stderr, m)), "{image}", image)
		}
	}
	return ""
}
