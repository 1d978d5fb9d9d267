package dockercli

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"
)

// Capture keeps the head and the tail of what is written to it, at most Limit
// bytes together: a quarter head, the rest tail. It never fails, so that a
// program that prints without end is read without end, and nothing grows.
type Capture struct {
	Limit int64 // bytes; 0 keeps nothing

	head, ring []byte
	at         int // the oldest byte of a full ring
	total      int64
}

// Write takes everything and keeps what fits.
func (c *Capture) Write(p []byte) (int, error) {
	n := len(p)
	c.total += int64(n)
	if room := int(c.Limit/4) - len(c.head); room > 0 {
		k := min(room, len(p))
		c.head, p = append(c.head, p[:k]...), p[k:]
	}
	size := int(c.Limit - c.Limit/4)
	if len(p) > size {
		p = p[len(p)-size:]
	}
	if k := min(size-len(c.ring), len(p)); k > 0 {
		c.ring, p = append(c.ring, p[:k]...), p[k:]
	}
	for len(p) > 0 {
		k := copy(c.ring[c.at:], p)
		c.at, p = (c.at+k)%size, p[k:]
	}
	return n, nil
}

// Output is what a stream printed.
type Output struct {
	Text  []byte // head and tail, with a line between them if bytes are missing
	Total int64  // bytes that were printed
	Lost  int64  // bytes of them that are missing in Text
}

// Output returns what was kept, cut on the boundaries of characters.
func (c *Capture) Output() Output {
	tail := append(c.ring[c.at:len(c.ring):len(c.ring)], c.ring[:c.at]...)
	if c.total == int64(len(c.head)+len(tail)) {
		return Output{Text: append(c.head[:len(c.head):len(c.head)], tail...), Total: c.total}
	}
	head := c.head[:len(c.head)-partial(c.head)]
	for i := 0; i < utf8.UTFMax && len(tail) > 0 && !utf8.RuneStart(tail[0]); i++ {
		tail = tail[1:]
	}
	text := bytes.Clone(head)
	if len(text) > 0 && !bytes.HasSuffix(text, []byte("\n")) {
		text = append(text, '\n')
	}
	lost := c.total - int64(len(head)+len(tail))
	text = fmt.Appendf(text, "[… %d bytes left out …]\n", lost)
	return Output{Text: append(text, tail...), Total: c.total, Lost: lost}
}

// partial counts the bytes at the end of b of a character that is not complete.
func partial(b []byte) int {
	for i := 1; i <= min(utf8.UTFMax-1, len(b)); i++ {
		if c := b[len(b)-i]; utf8.RuneStart(c) {
			if c >= utf8.RuneSelf && !utf8.FullRune(b[len(b)-i:]) {
				return i
			}
			return 0
		}
	}
	return 0
}

// stream reads one output stream of a run: what the CLI has to say before the
// begin mark, what the program prints up to the end mark, the trailer behind
// it, and then, until somebody ends the CLI, what nobody wants any more.
type stream struct {
	nonce string
	out   io.Writer     // gets what the program prints
	began chan struct{} // closed at the begin mark
	ended chan struct{} // closed at the end mark, its line complete
	gone  chan struct{} // closed when the run has tidied up behind itself; stdout only

	mu     sync.Mutex
	noise  Capture
	held   []byte // may be the start of a mark
	state  int
	mark   string    // the rest of the begin mark's line
	start  time.Time // when it came
	ending string    // the rest of the end mark's line
}

const (
	before = iota
	during
	trailer
	after
	done
)

const maxTrailer = 4096 // PIPE_BUF: what a shell's printf writes at once

func newStream(nonce string, out io.Writer) *stream {
	return &stream{nonce: nonce, out: out, noise: Capture{Limit: 4 << 10},
		began: make(chan struct{}), ended: make(chan struct{}), gone: make(chan struct{})}
}

// Write never fails, for the CLI would end, and the program go on unseen.
func (s *stream) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := len(p)
	if s.state == done {
		return n, nil
	}
	s.held = append(s.held, p...)
	for s.step() {
	}
	return n, nil
}

// step consumes held bytes; false if it needs more.
func (s *stream) step() bool {
	switch s.state {
	case before:
		// On a line of its own: a CLI that logs its own command line prints the
		// nonce too.
		begin := "\n" + s.nonce
		if i := bytes.Index(s.held, []byte(begin)); i >= 0 {
			rest := i + len(begin)
			end := bytes.IndexByte(s.held[rest:], '\n')
			if end < 0 && len(s.held)-rest < maxTrailer {
				return false
			}
			end = max(end, 0)
			s.noise.Write(s.held[:i])
			s.mark = string(s.held[rest : rest+end])
			s.held = s.held[rest+end+1:]
			s.state, s.start = during, time.Now()
			close(s.began)
			return true
		}
		s.pass(&s.noise, begin)
	case during:
		end := "\n" + s.nonce + " end"
		if i := bytes.Index(s.held, []byte(end)); i >= 0 {
			s.out.Write(s.held[:i])
			s.held = s.held[i+len(end):]
			s.state = trailer
			return true
		}
		s.pass(s.out, end)
	case trailer:
		end := bytes.IndexByte(s.held, '\n')
		if end < 0 && len(s.held) < maxTrailer {
			return false
		}
		if end < 0 {
			end = len(s.held) - 1
		}
		s.ending = strings.TrimSpace(string(s.held[:end]))
		s.held = s.held[end+1:]
		s.state = after
		close(s.ended)
		return true
	case after:
		end := "\n" + s.nonce + " out\n"
		if bytes.Contains(s.held, []byte(end)) {
			s.state, s.held = done, nil
			close(s.gone)
			return false
		}
		s.pass(io.Discard, end)
	}
	return false
}

// pass hands on what cannot be the start of the mark any more.
func (s *stream) pass(to io.Writer, mark string) {
	keep := 0
	for k := min(len(mark)-1, len(s.held)); k > 0; k-- {
		if bytes.HasSuffix(s.held, []byte(mark[:k])) {
			keep = k
			break
		}
	}
	if n := len(s.held) - keep; n > 0 {
		to.Write(s.held[:n])
		s.held = append(s.held[:0:0], s.held[n:]...)
	}
}

// closed says whether a channel that only its closing is sent on is closed.
func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// lock takes mu; false if somebody holds it who waits for a reader of the
// output that does not read.
func (s *stream) lock() bool {
	for start := time.Now(); !s.mu.TryLock(); time.Sleep(time.Millisecond) {
		if time.Since(start) > drainLimit {
			return false
		}
	}
	return true
}

// flush ends a stream that will say no more: what was held back is output.
func (s *stream) flush() {
	if !s.lock() {
		return
	}
	defer s.mu.Unlock()
	switch s.state {
	case before:
		s.noise.Write(s.held)
	case during:
		s.out.Write(s.held)
	}
	s.state, s.held = done, nil
}

// said is what the CLI itself had to say.
func (s *stream) said() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimSpace(string(s.noise.Output().Text))
}
