package data

import "math"

// Windows of a spectrogram: 20 ms of 16 kHz, every 10 ms.
const (
	soundRate    = 16000
	soundWindow  = 320
	soundHop     = 160
	soundPitches = soundWindow/2 + 1
)

// soundFrames returns how many whole windows so many samples have.
func soundFrames(samples int) int {
	if samples < soundWindow {
		return 0
	}
	return (samples-soundWindow)/soundHop + 1
}

// soundQuarter is how many factors a pitch needs: a wave's quarters mirror each other.
const soundQuarter = soundWindow/4 + 1

// waves are the factors of the Fourier transform of a window, [pitch][quarter], and
// Hann's window.
type waves struct{ cos, sin, hann []float64 }

func newWaves() *waves {
	w := &waves{make([]float64, soundPitches*soundQuarter), make([]float64, soundPitches*soundQuarter), make([]float64, soundWindow)}
	for i := range w.hann {
		w.hann[i] = 0.5 - 0.5*math.Cos(2*math.Pi*float64(i)/soundWindow)
	}
	for k := range soundPitches {
		for i := range soundQuarter {
			w.sin[k*soundQuarter+i], w.cos[k*soundQuarter+i] = math.Sincos(2 * math.Pi * float64(k*i%soundWindow) / soundWindow)
		}
	}
	return w
}

// folded are the samples of a window that meet the same factor, added up: for even
// and for odd pitches, with the cosines and with the sines.
type folded struct{ cos, sin [2][soundQuarter]float64 }

// fold uses that with N samples cos and sin of pitch k at N-i are those at i, but for
// the sine's sign, and at N/2-i the same, but for the signs (-1)ᵏ and -(-1)ᵏ.
func (f *folded) fold(x []float32, hann []float64) {
	const half = soundWindow / 2
	at := func(i int) float64 { return float64(x[i]) * hann[i] }
	pair := func(i int) (sum, difference float64) {
		a, b := at(i), at(soundWindow-i)
		return a + b, a - b
	}
	first, middle := at(0), at(half)
	f.cos[0][0], f.cos[1][0] = first+middle, first-middle
	for i := 1; i < half/2; i++ {
		a, b := pair(i)
		c, d := pair(half - i)
		f.cos[0][i], f.cos[1][i] = a+c, a-c
		f.sin[0][i], f.sin[1][i] = b-d, b+d
	}
	a, b := pair(half / 2)
	f.cos[0][half/2], f.cos[1][half/2] = a, a
	f.sin[0][half/2], f.sin[1][half/2] = b, b
}

// spectrogram writes the logarithm of the power of each pitch in each window of a
// recording, and makes their mean 0 and their variance 1.
func (w *waves) spectrogram(dst []float32, samples []float32) {
	sum, squares := 0.0, 0.0
	var f folded
	for t := range len(dst) / soundPitches {
		f.fold(samples[t*soundHop:], w.hann)
		for k := range soundPitches {
			v := math.Log(f.power(w, k) + 1e-10)
			dst[t*soundPitches+k] = float32(v)
			sum += v
			squares += v * v
		}
	}
	n := max(float64(len(dst)), 1)
	mean := sum / n
	deviation := math.Sqrt(max(squares/n-mean*mean, 1e-10))
	for i, v := range dst {
		dst[i] = float32((float64(v) - mean) / deviation)
	}
}

// power is that of pitch k.
func (f *folded) power(w *waves, k int) float64 {
	re, im := 0.0, 0.0
	cos, sin := w.cos[k*soundQuarter:(k+1)*soundQuarter], w.sin[k*soundQuarter:(k+1)*soundQuarter]
	even, odd := &f.cos[k%2], &f.sin[k%2]
	for i := range even {
		re += even[i] * cos[i]
		im += odd[i] * sin[i]
	}
	return re*re + im*im
}
