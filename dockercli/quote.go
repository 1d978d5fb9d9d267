package dockercli

import (
	"regexp"
	"strings"
)

var plain = regexp.MustCompile(`^[a-zA-Z0-9_@%+=:,./-]+$`)

// Quote writes a word so that a POSIX shell reads it as it is.
func Quote(word string) string {
	if plain.MatchString(word) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// dashTrap is a line of a here-document of which dash (0.5.12) loses a byte: it
// begins like the delimiter, and goes on with a byte that is not ASCII.
var dashTrap = regexp.MustCompile(`(?m)^E(?:O(?:F_*)?)?[^\x00-\x7f]`)

// Typed writes a command line the way a careful person would type it: a flag a
// line, then stdin as a here-document. Pasted into a shell it does the same.
// Stdin that no here-document can hold (a NUL, no newline at its end) is left
// to printf; nil is no stdin at all.
func Typed(args []string, stdin []byte) string {
	var b strings.Builder
	for i, a := range args {
		switch {
		case i == 0:
		case strings.HasPrefix(a, "-"):
			b.WriteString(" \\\n  ")
		default:
			b.WriteString(" ")
		}
		b.WriteString(Quote(a))
	}
	switch in := string(stdin); {
	case stdin == nil:
	case strings.HasSuffix(in, "\n") && !strings.Contains(in, "\x00") && !dashTrap.MatchString(in):
		end := "EOF"
		for strings.Contains(in, end) {
			end += "_"
		}
		return b.String() + " <<'" + end + "'\n" + in + end
	default:
		return "printf %b " + Quote(octal(in)) + " |\n" + b.String()
	}
	return b.String()
}

// octal escapes what printf %b would change, and what Quote cannot carry.
func octal(s string) string {
	return strings.NewReplacer(`\`, `\\`, "\x00", `\0000`).Replace(s)
}
