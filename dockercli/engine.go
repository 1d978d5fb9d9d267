package dockercli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/shlex"
)

// Engine is a docker-compatible command line. Its exported fields are set
// before the first use and not changed later, but for Podman: see Identify.
type Engine struct {
	Command  []string           // program and its own flags: ["sudo", "-n", "docker"]
	RunFlags []string           // the operator's own flags for run, after ours
	Podman   bool               // it is Podman, whatever it is called; known after Identify
	Trace    func(typed string) // if set, gets every command line as one would type it
	TraceDir string             // where Trace's long scripts go; "": a directory of our own under os.TempDir

	traceDir   sync.Once
	identify   sync.Mutex
	known      bool
	ownSeccomp string // why the engine's own seccomp profile is in force; "": ours is
}

// EngineSeccomp has the engine's own seccomp profile used, and not ours, for the
// reason given.
func (e *Engine) EngineSeccomp(why string) {
	e.identify.Lock()
	defer e.identify.Unlock()
	e.ownSeccomp = why
}

// Seccomp returns the path of our seccomp profile, which it writes if need be;
// or "" and the reason why the engine's own is used.
func (e *Engine) Seccomp() (path, why string) {
	e.identify.Lock()
	defer e.identify.Unlock()
	remote := e.Podman && (runtime.GOOS != "linux" || os.Getenv("CONTAINER_HOST") != "" || os.Getenv("CONTAINER_CONNECTION") != "" ||
		slices.ContainsFunc(e.Command, func(w string) bool { return remoteFlag.MatchString(w) }))
	if remote && e.ownSeccomp == "" {
		e.ownSeccomp = "a remote Podman would look for our file on its own machine"
	}
	if e.ownSeccomp != "" {
		return "", e.ownSeccomp
	}
	cache, err := os.UserCacheDir()
	if err == nil {
		path, err = SeccompFile(filepath.Join(cache, "mcp-docker-interpreter"))
	}
	if err != nil {
		return "", err.Error()
	}
	return path, ""
}

var remoteFlag = regexp.MustCompile(`^(?:-r|--remote(?:=true)?|-c.*|--connection(?:=.*)?|--url(?:=.*)?)$`)

// wellKnown are places where CLIs lie that a client's poor PATH lacks.
func wellKnown() []string {
	home, _ := os.UserHomeDir()
	dirs := []string{"/usr/local/bin", "/usr/bin", "/bin", "/opt/homebrew/bin", "/opt/podman/bin", "/snap/bin",
		"/Applications/Docker.app/Contents/Resources/bin", "/home/linuxbrew/.linuxbrew/bin"}
	if home != "" {
		dirs = append(dirs, filepath.Join(home, ".docker/bin"), filepath.Join(home, ".orbstack/bin"), filepath.Join(home, ".rd/bin"),
			filepath.Join(home, "bin"), filepath.Join(home, ".local/bin"))
	}
	if runtime.GOOS == "windows" {
		dirs = append(dirs, `C:\Program Files\Docker\Docker\resources\bin`, `C:\Program Files\RedHat\Podman`)
	}
	return dirs
}

// Parse splits the operator's command line into an engine; "" is the first of
// docker and podman that can be found. Nothing is started. An engine whose
// program is not there is an [Error] with a hint.
func Parse(line string) (*Engine, error) {
	words, err := shlex.Split(line)
	if err != nil {
		return nil, fmt.Errorf("engine %q: %w", line, err)
	}
	names := []string{"docker", "podman"}
	if len(words) > 0 {
		names = words[:1]
	} else {
		words = []string{""}
	}
	for _, name := range names {
		if path := look(name); path != "" {
			return &Engine{Command: append([]string{path}, words[1:]...)}, nil
		}
	}
	said := fmt.Sprintf("no %s on PATH (%s) nor in %s", strings.Join(names, ", no "), os.Getenv("PATH"), strings.Join(wellKnown(), ", "))
	if strings.ContainsAny(names[0], `/\`) {
		said = fmt.Sprintf("no program %s", names[0])
	}
	return nil, &Error{
		Op:   "looking for the engine",
		Said: said,
		Hint: "install Docker or Podman, or name the program with -engine or SANDBOX_ENGINE, such as /path/to/docker",
	}
}

// look returns name itself if it is on PATH, so that what we print is what one
// would type, its full path if it lies in a well-known place, else "".
func look(name string) string {
	if _, err := exec.LookPath(name); err == nil {
		return name
	}
	if !strings.ContainsAny(name, `/\`) {
		for _, dir := range wellKnown() {
			if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
				return path
			}
		}
	}
	return ""
}

// Identify asks the CLI, once, whether it is docker or Podman, which has other
// flags. The CLI answers by itself, without the engine behind it.
func (e *Engine) Identify(ctx context.Context) error {
	e.identify.Lock()
	defer e.identify.Unlock()
	if e.known {
		return nil
	}
	out, err := e.output(ctx, 10*time.Second, "--version")
	if err != nil {
		return err
	}
	switch said := strings.ToLower(out); {
	case strings.Contains(said, "podman"):
		e.Podman = true
	case !strings.Contains(said, "docker"):
		return &Error{Op: e.line("--version"), Said: fmt.Sprintf("%.200q", out), Hint: "that is neither docker nor podman; name one with -engine or SANDBOX_ENGINE"}
	}
	e.known = true
	return nil
}

// Reach asks whether the engine answers, and what it says if not.
func (e *Engine) Reach(ctx context.Context) error {
	if err := e.Identify(ctx); err != nil {
		return err
	}
	_, err := e.output(ctx, 10*time.Second, ListArgs()...)
	return err
}

// Pull fetches an image. It takes as long as ctx allows.
func (e *Engine) Pull(ctx context.Context, image string) error {
	_, err := e.output(ctx, 0, PullArgs(image)...)
	var said *Error
	if errors.As(err, &said) {
		said.Op += " " + image // what was tried, for the caller may not have named it
	}
	return err
}

// Error is what an engine said when it could not do what it was asked to.
type Error struct {
	Op   string // the command line, or what was being done
	Said string // its words, or ours where it had none
	Hint string // the remedy, one sentence; "" if none is known
	kind kind
}

func (e *Error) Error() string {
	s := e.Op + ": " + e.Said
	if e.Hint != "" {
		s += "\n" + e.Hint
	}
	return s
}

type kind int

const (
	other kind = iota
	noImage
	noContainer
	tooManyCPUs
	noSeccompFile
)

// IsNoImage says whether the engine lacks the image.
func IsNoImage(err error) bool { return isKind(err, noImage) }

func isKind(err error, k kind) bool {
	var e *Error
	return errors.As(err, &e) && e.kind == k
}

var onlyCPUs = re(`as there are only (\d+) CPUs available`)

// remedies: what engines say, in the order of asking, and what helps.
var remedies = []struct {
	said *regexp.Regexp
	kind kind
	hint string // $1 is the expression's first group
}{
	{re(`permission denied while trying to connect|connect: permission denied|permission denied.*docker\.sock`), other,
		"you may not talk to the engine: join its group (sudo usermod -aG docker $$USER, then log in again), or use SANDBOX_ENGINE='sudo -n docker', or podman, which needs no daemon"},
	{re(`context "?([^"\s]+?)"?:? (?:context )?(?:does not exist|not found)|current context "([^"]+)" is not found`), other,
		"there is no such docker context: docker context ls lists them; unset DOCKER_CONTEXT or choose one with docker context use"},
	{re(`(?i)cannot connect to the docker daemon|is the docker daemon running|error during connect|failed to connect to the docker api|unable to connect to podman|cannot connect to podman`), other,
		"the engine does not answer there: start it (Docker Desktop, colima start, sudo systemctl start docker, podman machine start), or correct DOCKER_HOST or the docker context"},
	{re(`(?i)sudo: a password is required|sudo: .* terminal is required`), other, "sudo must not ask: allow it without a password, or join the engine's group"},
	{re(`(?i)short-name "?([^"\s]+)"? did not resolve|short-name resolution`), other, "it is not on this machine, and podman wants the full name: docker.io/library/NAME:TAG, which -allow-image must list"},
	{re(`(?i)no such image|image not known|unable to find image|image .* does not exist`), noImage, "it is not on this machine"},
	{re(`(?i)pull access denied|requested access to the resource is denied|unauthorized|authentication required`), other,
		"the registry does not have that image, or wants a login: check the name, or docker login"},
	{re(`(?i)manifest unknown|manifest for .* not found|name unknown|not found: manifest`), other, "the registry does not have that name and tag"},
	{re(`(?i)toomanyrequests|rate limit`), other, "the registry's limit is reached: wait, or docker login"},
	{re(`(?i)no such host|dial tcp|i/o timeout|TLS handshake|connection refused|network is unreachable`), other,
		"the registry cannot be reached from the engine: is there a network? An image that is on the machine already needs none"},
	{re(`(?i)exec format error`), other, "the image is for another architecture than the engine's"},
	{re(`(?i)"/bin/sh": (?:stat|executable file|no such)|/bin/sh.*no such file|executable .?/bin/sh.? not found`), other, "a sandbox needs an image with /bin/sh"},
	{onlyCPUs, tooManyCPUs, "the engine has $1 processors; lower -cpus"},
	{re(`(?i)(?:opening|reading|loading) seccomp profile|seccomp profile .* failed`), noSeccompFile, "-seccomp=engine uses the engine's own profile"},
	{re(`(?i)setrlimit|setting rlimit`), other, "the engine's user may not have the limits that a sandbox sets: raise the hard limits of nofile (1024) and nproc (4096)"},
	{re(`(?i)crun:.*|unknown version specified`), other, `the low-level runtime failed: podman's -engine "podman --runtime=runc" often helps, or another cgroup manager, see podman info`},
	{re(`(?i)unknown flag: (\S+)|flag provided but not defined: (\S+)`), other, "this CLI is too old for the sandbox's protections: docker 20.10 or podman 4 is needed"},
	{re(`(?i)unknown or invalid runtime name|unknown runtime|invalid runtime|runtime .* not found|default OCI runtime`), other, "the engine does not know that runtime: register it (for docker in daemon.json), or correct -run-flags"},
	{re(`(?i)no such container|no container with name|is not running|container state improper|is paused`), noContainer, "the sandbox's container was ended or stopped from outside"},
	{re(`(?i)no space left on device`), other, "the engine's disk is full"},
}

// helpLine is what docker adds to its errors, and nobody here needs.
var helpLine = re(`(?m)^(?:Run|See) 'docker.* --help'.*$`)

func re(s string) *regexp.Regexp { return regexp.MustCompile(s) }

// newError makes an error of what a CLI said on stderr, or of how it ended.
func newError(op, said string, err error) *Error {
	said = strings.TrimSpace(said)
	if said == "" {
		said = fmt.Sprint(cmp.Or(err, errors.New("it said nothing")))
	}
	e := &Error{Op: op, Said: said}
	for _, r := range remedies {
		if m := r.said.FindStringSubmatchIndex(said); m != nil {
			e.kind, e.Hint = r.kind, string(r.said.ExpandString(nil, r.hint, said, m))
			break
		}
	}
	return e
}
