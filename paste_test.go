package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"mcp-docker-interpreter/dockercli"

	"github.com/google/shlex"
	"github.com/rogpeppe/go-internal/txtar"
)

// TestPaste gives the command lines of a golden to a shell, as a person would
// paste them: on a real engine they do what the product did.
func TestPaste(t *testing.T) {
	each(t, func(t *testing.T, e engine) {
		script, section := "testdata/script/main-job.txtar", "want.docker.sh"
		if e.name == "podman" {
			script, section = "testdata/script/main-job-podman.txtar", "want.podman.sh"
		}
		if e.name == "runsc" {
			t.Skip("the goldens have no --runtime=runsc")
		}
		archive, err := txtar.ParseFile(script)
		if err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(archive.Files, func(f txtar.File) bool { return f.Name == section })
		name := dockercli.Prefix + dockercli.Random(8)
		profile, err := dockercli.SeccompFile(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.NewReplacer("/PROFILE", profile, "mcp-sandbox-NAME", name, "alpine:latest", testImage).Replace(string(archive.Files[i].Data))
		commands := strings.Split(strings.TrimSpace(lines), "\n\n")
		if len(commands) != 3 {
			t.Fatalf("%d command lines; want a run and two execs", len(commands))
		}
		shell := func(line string) *exec.Cmd {
			cmd := exec.Command("sh", "-c", fmt.Sprintf("%[1]s() { %[2]s \"$@\"; }\n%[3]s", strings.Fields(line)[0], e.line, line))
			cmd.Env = append(os.Environ(), "SUPERVISOR="+dockercli.SupervisorScript(), "RUN="+dockercli.RunScript())
			cmd.Stderr = os.Stderr
			return cmd
		}
		if e.line == realDocker { // the function would call the fake that is first on PATH
			shell = func(line string) *exec.Cmd {
				cmd := exec.Command("sh", "-c", e.line+strings.TrimPrefix(line, "docker"))
				cmd.Env = append(os.Environ(), "SUPERVISOR="+dockercli.SupervisorScript(), "RUN="+dockercli.RunScript())
				return cmd
			}
		}
		run := shell(commands[0])
		stdin, _ := run.StdinPipe()
		stdout, _ := run.StdoutPipe()
		if err := run.Start(); err != nil {
			t.Fatal(err)
		}
		defer e.cli("rm", "--force", name)
		said := bufio.NewReader(stdout)
		if line, err := said.ReadString('\n'); line != "ready python3 node sh\n" {
			t.Fatalf("the supervisor said %q, %v", line, err)
		}
		for i, want := range []string{"it's 42\n", "21\n"} {
			out, err := shell(commands[i+1]).Output()
			parts := strings.Split(string(out), "NONCE ")
			if err != nil || len(parts) != 4 || !strings.HasSuffix(parts[1], "\n"+want+"\n") || !strings.HasPrefix(parts[2], "end 0 ") {
				t.Errorf("%s\nprinted %q, %v; want %q", commands[i+1], out, err, want)
			}
		}
		io.WriteString(stdin, "k\n")
		if line, err := said.ReadString('\n'); !strings.HasPrefix(line, "swept 1 ") {
			t.Errorf("the sweep said %q, %v", line, err)
		}
		stdin.Close()
		if err := run.Wait(); err != nil {
			t.Error(err)
		}
		if out := e.cli("ps", "--all", "--quiet", "--filter=name="+name); out != "" {
			t.Errorf("left behind: %s", out)
		}
	})
}

// TestInspect: the engine says itself that every protection of the table is in
// force.
func TestInspect(t *testing.T) {
	each(t, func(t *testing.T, e engine) {
		eng, err := dockercli.Parse(e.line)
		if err != nil {
			t.Fatal(err)
		}
		eng.RunFlags, _ = shlex.Split(e.runFlags)
		box, err := eng.Start(t.Context(), dockercli.Spec{Image: "debian-hostile:local", Limits: dockercli.DefaultLimits})
		if err != nil {
			t.Fatal(err)
		}
		defer box.Close("the test ended")
		var found []map[string]any
		if err := json.Unmarshal([]byte(e.cli("inspect", box.Name)), &found); err != nil {
			t.Fatal(err)
		}
		want := map[string]string{
			"Config.User": `"0:0"`, "Config.Hostname": `"sandbox"`, "Config.OpenStdin": `true`, "Config.Tty": `false`,
			"Config.Healthcheck.Test": `["NONE"]`, "Config.StopTimeout": `1`,
			"Config.Labels.mcp-docker-interpreter": `"` + box.Name + `"`,
			"HostConfig.AutoRemove":                `true`,
			"HostConfig.NetworkMode":               `"none"`,
			"HostConfig.CgroupnsMode":              `"private"`,
			"HostConfig.ReadonlyRootfs":            `true`,
			"HostConfig.Privileged":                `false`,
			"HostConfig.Memory":                    `1073741824`,
			"HostConfig.MemorySwap":                `1073741824`,
			"HostConfig.NanoCpus":                  `2000000000`,
			"HostConfig.PidsLimit":                 `256`,
			"HostConfig.OomScoreAdj":               `500`,
			"HostConfig.LogConfig.Type":            `"none"`,
			"HostConfig.Binds":                     `null`,
			"HostConfig.Devices":                   `[]`,
		}
		if e.name == "podman" {
			delete(want, "HostConfig.CgroupnsMode")
			want["HostConfig.CgroupMode"] = `"private"`
			want["HostConfig.Binds"] = `[]`
			want["Config.Entrypoint"] = `"/bin/sh"`
			want["Config.StopSignal"] = `15`
			want["EffectiveCaps"], want["BoundingCaps"] = `["CAP_KILL"]`, `["CAP_KILL"]`
			for path, options := range map[string]string{"/workspace": "exec,nosuid,nodev,size=256m", "/tmp": "exec,nosuid,nodev,size=128m", "/dev/shm": "noexec,nosuid,nodev,size=64m"} {
				want["HostConfig.Tmpfs."+path] = `"rw,` + options + `,mode=1777,rprivate"`
			}
			want["HostConfig.Ulimits"] = `[{"Hard":1024,"Name":"RLIMIT_NOFILE","Soft":1024},{"Hard":4096,"Name":"RLIMIT_NPROC","Soft":4096},{"Hard":0,"Name":"RLIMIT_CORE","Soft":0}]`
		} else {
			want["HostConfig.IpcMode"] = `"none"`
			want["HostConfig.CapDrop"] = `["ALL"]`
			want["HostConfig.Sysctls"] = `{"kernel.shm_rmid_forced":"1"}`
			want["Config.Entrypoint"] = `["/bin/sh"]`
			want["Config.StopSignal"] = `"SIGTERM"`
			for path, options := range map[string]string{"/workspace": "exec,nosuid,nodev,size=256m", "/tmp": "exec,nosuid,nodev,size=128m", "/dev/shm": "noexec,nosuid,nodev,size=64m"} {
				want["HostConfig.Tmpfs."+path] = `"rw,` + options + `,nr_inodes=64k,mode=1777"`
			}
			want["HostConfig.Ulimits"] = `[{"Hard":0,"Name":"core","Soft":0},{"Hard":1024,"Name":"nofile","Soft":1024}]`
			if e.name == "runsc" {
				want["HostConfig.Runtime"] = `"runsc"`
				want["HostConfig.Ulimits"] = `[{"Hard":0,"Name":"core","Soft":0},{"Hard":1024,"Name":"nofile","Soft":1024},{"Hard":256,"Name":"nproc","Soft":256}]`
			}
			env := at(found[0], "Config.Env")
			for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "FTP_PROXY", "ftp_proxy", "ALL_PROXY", "all_proxy", "NO_PROXY", "no_proxy"} {
				if !strings.Contains(env, `"`+name+`="`) {
					t.Errorf("%s is not emptied: %s", name, env)
				}
			}
		}
		if got := at(found[0], "HostConfig.SecurityOpt"); !strings.HasPrefix(got, `["no-new-privileges","seccomp=`) || !strings.Contains(got, "AF_VSOCK") && !strings.Contains(got, "/seccomp-") {
			t.Errorf("HostConfig.SecurityOpt is %.200s", got)
		}
		for path, value := range want {
			if got := at(found[0], path); got != value {
				t.Errorf("%s is %s; want %s", path, got, value)
			}
		}
		if caps := at(found[0], "HostConfig.CapAdd"); e.name != "podman" && caps != `["CAP_KILL"]` && caps != `["KILL"]` {
			t.Errorf("HostConfig.CapAdd is %s", caps)
		}
	})
}

// at follows a path of names into JSON; the last may hold dots and slashes.
func at(v any, path string) string {
	for path != "" {
		m, ok := v.(map[string]any)
		if !ok {
			return "nothing there"
		}
		if whole, ok := m[path]; ok {
			v, path = whole, ""
			break
		}
		name, rest, _ := strings.Cut(path, ".")
		v, path = m[name], rest
	}
	b, _ := json.Marshal(v)
	return string(b)
}
