package estimate

import (
	"encoding/csv"
	"errors"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"

	"gonum.org/v1/gonum/mat"

	"optimus/internal/shared"
)

type testbedModel struct {
	name  string
	batch int
	rows  []Probe
}

// testbed reads the measured speeds, 10 failed ones among them: a row with a worker
// at speed 0 has speed 0.
func testbed(t testing.TB) []testbedModel {
	f, err := os.Open(shared.Dir(t, "speed", "testbed_speed.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines, err := csv.NewReader(f).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	number := func(s string) float64 {
		v, err := strconv.ParseFloat(s, 64)
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
	var models []testbedModel
	for _, l := range lines[1:] {
		if len(models) == 0 || models[len(models)-1].name != l[0] {
			models = append(models, testbedModel{name: l[0], batch: int(number(l[2]))})
		}
		m := &models[len(models)-1]
		p := Probe{int(number(l[3])), int(number(l[4])), number(l[5]) / float64(m.batch)}
		for _, w := range strings.Split(l[6], ";") {
			if number(w) == 0 {
				p.Speed = 0
			}
		}
		m.rows = append(m.rows, p)
	}
	if len(models) != 6 {
		t.Fatalf("%d models", len(models))
	}
	return models
}

// meanError is the mean relative error of a fit on the rows that it did not see.
func meanError(fit SpeedFit, rows, seen []Probe) float64 {
	known := map[Probe]bool{}
	for _, p := range seen {
		known[p] = true
	}
	sum, n := 0.0, 0
	for _, r := range rows {
		if r.Speed == 0 || known[r] {
			continue
		}
		f, _ := fit.At(r.Servers, r.Workers)
		sum += math.Abs(f-r.Speed) / r.Speed
		n++
	}
	return sum / float64(n)
}

// measured looks the speeds of a design up in the rows.
func measured(design, rows []Probe) []Probe {
	out := make([]Probe, len(design))
	for i, d := range design {
		for _, r := range rows {
			if r.Servers == d.Servers && r.Workers == d.Workers {
				out[i] = r
			}
		}
	}
	return out
}

// truth makes noise-free measurements of a form.
func truth(form Form, theta []float64, at ...[2]int) []Probe {
	fit := SpeedFit{Form: form, Theta: theta, cov: mat.NewDense(len(theta), len(theta), nil)}
	var out []Probe
	for _, c := range at {
		f, _ := fit.At(c[0], c[1])
		out = append(out, Probe{c[0], c[1], f})
	}
	return out
}

func grid(total int) [][2]int {
	var out [][2]int
	for p := 1; p < total; p++ {
		for w := 1; p+w <= total; w++ {
			out = append(out, [2]int{p, w})
		}
	}
	return out
}

var table2Sync = []float64{1.02, 2.78, 4.92, 0.001, 0.02}

func TestFitSpeedRank(t *testing.T) {
	form := Sync(40)
	probes := truth(form, table2Sync, [2]int{1, 1}, [2]int{2, 2}, [2]int{4, 4}, [2]int{8, 8}, [2]int{16, 16})
	var e *RankError
	for want := 3; want < 5; want++ { // p = w only determines 3 of 5 coefficients
		_, err := FitSpeed(form, probes)
		if !errors.As(err, &e) || e.Rank != want || e.Need != 5 || !e.HaveNext {
			t.Fatalf("rank %d: error %v", want, err)
		}
		probes = append(probes, truth(form, table2Sync, [2]int{e.Next.Servers, e.Next.Workers})...)
	}
	fit, err := FitSpeed(form, probes)
	if err != nil {
		t.Fatalf("after the two measurements that the errors asked for: %v", err)
	}
	for j, want := range table2Sync {
		if math.Abs(fit.Theta[j]-want) > 1e-6 {
			t.Errorf("θ = %v, want %v", fit.Theta, table2Sync)
		}
	}
	failed := append(probes[:4:4], Probe{1, 2, 0})
	if _, err := FitSpeed(form, failed); !errors.As(err, &e) || e.Next.Servers == 1 && e.Next.Workers == 2 {
		t.Errorf("the configuration that failed is asked for again: %v", err)
	}
	if _, err := FitSpeed(form, nil); !errors.As(err, &e) || e.Rank != 0 {
		t.Errorf("no measurements: %v", err)
	}
}

func TestFitSpeedRejects(t *testing.T) {
	form := Sync(40)
	at := [][2]int{{1, 1}, {1, 4}, {4, 1}, {4, 4}, {2, 8}, {8, 2}, {8, 8}, {2, 2}}
	good := truth(form, table2Sync, at...)
	for _, speed := range []float64{0, math.NaN(), math.Inf(1), -1} {
		fit, err := FitSpeed(form, append([]Probe{{3, 3, speed}}, good...))
		if err != nil || len(fit.Rejected) != 1 || fit.Rejected[0].Index != 0 || fit.Used != len(good) {
			t.Errorf("speed %v: %+v, %v", speed, fit.Rejected, err)
		}
	}
	for slow := range good { // any one measurement three times too slow
		probes := append([]Probe(nil), good...)
		probes[slow].Speed /= 3
		fit, err := FitSpeed(form, probes)
		if err != nil || len(fit.Rejected) != 1 || fit.Rejected[0].Index != slow {
			t.Errorf("slow measurement %d: rejected %+v, %v", slow, fit.Rejected, err)
			continue
		}
		for j, want := range table2Sync {
			if math.Abs(fit.Theta[j]-want) > 1e-6 {
				t.Errorf("slow measurement %d: θ = %v", slow, fit.Theta)
			}
		}
	}
	if _, err := FitSpeed(form, []Probe{{0, 1, 1}}); err == nil {
		t.Error("p = 0: no error")
	}
}

func TestFailedMeasurementsAreFiltered(t *testing.T) {
	failed := 0
	for _, m := range testbed(t) {
		fit, err := FitSpeed(Sync(m.batch), m.rows)
		if err != nil {
			t.Fatal(err)
		}
		zero := 0
		for _, r := range fit.Rejected {
			if r.Probe.Speed == 0 {
				zero++
			}
		}
		failed += zero
		if e := meanError(fit, m.rows, nil); e > .10 {
			t.Errorf("%s: mean error %.1f %%", m.name, 100*e)
		}
	}
	if failed != 9 {
		t.Errorf("%d failed measurements filtered, the file has 9", failed)
	}
}

// The standard error must be about as large as the errors are.
func TestStandardErrorIsHonest(t *testing.T) {
	for name, fitter := range map[string]func(Form, []Probe) (SpeedFit, error){"form": FitSpeed, "refined": Refine} {
		inside, n := 0, 0
		for _, m := range testbed(t) {
			probes := designed(t, Sync(m.batch), m.rows, 10)
			fit, err := fitter(Sync(m.batch), probes)
			if err != nil {
				t.Fatal(err)
			}
			for _, r := range m.rows {
				if f, se := fit.At(r.Servers, r.Workers); r.Speed > 0 {
					n++
					if math.Abs(f-r.Speed) < 2*se {
						inside++
					}
				}
			}
		}
		share := float64(inside) / float64(n)
		t.Logf("%s: %.1f %% of the measured speeds lie within two standard errors", name, 100*share)
		if share < .80 || share > .99 {
			t.Errorf("%s: %.1f %% within two standard errors", name, 100*share)
		}
	}
}

func TestNextProbe(t *testing.T) {
	form := Sync(40)
	candidates := truth(form, table2Sync, grid(6)...)
	var design []Probe
	for range candidates {
		next, ok := NextProbe(form, design, candidates)
		if !ok || next.Speed != 0 {
			t.Fatalf("after %d: %+v, %v", len(design), next, ok)
		}
		for _, d := range design {
			if d.Servers == next.Servers && d.Workers == next.Workers {
				t.Fatalf("%+v twice", next)
			}
		}
		next.Speed = 1
		design = append(design, next)
	}
	if next, ok := NextProbe(form, design, candidates); ok {
		t.Errorf("all measured, still %+v", next)
	}
	if _, err := FitSpeed(form, measured(design[:5], candidates)); err != nil {
		t.Errorf("the first five probes do not determine the coefficients: %v", err)
	}
}

// designed draws n successful probes; one that failed is measured elsewhere.
func designed(t testing.TB, form Form, rows []Probe, n int) []Probe {
	t.Helper()
	var tried, good []Probe
	for len(good) < n {
		next, ok := NextProbe(form, tried, rows)
		if !ok {
			t.Fatal("no candidate left")
		}
		m := measured([]Probe{next}, rows)
		tried = append(tried, m...)
		if m[0].Speed > 0 {
			good = append(good, m...)
		}
	}
	return good
}
