package dockercli

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
)

// TestSeccompGolden: whatever changes in the profile shows in a file.
func TestSeccompGolden(t *testing.T) {
	file := filepath.Join("testdata", "seccomp.golden.json")
	got := SeccompProfile()
	if *update {
		if err := os.WriteFile(file, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil || !bytes.Equal(bytes.ReplaceAll(want, []byte("\r\n"), []byte("\n")), got) {
		t.Errorf("%s differs (%v); go test ./... -update rewrites it", file, err)
	}
	if !json.Valid(got) || !bytes.Equal(got, SeccompProfile()) {
		t.Error("not JSON, or not the same twice")
	}
}

// names returns those of all rows, which must be well-formed and there once.
func names(t *testing.T, rows []Calls) (all []string) {
	for _, row := range rows {
		if row.Why == "" || strings.TrimSpace(row.Names) == "" {
			t.Errorf("a row without reason or names: %v", row)
		}
		all = append(all, strings.Fields(row.Names)...)
	}
	for i, name := range all {
		if !regexp.MustCompile(`^[a-z_][a-z0-9_]*$`).MatchString(name) {
			t.Errorf("no name of a system call: %q", name)
		}
		if slices.Contains(all[:i], name) {
			t.Errorf("%s is there twice", name)
		}
	}
	return all
}

// TestSeccompTables: no call is both allowed and refused, for then it would be
// up to the engine's library which of the two holds.
func TestSeccompTables(t *testing.T) {
	allowed, refused := names(t, AllowedCalls), names(t, RefusedCalls)
	for _, name := range allowed {
		if slices.Contains(refused, name) {
			t.Errorf("%s is allowed and refused", name)
		}
	}
	type condition struct {
		name, op, audit string
		value           uint64
	}
	said := map[condition]uint{}
	for _, c := range CheckedCalls {
		if slices.Contains(allowed, c.Name) || slices.Contains(refused, c.Name) {
			t.Errorf("%s is checked, and also allowed or refused", c.Name)
		}
		if c.Why == "" || len(c.Values) == 0 {
			t.Errorf("a row without reason or values: %v", c)
		}
		for _, v := range c.Values {
			key := condition{c.Name, c.Op, c.Audit, v}
			if errno, twice := said[key]; twice {
				t.Errorf("%v is there twice, with %d and %d", key, errno, c.Errno)
			}
			said[key] = c.Errno
		}
	}
	for _, row := range AllowedCalls {
		if row.Errno != 0 {
			t.Errorf("allowed, but with an error: %v", row)
		}
	}
	for _, row := range RefusedCalls {
		if row.Errno != notPermitted && row.Errno != notImplemented {
			t.Errorf("refused with error %d: %v", row.Errno, row)
		}
	}
	t.Logf("%d names are allowed, %d refused", len(allowed), len(refused))
}

// TestSeccompRefusals: what the design says must not be there is refused, and
// what is newer than 2020 is refused so that libraries do without it.
func TestSeccompRefusals(t *testing.T) {
	errnos := map[string]uint{}
	for _, row := range RefusedCalls {
		for _, name := range strings.Fields(row.Names) {
			errnos[name] = row.Errno
		}
	}
	for errno, all := range map[uint]string{
		notPermitted: `bpf keyctl mount umount2 pivot_root setns unshare perf_event_open userfaultfd fanotify_init fanotify_mark
			name_to_handle_at open_by_handle_at syslog reboot process_vm_readv process_vm_writev`,
		notImplemented: `clone3 io_uring_setup io_uring_enter io_uring_register
			open_tree move_mount fsopen fsconfig fsmount fspick mount_setattr`,
	} {
		for _, name := range strings.Fields(all) {
			if errnos[name] != errno {
				t.Errorf("%s is answered with %d; want %d", name, errnos[name], errno)
			}
		}
	}
	allowed := names(t, AllowedCalls)
	for _, name := range []string{"socketcall", "ipc", "socket", "socketpair", "clone", "personality", "ptrace"} {
		if slices.Contains(allowed, name) {
			t.Errorf("%s is allowed with any arguments", name)
		}
	}
	for _, arch := range []string{"SCMP_ARCH_X86\"", "SCMP_ARCH_X32", "SCMP_ARCH_ARM"} {
		if bytes.Contains(SeccompProfile(), []byte(arch)) {
			t.Errorf("%s: 32-bit calls are let in", arch)
		}
	}
}

// TestSeccompFile: the file is there, is right, is nobody else's, and is mended.
func TestSeccompFile(t *testing.T) {
	t.Chdir(t.TempDir())
	dir := filepath.Join("a", "b") // not there yet, and not absolute
	path, err := SeccompFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	if !filepath.IsAbs(path) || !regexp.MustCompile(`^seccomp-[0-9a-f]{16}\.json$`).MatchString(filepath.Base(path)) {
		t.Errorf("path: %s", path)
	}
	check := func(what string) {
		t.Helper()
		again, err := SeccompFile(dir)
		if err != nil || again != path {
			t.Fatalf("%s: %s, %v; want %s", what, again, err, path)
		}
		if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, SeccompProfile()) {
			t.Errorf("%s: not the profile (%v)", what, err)
		}
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			t.Errorf("%s: left behind: %v", what, left)
		}
		if runtime.GOOS == "windows" {
			return
		}
		for name, want := range map[string]os.FileMode{dir: os.ModeDir | 0o700, path: 0o600} {
			if info, err := os.Lstat(name); err != nil || info.Mode() != want {
				t.Errorf("%s: %s is %v (%v); want %v", what, name, info.Mode(), err, want)
			}
		}
	}
	check("written")
	before, _ := os.Stat(path)
	check("found")
	if after, _ := os.Stat(path); !os.SameFile(before, after) {
		t.Error("what was right was written again")
	}
	for what, content := range map[string]string{
		"empty": "", "something else": `{"defaultAction":"SCMP_ACT_ALLOW"}`, "longer": string(SeccompProfile()) + " ",
	} {
		os.WriteFile(path, []byte(content), 0o600)
		check(what)
	}
	if runtime.GOOS != "windows" {
		os.Chmod(path, 0o666)
		check("writable for everybody")
		os.Rename(path, "elsewhere")
		os.Symlink(filepath.Join("..", "..", "elsewhere"), path)
		check("a link")
	}
	os.Remove(path)
	os.Mkdir(path, 0o700)
	os.WriteFile(filepath.Join(path, "x"), nil, 0o600)
	if _, err := SeccompFile(dir); err == nil || !strings.HasPrefix(err.Error(), "seccomp profile: ") {
		t.Errorf("a directory in its place: %v", err)
	}
	if _, err := SeccompFile(os.DevNull); err == nil && runtime.GOOS != "windows" {
		t.Error("a device for a directory")
	}
}

// TestSeccompFileTogether: servers that start at the same time all find it,
// whether it is there, is not, or is spoilt.
func TestSeccompFileTogether(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "cache")
	path, err := SeccompFile(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, before := range []func(){
		func() { os.RemoveAll(dir) },
		func() { os.Remove(path) },
		func() { os.WriteFile(path, []byte("spoilt"), 0o600) },
		func() {},
	} {
		before()
		var all sync.WaitGroup
		for range 20 {
			all.Go(func() {
				if _, err := SeccompFile(dir); err != nil {
					t.Error(err)
				} else if got, err := os.ReadFile(path); err != nil || !bytes.Equal(got, SeccompProfile()) {
					t.Errorf("found something else (%v)", err)
				}
			})
		}
		all.Wait()
		if left, _ := os.ReadDir(dir); len(left) != 1 {
			t.Errorf("left behind: %v", left)
		}
	}
}
