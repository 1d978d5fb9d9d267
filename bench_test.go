package main

import (
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"mcp-docker-interpreter/dockercli"

	"github.com/google/shlex"
)

// BenchmarkExecute times print(1) in a live sandbox: through the product's
// package, and the same typed by hand, in turns on the same container.
func BenchmarkExecute(b *testing.B) {
	if realDocker == "" || exec.Command(realDocker, "image", "inspect", testImage).Run() != nil {
		b.Skipf("no docker here with %s; .ci/engine brings one up", testImage)
	}
	eng, err := dockercli.Parse(realDocker)
	if err != nil {
		b.Fatal(err)
	}
	spec := dockercli.Spec{Image: testImage, Limits: dockercli.DefaultLimits}
	box, err := eng.Start(b.Context(), spec)
	if err != nil {
		b.Fatal(err)
	}
	defer box.Close("the benchmark ended")
	program := &dockercli.Program{File: ".main.py", Run: "exec python3 .main.py", Code: []byte("print(1)\n")}
	words, _ := shlex.Split(eng.Command[0])
	var ours, hand []time.Duration
	for b.Loop() {
		start := time.Now()
		if r, err := box.Run(b.Context(), program, time.Minute); err != nil || string(r.Stdout.Text) != "1\n" {
			b.Fatalf("%+v, %v", r, err)
		}
		ours = append(ours, time.Since(start))
		cmd := exec.Command(words[0], "exec", "-i", "--user="+dockercli.User, box.Name, "python3", "-")
		cmd.Stdin = strings.NewReader("print(1)\n")
		start = time.Now()
		if out, err := cmd.Output(); err != nil || string(out) != "1\n" {
			b.Fatalf("%q, %v", out, err)
		}
		hand = append(hand, time.Since(start))
	}
	slices.Sort(ours)
	slices.Sort(hand)
	b.ReportMetric(float64(ours[len(ours)/2].Microseconds())/1000, "ms/run")
	b.ReportMetric(float64(hand[len(hand)/2].Microseconds())/1000, "ms/by-hand")
	b.ReportMetric(float64(ours[len(ours)/2])/float64(hand[len(hand)/2]), "ratio")
}
