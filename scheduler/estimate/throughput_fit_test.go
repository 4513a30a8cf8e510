package estimate

import (
	"encoding/csv"
	"errors"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"

	"optimus/internal/shared"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"
)

// exactRecords makes records without error.
func exactRecords(t Throughput, configurations ...[3]int) (records []Record) {
	for _, c := range configurations {
		records = append(records, Record{c[0], c[1], c[2], t.Grad(float64(c[2])), t.Iter(c[0], c[1], Batch{PerGPU: c[2]})})
	}
	return records
}

func TestFitThroughputPredictsWhatItHasNotSeen(t *testing.T) {
	model := Throughput{.05, .002, .12, .004, .03, .001, 1}
	fit, err := FitThroughput(exactRecords(model, [3]int{1, 1, 32}, [3]int{1, 1, 128}, [3]int{1, 2, 64}, [3]int{1, 4, 64}, [3]int{2, 8, 64}, [3]int{4, 16, 128}))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]int{{1, 3, 100}, {3, 12, 50}, {8, 32, 200}} {
		b := Batch{c[2], 1}
		got, want := fit.Throughput.Iter(c[0], c[1], b), model.Iter(c[0], c[1], b)
		if math.Abs(got-want) > 1e-3*want {
			t.Errorf("%v: %v s, want %v", c, got, want)
		}
	}
	if fit.Assumed != nil || fit.Used != 6 {
		t.Errorf("assumed %v, used %d", fit.Assumed, fit.Used)
	}
}

func TestFitThroughputAssumesTheBestOfWhatIsNotMeasured(t *testing.T) {
	model := Throughput{.05, .002, .12, .004, .03, .001, 1.5}
	for _, c := range []struct {
		name           string
		configurations [][3]int
		assumed        []string
	}{
		{"one GPU, one batch", [][3]int{{1, 1, 32}}, []string{"α_grad", "α_node", "β_node", "α_local", "β_local"}},
		{"one GPU, two batches", [][3]int{{1, 1, 32}, {1, 1, 64}}, []string{"α_node", "β_node", "α_local", "β_local"}},
		{"two GPUs of a node", [][3]int{{1, 1, 32}, {1, 2, 64}}, []string{"α_node", "β_node", "β_local"}},
		{"four GPUs of a node", [][3]int{{1, 1, 32}, {1, 4, 64}}, []string{"α_node", "β_node"}},
		{"two nodes of a GPU", [][3]int{{1, 1, 32}, {2, 2, 64}}, []string{"β_node", "α_local", "β_local"}},
		{"two nodes, four GPUs", [][3]int{{1, 1, 32}, {2, 4, 64}}, []string{"α_local", "β_local"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			fit, err := FitThroughput(exactRecords(model, c.configurations...))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.assumed, fit.Assumed); diff != "" {
				t.Error(diff)
			}
			f := fit.Throughput
			if slices.Contains(c.assumed, "α_node") && (f.AlphaNode != 1.1*f.AlphaLocal || f.BetaNode != 1.1*f.BetaLocal) {
				t.Errorf("no exchange between nodes was measured, and %+v does not take it as 10 %% slower", f)
			}
			if slices.Contains(c.assumed, "α_grad") && f.AlphaGrad != model.Grad(32)/2 {
				t.Errorf("α_grad %v, want half a pass", f.AlphaGrad)
			}
		})
	}
}

func TestFitThroughputListsWhatIsNoMeasurement(t *testing.T) {
	good := exactRecords(Throughput{.05, .002, .12, .004, .03, .001, 1.5}, [3]int{1, 1, 32}, [3]int{1, 2, 64})
	bad := []Record{
		{1, 1, 32, 0, .1}, {1, 1, 32, math.NaN(), .1}, {1, 1, 32, .1, math.Inf(1)}, {1, 1, 32, .1, -1},
		{0, 1, 32, .1, .1}, {2, 1, 32, .1, .1}, {1, 1, 0, .1, .1},
	}
	fit, err := FitThroughput(append(slices.Clone(bad), good...))
	if err != nil {
		t.Fatal(err)
	}
	if fit.Used != 2 || len(fit.Rejected) != len(bad) {
		t.Fatalf("%d used, %d rejected: %v", fit.Used, len(fit.Rejected), fit.Rejected)
	}
	for i, r := range fit.Rejected {
		if r.Index != i || r.Reason == "" || !cmp.Equal(r.Record, bad[i], cmpopts.EquateNaNs()) {
			t.Errorf("%+v for record %d, %+v", r, i, bad[i])
		}
	}
	alone, err := FitThroughput(good)
	if err != nil || alone.Throughput != fit.Throughput {
		t.Errorf("the others change the fit: %+v, %+v, %v", alone.Throughput, fit.Throughput, err)
	}
	if _, err := FitThroughput(bad); err == nil || errors.Is(err, ErrIterations) {
		t.Errorf("no measurement: %v", err)
	}
}

func TestDescentSaysThatItHasNotSettled(t *testing.T) {
	records := exactRecords(Throughput{.05, .002, .12, .004, .03, .001, 3}, [3]int{1, 1, 32}, [3]int{1, 4, 64}, [3]int{2, 8, 64})
	l, b := newTiming(records), priors(records)
	p := start(records, 1.001)
	q, steps, settled := l.descend(p, &b, 1e-4, 1e-11, 3)
	if settled || steps != 3 || !(l.loss(q) < l.loss(p)) {
		t.Errorf("settled %v after %d steps, loss %v from %v", settled, steps, l.loss(q), l.loss(p))
	}
}

// No other start finds a minimum that is much better.
func TestFitThroughputIsNotCaughtInALocalMinimum(t *testing.T) {
	caught, tried := 0, 0
	rapid.Check(t, func(t *rapid.T) {
		model := drawGoodput(t).Throughput
		noise := rapid.Float64Range(0, .3).Draw(t, "noise")
		var records []Record
		for range rapid.IntRange(1, 20).Draw(t, "records") {
			gpus := rapid.IntRange(1, 16).Draw(t, "gpus")
			nodes := rapid.IntRange((gpus+3)/4, gpus).Draw(t, "nodes")
			r := exactRecords(model, [3]int{nodes, gpus, rapid.IntRange(1, 300).Draw(t, "m")})[0]
			r.Grad *= math.Exp(noise * rapid.Float64Range(-1, 1).Draw(t, "error"))
			r.Last *= math.Exp(noise * rapid.Float64Range(-1, 1).Draw(t, "error"))
			records = append(records, r)
		}
		fit, err := FitThroughput(records)
		if err != nil && !errors.Is(err, ErrIterations) {
			if fit.Used > 0 {
				t.Fatal(err)
			}
			return
		}
		if err := fit.Throughput.Check(); err != nil {
			t.Fatal(err)
		}
		l, b := newTiming(records), priors(records)
		l.tied = frozen(b, alphaNode)
		var p params
		for i := range p {
			p[i] = math.Pow(10, rapid.Float64Range(-6, 1).Draw(t, "start"))
		}
		for _, eps := range []float64{1e-3, 1e-6} {
			p, _, _ = l.descend(p, &b, eps, 1e-8, 100)
		}
		tried++
		if fit.Loss > 1.01*l.loss(p)+1e-6 {
			caught++
		}
	})
	if tried == 0 || caught*50 > tried {
		t.Errorf("another start is over 1 %% better in %d of %d cases", caught, tried)
	}
}

// Whatever is recorded, the fit is a model or says that there is none.
func TestFitThroughputOfAnyRecords(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.OneOf(rapid.Float64(), rapid.Float64Range(0, 1e9), rapid.Just(tiny), rapid.Just(1e8))
		number := rapid.OneOf(rapid.IntRange(-1, 100), rapid.IntRange(1, 1<<40))
		var records []Record
		for range rapid.IntRange(0, 10).Draw(t, "records") {
			records = append(records, Record{
				Nodes: rapid.IntRange(0, 4).Draw(t, "nodes"), GPUs: number.Draw(t, "gpus"), PerGPU: number.Draw(t, "m"),
				Grad: seconds.Draw(t, "grad"), Last: seconds.Draw(t, "last"),
			})
		}
		fit, err := FitThroughput(records)
		if fit.Used+len(fit.Rejected) != len(records) {
			t.Fatalf("%d used and %d rejected of %d", fit.Used, len(fit.Rejected), len(records))
		}
		if fit.Used == 0 {
			if err == nil {
				t.Fatal("no measurement, no error")
			}
			return
		}
		if err != nil && !errors.Is(err, ErrIterations) {
			t.Fatal(err)
		}
		if err := fit.Throughput.Check(); err != nil || !(fit.Loss >= 0 && fit.Loss < 1e9) {
			t.Fatalf("loss %v, %v", fit.Loss, err)
		}
	})
}

// placements are the measured times of a model on 1 to 4 nodes, by (N, K, m).
func placements(t testing.TB, model string) []Record {
	t.Helper()
	f, err := os.Open(shared.Dir(t, "pollux", "models", model, "placements.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	var p Profile
	for _, row := range rows[1:] {
		gpus := 0
		for _, digit := range row[0] {
			gpus += int(digit - '0')
		}
		m, _ := strconv.Atoi(row[1])
		step, _ := strconv.ParseFloat(row[2], 64)
		sync, _ := strconv.ParseFloat(row[3], 64)
		if err := p.Add(len(row[0]), gpus, Batch{PerGPU: m}, 0, step, sync); err != nil {
			t.Fatal(err)
		}
	}
	return p.Records()
}

func TestPolluxPaperThroughputError(t *testing.T) {
	t.Run("§3.2 mean error over six models at most 10 %", func(t *testing.T) {
		var models mean
		for _, model := range []string{"bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"} {
			records := placements(t, model)
			fit, err := FitThroughput(records)
			if err != nil {
				t.Fatal(err)
			}
			var miss mean
			for _, r := range records {
				miss.add(math.Abs(fit.Throughput.Iter(r.Nodes, r.GPUs, Batch{PerGPU: r.PerGPU})/r.Last - 1))
			}
			t.Logf("%s: %d records, mean error %.1f %%, loss %.4f", model, len(records), 100*miss.value(), fit.Loss)
			models.add(miss.value())
		}
		if !(models.value() <= .10) {
			t.Errorf("mean error %.1f %%", 100*models.value())
		}
	})
}

func BenchmarkFitThroughput(b *testing.B) {
	var golden [][]Record
	for _, c := range readGoldenGoodput(b).Fit {
		golden = append(golden, c.records())
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := FitThroughput(golden[i%len(golden)]); err != nil {
			b.Fatal(err)
		}
	}
}
