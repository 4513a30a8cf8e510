package place

// ranking orders nodes by a key, largest first, equal keys by index. It is a binary heap that knows where each node
// is, so a changed key costs O(log n), and that can be walked from the top without being changed.
type ranking struct {
	keys []float64 // by node
	heap []int32   // nodes
	pos  []int32   // by node, its place in heap
}

// newRanking builds the heap of n nodes in O(n).
func newRanking(n int, key func(node int) float64) *ranking {
	r := &ranking{keys: make([]float64, n), heap: make([]int32, n), pos: make([]int32, n)}
	for i := range n {
		r.keys[i], r.heap[i], r.pos[i] = key(i), int32(i), int32(i)
	}
	for at := n/2 - 1; at >= 0; at-- {
		r.down(at)
	}
	return r
}

// above reports whether node a ranks above node b.
func (r *ranking) above(a, b int32) bool {
	if r.keys[a] != r.keys[b] {
		return r.keys[a] > r.keys[b]
	}
	return a < b
}

// update gives a node another key.
func (r *ranking) update(node int, key float64) {
	r.keys[node] = key
	at := int(r.pos[node])
	if !r.up(at) {
		r.down(at)
	}
}

func (r *ranking) up(at int) bool {
	moved := false
	for at > 0 {
		parent := (at - 1) / 2
		if !r.above(r.heap[at], r.heap[parent]) {
			break
		}
		r.swap(at, parent)
		at, moved = parent, true
	}
	return moved
}

func (r *ranking) down(at int) {
	for {
		best := at
		for child := 2*at + 1; child <= 2*at+2 && child < len(r.heap); child++ {
			if r.above(r.heap[child], r.heap[best]) {
				best = child
			}
		}
		if best == at {
			return
		}
		r.swap(at, best)
		at = best
	}
}

func (r *ranking) swap(a, b int) {
	r.heap[a], r.heap[b] = r.heap[b], r.heap[a]
	r.pos[r.heap[a]], r.pos[r.heap[b]] = int32(a), int32(b)
}

// walk yields nodes from the top, O(log k) for the k-th, while the ranking does not change.
type walk struct {
	r        *ranking
	frontier []int32 // heap of places in r.heap whose parents have been yielded
}

func (r *ranking) walk() *walk {
	w := &walk{r: r}
	if len(r.heap) > 0 {
		w.frontier = append(w.frontier, 0)
	}
	return w
}

// next returns the next node, or −1 after the last.
func (w *walk) next() int {
	if len(w.frontier) == 0 {
		return -1
	}
	at := w.pop()
	for child := 2*at + 1; child <= 2*at+2 && int(child) < len(w.r.heap); child++ {
		w.push(child)
	}
	return int(w.r.heap[at])
}

func (w *walk) above(a, b int) bool {
	return w.r.above(w.r.heap[w.frontier[a]], w.r.heap[w.frontier[b]])
}

func (w *walk) push(at int32) {
	w.frontier = append(w.frontier, at)
	for i := len(w.frontier) - 1; i > 0 && w.above(i, (i-1)/2); i = (i - 1) / 2 {
		w.frontier[i], w.frontier[(i-1)/2] = w.frontier[(i-1)/2], w.frontier[i]
	}
}

func (w *walk) pop() int32 {
	top, last := w.frontier[0], len(w.frontier)-1
	w.frontier[0] = w.frontier[last]
	w.frontier = w.frontier[:last]
	for i := 0; ; {
		best := i
		for child := 2*i + 1; child <= 2*i+2 && child < last; child++ {
			if w.above(child, best) {
				best = child
			}
		}
		if best == i {
			return top
		}
		w.frontier[i], w.frontier[best] = w.frontier[best], w.frontier[i]
		i = best
	}
}
