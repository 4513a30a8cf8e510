package vec

import (
	"math"
	"testing"
	"unsafe"

	"pgregory.net/rapid"

	"optimus/compute/cpu/internal/fence"
	"optimus/internal/rng"
)

// numbers draws n arguments, of which many are special.
func numbers(r *rapid.T, label string, n int) []float32 {
	return rapid.SliceOfN(rapid.OneOf(
		rapid.Float32Range(-20, 20),
		rapid.Float32Range(-110, 110),
		rapid.Map(rapid.Uint32(), math.Float32frombits),
		rapid.SampledFrom([]float32{0, float32(math.Copysign(0, -1)), float32(math.Inf(1)), float32(math.Inf(-1)), 0.625, -0.625, 1, 0x1p-126, 0x1p-149}),
	), n, n).Draw(r, label)
}

// TestElementwise holds every kernel to the function of one element, bit for bit, at all
// lengths, with each array against a page that must not be touched.
func TestElementwise(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		k := kernelsAt(name)
		f := fence.New(t, 3)
		unaries := map[string]struct {
			kernel func(n int, y, x *float32)
			one    func(float32) float32
		}{
			"exp": {k.exp, Exp32}, "log": {k.log, Log32}, "tanh": {k.tanh, Tanh32}, "sigmoid": {k.sigmoid, Sigmoid32}, "relu": {k.relu, relu},
		}
		binaries := map[string]struct {
			kernel func(n int, y, a, b *float32)
			one    func(a, b float32) float32
		}{
			"reluGrad": {k.reluGrad, reluGrad}, "tanhGrad": {k.tanhGrad, tanhGrad}, "mul": {k.mul, mul},
		}
		rapid.Check(t, func(r *rapid.T) {
			n := rapid.IntRange(0, 100).Draw(r, "n")
			front := rapid.Bool().Draw(r, "front")
			y, a, b := f.Put(0, make([]float32, n), front), f.Put(1, numbers(r, "a", n), front), f.Put(2, numbers(r, "b", n), front)
			for op, o := range unaries {
				unary(op, o.kernel, o.one, y, a)
				for i, got := range y {
					if want := o.one(a[i]); !equal(got, want) {
						r.Fatalf("%s of element %d, %g, is %g, want %g", op, i, a[i], got, want)
					}
				}
			}
			for op, o := range binaries {
				binary(op, o.kernel, o.one, y, a, b)
				for i, got := range y {
					if want := o.one(a[i], b[i]); !equal(got, want) {
						r.Fatalf("%s of element %d, (%g, %g), is %g, want %g", op, i, a[i], b[i], got, want)
					}
				}
			}
		})
	})
}

func TestReductions(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		k := kernelsAt(name)
		f := fence.New(t, 2)
		rapid.Check(t, func(r *rapid.T) {
			n := rapid.IntRange(0, 300).Draw(r, "n")
			front := rapid.Bool().Draw(r, "front")
			x, y := f.Put(0, numbers(r, "x", n), front), f.Put(1, numbers(r, "y", n), front)
			same64(r, "sum", sumAt(k, x), sumAt(&plain, x))
			same64(r, "dot", dotAt(k, x, y), dotAt(&plain, x, y))
			got, at := maxAt(k, x)
			want, wantAt := maxAt(&plain, x)
			if !equal(got, want) || at != wantAt {
				r.Fatalf("the maximum is %g at %d, want %g at %d", got, at, want, wantAt)
			}
			for _, v := range x {
				if v > got {
					r.Fatalf("the maximum is %g, but there is %g", got, v)
				}
			}
		})
	})
}

// TestGreater compares maxima of columns, with the places in memory that ends at a page
// that must not be touched.
func TestGreater(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		f := fence.New(t, 3)
		rapid.Check(t, func(r *rapid.T) {
			n, rows := rapid.IntRange(1, 100).Draw(r, "n"), rapid.IntRange(1, 5).Draw(r, "rows")
			front := rapid.Bool().Draw(r, "front")
			all := numbers(r, "x", n*rows)
			y, at := f.Put(0, all[:n], front), f.Put(1, make([]float32, n), front)
			places := unsafe.Slice((*int32)(unsafe.Pointer(&at[0])), n)
			for row := 1; row < rows; row++ {
				greaterAt(kernelsAt(name), y, places, f.Put(2, all[row*n:(row+1)*n], front), int32(row))
			}
			for j := range n {
				want, place := all[j], 0
				for row := 1; row < rows; row++ {
					if v := all[row*n+j]; math.IsNaN(float64(v)) || v > want {
						want, place = v, row
					}
				}
				if !equal(y[j], want) || int(places[j]) != place {
					r.Fatalf("the maximum of column %d is %g in row %d, want %g in row %d", j, y[j], places[j], want, place)
				}
			}
		})
	})
}

func same64(r *rapid.T, what string, got, want float64) {
	if math.Float64bits(got) != math.Float64bits(want) && (got == got || want == want) {
		r.Fatalf("%s is %v, want %v", what, got, want)
	}
}

// TestSumKeepsDigits adds numbers whose naive float32 sum is far off.
func TestSumKeepsDigits(t *testing.T) {
	x := make([]float32, 1<<20+3)
	exact := 0.0
	for i := range x {
		x[i] = 1e4 + float32(rng.NewKey(1).Normal(uint64(i)))
		exact += float64(x[i])
	}
	if got := Sum(x); math.Abs(got-exact) > 1e-12*exact {
		t.Errorf("the sum is %.9f, want %.9f", got, exact)
	}
	if got, want := Dot(x[:2], []float32{1, -1}), float64(x[0])-float64(x[1]); got != want {
		t.Errorf("the dot product is %v, want %v", got, want)
	}
}

func TestMaxTable(t *testing.T) {
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	each(t, func(t *testing.T, name string) {
		for _, c := range []struct {
			x  []float32
			v  float32
			at int
		}{
			{nil, -inf, -1}, {[]float32{nan}, nan, 0}, {[]float32{nan, -3}, -3, 1}, {[]float32{-inf, -inf}, -inf, 0},
			{[]float32{-5, -2, -2, -9}, -2, 1}, {[]float32{1, inf, nan, inf}, inf, 1},
		} {
			if v, at := maxAt(kernelsAt(name), c.x); !equal(v, c.v) || at != c.at {
				t.Errorf("the maximum of %v is %g at %d, want %g at %d", c.x, v, at, c.v, c.at)
			}
		}
	})
}

// TestDropoutMask compares with the stream's own values, for rates at and around the drawn ones.
func TestDropoutMask(t *testing.T) {
	each(t, func(t *testing.T, name string) {
		f := fence.New(t, 1)
		rapid.Check(t, func(r *rapid.T) {
			key, first := rng.Key(rapid.Uint64().Draw(r, "key")), rapid.Uint64().Draw(r, "first")
			mask := f.Put(0, make([]float32, rapid.IntRange(0, 200).Draw(r, "n")), rapid.Bool().Draw(r, "front"))
			rate := rapid.OneOf(rapid.Just(0.0), rapid.Float64Range(0, 0.999), rapid.Just(key.Float64(first))).Draw(r, "rate")
			dropoutAt(kernelsAt(name), mask, key, first, rate)
			for i, got := range mask {
				want := float32(0)
				if key.Float64(first+uint64(i)) >= rate {
					want = float32(1 / (1 - rate))
				}
				if got != want {
					r.Fatalf("element %d is %v, want %v", i, got, want)
				}
			}
		})
	})
}

func FuzzLengths(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint16(17))
	f.Add([]byte("a longer seed of sixteen bytes and more"), uint16(64))
	f.Fuzz(func(t *testing.T, seed []byte, n uint16) {
		n %= 2000
		fences := fence.New(t, 2)
		x := make([]float32, n)
		for i := range x {
			var b uint32
			for j := range 4 {
				b = b<<8 | uint32(at(seed, 4*i+j))
			}
			x[i] = math.Float32frombits(b)
		}
		x, y := fences.Put(0, x, n%2 == 0), fences.Put(1, make([]float32, n), n%2 == 0)
		each(t, func(t *testing.T, name string) {
			k := kernelsAt(name)
			for op, o := range map[string]struct {
				kernel func(n int, y, x *float32)
				one    func(float32) float32
			}{"exp": {k.exp, Exp32}, "log": {k.log, Log32}, "tanh": {k.tanh, Tanh32}, "sigmoid": {k.sigmoid, Sigmoid32}} {
				unary(op, o.kernel, o.one, y, x)
				for i, got := range y {
					if want := o.one(x[i]); !equal(got, want) {
						t.Fatalf("%s(%g) is %g, want %g", op, x[i], got, want)
					}
				}
			}
		})
	})
}

func at(b []byte, i int) byte {
	if len(b) == 0 {
		return 0
	}
	return b[i%len(b)] + byte(i/len(b))
}
