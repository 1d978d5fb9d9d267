package dockercli

import (
	"slices"
	"strings"
	"testing"
)

var digest = "@sha256:" + strings.Repeat("0a", 32)

// TestParseImage: what is no plain name is refused, shown escaped.
func TestParseImage(t *testing.T) {
	for _, name := range []string{
		"-v/etc/passwd:/p", "--privileged", "--use-api-socket", "--network=host", "--help", "-", "--",
		"x; touch /tmp/pwn", "$(id)", "`id`", "x|y", "x&y", "x>y", "x y", "x*", "'x'",
		"docker-archive:/etc/passwd", "dir:/etc", "oci:/etc", "oci-archive:/etc/x", "docker-daemon:x", "docker-daemon:x:latest",
		"containers-storage:x", "containers-storage:[overlay@/x]y", "dir:x", "oci:x", "sif:x", "tarball:x", "ostree:x@/y", "docker://x", "dir:x" + digest,
		"UPPER", "", "../../etc", "/etc/passwd", "./x", "x/../y", "a..b", "x//y", "x/", "a@sha256:00", strings.Repeat("x", 300), "a:b:c", "x:", ":x", "x:.y", "x:" + strings.Repeat("t", 129),
		"x\x00y", "x\n", "\nx", "x\t", "x\r", "\u202ealpine", "alpine\u200b", "alpíne", "x\xff", "{name}",
	} {
		img, err := ParseImage(name)
		if err == nil || img != (Image{}) {
			t.Errorf("%q is accepted: %+v", name, img)
		} else if strings.ContainsFunc(err.Error(), func(r rune) bool { return r < ' ' || r == 0x7f || r == '\u202e' || r == '\u200b' }) {
			t.Errorf("%q is not escaped in %s", name, err)
		}
	}
	for name, host := range map[string]string{
		"alpine": "", "alpine:latest": "", "python:3.12-slim": "", "a": "", "library/alpine": "", "team/a__b/c-d.e": "", "x" + digest: "", "x:1" + digest: "", "dir": "", "oci/x:1": "",
		"docker.io/x/y": "docker.io", "localhost/x:local": "localhost", "127.0.0.1:1/evil:latest": "127.0.0.1:1", // the host is told, so that it can be refused
		"10.0.0.1/x": "10.0.0.1", "registry.example:5000/team/image:tag": "registry.example:5000", "UPPER/x": "UPPER",
	} {
		if img, err := ParseImage(name); err != nil || img != (Image{Name: name, Host: host}) {
			t.Errorf("%q: %+v, %v; want host %q", name, img, err, host)
		}
	}
}

// FuzzParseImage: a name that is accepted is no flag, no path, one word of
// plain characters, and never the worse for an error's text.
func FuzzParseImage(f *testing.F) {
	for _, s := range append([]string{"alpine:latest", "a.b:1/c/d:e" + digest, "localhost/x", "a/../b", "x:a..b", "-x", "/x"}, hostile...) {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		img, err := ParseImage(name)
		if err != nil {
			return
		}
		odd := func(r rune) bool { return r <= ' ' || r > '~' || strings.ContainsRune("'\"\\`$&|;<>()*?[]{}!#~,=", r) }
		parts := strings.Split(name, "/")
		last, _, _ := strings.Cut(parts[len(parts)-1], ":") // a tag may have two dots
		switch {
		case img.Name != name, name == "", len(name) > 255, strings.HasPrefix(name, "-"), strings.ContainsFunc(name, odd),
			slices.Contains(parts, ""), slices.Contains(parts, "."), slices.Contains(parts, ".."), strings.Contains(last, ".."),
			strings.Contains(strings.Join(parts[:len(parts)-1], "/"), ".."), img.Host != "" && img.Host != parts[0],
			img.Host == "" && len(parts) > 1 && strings.ContainsAny(parts[0], ".:"):
			t.Errorf("%q is accepted: %+v", name, img)
		}
	})
}
