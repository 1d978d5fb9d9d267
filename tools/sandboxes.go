package tools

import (
	"context"
	"errors"
	"fmt"
	"log"
	"path"
	"slices"
	"strings"
	"sync"
	"time"

	"mcp-docker-interpreter/dockercli"
)

// Config is what the operator decides. The zero value of a list allows
// nothing more than its comment says.
type Config struct {
	EngineLine    string   // command line of the engine; "": the first that is found
	RunFlags      []string // extra flags for run, the operator's own risk
	Image         string   // image of a sandbox of which nobody said one
	AllowImage    []string // globs of image names; empty: those on the machine, and names without a registry host
	Network       bool     // a call may ask for a network
	EngineSeccomp bool     // the engine's own seccomp profile instead of ours
	Limits        dockercli.Limits
	Timeout       time.Duration // of a run that asks for none
	Idle          time.Duration // without a call, then a sandbox ends
	Lifetime      time.Duration // then it ends in any case
	Sandboxes     int           // at the same time
	Runs          int           // at the same time, over all sandboxes

	Trace    func(typed string) // gets every command line; nil: nobody wants them
	TraceDir string
}

const (
	// callLimit is the time in which every call answers: clients give up at 60 s.
	callLimit = 50 * time.Second
	// MaxTimeout is the longest foreground run.
	MaxTimeout = 45 * time.Second
	minTimeout = 100 * time.Millisecond
	pullLimit  = 30 * time.Minute
	sweepDelay = 5 * time.Second
	maxEnded   = 1000 // sandboxes whose end is remembered
)

// Server has the sandboxes and what makes them.
type Server struct {
	Config
	ctx  context.Context // ends with the server: pulls
	stop context.CancelFunc
	runs chan struct{} // tokens of runs under way

	engineMu sync.Mutex
	engine   *dockercli.Engine

	mu      sync.Mutex
	live    []*sandbox // oldest first
	making  int        // places taken by sandboxes on their way
	ended   map[string]end
	order   []string // ids of ended, oldest first
	last    string   // the sandbox that last answered
	pulls   map[string]*pull
	closed  bool
	swept   sync.Once
	implied chan struct{} // holds one token while a sandbox is made that no call named
}

type end struct {
	why string
	at  time.Time
}

// sandbox is a live one, with what a client should know of it.
type sandbox struct {
	*dockercli.Sandbox
	id         string
	languages  []string
	ownSeccomp bool // the operator wants the engine's own seccomp profile: no news
	made       time.Time
	lifetime   *time.Timer

	mu     sync.Mutex
	busy   int  // calls under way
	rested bool // it is being ended for want of calls
	idle   *time.Timer
}

// NewServer makes a server. It starts nothing: a client may only be probing.
func NewServer(c Config) *Server {
	ctx, stop := context.WithCancel(context.Background())
	return &Server{Config: c, ctx: ctx, stop: stop, runs: make(chan struct{}, c.Runs), implied: make(chan struct{}, 1), ended: map[string]end{}, pulls: map[string]*pull{}}
}

// Close ends all sandboxes, side by side, and waits for it.
func (s *Server) Close() {
	s.mu.Lock()
	s.closed = true
	live := slices.Clone(s.live)
	s.mu.Unlock()
	s.stop()
	var wg sync.WaitGroup
	for _, b := range live {
		wg.Go(func() { b.Close("the server ended") })
	}
	wg.Wait()
}

// find returns the engine. One that is not there is looked for again by the
// next call: it may have been installed meanwhile.
func (s *Server) find() (*dockercli.Engine, error) {
	s.engineMu.Lock()
	defer s.engineMu.Unlock()
	if s.engine == nil {
		e, err := dockercli.Parse(s.EngineLine)
		if err != nil {
			return nil, err
		}
		e.RunFlags, e.Trace, e.TraceDir = s.RunFlags, s.Trace, s.TraceDir
		if s.EngineSeccomp {
			e.EngineSeccomp("-seccomp=engine says so")
		}
		s.engine = e
	}
	return s.engine, nil
}

// pull is one under way; those who need the image wait for it together.
type pull struct {
	done chan struct{}
	err  error
}

// pull fetches an image, or says that it is still on its way.
func (s *Server) pull(ctx context.Context, e *dockercli.Engine, image string) error {
	s.mu.Lock()
	p := s.pulls[image]
	if p == nil {
		p = &pull{done: make(chan struct{})}
		s.pulls[image] = p
		go func() {
			ctx, cancel := context.WithTimeoutCause(s.ctx, pullLimit, fmt.Errorf("it took more than %v", pullLimit))
			defer cancel()
			p.err = e.Pull(ctx, image)
			s.mu.Lock()
			delete(s.pulls, image)
			s.mu.Unlock()
			close(p.done)
		}()
	}
	s.mu.Unlock()
	select {
	case <-p.done:
		return p.err
	case <-ctx.Done():
		if !errors.Is(context.Cause(ctx), errCallLimit) {
			return context.Cause(ctx)
		}
		f := fail(preparing, "the image %s is still being pulled", image)
		f.Hint = "call again: the pull goes on meanwhile"
		return f
	}
}

// allowed checks a caller's image. pullable says whether it may be fetched.
func (s *Server) allowed(name string) (pullable bool, err error) {
	img, err := dockercli.ParseImage(name)
	if err != nil {
		return false, fail(badArgument, "%v", err)
	}
	if len(s.AllowImage) == 0 || name == s.Image {
		return img.Host == "" || name == s.Image, nil
	}
	for _, glob := range s.AllowImage {
		if match, _ := path.Match(glob, name); match {
			return true, nil
		}
	}
	return false, fail(badArgument, "image %q is not allowed here; want %s", name, strings.Join(append(slices.Clone(s.AllowImage), s.Image), ", "))
}

// make makes a sandbox and waits until code can run in it. It must have the
// language l, if that is not nil. The caller has to release it.
func (s *Server) make(ctx context.Context, image string, network bool, l *Language) (*sandbox, error) {
	pullable, err := s.allowed(image)
	if err != nil {
		return nil, err
	}
	if network && !s.Network {
		return nil, fail(badArgument, "network: true is not allowed here; the operator's -network would allow it")
	}
	e, err := s.find()
	if err != nil {
		return nil, err
	}
	if err := s.place(); err != nil {
		return nil, err
	}
	spec := dockercli.Spec{Image: image, Limits: s.Limits, Network: network, Ends: time.Now().Add(s.Lifetime), Probe: programs(), Env: environment()}
	box, err := e.Start(ctx, spec)
	if dockercli.IsNoImage(err) {
		if !pullable {
			f := fail(engineFailed, "the image %s is not on this machine, and its registry is not one to pull from", image)
			f.Hint = "the operator may allow it with -allow-image, or pull it by hand"
			err = f
		} else if err = s.pull(ctx, e, image); err == nil {
			box, err = e.Start(ctx, spec)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.making--
	if err != nil {
		return nil, err
	}
	b := &sandbox{Sandbox: box, id: dockercli.Random(16), languages: found(box.Found), ownSeccomp: s.EngineSeccomp, made: time.Now(), busy: 1}
	if l != nil {
		if err := b.lacks(l); err != nil {
			go b.Close("its image lacks " + l.Name)
			return nil, err
		}
	}
	if s.closed {
		go b.Close("the server ended")
		return nil, fail(sandboxEnded, "the server is ending")
	}
	s.live = append(s.live, b)
	b.lifetime = time.AfterFunc(s.Lifetime, func() { b.Close(fmt.Sprintf("its life span of %s was over", seconds(s.Lifetime))) })
	b.idle = time.AfterFunc(s.Idle, func() { b.rest(s.Idle) })
	b.idle.Stop()
	go s.forget(b)
	s.swept.Do(func() { time.AfterFunc(sweepDelay, s.sweep) })
	return b, nil
}

// sweep removes what dead servers have left, once in a server's life, and not
// as it starts: many a client starts one only to probe it.
func (s *Server) sweep() {
	e, err := s.find()
	if err == nil {
		_, err = e.Sweep(s.ctx, false)
	}
	if err != nil && s.ctx.Err() == nil {
		log.Printf("removing what dead servers have left: %v", err)
	}
}

// Clean removes the sandboxes of dead servers, or with all every one of ours.
func (s *Server) Clean(ctx context.Context, all bool) ([]dockercli.Removed, error) {
	e, err := s.find()
	if err != nil {
		return nil, err
	}
	return e.Sweep(ctx, all)
}

// place takes one of the places for sandboxes.
func (s *Server) place() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.making
	for _, b := range s.live {
		if !b.Ending() { // one that cannot be removed is its engine's trouble, not the caller's
			n++
		}
	}
	if n >= s.Sandboxes {
		f := fail(busy, "there are %d sandboxes already, and no more are allowed: %s", n, s.ids())
		f.Hint = "use one of them, or end one with stop_sandbox; the operator's -sandboxes sets how many"
		return f
	}
	s.making++
	return nil
}

// rest ends a sandbox that has been idle for that long.
func (b *sandbox) rest(idle time.Duration) {
	b.mu.Lock()
	b.rested = b.busy == 0
	rested := b.rested
	b.mu.Unlock()
	if rested {
		b.Close(fmt.Sprintf("it was idle for %s", seconds(idle)))
	}
}

// hold keeps a sandbox from being idle until release; false if it is ending.
func (b *sandbox) hold() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.rested || b.Ending() {
		return false
	}
	b.busy++
	b.idle.Stop()
	return true
}

func (s *Server) release(b *sandbox) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.busy--; b.busy == 0 {
		b.idle.Reset(s.Idle)
	}
}

// forget waits for a sandbox's end and notes when and why.
func (s *Server) forget(b *sandbox) {
	<-b.Done()
	b.lifetime.Stop()
	b.mu.Lock()
	b.idle.Stop()
	b.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.live = slices.DeleteFunc(s.live, func(o *sandbox) bool { return o == b })
	s.ended[b.id] = end{b.Why(), time.Now()}
	s.order = append(s.order, b.id)
	if len(s.order) > maxEnded {
		delete(s.ended, s.order[0])
		s.order = s.order[1:]
	}
}

// lookup finds a live sandbox: by its id, or, without one, the newest. remark
// is what the caller should be told about the choice. No sandbox and no id is
// nil without an error. The caller has to release what it got.
func (s *Server) lookup(id string) (b *sandbox, remark string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if id != "" {
		for _, b := range s.live {
			if b.id == id {
				if !b.hold() {
					return nil, "", gone(id, end{b.Why(), time.Now()})
				}
				return b, "", nil
			}
		}
		if e, ok := s.ended[id]; ok {
			return nil, "", gone(id, e)
		}
		f := fail(sandboxEnded, "no such sandbox: %s", shown(id))
		f.Hint = "call initialize_sandbox first, or leave sandbox_id out"
		if known := s.ids(); known != "" {
			f.Hint = "known: " + known
		}
		return nil, "", f
	}
	if e, ok := s.ended[s.last]; ok {
		remark = fmt.Sprintf("the sandbox of the last call ended at %s: %s; its files are gone with it", e.at.UTC().Format(time.RFC3339), e.why)
	}
	for _, b := range slices.Backward(s.live) {
		if b.hold() {
			if len(s.live) > 1 && remark == "" {
				remark = "without sandbox_id the newest of " + fmt.Sprint(len(s.live)) + " sandboxes was used: " + b.id
			}
			return b, remark, nil
		}
	}
	return nil, remark, nil
}

func gone(id string, e end) *failure {
	f := fail(sandboxEnded, "sandbox %s ended at %s: %s", id, e.at.UTC().Format(time.RFC3339), e.why)
	f.Hint = "its files are gone; call initialize_sandbox for a new one"
	f.past = true
	return f
}

// ids lists the live sandboxes; s.mu is held.
func (s *Server) ids() string {
	var ids []string
	for _, b := range s.live {
		ids = append(ids, b.id)
	}
	return strings.Join(ids, ", ")
}

// obtain finds the sandbox for a call, or makes one if the call names none and
// there is none: once, however many calls ask at the same time.
func (s *Server) obtain(ctx context.Context, id string, l *Language) (b *sandbox, remark string, err error) {
	if b, remark, err = s.lookup(id); b != nil || err != nil {
		return b, remark, err
	}
	select {
	case s.implied <- struct{}{}:
		defer func() { <-s.implied }()
	case <-ctx.Done():
		return nil, "", waited(ctx, "another call is still starting the sandbox")
	}
	if b, _, err := s.lookup(""); b != nil || err != nil {
		return b, remark, err
	}
	if b, err = s.make(ctx, s.Image, false, l); err != nil {
		return nil, "", err
	}
	if remark != "" {
		remark += "; this is a new one; "
	}
	return b, strings.TrimSuffix(remark+b.warning(), "; "), nil
}

// lacks says, as an error, that a sandbox's image cannot run a language.
func (b *sandbox) lacks(l *Language) error {
	if slices.Contains(b.languages, l.Name) {
		return nil
	}
	f := fail(noInterpreter, "the image %s has no %s, the interpreter of %s; it has %s", b.Image, l.Program, l.Name, strings.Join(b.languages, ", "))
	f.Hint = "call initialize_sandbox with an image that has it, or write the program in a language that is there"
	return f
}
