package graph

import (
	"fmt"
	"math"
	"math/rand/v2"

	G "gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
	"pgregory.net/rapid"

	"optimus/compute"
	"optimus/compute/cpu"
	"optimus/compute/optim"
	"optimus/nn"
)

// twin builds one model twice, with package nn and with Gorgonia, layer by layer.
// Blocks have the same names and layouts in both.
type twin struct {
	n       *nn.Net
	g       *G.ExprGraph
	batch   int
	inputs  []any // values of n's inputs in their order: []float32 or []int32
	learned map[string]*G.Node
	loss    *G.Node
	r       *rand.Rand
}

// both is a value of the twins: of shape S per example in nn, (batch,S…) in Gorgonia.
type both struct {
	nn *nn.Value
	g  *G.Node
}

func newTwin(r *rapid.T) *twin {
	return &twin{n: nn.New("twin"), g: G.NewGraph(), learned: map[string]*G.Node{},
		batch: rapid.IntRange(2, 5).Draw(r, "batch"), r: rand.New(rand.NewPCG(rapid.Uint64().Draw(r, "seed"), 0))}
}

func (t *twin) normal(n int) []float32 {
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(t.r.NormFloat64())
	}
	return x
}

func (t *twin) whole(n, limit int) []int32 {
	x := make([]int32, n)
	for i := range x {
		x[i] = int32(t.r.IntN(limit))
	}
	return x
}

// constant is a node that holds given values.
func (t *twin) constant(name string, x []float32, shape ...int) *G.Node {
	return G.NewTensor(t.g, G.Float32, len(shape), G.WithShape(shape...), G.WithName(name), G.WithValue(tensor.New(tensor.WithShape(shape...), tensor.WithBacking(x))))
}

// block is a learnable that nn calls by the same name, of a size that keeps values
// about as large as they are.
func (t *twin) block(name string, shape ...int) *G.Node {
	size := tensor.Shape(shape).TotalSize()
	x, scale := t.normal(size), float32(math.Sqrt(float64(shape[0])/float64(size)))
	for i := range x {
		x[i] *= scale
	}
	t.learned[name] = t.constant(name, x, shape...)
	return t.learned[name]
}

func (t *twin) floats(shape ...int) both {
	x := t.normal(t.batch * tensor.Shape(shape).TotalSize())
	name := fmt.Sprintf("x%d", len(t.inputs))
	t.inputs = append(t.inputs, x)
	return both{t.n.Floats(name, shape...), t.constant(name, x, append([]int{t.batch}, shape...)...)}
}

// rows is x·wᵀ + b of Gorgonia, on rows.
func (t *twin) rows(name string, x *G.Node, in, out int) *G.Node {
	w, b := t.block(name+".weight", out, in), t.block(name+".bias", 1, out)
	return G.Must(G.BroadcastAdd(G.Must(G.Mul(x, G.Must(G.Transpose(w, 1, 0)))), b, nil, []byte{0}))
}

func (t *twin) dense(name string, x both, out int) both {
	return both{t.n.Dense(name, x.nn, out, optim.Init{}), t.rows(name, x.g, x.nn.Size(), out)}
}

func (t *twin) flat(x both) both {
	return both{t.n.Flatten(x.nn), G.Must(G.Reshape(x.g, tensor.Shape{t.batch, x.nn.Size()}))}
}

func (t *twin) conv(name string, x both, c nn.Conv) both {
	y, w := t.n.Conv2D(name, x.nn, c), c.Window
	filter := t.block(name+".weight", c.Filters, x.nn.Shape[0], w.KH, w.KW)
	z := G.Must(G.Conv2d(x.g, filter, tensor.Shape{w.KH, w.KW}, []int{w.PadH, w.PadW}, []int{w.StrideH, w.StrideW}, []int{1, 1}))
	if !c.NoBias {
		z = G.Must(G.BroadcastAdd(z, t.block(name+".bias", 1, c.Filters, 1, 1), nil, []byte{0, 2, 3}))
	}
	return both{y, z}
}

func (t *twin) norm(name string, x both) both {
	shape := x.g.Shape()
	if len(shape) == 2 {
		x.g = G.Must(G.Reshape(x.g, tensor.Shape{shape[0], shape[1], 1, 1}))
	}
	c := shape[1]
	y, _, _, _, err := G.BatchNorm(x.g, t.block(name+".gamma", 1, c, 1, 1), t.block(name+".beta", 1, c, 1, 1), 0.9, 1e-5)
	return both{t.n.BatchNorm(name, x.nn), G.Must(G.Reshape(G.Must(y, err), shape))}
}

// end adds the loss, the sum over examples of the cross entropy.
func (t *twin) end(scores both) {
	classes := scores.nn.Size()
	labels := t.whole(t.batch, classes)
	t.inputs = append(t.inputs, labels)
	t.n.SoftmaxCrossEntropy(scores.nn, t.n.Ints("label", 1, classes))
	hot := make([]float32, t.batch*classes)
	for i, l := range labels {
		hot[i*classes+int(l)] = 1
	}
	p := G.Must(G.HadamardProd(G.Must(G.LogSoftMax(scores.g)), t.constant("hot", hot, t.batch, classes)))
	t.loss = G.Must(G.Neg(G.Must(G.Sum(G.Must(G.Sum(p, 1))))))
}

// compare runs both and returns how far loss and gradients are apart, relative to
// the largest element of each gradient.
func (t *twin) compare() (far float64, where string, err error) {
	p, err := t.n.Program()
	if err != nil {
		return 0, "", err
	}
	if len(p.Params) != len(t.learned) {
		return 0, "", fmt.Errorf("%d blocks, %d learnables", len(p.Params), len(t.learned))
	}
	loss, grads, err := t.gorgonia(p)
	if err != nil {
		return 0, "", err
	}
	e, err := cpu.Compile(p, t.batch)
	if err != nil {
		return 0, "", err
	}
	defer e.Close()
	b := &compute.Batch{N: t.batch}
	for _, in := range t.inputs {
		a := compute.Array{}
		a.F, _ = in.([]float32)
		a.I, _ = in.([]int32)
		b.Inputs = append(b.Inputs, a)
	}
	for block, param := range p.Params {
		x := t.learned[param.Name].Value().(*tensor.Dense).Float32s()
		if !param.Rows {
			e.SetParam(block, 0, x)
			continue
		}
		rows, err := e.Rows(block, b)
		if err != nil {
			return 0, "", err
		}
		for _, row := range rows {
			e.SetRow(block, int(row), 0, x[int(row)*param.RowSize():][:param.RowSize()])
		}
	}
	r, err := e.Train(b, compute.Key{}, compute.Hooks{})
	if err != nil {
		return 0, "", err
	}
	far, where = math.Abs(r.Loss-loss)/math.Max(1, math.Abs(loss)), "loss"
	for block, param := range p.Params {
		got := e.Grad(block)
		mine := got.Dense
		if param.Rows {
			mine = make([]float32, param.Size())
			for i, row := range got.Rows {
				copy(mine[int(row)*param.RowSize():], got.Values[i*param.RowSize():][:param.RowSize()])
			}
		}
		largest, apart := 1.0, 0.0
		for i, g := range grads[block] {
			largest = math.Max(largest, math.Abs(float64(g)))
			apart = math.Max(apart, math.Abs(float64(g-mine[i])))
		}
		if apart /= largest; !(apart <= far) {
			far, where = apart, param.Name
		}
	}
	return far, where, nil
}

// gorgonia returns the loss and the gradients of Gorgonia's tape machine.
func (t *twin) gorgonia(p *compute.Program) (loss float64, grads [][]float32, err error) {
	var learned G.Nodes
	for _, param := range p.Params {
		n := t.learned[param.Name]
		if n == nil || n.Shape().TotalSize() != param.Size() {
			return 0, nil, fmt.Errorf("block %s %v: the learnable is %v", param.Name, param.Shape, n)
		}
		learned = append(learned, n)
	}
	if _, err := G.Grad(t.loss, learned...); err != nil {
		return 0, nil, err
	}
	vm := G.NewTapeMachine(t.g, G.BindDualValues(learned...))
	defer vm.Close()
	if err := vm.RunAll(); err != nil {
		return 0, nil, err
	}
	for _, n := range learned {
		v, err := n.Grad()
		if err != nil {
			return 0, nil, err
		}
		g, err := floats(v)
		if err != nil {
			return 0, nil, err
		}
		grads = append(grads, g)
	}
	l, err := floats(t.loss.Value())
	return float64(l[0]), grads, err
}
