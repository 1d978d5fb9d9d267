package tools

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mark3labs/mcp-go/mcp"
)

// listed is a row of what list_sandboxes answers.
type listed struct {
	SandboxID string   `json:"sandbox_id"`
	Image     string   `json:"image"`
	Languages []string `json:"languages"`
	AgeS      int64    `json:"age_s"`
	EndsAt    string   `json:"ends_at"`
	State     string   `json:"state"` // idle, running, ending
}

// list knows the client's sandboxes by itself; only if there are none it asks
// whether the engine answers at all, for an empty list would hide that.
func (s *Server) list(ctx context.Context, _ arguments) (*mcp.CallToolResult, error) {
	s.mu.Lock()
	live := slices.Clone(s.live)
	s.mu.Unlock()
	if len(live) == 0 {
		e, err := s.find()
		if err != nil {
			return nil, err
		}
		if err := e.Reach(ctx); err != nil {
			return nil, err
		}
	}
	rows := []listed{}
	var text strings.Builder
	for _, b := range live {
		b.mu.Lock()
		state := "idle"
		if b.busy > 0 {
			state = "running"
		}
		b.mu.Unlock()
		if b.Ending() {
			state = "ending"
		}
		r := listed{b.id, b.Image, b.languages, int64(time.Since(b.made).Seconds()), b.made.Add(s.Lifetime).UTC().Format(time.RFC3339), state}
		rows = append(rows, r)
		fmt.Fprintf(&text, "%s  image %s  languages %s  age %v  ends by %s  %s\n", r.SandboxID, r.Image, strings.Join(r.Languages, ", "),
			time.Duration(r.AgeS)*time.Second, r.EndsAt, r.State)
	}
	if len(rows) == 0 {
		text.WriteString("no sandboxes; initialize_sandbox or execute_code makes one")
	}
	return answer(strings.TrimSuffix(text.String(), "\n"), map[string]any{"status": ok, "sandboxes": rows}, false), nil
}
