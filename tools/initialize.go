package tools

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"mcp-docker-interpreter/dockercli"

	"github.com/mark3labs/mcp-go/mcp"
)

// initialized is what initialize_sandbox answers.
type initialized struct {
	Status    Status   `json:"status"`
	SandboxID string   `json:"sandbox_id"`
	Image     string   `json:"image"`
	Languages []string `json:"languages"`
	Network   bool     `json:"network"`
	Limits    limits   `json:"limits"`
	EndsAt    string   `json:"ends_at"`
	Warning   string   `json:"warning,omitempty"`
	Command   string   `json:"command,omitempty"`
}

type limits struct {
	CPUs      float64 `json:"cpus"`
	Memory    string  `json:"memory"`
	PIDs      int64   `json:"processes"`
	Workspace string  `json:"workspace"`
	Tmp       string  `json:"tmp"`
	Timeout   float64 `json:"timeout_s"`
	Longest   float64 `json:"longest_timeout_s"`
	Idle      float64 `json:"idle_s"`
}

func (s *Server) initialize(ctx context.Context, args arguments) (*mcp.CallToolResult, error) {
	var l *Language
	if name := args.text("language"); name != "" {
		if l = language(name); l == nil {
			return nil, unknownLanguage(name)
		}
	}
	b, err := s.make(ctx, cmp.Or(args.text("image"), s.Image), args.flag("network"), l)
	if err != nil {
		return nil, err
	}
	defer s.release(b)
	s.answered(b)
	fit := b.Limits.Fit()
	x := initialized{
		Status: ok, SandboxID: b.id, Image: b.Image, Languages: b.languages, Network: b.Network,
		Limits: limits{fit.CPUs, dockercli.Size(fit.Memory), fit.PIDs, dockercli.Size(fit.Workspace()), dockercli.Size(fit.Tmp()),
			s.Timeout.Seconds(), MaxTimeout.Seconds(), s.Idle.Seconds()},
		EndsAt: b.made.Add(s.Lifetime).UTC().Format(time.RFC3339), Command: b.Typed,
	}
	network := "no network"
	if b.Network {
		network = "a network"
	}
	text := fmt.Sprintf(`sandbox %s is ready
image %s, languages %s, %s
limits: %v processors, %s memory, %d processes, %s in /workspace, %s in /tmp, %s a run unless timeout says another (at most %s)
it ends by itself after %s without a call, at %s at the latest, and its files with it`,
		b.id, b.Image, strings.Join(b.languages, ", "), network,
		fit.CPUs, x.Limits.Memory, fit.PIDs, x.Limits.Workspace, x.Limits.Tmp, seconds(s.Timeout), seconds(MaxTimeout), seconds(s.Idle), x.EndsAt)
	if x.Warning = b.warning(); x.Warning != "" {
		text += "\n[" + x.Warning + "]"
	}
	if x.Command != "" {
		text += "\n[command]\n" + x.Command
	}
	return answer(text, x, false), nil
}

// warning is what the engine had to say as the sandbox started.
func (b *sandbox) warning() string {
	said, _ := clean([]byte(b.Warning()))
	if said != "" {
		said = "the engine said: " + said
	}
	if why := b.NoSeccomp(); why != "" && !b.ownSeccomp {
		said = strings.TrimPrefix(said+"; the engine's own seccomp profile is in force, not ours: "+why, "; ")
	}
	return said
}

// answered notes which sandbox the client has last heard from.
func (s *Server) answered(b *sandbox) {
	s.mu.Lock()
	s.last = b.id
	s.mu.Unlock()
}

func unknownLanguage(name string) *failure {
	f := fail(badArgument, "unknown language %s; %s", shown(name), wantOneOf(name, languageNames()))
	return f
}

// seconds prints a duration as people say it.
func seconds(d time.Duration) string {
	switch {
	case d >= time.Hour && d%time.Hour == 0:
		return fmt.Sprintf("%d h", d/time.Hour)
	case d >= time.Minute && d%time.Minute == 0:
		return fmt.Sprintf("%d min", d/time.Minute)
	}
	return fmt.Sprintf("%v s", math.Round(d.Seconds()*10)/10)
}
