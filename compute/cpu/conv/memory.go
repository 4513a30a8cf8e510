package conv

import "slices"

// memory holds the lists of a plan, each kind one behind the other, so that the next
// plan finds room.
type memory struct {
	ints     []int
	reaches  []reach
	spans    []span
	taps     []tap
	lists    [][]tap
	segments []segment
}

func (m *memory) reset() {
	m.ints, m.reaches, m.spans = m.ints[:0], m.reaches[:0], m.spans[:0]
	m.taps, m.lists, m.segments = m.taps[:0], m.lists[:0], m.segments[:0]
}

// tiling cuts n outputs into tiles of at most most, as even as they can be: width by
// width, the wider first.
func (m *memory) tiling(n, most int) []int {
	tiles, from := (n+most-1)/most, len(m.ints)
	for i := range tiles {
		m.ints = append(m.ints, (n+tiles-1-i)/tiles)
	}
	return m.ints[from:len(m.ints):len(m.ints)]
}

// classes groups rows by the filter rows that reach the picture from them: class
// of each of n rows, and a row of each class.
func (m *memory) classes(n int, filter []reach) (class []int, example []int) {
	from := len(m.ints)
	m.ints = slices.Grow(m.ints, n)[:from+n]
	class = m.ints[from : from+n]
	first := len(m.ints)
	alike := func(a, b int) bool {
		return !slices.ContainsFunc(filter, func(f reach) bool { return f.inside(a) != f.inside(b) })
	}
	for row := range n {
		if row > 0 && alike(row, row-1) {
			class[row] = class[row-1]
			continue
		}
		c := slices.IndexFunc(m.ints[first:], func(e int) bool { return alike(row, e) })
		if c < 0 {
			c = len(m.ints) - first
			m.ints = append(m.ints, row)
		}
		class[row] = c
	}
	return class, m.ints[first:len(m.ints):len(m.ints)]
}

// filterReach is what outputs read by each of k filter rows or columns.
func (m *memory) filterReach(k, stride, pad, size int) []reach {
	from := len(m.reaches)
	for i := range k {
		m.reaches = append(m.reaches, reach{i - pad, stride, size})
	}
	return m.reaches[from:len(m.reaches):len(m.reaches)]
}

// phaseReach is what the input pixels phase, phase+stride, … receive from: place i of
// the filter carries the gradient of output n + shift to the n-th of them.
func (m *memory) phaseReach(phase, k, stride, pad, out int) []reach {
	from := len(m.reaches)
	for i := firstPlace(phase, stride, pad); i < k; i += stride {
		m.reaches = append(m.reaches, reach{(phase + pad - i) / stride, 1, out})
	}
	return m.reaches[from:len(m.reaches):len(m.reaches)]
}

// firstPlace is the first place of the filter that touches the input pixels of a phase;
// the others follow stride apart.
func firstPlace(phase, stride, pad int) int { return (phase + pad) % stride }
