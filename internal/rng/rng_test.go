package rng

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

const samples = 200_000

// TestGolden pins the generator: a checkpoint's seed must mean the same values in
// every later release and on every machine.
func TestGolden(t *testing.T) {
	k := NewKey(1, 2, 3)
	got := fmt.Sprintf("%#x %#x %#x %v %x %x %d", uint64(k), k.Uint64(0), k.Uint64(1<<40), k.Float64(7), k.Normal(0), k.Normal(1<<33), k.Intn(5, 1000))
	const want = "0xd56d0264932a233f 0x5bc581b04a97c4df 0xa64bdf7f4d60e834 0.16499196512402903 0x1.85d231606687p-05 -0x1.89477d9a7565dp-02 345"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// TestMix holds the mixer to the published first outputs of SplitMix64 seeded with 1234567.
func TestMix(t *testing.T) {
	for i, want := range []uint64{6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431, 16408922859458223821} {
		if got := Key(1234567).Uint64(uint64(i)); got != want {
			t.Errorf("value %d is %d, want %d", i, got, want)
		}
	}
}

// TestUniform compares the histogram with the uniform distribution (χ² with 99
// degrees of freedom exceeds 160 with probability 1e-4; the stream is fixed).
func TestUniform(t *testing.T) {
	const cells = 100
	hist := func(draw func(i uint64) int) float64 {
		var count [cells]int
		for i := range uint64(samples) {
			count[draw(i)]++
		}
		chi := 0.0
		for _, c := range count {
			d := float64(c) - samples/cells
			chi += d * d / (samples / cells)
		}
		return chi
	}
	k := NewKey(42)
	for name, draw := range map[string]func(i uint64) int{
		"Float64":        func(i uint64) int { return int(k.Float64(i) * cells) },
		"Intn":           func(i uint64) int { return k.Intn(i, cells) },
		"key by counter": func(i uint64) int { return NewKey(42, i).Intn(0, cells) },
		"first part":     func(i uint64) int { return NewKey(i, 42).Intn(0, cells) },
		"stride 2^32":    func(i uint64) int { return k.Intn(i<<32, cells) },
	} {
		if chi := hist(draw); chi > 160 || chi < 50 {
			t.Errorf("%s: χ² is %.1f, want about 99", name, chi)
		}
	}
}

// TestNormal compares the empirical distribution with Φ (Kolmogorov and Smirnov:
// √n·D exceeds 1.95 with probability 1e-3) and the first moments.
func TestNormal(t *testing.T) {
	k := NewKey(7)
	x := make([]float64, samples)
	var m [5]float64
	for i := range x {
		x[i] = k.Normal(uint64(i))
		p := 1.0
		for j := range m {
			m[j] += p / samples
			p *= x[i]
		}
	}
	slices.Sort(x)
	d := 0.0
	for i, v := range x {
		phi := 0.5 * math.Erfc(-v/math.Sqrt2)
		d = max(d, math.Abs(phi-float64(i)/samples), math.Abs(phi-float64(i+1)/samples))
	}
	if d *= math.Sqrt(samples); d > 1.95 {
		t.Errorf("√n·D is %.2f, want below 1.95", d)
	}
	for j, want := range []float64{1, 0, 1, 0, 3} {
		// The standard error of moment j is below √(E x^2j / n).
		if err := math.Abs(m[j] - want); err > 4*math.Sqrt([]float64{1, 1, 3, 15, 105}[j]/samples) {
			t.Errorf("moment %d is %.4f, want %.0f", j, m[j], want)
		}
	}
	if x[0] > -4 || x[samples-1] < 4 {
		t.Errorf("the tails end at %.2f and %.2f; too short for %d samples", x[0], x[samples-1], samples)
	}
}

func TestLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		x := rapid.Float64Range(1e-300, 1).Draw(t, "x")
		if rapid.Bool().Draw(t, "near 1") {
			x = 1 - x/1e6
		}
		if got, want := log(x), math.Log(x); math.Abs(got-want) > 4e-16*math.Abs(want) {
			t.Fatalf("log(%v) = %v, want %v", x, got, want)
		}
	})
}

// TestAvalanche flips single bits of key parts and counters: about half of the
// output bits must follow.
func TestAvalanche(t *testing.T) {
	flips := 0
	const tries = 64 * 200
	for i := range uint64(200) {
		for bit := range 64 {
			flips += bits.OnesCount64(NewKey(i, 3).Uint64(9) ^ NewKey(i^1<<bit, 3).Uint64(9))
		}
	}
	if mean := float64(flips) / tries; math.Abs(mean-32) > 0.25 {
		t.Errorf("a flipped bit of the key turns %.2f bits of the value, want 32", mean)
	}
}

func TestRanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOfN(rapid.Uint64(), 0, 4).Draw(t, "parts")
		i := rapid.Uint64().Draw(t, "i")
		k := NewKey(parts...)
		if x := k.Float64(i); x < 0 || x >= 1 {
			t.Fatalf("Float64 is %v", x)
		}
		n := rapid.IntRange(1, math.MaxInt).Draw(t, "n")
		if x := k.Intn(i, n); x < 0 || x >= n {
			t.Fatalf("Intn(%d) is %d", n, x)
		}
		if x := k.Normal(i); math.IsNaN(x) || math.Abs(x) > 12 {
			t.Fatalf("Normal is %v", x)
		}
		if len(parts) > 1 && parts[0] != parts[1] {
			parts[0], parts[1] = parts[1], parts[0]
			if NewKey(parts...) == k {
				t.Fatalf("the order of the parts %v does not matter", parts)
			}
		}
	})
}

func BenchmarkNormal(b *testing.B) {
	k, i := NewKey(1), uint64(0)
	for b.Loop() {
		k.Normal(i)
		i++
	}
}

func ExampleKey() {
	// Any machine draws the dropout mask of example 17 in epoch 3 alike.
	mask := NewKey(1, 3, 17)
	for i := range uint64(4) {
		fmt.Print(mask.Float64(i) < 0.5, " ")
	}
	// Output: false true true false
}
