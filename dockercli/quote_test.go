package dockercli

import (
	"os/exec"
	"strings"
	"testing"
)

// hostile are words and texts that a shell would take for more than they are.
var hostile = []string{"", "-", "--", "-n", "a b", "it's", `"`, `\`, `\n`, `\c\0101%s%b`, "a\nb", "\n", "$(id)", "`id`", "${HOME}", "*", "~", "!!", "#", ";id", "|", "&",
	"a=b", "{a,b}", "\t", "\r\n", "x\r", "a\x00b\n", "\x007\n", "no newline", "EOF\n", "EOF\nEOF_\n", "EOF", "a\nEOF\nid\n", "\xff\xfe\n", "é\n", "\x81\x82\x88\n", "\x1b[31m\n", "'\n'\\''\n"}

func needs(t testing.TB, program string) {
	if _, err := exec.LookPath(program); err != nil {
		t.Skipf("no %s here", program)
	}
}

// FuzzQuote: a shell reads a quoted word as it was, and as one word.
func FuzzQuote(f *testing.F) {
	needs(f, "sh")
	for _, s := range hostile {
		f.Add(s, s+"'")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		if strings.Contains(a+b, "\x00") || len(a+b) > 8<<10 {
			t.Skip() // what no argv can hold
		}
		line := `printf '%s\0' ` + Quote(a) + " " + Quote(b)
		got, err := exec.Command("sh", "-c", line).CombinedOutput()
		if want := a + "\x00" + b + "\x00"; err != nil || string(got) != want {
			t.Errorf("%q: %q, %v; want %q", line, got, err, want)
		}
	})
}

// FuzzTyped: pasted into a shell, a typed command line hands on argv and stdin
// byte for byte.
func FuzzTyped(f *testing.F) {
	needs(f, "sh")
	for _, s := range hostile {
		f.Add("--flag="+strings.ReplaceAll(s, "\x00", ""), strings.ReplaceAll(s, "\x00", ""), []byte(s))
	}
	f.Fuzz(func(t *testing.T, a, b string, stdin []byte) {
		if strings.Contains(a+b, "\x00") || len(a+b)+len(stdin) > 8<<10 {
			t.Skip()
		}
		line := Typed([]string{"sh", "-c", `printf '%s\0' "$@"; cat`, "sh", a, b}, stdin)
		got, err := exec.Command("sh", "-c", line).CombinedOutput()
		if want := a + "\x00" + b + "\x00" + string(stdin); err != nil || string(got) != want {
			t.Errorf("%q: %q, %v; want %q", line, got, err, want)
		}
	})
}
