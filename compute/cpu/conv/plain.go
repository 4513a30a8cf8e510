package conv

// plain has the tiles of AVX-512, so that both sum in the same order.
var plain = kernels{
	widest: [3]int{14, 14, 7}, gather: gatherPlain, inputs: 8, blocks: 2, outer: outerPlain,
	small: 8, smallPixels: 8, smallPlaces: [4]int{3, 3, 3, 1}, gatherSmall: gatherSmallPlain, outerSmall: outerSmallPlain,
}

func gatherPlain(t tiles, x []float32, xi int, w, y, bias []float32) {
	width := Lanes * t.blocks
	var sum [4 * Lanes]float32
	s := sum[:width]
	for p := range t.n * t.pixels {
		for b := range t.blocks {
			out := y[p*t.ys+b*t.plane:][:Lanes]
			switch t.start {
			case fromZero:
				clear(s[b*Lanes:][:Lanes])
			case fromBias:
				copy(s[b*Lanes:][:Lanes], bias[b*Lanes:])
			case fromY:
				copy(s[b*Lanes:][:Lanes], out)
			}
		}
		in := p % t.pixels
		for _, tap := range t.taps {
			if tap.skip == skipFirst && in == 0 || tap.skip == skipLast && in == t.pixels-1 {
				continue
			}
			for k, v := range x[xi+p*t.xs+tap.x/size:][:t.kin] {
				row := w[(tap.w/size+k*Lanes)*t.blocks:][:width]
				for o, f := range row {
					s[o] += v * f
				}
			}
		}
		for b := range t.blocks {
			copy(y[p*t.ys+b*t.plane:][:Lanes], s[b*Lanes:])
		}
	}
}

func outerPlain(p products, x, dy, dw []float32) {
	width, inputs := Lanes*p.blocks, p.tiles*p.inputs
	for u := range p.units {
		for n := range p.images {
			for r := range p.rows {
				for c := range p.pixels {
					in := x[u*p.xu+n*p.xn+r*p.xr+c*p.xs:][:inputs]
					for b := range p.blocks {
						grad := dy[n*p.yn+r*p.yr+c*Lanes+b*p.plane:][:Lanes]
						for i, v := range in {
							out := dw[(u*inputs+i)*width+b*Lanes:][:Lanes]
							for o, g := range grad {
								out[o] += v * g
							}
						}
					}
				}
			}
		}
	}
}

func gatherSmallPlain(t tiles, x []float32, xi int, w, y, bias []float32) {
	group := t.kin
	for p := range t.n * t.pixels {
		out := y[p*t.ys:][:Lanes]
		switch t.start {
		case fromZero:
			clear(out)
		case fromBias:
			copy(out, bias)
		}
		for _, tap := range t.taps {
			in := x[xi+p*t.xs+tap.x/size:][:Lanes]
			for r := range group {
				row := w[tap.w/size+r*Lanes:][:Lanes]
				for l, f := range row {
					out[l] += in[l&^(group-1)+r] * f
				}
			}
		}
	}
}

func outerSmallPlain(p products, x, dy, dw []float32) {
	for n := range p.images {
		for r := range p.rows {
			for c := range p.pixels {
				grad := dy[n*p.yn+r*p.yr+c*Lanes:][:Lanes]
				for place := range p.inputs {
					in := x[n*p.xn+r*p.xr+c*p.xs+place*Lanes:][:Lanes]
					for k := range p.group {
						out := dw[(place*p.group+k)*Lanes:][:Lanes]
						for l, g := range grad {
							out[l] += in[l&^(p.group-1)+k] * g
						}
					}
				}
			}
		}
	}
}
