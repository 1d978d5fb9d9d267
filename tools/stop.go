package tools

import (
	"context"
	"errors"
	"fmt"

	"github.com/mark3labs/mcp-go/mcp"
)

// stopped is what stop_sandbox answers.
type stopped struct {
	Status    Status `json:"status"`
	SandboxID string `json:"sandbox_id,omitempty"`
	Removed   string `json:"removed,omitempty"` // the container's name
	Note      string `json:"note,omitempty"`
}

func (s *Server) stopSandbox(_ context.Context, args arguments) (*mcp.CallToolResult, error) {
	id := args.text("sandbox_id")
	b, _, err := s.lookup(id)
	var f *failure
	switch {
	case errors.As(err, &f) && f.past:
		return answer("nothing to stop: "+f.Cause, stopped{Status: ok, SandboxID: id, Note: f.Cause}, false), nil
	case err != nil:
		return nil, err
	case b == nil:
		const none = "nothing to stop: there is no sandbox"
		return answer(none, stopped{Status: ok, Note: none}, false), nil
	}
	defer s.release(b)
	if err := b.Close("stop_sandbox was called"); err != nil {
		f := failed(err)
		f.Cause = "the sandbox " + b.id + " is still there: " + f.Cause
		f.Hint = "call stop_sandbox again; " + f.Hint
		return nil, f
	}
	<-b.Done()
	return answer(fmt.Sprintf("sandbox %s is gone, with its container %s and all its files", b.id, b.Name),
		stopped{Status: ok, SandboxID: b.id, Removed: b.Name}, false), nil
}
