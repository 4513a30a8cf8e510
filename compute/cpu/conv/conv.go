package conv

import (
	"fmt"
	"sync"

	"optimus/internal/level"
)

// Config is what a plan may be told beside the shape. Its zero value is useful.
type Config struct {
	// X and Y are halos that the pictures have beyond what the convolution needs
	// itself, for other readers' sake.
	X, Y Halo
	// Blocked keeps an input of few channels in blocks, where another layer writes it so.
	Blocked bool
	// Level names the instructions (package level); empty is the process's own.
	Level string
}

// Conv is a planned convolution. It holds no data and, but for Replan, is safe for
// concurrent use.
type Conv struct {
	shape             Shape
	cfg               Config
	level             string
	x, dx, y          Layout
	parts             int // groups, or as many of them together as fill blocks, run one by one
	partC, partO      int // blocks of a part
	small             int // channels of a small group, whose parts are blocks; else 0
	forward, backward gather
	gradient          outer

	forwardOrder, gradientOrder packing
	backwardOrder               []packing // by pass

	dense   *Conv // of the pixels that a strided 1×1 takes, or nil (thin.go)
	memory  memory
	scratch sync.Pool
}

// New plans a convolution.
func New(s Shape, cfg Config) (*Conv, error) {
	s, err := s.normal()
	if err != nil {
		return nil, err
	}
	name := cfg.Level
	if name == "" {
		name, err = level.Current()
	} else {
		err = level.Check(name)
	}
	if err != nil {
		return nil, fmt.Errorf("plan convolution %v: %w", s, err)
	}
	for _, n := range []int{cfg.X.H, cfg.X.W, cfg.Y.H, cfg.Y.W} {
		if n < 0 || n > limit {
			return nil, fmt.Errorf("plan convolution %v: a halo is %d wide; it must lie between 0 and %d", s, n, limit)
		}
	}
	c := &Conv{shape: s, cfg: cfg, level: name}
	return c, c.plan()
}

// Replan makes c the plan for pictures of h rows, as New would. It works in the memory
// of the plan before, so that nothing is allocated where that was for as many rows.
// Weights must be packed again. It fails where New does, and then changes nothing.
func (c *Conv) Replan(h int) error {
	s := c.shape
	if s.H == h {
		return nil
	}
	if s.H = h; h < 1 || h > limit || s.KH > h+2*s.PadH {
		_, err := s.normal()
		return err
	}
	c.shape = s
	return c.plan()
}

// plan chooses all that follows from the shape.
func (c *Conv) plan() error {
	k := kernelsFor(c.level)
	c.memory.reset()
	c.divide(k)
	c.layouts(c.cfg)
	c.gradient = c.planGradient(k)
	c.gradientOrder = c.packForward(c.gradient.outputs)
	if c.thins() {
		if err := c.thin(); err != nil {
			return err
		}
	} else {
		c.forward, c.backward = c.planForward(k), c.planBackward(k)
	}
	c.forwardOrder, c.backwardOrder = c.packForward(c.forward.outputs), c.packBackward(c.backward.outputs)
	return nil
}

// divide merges groups until a part's channels fill whole blocks. Small groups have
// kernels for as many as share a block.
func (c *Conv) divide(k *kernels) {
	s := c.shape
	if n := s.C / s.Groups; s.Groups > 1 && s.C == s.O && n <= k.small && n&(n-1) == 0 {
		c.small, c.parts, c.partC, c.partO = n, blocks(s.C), 1, 1
		return
	}
	merged := 1
	for merged < s.Groups && (s.Groups%merged != 0 || s.C/s.Groups*merged%Lanes != 0 || s.O/s.Groups*merged%Lanes != 0) {
		merged++
	}
	c.parts = s.Groups / merged
	c.partC, c.partO = blocks(s.C/c.parts), blocks(s.O/c.parts)
}

// layouts chooses where the pixels lie. Rows outside a picture are never read, so
// only columns need a halo.
func (c *Conv) layouts(cfg Config) {
	s := c.shape
	h, w := s.OutH(), s.OutW()
	before, after := 0, 0
	for phase := range min(s.StrideW, s.W) {
		for _, r := range c.memory.phaseReach(phase, s.KW, s.StrideW, s.PadW, w) {
			before = max(before, -r.shift)
			after = max(after, r.of((s.W-phase-1)/s.StrideW)-(w-1))
		}
	}
	widen := func(h Halo, w int) Halo { return Halo{h.H, max(h.W, w)} }
	c.dx = Layout{C: s.C, H: s.H, W: s.W, Halo: widen(cfg.X, s.PadW)}
	c.x = c.dx
	c.x.Plain = s.Groups == 1 && s.C <= plainChannels && !cfg.Blocked
	c.y = Layout{C: s.O, H: h, W: w, Halo: widen(cfg.Y, max(before, after))}
}

// plainChannels is how many input channels are so few that blocks of 16 would be
// mostly zeros.
const plainChannels = 4

// X is the layout of the input, plain if it has at most 4 channels and no groups.
func (c *Conv) X() Layout { return c.x }

// DX is the layout of the input's gradient: that of X, but always blocked.
func (c *Conv) DX() Layout { return c.dx }

// Y is the layout of the output and of its gradient.
func (c *Conv) Y() Layout { return c.y }

// Level names the instructions that the plan uses.
func (c *Conv) Level() string { return c.level }

// Shape returns the shape, with ones for its zero strides and groups.
func (c *Conv) Shape() Shape { return c.shape }
