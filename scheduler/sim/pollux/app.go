package pollux

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"optimus/scheduler/estimate"
	"optimus/scheduler/place"
	"optimus/scheduler/trace"
)

// What was measured.
const (
	MaxNodes    = 16
	GPUsPerNode = 4
	MaxGPUs     = MaxNodes * GPUsPerNode
)

// App is what was measured of one application. It does not change.
type App struct {
	Name   string
	Limits estimate.Limits
	Epochs int
	// MaxGPUs is what an elastic or adaptive job gets at most.
	MaxGPUs int
	// PinnedBatch is the total batch of an adaptive job that does not choose it, else 0.
	PinnedBatch int
	// MetricFalls says that a smaller validation metric is better.
	MetricFalls bool

	timings timings
	curves  []curve   // by batch size
	ends    []float64 // progress at which an epoch ends: of epoch e at e+1
}

// Models are the applications by name.
type Models map[string]*App

// Names returns the names in order.
func (m Models) Names() []string { return slices.Sorted(maps.Keys(m)) }

// Load reads models.json and, for each application in it, the tables in models/NAME.
func Load(fsys fs.FS) (Models, error) {
	data, err := fs.ReadFile(fsys, "models.json")
	if err != nil {
		return nil, fmt.Errorf("pollux: %w", err)
	}
	var described map[string]description
	if err := json.Unmarshal(data, &described); err != nil {
		return nil, fmt.Errorf("pollux: models.json: %w", err)
	}
	models := Models{}
	for _, name := range slices.Sorted(maps.Keys(described)) {
		a := described[name].app(name)
		if err := a.Limits.Check(); err != nil {
			return nil, fmt.Errorf("pollux: models.json: %s: %w", name, err)
		}
		if err := a.load(fsys, path.Join("models", name)); err != nil {
			return nil, fmt.Errorf("pollux: %s: %w", name, err)
		}
		models[name] = a
	}
	return models, nil
}

// description is an application in models.json.
type description struct {
	InitBatch   int    `json:"init_batch_size"`
	MaxBatch    int    `json:"max_batch_size"`
	MinPerGPU   int    `json:"min_local_bsz"`
	MaxPerGPU   int    `json:"max_local_bsz"`
	Epochs      int    `json:"epochs"`
	Accumulate  bool   `json:"gradient_accumulation"`
	SpecialCase any    `json:"scheduler_special_case"`
	Metric      string `json:"metric_in_validation_csv"`
}

// app returns what is described. The one special case is NCF: one GPU under every elastic policy, where an adaptive
// job runs at its largest batch.
func (d description) app(name string) *App {
	a := &App{Name: name, Epochs: d.Epochs, MaxGPUs: MaxGPUs, MetricFalls: strings.Contains(d.Metric, "falls"), Limits: estimate.Limits{
		InitBatch: d.InitBatch, MaxBatch: d.MaxBatch, MinPerGPU: d.MinPerGPU, MaxPerGPU: d.MaxPerGPU, Accumulate: d.Accumulate,
	}}
	if d.SpecialCase != nil {
		a.MaxGPUs, a.PinnedBatch = 1, d.MaxBatch
	}
	return a
}

func (a *App) load(fsys fs.FS, dir string) error {
	for _, name := range []string{"placements.csv", "interpolated-5-16-nodes.csv"} {
		times, err := read(fsys, path.Join(dir, name), trace.ReadPolluxTimes)
		if err != nil {
			return err
		}
		if err := a.timings.add(times); err != nil {
			return fmt.Errorf("%s: %w", path.Join(dir, name), err)
		}
	}
	files, err := fs.Glob(fsys, path.Join(dir, "validation-*.csv"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("%s: no validation-BATCH.csv: %w", dir, cmp.Or(err, fs.ErrNotExist))
	}
	for _, name := range files {
		epochs, err := read(fsys, name, trace.ReadPolluxEpochs)
		if err != nil {
			return err
		}
		batch, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(path.Base(name), "validation-"), ".csv"))
		if err != nil {
			return fmt.Errorf("%s: the name must be validation-BATCH.csv: %w", name, err)
		}
		if len(epochs) < a.Epochs || a.Epochs < 1 {
			return fmt.Errorf("%s: %d of %d epochs; the job has at least one, and all must be there", name, len(epochs), a.Epochs)
		}
		a.curves = append(a.curves, curve{batch, epochs})
	}
	slices.SortFunc(a.curves, func(x, y curve) int { return cmp.Compare(x.batch, y.batch) })
	a.ends = make([]float64, a.Epochs+1)
	for e := range a.Epochs {
		a.ends[e+1] = slices.MinFunc(a.curves, func(x, y curve) int {
			return cmp.Compare(x.epochs[e].Progress, y.epochs[e].Progress)
		}).epochs[e].Progress
	}
	return nil
}

func read[T any](fsys fs.FS, name string, parse func(string, io.Reader) ([]T, error)) ([]T, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close() // read only
	return parse(name, f)
}

// Cluster returns nodes like those of the measurements: of 4 GPUs each, the one resource.
func Cluster(nodes int) []place.Node {
	out := make([]place.Node, nodes)
	for i := range out {
		out[i] = place.Node{ID: fmt.Sprintf("node-%04d", i), Capacity: place.Vector{GPUsPerNode}}
	}
	return out
}
