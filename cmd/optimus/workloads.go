package main

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"optimus/internal/failure"
	"optimus/scheduler/place"
	"optimus/scheduler/sim"
	"optimus/scheduler/sim/optimus"
	"optimus/scheduler/sim/pollux"
	"optimus/scheduler/sim/recorded"
	"optimus/scheduler/trace"
)

// workload is the jobs of a scenario and what they run on by default.
type workload struct {
	name     string
	jobs     func(policy string) ([]sim.Job, error) // as they may be run by it
	nodes    []place.Node
	charged  int    // index of the resource that a job's service is counted in
	unit     string // of that
	interval float64
}

// readWorkload reads the jobs of --workload and what was measured of them, or generates
// those of --generate. What kind a file is of its columns tell.
func (o *scenarioOptions) readWorkload(op string) (*workload, error) {
	if o.generate != "" {
		return o.generated(op)
	}
	text, err := os.ReadFile(o.workload)
	if err != nil {
		return nil, failure.E(op, o.workload, "", withoutPath(err), "give the file of a workload")
	}
	header, _, _ := strings.Cut(string(text), "\n")
	columns := strings.FieldsFunc(header, func(r rune) bool { return strings.ContainsRune(", \"\t\r\ufeff", r) })
	read := o.polluxJobs
	switch {
	case slices.Contains(columns, "timestamp"):
		read = o.phillyJobs
	case slices.Contains(columns, "job_type"):
		read = o.gavelJobs
	}
	w, n, err := read(op, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	if n == 0 {
		return nil, failure.E(op, o.workload, failure.Corrupt, errors.New("it has no jobs"), "")
	}
	w.name = strings.TrimSuffix(filepath.Base(o.workload), filepath.Ext(o.workload))
	w.nodes, w.unit, w.interval = pollux.Cluster(pollux.MaxNodes), "GPUs", 60
	return w, nil
}

// polluxJobs reads a workload of the Pollux paper, and the profiles of its applications.
func (o *scenarioOptions) polluxJobs(op string, r io.Reader) (*workload, int, error) {
	if o.gpus > pollux.GPUsPerNode {
		return nil, 0, failure.E(op, "", failure.InvalidArgument, fmt.Errorf("--gpus-per-node is %d", o.gpus),
			fmt.Sprintf("allowed: 1 to %d, with which the applications were measured", pollux.GPUsPerNode))
	}
	profiles := cmp.Or(o.profiles, filepath.Join(filepath.Dir(o.workload), ".."))
	models, err := pollux.Load(os.DirFS(profiles))
	if err != nil {
		do := ""
		if errors.Is(err, fs.ErrNotExist) {
			do = "give the folder that holds models.json and models with --profiles"
		}
		return nil, 0, inTable(op, profiles, err, do)
	}
	jobs, err := trace.ReadPollux(o.workload, r, models.Names())
	if err != nil {
		return nil, 0, inTable(op, o.workload, err, "")
	}
	// The order of the file must not matter, but jobs of one second go by their numbers.
	slices.SortFunc(jobs, func(a, b trace.PolluxJob) int {
		return cmp.Or(cmp.Compare(a.Submit, b.Submit), cmp.Compare(numberOf(a.Name), numberOf(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	jobs = firstOf(jobs, o.jobs)
	return &workload{jobs: func(policy string) ([]sim.Job, error) { return pollux.Jobs(models, jobs, pollux.KindFor(policy)) }}, len(jobs), nil
}

// phillyJobs reads a Philly trace.
func (o *scenarioOptions) phillyJobs(op string, r io.Reader) (*workload, int, error) {
	jobs, err := trace.ReadPhilly(o.workload, r)
	if err != nil {
		return nil, 0, inTable(op, o.workload, err, "")
	}
	recordings := recorded.Philly(firstOf(jobs, o.jobs))
	return &workload{jobs: func(string) ([]sim.Job, error) { return recordings, nil }}, len(recordings), nil
}

// gavelJobs reads a trace of the Gavel or Shockwave simulators, and the speeds of its jobs.
func (o *scenarioOptions) gavelJobs(op string, r io.Reader) (*workload, int, error) {
	if o.speeds == "" {
		return nil, 0, failure.E(op, "", failure.InvalidArgument, errors.New("missing --speeds FILE, which Gavel's traces need"), "give the JSON file of throughputs")
	}
	f, err := os.Open(o.speeds)
	if err != nil {
		return nil, 0, failure.E(op, o.speeds, "", withoutPath(err), "give the JSON file of throughputs")
	}
	defer f.Close()
	jobs, err := trace.ReadGavel(o.workload, r)
	if err != nil {
		return nil, 0, inTable(op, o.workload, err, "")
	}
	speeds, err := trace.ReadGavelSpeeds(o.speeds, f)
	if err != nil {
		return nil, 0, inTable(op, o.speeds, err, "")
	}
	recordings, err := recorded.Gavel(firstOf(jobs, o.jobs), speeds, o.gpu)
	if err != nil {
		return nil, 0, failure.E(op, o.speeds, failure.NotFound, err, "choose another with --gpu")
	}
	return &workload{jobs: func(string) ([]sim.Job, error) { return recordings, nil }}, len(recordings), nil
}

// firstOf returns the first n jobs, all if n is 0.
func firstOf[T any](jobs []T, n int) []T {
	if n == 0 {
		return jobs
	}
	return jobs[:min(n, len(jobs))]
}

// numberOf is the number at the end of a name; 0 without one.
func numberOf(name string) int {
	digits := name[len(strings.TrimRight(name, "0123456789")):]
	n, _ := strconv.Atoi(digits) // too long a number is none
	return n
}

// defaultJobs is how many jobs are generated, as in the paper's code.
const defaultJobs = 60

// generated draws jobs of the Optimus paper.
func (o *scenarioOptions) generated(op string) (*workload, error) {
	arrivals, err := trace.Named(o.generate)
	if err != nil {
		return nil, failure.E(op, "--generate "+o.generate, failure.InvalidArgument, errors.New("there is no such arrival process"), "choose uniform, poisson or google")
	}
	f, err := os.Open(o.speeds)
	if err != nil {
		return nil, failure.E(op, o.speeds, "", withoutPath(err), "give a file of measured speeds")
	}
	defer f.Close()
	tables, _, err := trace.ReadSpeeds(o.speeds, f)
	if err != nil {
		return nil, inTable(op, o.speeds, err, "")
	}
	truths, err := optimus.NewTruths(tables)
	if err != nil {
		return nil, failure.E(op, o.speeds, failure.Corrupt, err, "")
	}
	w := optimus.Workload{Jobs: cmp.Or(o.jobs, defaultJobs), Arrivals: arrivals, Seed: o.seed}
	switch o.mode {
	case "sync":
		w.Modes = []optimus.Mode{optimus.Sync}
	case "async":
		w.Modes = []optimus.Mode{optimus.Async}
	}
	jobs := truths.Workload(w)
	return &workload{
		name: o.generate, nodes: optimus.Cluster(), unit: "cores", interval: 600,
		jobs: func(string) ([]sim.Job, error) { return jobs, nil }, // a run clones them
	}, nil
}

// cluster returns so many equal nodes, or those of the workload if that is 0 and no shape
// was asked for.
func (o *scenarioOptions) cluster(w *workload, nodes int) []place.Node {
	shape := place.Vector{int64(o.gpus)}
	if o.generate != "" {
		shape = place.Vector{int64(o.node[0]), int64(o.node[1])}
	}
	if nodes == 0 {
		if !o.shaped() {
			return w.nodes
		}
		nodes = len(w.nodes)
	}
	out := make([]place.Node, nodes)
	for i := range out {
		out[i] = place.Node{ID: fmt.Sprintf("node-%05d", i), Capacity: slices.Clone(shape)}
	}
	return out
}
