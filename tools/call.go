package tools

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/google/shlex"
	"github.com/mark3labs/mcp-go/server"
)

// Stdio serves MCP on a pair of streams until in ends or ctx does.
func (s *Server) Stdio(ctx context.Context, version string, in io.Reader, out io.Writer) error {
	m := server.NewStdioServer(s.MCP(version))
	server.WithWorkerPoolSize(100)(m) // who runs is decided by Config.Runs, not here
	server.WithQueueSize(10000)(m)    // a full one would run calls on the read loop, which hears of no cancellation
	ended := make(chan struct{})
	lines := &shortLines{Reader: in, ended: ended}
	listened := make(chan error, 1)
	go func() { listened <- m.Listen(ctx, lines, out) }()
	select {
	case err := <-listened:
		return err
	case <-ctx.Done():
	case <-ended:
	}
	// Calls under way have been told to end. A client that has stopped reading
	// holds the library up for ever: it must not keep the sandboxes alive.
	select {
	case err := <-listened:
		return err
	case <-time.After(time.Second):
		return nil
	}
}

// Call calls tools of a server of its own from a shell, one after the other,
// through the same protocol as any client, and prints their answers. calls are
// TOOL name=value …; a value @FILE is the file's content, and name:=JSON is a
// value that is no string. Without any, each line of in is one. It returns
// whether an answer was an error.
func (s *Server) Call(ctx context.Context, version string, calls [][]string, in io.Reader, out io.Writer, asJSON bool) (failed bool, err error) {
	toServer, toUs := pipe(), pipe()
	served := make(chan error, 1)
	go func() {
		served <- s.Stdio(ctx, version, toServer.r, toUs.w)
		toUs.w.Close()
	}()
	defer func() {
		toServer.w.Close()
		<-served
	}()
	c := &caller{send: json.NewEncoder(toServer.w), answers: bufio.NewReader(toUs.r), out: out, asJSON: asJSON}
	if _, err := c.ask("initialize", map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{}, "clientInfo": map[string]any{"name": "call", "version": version}}); err != nil {
		return false, err
	}
	for _, words := range calls {
		bad, err := c.call(words)
		if err != nil {
			return false, err
		}
		failed = failed || bad
	}
	if len(calls) > 0 {
		return failed, nil
	}
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		words, err := shlex.Split(lines.Text())
		if err != nil {
			return false, fmt.Errorf("line %q: %w", lines.Text(), err)
		}
		if len(words) == 0 {
			continue
		}
		bad, err := c.call(words)
		if err != nil {
			return false, err
		}
		failed = failed || bad
	}
	return failed, lines.Err()
}

type pipeEnds struct {
	r *io.PipeReader
	w *io.PipeWriter
}

func pipe() pipeEnds {
	r, w := io.Pipe()
	return pipeEnds{r, w}
}

type caller struct {
	send    *json.Encoder
	answers *bufio.Reader
	out     io.Writer
	asJSON  bool
	id      int
}

// call calls a tool, prints the answer and says whether it is an error.
func (c *caller) call(words []string) (bool, error) {
	args := map[string]any{}
	for _, w := range words[1:] {
		name, value, ok := strings.Cut(w, "=")
		if !ok {
			return false, fmt.Errorf("argument %q; want name=value, name=@FILE or name:=JSON", w)
		}
		if plain, isJSON := strings.CutSuffix(name, ":"); isJSON {
			args[plain] = json.RawMessage(value)
			if !json.Valid([]byte(value)) {
				return false, fmt.Errorf("argument %q: no valid JSON", w)
			}
			continue
		}
		if file, ok := strings.CutPrefix(value, "@"); ok {
			b, err := os.ReadFile(file)
			if err != nil {
				return false, fmt.Errorf("argument %s: %w", name, err)
			}
			value = string(b)
		}
		args[name] = value
	}
	raw, err := c.ask("tools/call", map[string]any{"name": words[0], "arguments": args})
	if err != nil {
		return false, err
	}
	var result struct {
		Content []struct{ Text string }
		IsError bool
	}
	if err := json.Unmarshal(raw, &result); err != nil {
		return false, err
	}
	if c.asJSON {
		_, err = fmt.Fprintf(c.out, "%s\n", raw)
	} else {
		for _, t := range result.Content {
			_, err = fmt.Fprintln(c.out, t.Text)
		}
	}
	return result.IsError, err
}

// ask sends a request and waits for its response.
func (c *caller) ask(method string, params any) (json.RawMessage, error) {
	c.id++
	if err := c.send.Encode(map[string]any{"jsonrpc": "2.0", "id": c.id, "method": method, "params": params}); err != nil {
		return nil, err
	}
	for {
		line, err := c.answers.ReadBytes('\n')
		if err != nil {
			return nil, fmt.Errorf("%s: the server ended: %w", method, err)
		}
		var r struct {
			ID     int
			Result json.RawMessage
			Error  *struct{ Message string }
		}
		switch err := json.Unmarshal(line, &r); {
		case err != nil:
			return nil, err
		case r.ID != c.id: // a notification
		case r.Error != nil:
			return nil, fmt.Errorf("%s: %s", method, r.Error.Message)
		default:
			return r.Result, nil
		}
	}
}

// maxMessage is the longest message that is read whole: code and stdin of the
// full size fit in it, with a backslash before every other character.
const maxMessage = 40 << 20

// shortLines passes lines on, and makes up for two weaknesses of the protocol's
// library. Of a line that is longer than maxMessage, which it would read whole
// however long it is, only the beginning is passed on: that is no valid message,
// and answered as such. And a cancellation waits a moment: the library notes a
// call only when a worker has it, and would not find it.
type shortLines struct {
	io.Reader
	ended chan struct{} // closed at the end of the input
	n     int           // bytes of the line so far
	later []byte        // a cancellation, and what came with it
	err   error         // what is to be said after that
}

const cancelDelay = 20 * time.Millisecond

func (s *shortLines) Read(p []byte) (int, error) {
	if len(s.later) > 0 {
		time.Sleep(cancelDelay)
		n := copy(p, s.later)
		s.later = s.later[n:]
		return n, nil
	}
	for {
		if s.err != nil {
			if s.ended != nil {
				close(s.ended)
				s.ended = nil
			}
			return 0, s.err
		}
		var n int
		n, s.err = s.Reader.Read(p)
		kept := p[:0]
		for line := range bytes.Lines(p[:n]) {
			body, end := bytes.CutSuffix(line, []byte("\n"))
			room := max(maxMessage-s.n, 0)
			s.n += len(body)
			kept = append(kept, body[:min(len(body), room)]...)
			if end {
				kept, s.n = append(kept, '\n'), 0
			}
		}
		if i := bytes.Index(kept, []byte("notifications/cancelled")); i >= 0 {
			i = bytes.LastIndexByte(kept[:i], '\n') + 1
			s.later, kept = bytes.Clone(kept[i:]), kept[:i]
			if i == 0 {
				return s.Read(p)
			}
		}
		if len(kept) > 0 || len(p) == 0 {
			return len(kept), nil // a bufio.Reader gives up on readers that read nothing too often
		}
	}
}
