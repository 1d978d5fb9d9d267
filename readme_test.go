package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"mcp-docker-interpreter/tools"
)

// TestReadme: the tables of the README are those of the code (-update rewrites
// them), the files that it names are there, and its two commands are the ones
// that CI runs.
func TestReadme(t *testing.T) {
	b, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	readme := string(b)
	for name, table := range map[string]string{"flags": flagTable(), "languages": languageTable()} {
		begin, end := "<!-- "+name+" -->\n", "<!-- /"+name+" -->"
		before, rest, found := strings.Cut(readme, begin)
		_, after, closed := strings.Cut(rest, end)
		if !found || !closed {
			t.Fatalf("README.md has no place for the table of %s", name)
		}
		readme = before + begin + table + end + after
	}
	golden(t, "README.md", readme)
	for _, m := range regexp.MustCompile(`\]\(([a-z][^):]*)\)`).FindAllStringSubmatch(readme, -1) {
		if _, err := os.Stat(m[1]); err != nil {
			t.Errorf("README.md links to %s: %v", m[1], err)
		}
	}
	ci, err := os.ReadFile(".ci/run")
	if err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{".ci/engine go run . run testdata/hello.py", "go test ./..."} {
		if !strings.Contains(readme, "```sh\n"+command+"\n```") || !strings.Contains(string(ci), command) {
			t.Errorf("README.md and .ci/run differ about %q", command)
		}
	}
}

func flagTable() string {
	var b strings.Builder
	b.WriteString("| flag | variable | default | |\n| --- | --- | --- | --- |\n")
	flags(&config{}).VisitAll(func(f *flag.Flag) {
		arg, about := flag.UnquoteUsage(f)
		if arg == "" || arg == "value" || arg == "string" {
			arg = ""
		} else {
			arg = " " + arg
		}
		def := f.DefValue
		if f.Name == "runs" {
			def = "" // it depends on the machine, and the text says how
		}
		if def != "" {
			def = "`" + def + "`"
		}
		fmt.Fprintf(&b, "| `-%s%s` | `%s` | %s | %s |\n", f.Name, arg, variable(f.Name), def, strings.ReplaceAll(about, "|", `\|`))
	})
	return b.String()
}

func languageTable() string {
	var b strings.Builder
	b.WriteString("| language | also called | needs in the image |\n| --- | --- | --- |\n")
	for _, l := range tools.Languages {
		fmt.Fprintf(&b, "| `%s` | %s | `%s` |\n", l.Name, strings.Join(l.Aliases, ", "), l.Program)
	}
	return b.String()
}
