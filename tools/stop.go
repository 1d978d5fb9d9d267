package tools

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mark3labs/mcp-go/mcp"
)

// stopped is what stop_sandbox answers.
type stopped struct {
	Status    Status `json:"status"`
	SandboxID string `json:"sandbox_id,omitempty"`
	Removed   string `json:"removed,omitempty"` // the container's name
	Note      string `json:"note,omitempty"`
}

func (s *Server) stopSandbox(ctx context.Context, args arguments) (*mcp.CallToolResult, error) {
	id := args.text("sandbox_id")
	b, _, err := s.lookup(id)
	var f *failure
	held := b != nil
	if !held && (err == nil || errors.As(err, &f) && f.past) {
		b = s.ending(id)
	}
	switch {
	case b != nil:
	case errors.As(err, &f) && f.past:
		return answer("nothing to stop: "+f.Cause, stopped{Status: ok, SandboxID: id, Note: f.Cause}, false), nil
	case err != nil:
		return nil, err
	case b == nil:
		const none = "nothing to stop: there is no sandbox"
		return answer(none, stopped{Status: ok, Note: none}, false), nil
	}
	if held {
		defer s.release(b)
	}
	if err := b.Close("stop_sandbox was called"); err != nil {
		f := failed(err)
		f.Cause = "the sandbox " + b.id + " is still there: " + f.Cause
		f.Hint = "call stop_sandbox again; " + f.Hint
		return nil, f
	}
	select {
	case <-b.Done():
	case <-ctx.Done(): // its container is gone, and only its CLI has not noticed
	}
	return answer(fmt.Sprintf("sandbox %s is gone, with its container %s and all its files", b.id, b.Name),
		stopped{Status: ok, SandboxID: b.id, Removed: b.Name}, false), nil
}

// ending finds a sandbox that is being ended, and has not ended yet: by its id,
// or the newest.
func (s *Server) ending(id string) *sandbox {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range slices.Backward(s.live) {
		if b.id == id || id == "" {
			return b
		}
	}
	return nil
}
