package gemm

import (
	"context"
	"errors"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"optimus/compute/cpu/sgemm"
	"optimus/internal/level"
)

func shapes() []Shape {
	return []Shape{{M: 5, N: 33, K: 17}, {M: 64, N: 20, K: 9, TransA: true}, {M: 3, N: 70, K: 40, TransB: true}, {M: 7, N: 5, K: 3, TransA: true, TransB: true}}
}

// TestRun: every figure that should be there is, and no other.
func TestRun(t *testing.T) {
	lib, absent := openBLAS("", level.Plain)
	if absent == nil {
		if err := lib.close(); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range level.Present() {
		rep, err := Run(context.Background(), Options{Shapes: shapes(), Rounds: 3, Slice: time.Microsecond, Level: name})
		if err != nil {
			t.Fatal(err)
		}
		if rep.Level != name || len(rep.Results) != len(shapes()) {
			t.Fatalf("level %s: report %+v", name, rep)
		}
		blas := rep.Absent == nil
		if blas != (absent == nil) || blas != (rep.OpenBLAS != "") {
			t.Errorf("level %s: OpenBLAS is %q, absent: %v; before: %v", name, rep.OpenBLAS, rep.Absent, absent)
		}
		t.Logf("level %s: %s", name, rep.OpenBLAS)
		for i, r := range rep.Results {
			if diff := cmp.Diff(shapes()[i], r.Shape); diff != "" {
				t.Errorf("result %d: %s", i, diff)
			}
			for what, is := range map[string]struct {
				x    float64
				want bool
			}{
				"ours": {r.Ours, true}, "packed": {r.Packed, true}, "OpenBLAS": {r.OpenBLAS, blas}, "ratio": {r.Ratio, blas},
				"peak": {r.Peak, name != level.Plain}, "share": {r.Share, name != level.Plain},
			} {
				if (is.x > 0) != is.want || math.IsInf(is.x, 0) {
					t.Errorf("level %s, %v: %s is %v; OpenBLAS absent: %v", name, r.Shape, what, is.x, rep.Absent)
				}
			}
		}
	}
}

// TestOpenBLAS: what OpenBLAS is asked for is our product, and its environment
// variables neither count nor change.
func TestOpenBLAS(t *testing.T) {
	t.Setenv("OPENBLAS_CORETYPE", "no such core")
	t.Setenv("OPENBLAS_NUM_THREADS", "3")
	lib, err := openBLAS("", level.Plain)
	if err != nil {
		t.Skip(err)
	}
	if got := os.Getenv("OPENBLAS_CORETYPE") + ", " + os.Getenv("OPENBLAS_NUM_THREADS"); got != "no such core, 3" {
		t.Errorf("the environment has become %q", got)
	}
	defer func() {
		if err := lib.close(); err != nil {
			t.Error(err)
		}
	}()
	for _, s := range shapes() {
		a, lda := matrix(1, s.M, s.K, s.TransA)
		b, ldb := matrix(2, s.K, s.N, s.TransB)
		got, want := make([]float32, s.M*s.N), make([]float32, s.M*s.N)
		lib.product(s, a, lda, b, ldb, got)()
		sgemm.Gemm(s.TransA, s.TransB, s.M, s.N, s.K, a, lda, b, ldb, false, want, s.N)
		for i := range got {
			if math.Abs(float64(got[i]-want[i])) > 1e-5 {
				t.Fatalf("%v, element %d: OpenBLAS has %v, we %v", s, i, got[i], want[i])
			}
		}
	}
	if again, err := openBLAS("no such core", level.Plain); again != nil || err == nil || !strings.Contains(err.Error(), "no such core") {
		t.Errorf("unknown kernels: %v, error %v", again, err)
	}
}

func TestRefused(t *testing.T) {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := Run(ended, Options{Shapes: shapes()}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: error %v", err)
	}
	for want, o := range map[string]Options{
		"must be positive":   {Rounds: -1},
		"shape 0 × 1 × 1":    {Shapes: []Shape{{N: 1, K: 1}}},
		"no such level":      {Level: "mmx"},
		"load OpenBLAS":      {Core: "no such core"},
		"shape 1 × 2 × -3 t": {Shapes: []Shape{{M: 1, N: 2, K: -3, TransA: true}}},
	} {
		if _, err := Run(context.Background(), o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: error %v, want %q", o, err, want)
		}
	}
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		x    []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1, 5}, 5}} {
		if got := median(c.x); got != c.want {
			t.Errorf("median of %v is %v", c.x, got)
		}
	}
	if diff := cmp.Diff([]float64{2, 0.5}, over([]float64{4, 1}, []float64{2, 2})); diff != "" {
		t.Error(diff)
	}
	if got := over([]float64{1}, nil); len(got) != 0 {
		t.Errorf("quotients with nothing: %v", got)
	}
}
