package conv

// outer is the engine of backward-weights. Every element of the gradient is one
// sum over the images, rows and pixels in their order, whatever tiles, chunks
// or cores share the work.
type outer struct {
	kernel  outerKernel
	group   int // channels of a small group, or 0
	x, dy   Layout
	units   int // blocks (or planes) of input channels of a part
	outputs []span
	taps    []outerTap
	rows    int  // of the gradient in a unit
	near    int  // units that are taken together
	stride  int  // rows of x from one output row to the next
	xs      int  // elements of x from one output pixel to the next
	compact bool // the pixels of x that are used are copied together
	height  int  // output rows and columns
	width   int
	memory  *memory
}

// outerTap is a tile of the gradient: the inputs of one place of the filter.
type outerTap struct {
	x, row                   int // elements from the first pixel of a picture to its first input; its row
	tiles, inputs            int // tiles below each other and inputs of each
	top, bottom, left, right int // the outputs whose input lies in the picture
}

// chunk is the images and output rows that are taken at a time, and where their
// inputs lie.
type chunk struct {
	images, row, end int
	x                []float32
	unit, top        int // unit and output row at which x begins
	plane, xr, xn    int // from unit to unit, output row to row, image to image
	dy               []float32
	yn               int
	ahead            [2]planes // what the next chunk reads, of x and of dy
}

// run adds the gradients of n images to tasks [lo,hi) of one part. Images
// lie xn and yn elements apart.
func (g *outer) run(dw, x, dy []float32, n, xn, yn, lo, hi int, scratch []float32) {
	images, rows := g.chunk()
	block := g.near * len(g.outputs)
	for ; lo < hi; lo = min(hi, (lo/block+1)*block) {
		end := min(hi, (lo/block+1)*block)
		for i := 0; i < n; i += images {
			for row := 0; row < g.height; row += rows {
				ch := chunk{
					images: min(images, n-i), row: row, end: min(row+rows, g.height),
					x: x[i*xn:], plane: g.x.plane(), xr: g.stride * g.x.row(), xn: xn, dy: dy[i*yn:], yn: yn,
					ahead: g.ahead(x, dy, n, xn, yn, lo, i, row+rows),
				}
				if g.compact {
					g.copy(&ch, lo/block*g.near, scratch)
				}
				for t := lo; t < end; {
					t += g.tasks(dw, t, end, &ch)
				}
			}
		}
	}
}

// chunkPixels is how many output pixels are taken at a time, if that is no more
// than a row or a picture. Those of small pictures are few in all, and more at a time
// means that the gradient is read and written less often.
func (g *outer) chunkPixels() int {
	if g.width*g.height < 224 {
		return 400
	}
	return 224
}

// chunk returns how many images and rows are taken at a time.
func (g *outer) chunk() (images, rows int) {
	n := g.chunkPixels()
	rows = max(1, n/g.width)
	if rows < g.height {
		return 1, rows
	}
	return max(1, n/(g.width*g.height)), g.height
}

// scratch is how many elements run needs to copy inputs to.
func (g *outer) scratch() int {
	if !g.compact {
		return 0
	}
	images, rows := g.chunk()
	return g.near * images * rows * g.width * Lanes
}

// copy puts the pixels of near units that a strided 1×1 convolution takes side by side.
func (g *outer) copy(ch *chunk, unit int, scratch []float32) {
	row := g.width * Lanes
	to := 0
	for u := range min(g.near, g.units-unit) {
		for i := range ch.images {
			for r := ch.row; r < ch.end; r++ {
				takeRow(scratch[to:to+row], ch.x[(unit+u)*ch.plane+i*ch.xn+g.x.at(r*g.stride, 0):], g.xs)
				to += row
			}
		}
	}
	rows := ch.end - ch.row
	ch.x, ch.unit, ch.top = scratch, unit, ch.row
	ch.plane, ch.xr, ch.xn = ch.images*rows*row, row, rows*row
}

// planes is where some rows of n planes begin.
type planes struct {
	at       []float32
	n, plane int
}

// take returns the first n planes that are left, fewer at the end.
func (p *planes) take(n int) []float32 {
	if p.n <= 0 {
		return nil
	}
	out := p.at
	p.n -= n
	p.at = p.at[min(n*p.plane, len(p.at)-1):]
	return out
}

// ahead is what the tasks beside task read in the chunk that begins at an image and row.
func (g *outer) ahead(x, dy []float32, n, xn, yn, task, i, row int) (p [2]planes) {
	if row >= g.height {
		row = 0
		i++
	}
	if i >= n || row*g.stride >= g.x.H {
		return p
	}
	first := task / (g.near * len(g.outputs)) * g.near
	last := g.outputs[len(g.outputs)-1]
	p[0] = planes{x[i*xn+first*g.x.plane()+g.x.at(row*g.stride, 0):], min(g.near, g.units-first), g.x.plane()}
	p[1] = planes{dy[i*yn+g.dy.at(row, 0):], last.first + last.n, g.dy.plane()}
	return p
}

// count is how many tiles of the gradient a part has.
func (g *outer) count() int { return g.units * len(g.outputs) }

// task returns the outputs and the unit of a task, and for how many units from there
// on the next tasks have the same outputs.
func (g *outer) task(t int) (outputs span, unit, left int) {
	first := t / (g.near * len(g.outputs)) * g.near
	near := min(g.near, g.units-first)
	i := t - first*len(g.outputs)
	return g.outputs[i/near], first + i%near, near - i%near
}

// tasks adds a chunk to the units of one output span that tasks [t,end) are, and
// returns how many.
func (g *outer) tasks(dw []float32, t, end int, ch *chunk) int {
	o, unit, left := g.task(t)
	n := min(end-t, left)
	dw = dw[(o.first*g.units+unit*o.n)*g.rows*Lanes:]
	p := products{
		blocks: o.n, group: g.group, images: ch.images, units: n, xu: ch.plane,
		xs: g.xs, xr: ch.xr, xn: ch.xn, yr: g.dy.row(), yn: ch.yn, plane: g.dy.plane(),
	}
	if g.compact {
		p.xs = Lanes
	}
	if len(g.taps) > 1 { // the pixels of a unit stay near while all taps read them
		p.units = 1
	}
	for u := 0; u < n; u += p.units {
		for j := range g.taps {
			tap := &g.taps[j]
			top, bottom := max(ch.row, tap.top), min(ch.end, tap.bottom)
			if top >= bottom || tap.left >= tap.right {
				continue
			}
			p.ahead = nil
			if j == 0 {
				a := &ch.ahead[0]
				if a.n <= 0 {
					a = &ch.ahead[1]
				}
				p.ahead, p.au = a.take(p.units), a.plane
			}
			p.tiles, p.inputs, p.rows, p.pixels = tap.tiles, tap.inputs, bottom-top, tap.right-tap.left
			x := (unit+u-ch.unit)*ch.plane + (top-ch.top)*p.xr + tap.left*p.xs
			if !g.compact {
				x += tap.x
			}
			g.kernel(p, ch.x[x:], ch.dy[o.first*g.dy.plane()+g.dy.at(top, tap.left):], dw[(u*g.rows+tap.row)*Lanes*o.n:])
		}
	}
	return n
}
