package dockercli

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// Image is a checked image reference.
type Image struct {
	Name string // as it was given
	Host string // its registry, if the name says one
}

// The grammar of github.com/distribution/reference: host, path, tag, digest.
var reference = regexp.MustCompile(`^(?:((?:[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)(?:\.[a-zA-Z0-9](?:[a-zA-Z0-9-]*[a-zA-Z0-9])?)*(?::[0-9]+)?)/)?` +
	`([a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*)*)` +
	`(?::([a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}))?(?:@sha256:[0-9a-f]{64})?$`)

// transports are what Podman takes for the way to an image, and a tag for a
// path of the host; and what both take for an image's id.
var transports = []string{"containers-storage", "dir", "docker-archive", "docker-daemon", "oci", "oci-archive", "ostree", "sha256", "sif", "tarball"}

// ParseImage checks a caller's image name, so that it can be nothing else than
// a name: no flag, no path, no transport. It does not say that it may be used.
func ParseImage(name string) (Image, error) {
	if len(name) > 255 {
		return Image{}, fmt.Errorf("image: %d characters; want at most 255", len(name))
	}
	m := reference.FindStringSubmatch(name)
	way, _, has := strings.Cut(name, ":")
	if m == nil || has && slices.Contains(transports, way) {
		return Image{}, fmt.Errorf("image %q is no image name; want one like alpine, python:3.12-slim or registry.example:5000/team/image:tag", name)
	}
	img := Image{Name: name}
	if m[1] == "localhost" || strings.ContainsAny(m[1], ".:") || strings.ToLower(m[1]) != m[1] {
		img.Host = m[1]
	}
	return img, nil
}
