// Package tools is the MCP server: the tools, the languages, and whose sandbox
// is whose. It knows no flag of any engine.
package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"runtime/debug"
	"strings"
	"time"

	"mcp-docker-interpreter/dockercli"

	"github.com/mark3labs/mcp-go/mcp"
	"github.com/mark3labs/mcp-go/server"
)

// MaxCode is the most bytes of code, and of stdin, that a call may bring.
const MaxCode = 8 << 20

// tool is a row of the list of tools.
type tool struct {
	name        string
	title       string
	about       string
	destructive bool
	idempotent  bool
	readOnly    bool
	prompt      bool // waits for no program and no image: always served
	fields      []field
	handle      func(context.Context, arguments) (*mcp.CallToolResult, error)
	calls       chan struct{} // tokens of the calls under way, of all tools
}

// maxCalls is how many calls may wait or run at the same time.
const maxCalls = 80

var sandboxID = field{Name: "sandbox_id", Type: "string", About: "From initialize_sandbox; default: the newest sandbox"}

// tools is the list.
func (s *Server) tools() []tool {
	return []tool{
		{
			name: "initialize_sandbox", title: "Start a sandbox",
			about: "Start a locked-down container to run code in, and get its sandbox_id. It ends by itself when idle, and its files with it. " +
				"Only needed for an image other than the default: execute_code starts a sandbox if there is none.",
			fields: []field{
				{Name: "image", Type: "string", About: "Container image", Default: s.Image, Max: 255},
				{Name: "language", Type: "string", About: "A language that the image has to have", Enum: languageNames()},
				{Name: "network", Type: "boolean", About: "Ask for network access, where the operator allows it", Default: false},
			},
			handle: s.initialize,
		},
		{
			name: "execute_code", title: "Run code",
			about: "Run a program in a sandbox and get its output. Files in /workspace (the working directory) stay for later calls, variables do not. " +
				s.network() + " Only what is printed comes back. A time limit ends the program, not the sandbox.",
			destructive: true,
			fields: []field{
				{Name: "code", Type: "string", About: "The whole program", Required: true, Max: MaxCode, Raw: true},
				{Name: "language", Type: "string", About: "Language of the program", Default: "python", Enum: languageNames()},
				sandboxID,
				{Name: "timeout", Type: "number", About: "Seconds until the program is ended", Default: s.Timeout.Seconds(), Low: minTimeout.Seconds(), High: MaxTimeout.Seconds()},
				{Name: "stdin", Type: "string", About: "Input of the program; default: none", Max: MaxCode, Raw: true},
			},
			handle: s.execute,
		},
		{
			name: "stop_sandbox", title: "Remove a sandbox",
			about:       "Remove a sandbox, with its processes and files.",
			prompt:      true,
			destructive: true, // and without an id not idempotent: there may be another
			fields:      []field{sandboxID},
			handle:      s.stopSandbox,
		},
		{
			name: "list_sandboxes", title: "List sandboxes",
			about:  "List the sandboxes that are there: id, image, languages, age, when they end, state.",
			prompt: true, readOnly: true, idempotent: true,
			handle: s.list,
		},
	}
}

// network says what a program can reach.
func (s *Server) network() string {
	if s.Network {
		return "There is no network, unless initialize_sandbox was asked for one."
	}
	return "There is no network."
}

const instructions = `Programs run in a sandbox: a container with limits of time, memory and processes. %s
Files in /workspace stay between calls in the same sandbox; variables do not: write what you need again to a file. /workspace and /tmp are the only writable places.
Only what a program prints is returned. A program gets no input unless stdin is given.`

// MCP makes the protocol's server of the tools.
func (s *Server) MCP(version string) *server.MCPServer {
	var names []string
	for _, t := range s.tools() {
		names = append(names, t.name)
	}
	hooks := &server.Hooks{}
	hooks.AddBeforeCallTool(func(_ context.Context, _ any, r *mcp.CallToolRequest) {
		// The library's error for an unknown tool quotes its name and no more:
		// an assistant needs to know which there are.
		for _, n := range names {
			if r.Params.Name == n {
				return
			}
		}
		r.Params.Name = fmt.Sprintf("%s (%s)", shown(r.Params.Name), wantOneOf(r.Params.Name, names))
	})
	m := server.NewMCPServer("mcp-docker-interpreter", version,
		server.WithToolCapabilities(true), server.WithInstructions(fmt.Sprintf(instructions, s.network())), server.WithHooks(hooks))
	calls := make(chan struct{}, maxCalls)
	for _, t := range s.tools() {
		t.calls = calls
		m.AddTool(mcp.Tool{
			Name: t.name, Title: t.title, Description: t.about, RawInputSchema: schema(t.fields),
			Annotations: mcp.ToolAnnotation{
				Title: t.title, ReadOnlyHint: &t.readOnly, DestructiveHint: &t.destructive,
				IdempotentHint: &t.idempotent, OpenWorldHint: &s.Network,
			},
		}, t.call)
	}
	return m
}

var errCallLimit = fmt.Errorf("the call took more than %v", callLimit)

// call is the one wrapper around all tools: decode, validate, bound, recover;
// every failure becomes a result that an assistant can read and act on.
func (t *tool) call(ctx context.Context, r mcp.CallToolRequest) (result *mcp.CallToolResult, _ error) {
	defer func() {
		if p := recover(); p != nil {
			log.Printf("%s: %v\n%s", t.name, p, debug.Stack())
			result = failed(fmt.Errorf("%s failed inside the server", t.name)).result()
		}
	}()
	raw, _ := r.GetRawArguments().(json.RawMessage)
	if raw == nil {
		raw, _ = json.Marshal(r.GetRawArguments())
	}
	args, err := decode(t.fields, raw)
	if err != nil {
		return fail(badArgument, "%v", err).result(), nil
	}
	if t.calls != nil && !t.prompt {
		select {
		case t.calls <- struct{}{}:
			defer func() { <-t.calls }()
		default: // the library has a hundred workers, and list and stop must always find one
			return fail(busy, "%d calls are waiting already, and no more are taken; call again later", maxCalls).result(), nil
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, callLimit, errCallLimit)
	defer cancel()
	defer progress(ctx, r)()
	result, err = t.handle(ctx, args)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled): // whatever was under way is not to blame
		return failed(context.Canceled).result(), nil
	case err != nil:
		return failed(err).result(), nil
	}
	return result, nil
}

func (f *failure) result() *mcp.CallToolResult {
	return answer(strings.TrimSpace(string(f.Status)+": "+f.Cause+"\n"+f.Hint), f, true)
}

// failed makes an answer of any error.
func failed(err error) *failure {
	var f *failure
	var e *dockercli.Error
	switch {
	case errors.As(err, &f):
		return &failure{Status: f.Status, Cause: f.Cause, Hint: f.Hint}
	case errors.As(err, &e):
		said, _ := clean([]byte(e.Said))
		return &failure{Status: engineFailed, Cause: e.Op + ": " + said, Hint: e.Hint}
	case errors.Is(err, context.Canceled):
		return fail(cancelled, "the call was taken back, or the client closed its end")
	}
	return fail(engineFailed, "%v", err)
}

// progress tells a client that asked for it, every few seconds, that a call is
// alive. Nothing is sent once the returned function was called.
func progress(ctx context.Context, r mcp.CallToolRequest) (stop func()) {
	m := server.ServerFromContext(ctx)
	if m == nil || r.Params.Meta == nil || r.Params.Meta.ProgressToken == nil {
		return func() {}
	}
	quit, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		start, tick := time.Now(), time.NewTicker(2*time.Second)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				// An error means that nobody listens: nothing to be done.
				_ = m.SendNotificationToClient(ctx, "notifications/progress", map[string]any{
					"progressToken": r.Params.Meta.ProgressToken,
					"progress":      time.Since(start).Seconds(),
					"message":       fmt.Sprintf("running for %v", time.Since(start).Round(time.Second)),
				})
			case <-quit:
				return
			}
		}
	}()
	return func() { close(quit); <-done }
}
