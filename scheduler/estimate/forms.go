package estimate

// A Form is a model of the time of a step that is linear in its coefficients θ ≥ 0.
type Form struct {
	Name  string
	Terms []string // the meaning of each coefficient
	// row writes the terms at (p, w); the model is work(w)/f = row·θ.
	row  func(dst []float64, p, w float64)
	work func(w float64) float64
}

// Sync is Eqn 4, f = (θ₀·M/w + θ₁ + θ₂·w/p + θ₃·w + θ₄·p)⁻¹, for a synchronous job
// with a global batch of M examples.
func Sync(batch int) Form {
	m := float64(batch)
	return Form{
		Name:  "sync (Eqn 4)",
		Terms: []string{"M/w", "1", "w/p", "w", "p"},
		row: func(dst []float64, p, w float64) {
			dst[0], dst[1], dst[2], dst[3], dst[4] = m/w, 1, w/p, w, p
		},
		work: func(float64) float64 { return 1 },
	}
}

// Async is Eqn 3, f = w·(θ₀ + θ₁·w/p + θ₂·w + θ₃·p)⁻¹.
func Async() Form {
	return Form{
		Name:  "async (Eqn 3)",
		Terms: []string{"1", "w/p", "w", "p"},
		row: func(dst []float64, p, w float64) {
			dst[0], dst[1], dst[2], dst[3] = 1, w/p, w, p
		},
		work: func(w float64) float64 { return w },
	}
}

// Ring is the speed of a ring all-reduce job without parameter servers (Eqn 5 of
// the ring paper), f = (θ₀·m/w + θ₁·(w−1) + θ₂·n·(w−1)/w)⁻¹ with a batch of m examples
// and a model of n bytes. The paper's constant θ₃ is left out: 1 = 1/w + (w−1)/w, so
// the other terms express it exactly, and with it the fit would have no unique
// solution. Give p = 1 for every configuration.
func Ring(batch int, bytes int64) Form {
	m, n := float64(batch), float64(bytes)
	return Form{
		Name:  "ring (Eqn 5)",
		Terms: []string{"m/w", "w-1", "n(w-1)/w"},
		row: func(dst []float64, _, w float64) {
			dst[0], dst[1], dst[2] = m/w, w-1, n*(w-1)/w
		},
		work: func(float64) float64 { return 1 },
	}
}
