package pieces

import (
	"fmt"
	"math"
	"slices"

	"pgregory.net/rapid"

	"optimus/compute/optim"
)

// reference is the plain sequential trainer that stores are compared with:
// whole blocks, one contribution after the other, no pieces.
type reference struct {
	cfg     Config
	params  [][]float32
	slots   [][][]float32
	updates []int64
}

func newReference(cfg Config, seed uint64) *reference {
	r := &reference{cfg: cfg}
	for b, p := range slices.Concat(cfg.Params, cfg.Aux) {
		x := make([]float32, p.Size())
		p.Init.Fill(seed, b, 0, x)
		r.params = append(r.params, x)
		n := cfg.Optimizer.Slots()
		if b >= len(cfg.Params) {
			n = 0
		}
		state := make([][]float32, n)
		for i := range state {
			state[i] = make([]float32, p.Size())
		}
		r.slots = append(r.slots, state)
	}
	r.updates = make([]int64, len(r.params))
	return r
}

// gradient is what one worker adds to one block: for rows, the touched ones.
type gradient struct {
	rows   []int32
	values []float32
	weight int64
}

// step applies the gradients[worker][block] of one step.
func (r *reference) step(t failer, version int64, gradients [][]gradient) {
	excess := r.excess(t, gradients)
	for b := range r.params {
		sum, touched, weight := r.sum(b, gradients)
		if weight == 0 {
			continue
		}
		r.updates[b]++
		for at := range sum { // one element at a time: the plainest way there is
			if !touched[at] {
				continue
			}
			x := r.params[b][at : at+1]
			if r.cfg.Carried && b == len(r.params)-1 {
				x[0] = sum[at]
				continue
			}
			if b >= len(r.cfg.Params) {
				check(t, optim.Average(x, x, sum[at:at+1], weight, r.cfg.AuxMomentum))
				continue
			}
			var state [][]float32
			for _, s := range r.slots[b] {
				state = append(state, s[at:at+1])
			}
			check(t, r.cfg.Optimizer.Apply(optim.Update{T: r.updates[b], LR: r.cfg.Optimizer.Rate(version), Decay: !r.cfg.Params[b].NoDecay,
				Params: x, Out: x, State: state, StateOut: state, Grad: sum[at : at+1], Weight: weight, Excess: excess}))
		}
	}
}

// sum adds up the gradients of a block; touched says which elements anybody pushed.
func (r *reference) sum(b int, gradients [][]gradient) (sum []float32, touched []bool, weight int64) {
	sum = make([]float32, len(r.params[b]))
	touched = make([]bool, len(sum))
	for _, of := range gradients {
		g := of[b]
		weight += g.weight
		size := len(sum)
		rows := []int32{0}
		if g.rows != nil {
			size, rows = r.cfg.Params[b].RowSize(), g.rows
		}
		for k, row := range rows {
			for i := range size {
				at := int(row)*size + i
				if touched[at] {
					sum[at] += g.values[k*size+i]
				} else {
					sum[at], touched[at] = g.values[k*size+i], true
				}
			}
		}
	}
	return sum, touched, weight
}

// excess is what a step's gradient must be divided by. It must be the norm of all
// learned blocks, but for the rounding of its squares.
func (r *reference) excess(t failer, gradients [][]gradient) float64 {
	bound := r.cfg.Optimizer.ClipNorm
	if bound == 0 {
		return 1
	}
	var exact optim.Squares
	var norm float64
	for b := range r.cfg.Params {
		sum, _, weight := r.sum(b, gradients)
		if weight == 0 {
			continue
		}
		exact.Add(sum, weight, bound)
		for _, x := range sum {
			norm += math.Pow(float64(x)/float64(weight), 2)
		}
	}
	want := max(1, math.Sqrt(norm)/bound)
	if got := exact.Excess(); !(math.Abs(got/want-1) < 1e-9) {
		t.Fatal(fmt.Sprintf("excess %v, want %v", got, want))
	}
	return exact.Excess()
}

func (r *reference) digest() (params, state uint64) {
	for b := range r.params {
		t := Part{Block: b, Params: r.params[b], Slots: r.slots[b], Updates: r.updates[b]}
		x, y := t.Digest()
		params, state = params+x, state+y
	}
	return params, state
}

// cluster is several stores that share a model.
type cluster struct {
	t          *rapid.T
	cfg        Config
	stores     []*Store
	owned      [][]ID // by store
	generation int
	dropped    int // generations dropped since
	workers    []Worker
	version    int64
	mail       *mail
}

// mail are votes on their way. They may be late, and come twice.
type mail struct{ list []posted }

type posted struct {
	to   int // store
	vote Vote
}

// newStore returns store k, which votes by mail.
func (c *cluster) newStore(k int) *Store {
	cfg, post := c.cfg, c.mail
	cfg.Vote = func(v Vote) {
		if v.Server != k {
			c.t.Fatalf("store %d sends the vote %+v", k, v)
		}
		for to := range 4 {
			if to != k {
				post.list = append(post.list, posted{to, v})
			}
		}
	}
	s, err := New(cfg)
	c.must(err)
	return s
}

// deliver delivers about one in n of the votes under way.
func (c *cluster) deliver(n int) {
	for i := 0; i < len(c.mail.list); {
		if rapid.IntRange(1, n).Draw(c.t, "deliver") > 1 {
			i++
			continue
		}
		m := c.mail.list[i]
		if rapid.IntRange(0, 3).Draw(c.t, "again") > 0 {
			c.mail.list = slices.Delete(c.mail.list, i, i+1)
		} else {
			i++
		}
		if m.to < len(c.owned) && len(c.owned[m.to]) > 0 {
			if out, err := c.stores[m.to].Vote(m.vote); err != nil {
				c.t.Fatalf("vote %+v: %v (%v)", m, out, err)
			}
		}
	}
}

// settle delivers all votes.
func (c *cluster) settle() {
	for len(c.mail.list) > 0 {
		c.deliver(1)
	}
}

// voters returns the stores that hold pieces.
func voters(owned [][]ID) (list []int) {
	for k, ids := range owned {
		if len(ids) > 0 {
			list = append(list, k)
		}
	}
	return list
}

// cut divides the blocks at random among servers.
func cut(t *rapid.T, cfg Config, servers int) [][]ID {
	owned := make([][]ID, servers)
	for b, p := range slices.Concat(cfg.Params, cfg.Aux) {
		cuts := []int{0, p.Size()}
		for range rapid.IntRange(0, 3).Draw(t, "cuts") {
			cuts = append(cuts, rapid.IntRange(0, p.Size()).Draw(t, "cut"))
		}
		slices.Sort(cuts)
		cuts = slices.Compact(cuts)
		for i := 1; i < len(cuts); i++ {
			k := rapid.IntRange(0, servers-1).Draw(t, "server")
			owned[k] = append(owned[k], ID{b, cuts[i-1], cuts[i] - cuts[i-1]})
		}
	}
	return owned
}

func newCluster(t *rapid.T, cfg Config, seed uint64) *cluster {
	c := &cluster{t: t, cfg: cfg, generation: 1, workers: workers(rapid.IntRange(1, 4).Draw(t, "w")), mail: new(mail)}
	c.owned = cut(t, cfg, rapid.IntRange(1, 4).Draw(t, "p"))
	for k, ids := range c.owned {
		s := c.newStore(k)
		c.must(s.Install(Generation{Number: 1, Workers: c.workers, Pieces: ids, Voters: voters(c.owned), Server: k}))
		c.must(s.Init(1, seed, 0))
		c.must(s.Commit(1))
		c.stores = append(c.stores, s)
	}
	return c
}

func (c *cluster) must(err error) {
	if err != nil {
		c.t.Fatal(err)
	}
}

// addressed is a push and the store that it goes to.
type addressed struct {
	store int
	push  Push
}

// addressedPushes cuts gradients[worker][block] into pushes for the owners.
func addressedPushes(cfg Config, number int, step int64, members []Worker, owned [][]ID, gradients [][]gradient) []addressed {
	var list []addressed
	for w, of := range gradients {
		for store, ids := range owned {
			for _, id := range ids {
				g := of[id.Block]
				u := Push{Generation: number, Step: step, From: members[w], Piece: id, Weight: g.weight}
				if g.rows == nil {
					u.Values = g.values[id.Offset : id.Offset+id.Size]
				} else {
					size := cfg.Params[id.Block].RowSize()
					for k, row := range g.rows {
						if lo, hi := RowSpan(size, id, int(row)); lo < hi {
							at := k*size + id.Offset + lo - int(row)*size
							u.Rows = append(u.Rows, row)
							u.Values = append(u.Values, g.values[at:at+hi-lo]...)
						}
					}
				}
				list = append(list, addressed{store, u})
			}
		}
	}
	return list
}

// drawGradients draws what each worker adds to each block.
func drawGradients(t *rapid.T, cfg Config, workers int) [][]gradient {
	value := rapid.Custom(func(t *rapid.T) float32 {
		return float32(math.Ldexp(float64(rapid.Int16().Draw(t, "mantissa")), rapid.IntRange(-20, -8).Draw(t, "exponent")))
	})
	values := func(n int) []float32 { return rapid.SliceOfN(value, n, n).Draw(t, "values") }
	all := make([][]gradient, workers)
	for w := range all {
		weight := rapid.Int64Range(0, 3).Draw(t, "weight")
		for _, p := range slices.Concat(cfg.Params, cfg.Aux) {
			g := gradient{weight: weight}
			if p.Rows && rapid.Bool().Draw(t, "by rows") {
				g.rows = []int32{}
				for r := range p.Shape[0] {
					if rapid.Bool().Draw(t, "touch") {
						g.rows = append(g.rows, int32(r))
					}
				}
				g.values = values(len(g.rows) * p.RowSize())
			} else {
				g.values = values(p.Size())
			}
			all[w] = append(all[w], g)
		}
	}
	return all
}

// send delivers pushes in a random order, some twice.
func (c *cluster) send(list []addressed) {
	order := rapid.Permutation(list).Draw(c.t, "arrival")
	defer c.deliver(2)
	for i, a := range order {
		out, err := c.stores[a.store].Push(a.push)
		if out != Accepted {
			c.t.Fatalf("push %+v: %v (%v)", a.push, out, err)
		}
		if rapid.IntRange(0, 3).Draw(c.t, "retry") == 0 {
			b := order[rapid.IntRange(0, i).Draw(c.t, "which")]
			if out, err := c.stores[b.store].Push(b.push); out != Duplicate {
				c.t.Fatalf("retried push %+v: %v (%v)", b.push, out, err)
			}
		}
		c.deliver(4)
	}
}

// rewind takes all stores back to the cluster's version.
func (c *cluster) rewind() {
	for _, s := range c.stores {
		c.must(s.Rewind(c.version))
	}
}

// transition moves to a new generation with other workers and servers. Some
// pushes of the step that follows arrive before Commit; it returns the rest. It
// may be dropped, and then nothing has happened.
func (c *cluster) transition(draw func(workers int) [][]gradient) (rest []addressed, gradients [][]gradient) {
	t, number := c.t, c.generation+c.dropped+1 // numbers are not used twice
	members := workers(rapid.IntRange(1, 4).Draw(t, "w"))
	owned := cut(t, c.cfg, rapid.IntRange(1, 4).Draw(t, "p"))
	if rapid.Bool().Draw(t, "same cuts") {
		owned = c.owned
	}
	stores := slices.Clone(c.stores)
	for len(stores) < len(owned) {
		stores = append(stores, c.newStore(len(stores)))
	}
	for len(owned) < len(stores) {
		owned = append(slices.Clone(owned), nil) // these leave
	}
	for k, s := range stores {
		c.must(s.Install(Generation{Number: number, Workers: members, Pieces: owned[k], Voters: voters(owned), Server: k}))
	}
	gradients = draw(len(members))
	list := rapid.Permutation(addressedPushes(c.cfg, number, c.version+1, members, owned, gradients)).Draw(t, "early order")
	early := rapid.IntRange(0, len(list)).Draw(t, "early")
	old := c.stores
	for k, s := range stores {
		if k < len(old) {
			c.must(s.FillLocal(number, c.version))
		}
		for _, id := range s.Missing(number) {
			c.fetch(s, number, id)
		}
		c.must(s.SetVersion(number, c.version))
	}
	next := &cluster{t: t, cfg: c.cfg, stores: stores, owned: owned, generation: number, workers: members, version: c.version, mail: c.mail}
	next.send(list[:early])
	if rapid.IntRange(0, 2).Draw(t, "drop") == 0 {
		for _, s := range stores {
			c.must(s.Drop(number))
		}
		for _, a := range list[:early] {
			if a.store < len(old) {
				if out, _ := old[a.store].Push(a.push); out != Refresh {
					t.Fatalf("push of the dropped generation: %v", out)
				}
			}
		}
		c.dropped++
		return nil, nil
	}
	var params, state, wantParams, wantState uint64
	for k, s := range stores {
		p, q := s.DigestPending(number)
		params, state = params+p, state+q
		if k < len(old) {
			p, q = s.Digest()
			wantParams, wantState = wantParams+p, wantState+q
		}
	}
	if params != wantParams || state != wantState {
		t.Fatal("the digests of the two generations differ")
	}
	for _, s := range stores {
		next.deliver(4) // to stores that have committed and to others
		c.must(s.Commit(number))
	}
	*c = *next
	return list[early:], gradients
}

// fetch fills a missing range of a new owner from the old ones.
func (c *cluster) fetch(to *Store, number int, id ID) {
	for k, ids := range c.owned {
		for _, have := range ids {
			if o, ok := overlap(id, have); ok {
				part, err := c.stores[k].Extract(o, c.version)
				c.must(err)
				c.must(to.Fill(number, part))
			}
		}
	}
}

// compare fails unless the stores hold the reference's bits.
func (c *cluster) compare(r *reference) {
	var params, state uint64
	for k, s := range c.stores {
		p, q := s.Digest()
		params, state = params+p, state+q
		for _, id := range c.owned[k] {
			part, err := s.Extract(id, c.version)
			c.must(err)
			if part.Updates != r.updates[id.Block] {
				c.t.Fatalf("%v has %d updates, want %d", id, part.Updates, r.updates[id.Block])
			}
			c.same(fmt.Sprintf("parameters of %v at %d", id, c.version), part.Params, r.params[id.Block][id.Offset:][:id.Size])
			for i, x := range part.Slots {
				c.same(fmt.Sprintf("state %d of %v at %d", i, id, c.version), x, r.slots[id.Block][i][id.Offset:][:id.Size])
			}
		}
	}
	if p, q := r.digest(); p != params || q != state {
		c.t.Fatalf("digests %x %x, want %x %x", params, state, p, q)
	}
}

func (c *cluster) same(what string, got, want []float32) {
	for i := range want {
		if math.Float32bits(got[i]) != math.Float32bits(want[i]) {
			c.t.Fatalf("%s, element %d: %v, want %v", what, i, got[i], want[i])
		}
	}
}
