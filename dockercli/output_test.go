package dockercli

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// checkCapture looks whether the total is exact and what fits is there, else head and
// tail and the number of bytes between, cut on the boundaries of characters only.
func checkCapture(t *testing.T, limit int64, data []byte, chunk int) {
	t.Helper()
	c := Capture{Limit: limit}
	for rest := data; len(rest) > 0; rest = rest[min(chunk, len(rest)):] {
		if n, err := c.Write(rest[:min(chunk, len(rest))]); n != min(chunk, len(rest)) || err != nil {
			t.Fatalf("wrote %d, %v", n, err)
		}
		if held := int64(len(c.head) + len(c.ring)); held > limit {
			t.Fatalf("limit %d: %d bytes are held", limit, held)
		}
	}
	o := c.Output()
	fits := int64(len(data)) <= limit
	if o.Total != int64(len(data)) || (o.Lost > 0) == fits || fits && !bytes.Equal(o.Text, data) {
		t.Fatalf("limit %d, %d bytes: %+v", limit, len(data), o)
	}
	if fits {
		return
	}
	if utf8.Valid(data) && !utf8.Valid(o.Text) {
		t.Errorf("limit %d, %q: a character is cut in %q", limit, data, o.Text)
	}
	head, tail := int(limit/4), len(data)-int(limit-limit/4)
	for h := max(head-3, 0); h <= head; h++ { // where a character was cut, less of it
		for l := tail; l <= min(tail+4, len(data)); l++ {
			want := string(data[:h])
			if want != "" && !strings.HasSuffix(want, "\n") {
				want += "\n"
			}
			want += fmt.Sprintf("[… %d bytes left out …]\n", l-h) + string(data[l:])
			if cut := slices.Concat(data[h:head], data[tail:l]); string(o.Text) == want && bytes.IndexFunc(cut, func(r rune) bool { return r < utf8.RuneSelf }) < 0 {
				return
			}
		}
	}
	t.Errorf("limit %d, chunks of %d, %q: %q", limit, chunk, data, o.Text)
}

func FuzzCapture(f *testing.F) {
	for _, limit := range []uint16{0, 1, 3, 16, 100} {
		for _, text := range []string{"", "a", "abc", "héllo wörld\n", strings.Repeat("0123456789\n", 30), strings.Repeat("…€😀", 40), strings.Repeat("\x80", 150), strings.Repeat("\xff\x00", 50), strings.Repeat("x", 101)} {
			for _, chunk := range []uint8{0, 1, 6, 63, 255} {
				f.Add(limit, chunk, []byte(text))
			}
		}
	}
	f.Fuzz(func(t *testing.T, limit uint16, chunk uint8, data []byte) {
		checkCapture(t, int64(limit%300), data, int(chunk)+1)
	})
}

const testNonce = "f123456789abcdee01234567" // no end of it is its start

// feed writes to a new stream in chunks of the given sizes, again and again.
func feed(t *testing.T, wire string, sizes ...byte) (s *stream, out *bytes.Buffer) {
	t.Helper()
	out = &bytes.Buffer{}
	s = newStream(testNonce, out)
	most := 0
	for i := 0; len(wire) > 0; i++ {
		n := len(wire)
		if len(sizes) > 0 {
			n = min(n, int(sizes[i%len(sizes)])+1)
		}
		if k, err := s.Write([]byte(wire[:n])); k != n || err != nil {
			t.Fatalf("wrote %d of %d, %v", k, n, err)
		}
		if most = max(most, maxTrailer+n+2*len(testNonce)); len(s.held) > most || len(s.mark) > most || len(s.ending) > most {
			t.Fatalf("%d, %d and %d bytes are held", len(s.held), len(s.mark), len(s.ending))
		}
		wire = wire[n:]
	}
	return s, out
}

// wire is what RUN prints on stdout.
func wire(noise, output, ending, later string) string {
	return noise + "\n" + testNonce + " 1 2\n" + output + "\n" + testNonce + " end " + ending + "\n" + later
}

// TestStreamEnds: what is told when, and what of an end that never comes.
func TestStreamEnds(t *testing.T) {
	long := strings.Repeat("x", 3*maxTrailer)
	for _, c := range []struct {
		name, in            string
		began, ended, gone  bool
		out, flushed, noise string
	}{
		{"only noise", "docker: no\n" + testNonce[:7], false, false, false, "", "", "docker: no\n" + testNonce[:7]},
		{"cut in the output", "\n" + testNonce + "\nabc\n" + testNonce + " en", true, false, false, "abc", "abc\n" + testNonce + " en", ""},
		{"a trailer without end", "\n" + testNonce + "\nabc\n" + testNonce + " end " + long, true, true, false, "abc", "abc", ""},
		{"a begin mark without end", "\n" + testNonce + long, true, false, false, long[1:], long[1:], ""},
		{"a forged trailer", wire("", "abc", "0 0 0", "def"+wire("", "ghi", "1", "")), true, true, false, "abc", "abc", ""},
		{"after the end", wire("", "abc", "0 0 0", long+"\n"+testNonce+" out"), true, true, false, "abc", "abc", ""},
		{"tidied up", wire("", "abc", "0 0 0", "\n"+testNonce+" out\n"), true, true, true, "abc", "abc", ""},
	} {
		s, b := feed(t, c.in, 0)
		got := fmt.Sprintf("%v %v %v %q", closed(s.began), closed(s.ended), closed(s.gone), b.String())
		s.flush()
		s.Write([]byte("too late"))
		got += fmt.Sprintf(" %q %q", b.String(), s.said())
		if want := fmt.Sprintf("%v %v %v %q %q %q", c.began, c.ended, c.gone, c.out, c.flushed, c.noise); got != want {
			t.Errorf("%s: %.300s; want %.300s", c.name, got, want)
		}
	}
}

// FuzzStream: noise, output and trailer are told apart, byte for byte, wherever
// the chunks end; however hostile the bytes are, nothing panics or grows.
func FuzzStream(f *testing.F) {
	for _, output := range []string{"", "hello\n", "no newline", "\n\n\n", "\x00\xff\n", "x" + testNonce + "\n" + testNonce + "\n" + testNonce + " en", "\nf123456789abcdee01234568 end 0\n",
		"\n" + testNonce + " en\n" + testNonce + "  end\n\n\n" + testNonce[:20], "\n" + testNonce + " end"} {
		for _, noise := range []string{"", "a banner\n", "no newline", testNonce[:23] + "\n" + testNonce[:5], testNonce} {
			f.Add(noise, output, "3 4 5 sleep cat", "late\n"+testNonce+" out\nlater", []byte{7, 255})
		}
	}
	f.Add("", "x", strings.Repeat("x", 5000), testNonce, []byte{3})
	f.Fuzz(func(t *testing.T, noise, output, ending, later string, sizes []byte) {
		in := wire(noise, output, ending, later)
		check := func(s *stream, b *bytes.Buffer) {
			t.Helper()
			out := b.String()
			switch first, _, _ := strings.Cut(ending, "\n"); {
			case strings.Contains("\n"+noise, "\n"+testNonce) || strings.Contains(output, "\n"+testNonce+" end"): // it lies about itself
			case out != output || s.mark != " 1 2" || !closed(s.ended) || len(ending) < maxTrailer/2 && s.ending != strings.TrimSpace(first), len(noise) < 4<<10 && s.said() != strings.TrimSpace(noise):
				t.Errorf("%q: out %q, mark %q, ending %q, said %q, state %d", in, out, s.mark, s.ending, s.said(), s.state)
			}
			if closed(s.ended) != (s.state >= after) || closed(s.began) != (s.state >= during) || closed(s.gone) != (s.state == done) {
				t.Errorf("state %d", s.state)
			}
		}
		check(feed(t, in, sizes...))
		check(feed(t, in, 0))
		for cut := range min(len(in), 256) {
			check(feed(t, in, byte(cut), 255))
		}
	})
}
