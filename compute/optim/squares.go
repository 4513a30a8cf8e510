package optim

import (
	"math"

	"optimus/internal/level"
)

// Squares is a sum of squares for clipping by the global norm: (‖g‖/c)² of a mean
// gradient g and the bound c, as a whole number of 2⁻⁵⁰, in three digits of base
// 2⁵⁰, the most significant first. The zero value is the sum of nothing.
//
// Each square is rounded once, to the nearest multiple of 2⁻⁵⁰ (ties to even), and the
// rounded squares are added as integers. So a sum is the same, bit for bit, however
// a gradient is cut into pieces and in whatever order these are added; the
// algorithms for reproducible sums get this for floating-point numbers in general
// (Demmel and Nguyen 2015), at several times the cost. A fixed quantum is good
// enough here, since only norms above the bound have an effect: of 2²⁸ elements it
// can change a norm by a part in 10⁷ at most. At the other end a square counts as
// at most 2¹¹¹, an element of 5·10¹⁶ times the bound.
type Squares [3]int64

const (
	digit      = 1 << 50
	topMost    = 1 << 61 // of the top digit, where it saturates
	squareMost = topMost * digit
	// squareChunk is how many squares below 2⁵⁰ an int64 can add up, twice over.
	squareChunk = 4096
	// minClipNorm keeps the reciprocals of bounds within float64.
	minClipNorm = 1e-30
)

// Adding one of these to a square rounds it to a whole number, or the rest to a
// whole number of 2⁻⁵⁰, and leaves that number in the sum's last bits.
const (
	roundOne  = 3 << 51            // 1.5·2⁵²: its last bit stands for 1
	roundRest = roundOne / digit   // its last bit stands for 2⁻⁵⁰
	oneBits   = 0x4338000000000000 // of roundOne
	restBits  = 0x4018000000000000 // of roundRest
)

// Add adds the squares of a piece's mean gradient sum/weight, in units of bound.
// The elements must be finite, weight and bound positive.
func (s *Squares) Add(sum []float32, weight int64, bound float64) {
	name, _ := level.Current() // where it is wrong, nothing gets this far
	by := 1 / (float64(weight) * bound)
	for len(sum) > 0 {
		n := min(len(sum), squareChunk)
		one, rest, most := squares(sum[:n], by, name)
		if most < digit {
			s.carry(0, one, rest)
		} else {
			for _, x := range sum[:n] {
				s.addLarge(square(x, by))
			}
		}
		sum = sum[n:]
	}
}

// Merge adds another sum.
func (s *Squares) Merge(o Squares) { s.carry(o[0], o[1], o[2]) }

// Excess returns ‖g‖/c, but at least 1: what the mean gradient must be divided by.
func (s Squares) Excess() float64 {
	total := float64(float64(s[0])*digit) + float64(s[1]) + float64(float64(s[2])/digit)
	return max(1, math.Sqrt(total))
}

// carry adds digits that may be larger than a digit, and the last one negative.
func (s *Squares) carry(top, one, rest int64) {
	rest += s[2]
	one += s[1] + rest>>50
	s[2], s[1] = rest&(digit-1), one&(digit-1)
	s[0] = min(s[0]+min(top+one>>50, topMost), topMost)
}

// addLarge adds a square of any size.
func (s *Squares) addLarge(y float64) {
	y = min(y, squareMost)
	top := math.Floor(y / digit)
	y -= top * digit // exact, and so are the next two
	one := math.RoundToEven(y)
	s.carry(int64(top), int64(one), int64(math.RoundToEven((y-one)*digit)))
}

func square(x float32, by float64) float64 {
	z := float64(x) * by
	return float64(z * z)
}

// squaresGo returns the sums of both digits of the squares and the largest square;
// if that has more digits the sums mean nothing. The assembly does the same to
// each element.
func squaresGo(x []float32, by float64) (one, rest int64, most float64) {
	for _, v := range x {
		y := square(v, by)
		if y > most { // none is a NaN, of which max would think
			most = y
		}
		whole := y + roundOne
		one += int64(math.Float64bits(whole) - oneBits)
		rest += int64(math.Float64bits(y-(whole-roundOne)+roundRest) - restBits)
	}
	return one, rest, most
}
