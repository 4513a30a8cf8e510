package pooling

// kernels are the functions of a level. Each does n outputs, whose windows have kh·kw pixels and lie step
// elements apart; rows of the input are row elements apart.
type kernels struct {
	maximum     func(n, kh, kw int, y, x []float32, row, step int)
	maximumGrad func(n, kh, kw int, dx, dy, y, x []float32, rowDX, row, step int)
	mean        func(n, kh, kw int, y, x []float32, row, step int, count float32)
	meanGrad    func(n, kh, kw int, dx, dy []float32, rowDX, step int, count float32)
}

var plain = kernels{maximumGo, maximumGradGo, meanGo, meanGradGo}

func maximumGo(n, kh, kw int, y, x []float32, row, step int) {
	for o := range n {
		x, y := x[o*step:], y[o*lanes:][:lanes]
		copy(y, x)
		for i := range kh {
			for j, v := range x[i*row:][:kw*lanes] {
				if l := j % lanes; v > y[l] {
					y[l] = v
				}
			}
		}
	}
}

func maximumGradGo(n, kh, kw int, dx, dy, y, x []float32, rowDX, row, step int) {
	for o := range n {
		x, dx, y := x[o*step:], dx[o*step:], y[o*lanes:][:lanes]
		g := [lanes]float32(dy[o*lanes:])
		for i := range kh {
			dx := dx[i*rowDX:][:kw*lanes]
			for j, v := range x[i*row:][:kw*lanes] {
				hit, l := float32(0), j%lanes
				if v == y[l] {
					hit, g[l] = g[l], 0
				}
				dx[j] += hit
			}
		}
	}
}

// meanGo adds the pixels of each row of a window, then the rows.
func meanGo(n, kh, kw int, y, x []float32, row, step int, count float32) {
	for o := range n {
		var all [lanes]float32
		for i := range kh {
			var line [lanes]float32
			for j, v := range x[o*step+i*row:][:kw*lanes] {
				line[j%lanes] += v
			}
			for l, v := range line {
				all[l] += v
			}
		}
		for l, v := range all {
			y[o*lanes+l] = v / count
		}
	}
}

func meanGradGo(n, kh, kw int, dx, dy []float32, rowDX, step int, count float32) {
	for o := range n {
		for i := range kh {
			dx := dx[o*step+i*rowDX:][:kw*lanes]
			for j := range dx {
				dx[j] += dy[o*lanes+j%lanes] / count
			}
		}
	}
}
