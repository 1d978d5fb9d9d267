package tools

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"mcp-docker-interpreter/dockercli"

	"github.com/mark3labs/mcp-go/mcp"
)

// offline is a server with the defaults whose engine is this test binary: it
// refuses every command line, and typed has those that were started.
func offline(t testing.TB, c Config) (s *Server, typed *[]string) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	typed = new([]string)
	c.EngineLine, c.Trace = dockercli.Quote(self), func(line string) { *typed = append(*typed, line) }
	c.Image, c.Limits, c.Timeout = cmp.Or(c.Image, "alpine:latest"), dockercli.DefaultLimits, 30*time.Second
	c.Idle, c.Lifetime, c.Runs, c.Sandboxes = 15*time.Minute, 4*time.Hour, 4, cmp.Or(c.Sandboxes, 8)
	return NewServer(c), typed
}

func row(s *Server, name string) *tool {
	list := s.tools()
	return &list[slices.IndexFunc(list, func(t tool) bool { return t.name == name })]
}

// response is what a client gets.
type response struct {
	Result struct {
		Tools             json.RawMessage
		IsError           bool
		Content           []struct{ Type, Text string }
		StructuredContent map[string]any
	}
	Error struct {
		Code    int
		Message string
	}
}

// ask sends a request through the library, as a client would.
func ask(t *testing.T, s *Server, method, params string) (r response) {
	t.Helper()
	m := s.MCP("test")
	m.HandleMessage(t.Context(), json.RawMessage(`{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`))
	b, _ := json.Marshal(m.HandleMessage(t.Context(), json.RawMessage(`{"jsonrpc":"2.0","id":1,"method":"`+method+`","params":`+params+`}`)))
	if err := json.Unmarshal(b, &r); err != nil {
		t.Fatalf("%s %s: %s: %v", method, params, b, err)
	}
	return r
}

func callTool(t *testing.T, s *Server, tool, args string) response {
	t.Helper()
	return ask(t, s, "tools/call", `{"name":`+quoted(tool)+`,"arguments":`+args+`}`)
}

// wantError checks an error answer: case 92, one text block, the cause first;
// case 93, the structured content says the same.
func (r response) wantError(t *testing.T, want string) {
	t.Helper()
	said, c := r.Result.StructuredContent, r.Result.Content
	hint, _ := said["hint"].(string)
	text := strings.TrimSpace(fmt.Sprintf("%v: %v\n%s", said["status"], said["error"], hint))
	if !r.Result.IsError || len(c) != 1 || c[0].Type != "text" || c[0].Text != text || !strings.HasPrefix(text, want) {
		t.Errorf("got %+v; want an error answer of one text, %s", r, want)
	}
}

// TestUnknownTool: case 61, a tool that is not there is an error of the protocol that lists those that are.
func TestUnknownTool(t *testing.T) {
	s, _ := offline(t, Config{})
	const known = "want one of initialize_sandbox, execute_code, stop_sandbox, list_sandboxes"
	for name, want := range map[string]string{"execute_cod": "did you mean execute_code? " + known, "python": "(" + known, strings.Repeat("x", 1e6): known} {
		e := callTool(t, s, name, `{}`).Error
		if e.Code != -32602 || !strings.Contains(e.Message, want) || len(e.Message) > 400 {
			t.Errorf("%.20s: %+v; want -32602 and %s", name, e, want)
		}
	}
}

// TestPanic: a fault of ours is an error answer that leaves the details to the log.
func TestPanic(t *testing.T) {
	var logged bytes.Buffer
	log.SetOutput(&logged)
	defer log.SetOutput(os.Stderr)
	faulty := &tool{name: "faulty", handle: func(context.Context, arguments) (*mcp.CallToolResult, error) { panic("the secret") }}
	r, err := faulty.call(t.Context(), mcp.CallToolRequest{})
	if err != nil || r == nil || !r.IsError || len(r.Content) != 1 {
		t.Fatalf("%+v, %v; want an error answer", r, err)
	}
	if got := quoted(r); !strings.Contains(got, "faulty failed inside the server") || strings.Contains(got, "secret") || strings.Contains(got, ".go") {
		t.Error(got)
	}
	if !strings.Contains(logged.String(), "the secret") || !strings.Contains(logged.String(), "server_test.go") {
		t.Errorf("logged %q; want the cause and the stack", &logged)
	}
}

// TestWantOneOf: the nearest is named if it is near, by at most two letters.
func TestWantOneOf(t *testing.T) {
	names := []string{"python", "javascript"}
	for got, near := range map[string]string{"phyton": "python", "PYTHON3": "python", "pythonic3": "", "javascrpt": "javascript", "cobol": "", strings.Repeat("python", 9): ""} {
		want := strings.TrimPrefix("did you mean "+near+"? want one of python, javascript", "did you mean ? ")
		if s := wantOneOf(got, names); s != want {
			t.Errorf("%s: %s; want %s", got, s, want)
		}
	}
	if s := wantOneOf("x", nil); s != "want none" {
		t.Error(s)
	}
	if got := fmt.Sprint(distance("", "abc"), distance("abc", ""), distance("kitten", "sitting"), distance("flaw", "lawn")); got != "3 3 3 2" {
		t.Errorf("distances %s; want 3 3 3 2", got)
	}
}

// TestAllowed, which images a caller may name, and which of them may be fetched.
func TestAllowed(t *testing.T) {
	const no, local, pull = "false false", "true false", "true true"
	hex := strings.Repeat("0123456789abcdef", 4)
	for globs, images := range map[string]map[string]string{
		"": {"alpine": pull, "python:3.12-slim": pull, "team/a@sha256:" + hex: pull, "own.example/default": pull, // the operator's -image
			"docker.io/x/y": local, "127.0.0.1:1/evil:latest": local, "localhost/x": local, "-v/etc/passwd:/p": no},
		"python:*,own.example/*": {"python:3": pull, "own.example/a": pull, "own.example/default": pull, "python": no, "own.example/a/b": no, "evil/python:3": no,
			"127.0.0.1:1/evil:latest": no, "docker.io/x/y": no, hex[:12]: no, hex: no, "sha256:" + hex: no},
		"*": {"alpine": pull, "a/b": no, "--privileged": no},
	} {
		s, _ := offline(t, Config{Image: "own.example/default", AllowImage: slices.DeleteFunc(strings.Split(globs, ","), func(g string) bool { return g == "" })})
		for image, want := range images {
			pullable, err := s.allowed(image)
			if got := fmt.Sprint(err == nil, pullable); got != want {
				t.Errorf("-allow-image=%s: %s: %s, %v; want %s (allowed, pullable)", globs, image, got, err, want)
			}
		}
	}
}

// TestRefusedBeforeAnyProcess: what may not be is refused, and no engine hears of it.
func TestRefusedBeforeAnyProcess(t *testing.T) {
	open, strict := Config{}, Config{AllowImage: []string{"python:*"}}
	for _, c := range []struct {
		name             string
		config           Config
		tool, args, want string
	}{
		{"A-01", open, "initialize_sandbox", `{"image":"-v/etc/passwd:/p"}`, `bad_argument: image "-v/etc/passwd:/p" is no image name; want one like alpine`},
		{"A-10", strict, "initialize_sandbox", `{"image":"127.0.0.1:1/evil:latest"}`, `bad_argument: image "127.0.0.1:1/evil:latest" is not allowed here; want python:*, alpine:latest`},
		{"A-11", strict, "initialize_sandbox", `{"image":"0123456789ab"}`, `bad_argument: image "0123456789ab" is not allowed here`},
		{"A-33", open, "initialize_sandbox", `{"network":true}`, `bad_argument: network: true is not allowed here`},
		{"A-34", open, "execute_code", `{"code":"","language":"../../x"}`, `bad_argument: unknown language "../../x"; want one of python, `},
		{"A-34 command", open, "execute_code", `{"code":"","language":"python; id"}`, `bad_argument: unknown language "python; id"; want one of`},
		{"A-34 flag", open, "execute_code", `{"code":"","language":"--eval"}`, `bad_argument: unknown language "--eval"; want one of`},
		{"A-34 __proto__", open, "initialize_sandbox", `{"language":"__proto__"}`, `bad_argument: unknown language "__proto__"; want one of`},
		{"87", open, "execute_code", `{"code":"","language":"cobol"}`, `bad_argument: unknown language "cobol"; want one of ` + strings.Join(languageNames(), ", ")},
		{"A-04", open, "stop_sandbox", `{"sandbox_id":"; rm -rf /"}`, `sandbox_ended: no such sandbox: "; rm -rf /"`},
		{"60", open, "execute_code", `{"code":"","sandbox_id":"nope"}`, "sandbox_ended: no such sandbox: \"nope\"\ncall initialize_sandbox first"},
		{"61", open, "execute_code", `{}`, `bad_argument: code is missing`},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, typed := offline(t, c.config)
			callTool(t, s, c.tool, c.args).wantError(t, c.want)
			if *typed != nil {
				t.Errorf("started %q", *typed)
			}
		})
	}
	t.Run("else one starts", func(t *testing.T) {
		s, typed := offline(t, strict)
		callTool(t, s, "initialize_sandbox", `{"image":"python:3"}`).wantError(t, "engine: ")
		if len(*typed) != 1 || s.making != 0 {
			t.Errorf("started %q, making %d; want one command line, and its place free again", *typed, s.making)
		}
	})
}

// TestLookup: case 60, an id that is gone says when and why, an unknown one
// which are known; without an id it is the newest.
func TestLookup(t *testing.T) {
	s, typed := offline(t, Config{Sandboxes: 2})
	find := func(id, want, remark string) {
		t.Helper()
		b, said, err := s.lookup(id)
		if err != nil || (b == nil) != (want == "") || b != nil && b.id != want || !strings.HasPrefix(said, remark) || remark == "" && said != "" {
			t.Errorf("lookup(%q): %v, %q, %v; want %s, %q", id, b, said, err, want, remark)
		}
	}
	find("", "", "")
	const gone = " ended at 2026-01-02T03:04:05Z: it was idle"
	s.ended["old"], s.last = end{"it was idle", time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}, "old"
	find("", "", "the sandbox of the last call"+gone)
	for _, id := range []string{"one", "two"} {
		s.live = append(s.live, &sandbox{Sandbox: &dockercli.Sandbox{}, id: id, idle: time.AfterFunc(time.Hour, func() {})})
	}
	find("", "two", "the sandbox of the last call"+gone)
	s.last = "one"
	find("", "two", "without sandbox_id the newest of 2 sandboxes was used: two")
	find("one", "one", "")
	callTool(t, s, "execute_code", `{"code":"","sandbox_id":"on"}`).wantError(t, "sandbox_ended: no such sandbox: \"on\"\nknown: one, two")
	callTool(t, s, "execute_code", `{"code":"","sandbox_id":"old"}`).wantError(t, "sandbox_ended: sandbox old"+gone+"\nits files are gone; call initialize_sandbox for a new one")
	callTool(t, s, "initialize_sandbox", `{}`).wantError(t, "busy: there are 2 sandboxes already, and no more are allowed: one, two")
	// Case 9: stopping one that is gone already is no error.
	if r := callTool(t, s, "stop_sandbox", `{"sandbox_id":"old"}`).Result; r.IsError || r.Content[0].Text != "nothing to stop: sandbox old"+gone || len(s.live) != 2 {
		t.Errorf("%+v", r)
	}
	if *typed != nil {
		t.Errorf("started %q", *typed)
	}
}

// TestShortLines: A-38, an endless line is not read whole, and the next one is.
func TestShortLines(t *testing.T) {
	long := strings.Repeat("x", maxMessage+1000000)
	got, err := io.ReadAll(bufio.NewReader(&shortLines{Reader: strings.NewReader("a\n" + long + "\nb\n\nc")}))
	if want := "a\n" + long[:maxMessage] + "\nb\n\nc"; err != nil || string(got) != want {
		t.Errorf("%d bytes, %v; want %d", len(got), err, len(want))
	}
}
