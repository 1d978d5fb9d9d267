// Clients checks a server against the Go SDK: clients SERVER [ARG …]
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

func main() {
	if err := check(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "go-sdk:", err)
		os.Exit(1)
	}
}

func check(server []string) (err error) {
	if len(server) == 0 {
		return fmt.Errorf("want the server's command line as arguments")
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()

	command := exec.Command(server[0], server[1:]...)
	command.Stderr = os.Stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "clients", Version: "1"}, nil)
	session, err := client.Connect(ctx, &mcp.CommandTransport{Command: command}, nil)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	defer func() {
		// A server that has to be killed, or ends with an error, has failed too.
		if closeErr := session.Close(); err == nil && closeErr != nil {
			err = fmt.Errorf("close: %w", closeErr)
		}
	}()

	var names []string
	for tool, err := range session.Tools(ctx, nil) {
		if err != nil {
			return fmt.Errorf("tools/list: %w", err)
		}
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	if want := []string{"execute_code", "initialize_sandbox", "list_sandboxes", "stop_sandbox"}; !slices.Equal(names, want) {
		return fmt.Errorf("tools are %v; want %v", names, want)
	}

	_, started, err := call(ctx, session, "initialize_sandbox", nil)
	if err != nil {
		return err
	}
	id := started["sandbox_id"]
	text, ran, err := call(ctx, session, "execute_code", map[string]any{"language": "python", "code": "print(6*7)", "sandbox_id": id})
	if err != nil {
		return err
	}
	if strings.TrimSpace(text) != "42" || ran["stdout"] != "42\n" {
		return fmt.Errorf("execute_code: text %q, structured %v; want 42 in both", text, ran)
	}
	if _, _, err := call(ctx, session, "stop_sandbox", map[string]any{"sandbox_id": id}); err != nil {
		return err
	}
	fmt.Printf("go-sdk: 3 tools ok, protocol %s\n", session.InitializeResult().ProtocolVersion)
	return nil
}

func call(ctx context.Context, session *mcp.ClientSession, tool string, args map[string]any) (text string, structured map[string]any, err error) {
	r, err := session.CallTool(ctx, &mcp.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		return "", nil, fmt.Errorf("%s: %w", tool, err)
	}
	for _, c := range r.Content {
		if t, ok := c.(*mcp.TextContent); ok {
			text += t.Text
		}
	}
	structured, isObject := r.StructuredContent.(map[string]any)
	if r.IsError || !isObject {
		whole, _ := json.Marshal(r)
		return "", nil, fmt.Errorf("%s: %s", tool, whole)
	}
	return text, structured, nil
}
