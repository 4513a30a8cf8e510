package data

import (
	"cmp"
	"fmt"
	"math"

	"optimus/internal/rng"
)

// GenerateNDSB1 makes n grey pictures with the shape of [OpenNDSB1]'s set, a
// quarter of them for validation, of 121 classes if o.Classes is 0. See
// [GenerateImageNet] for what they show.
func GenerateNDSB1(n int, o PictureOptions) (*Set, error) {
	return generatePictures("NDSB1", n, 4, o, figures{side: ndsb1Side, classes: 121, grey: true}, ndsb1Levels())
}

// GenerateCaltech makes n pictures with the shape of [OpenCaltech]'s set, a sixth
// of them for validation, of 257 classes if o.Classes is 0, as Caltech-256 has.
func GenerateCaltech(n int, o PictureOptions) (*Set, error) {
	return generatePictures("Caltech", n, 6, o, figures{side: colourSide, classes: 257}, imageNetMean())
}

// GenerateImageNet makes n pictures with the shape of [OpenImageNet]'s set, a sixth
// of them for validation, of 1,000 classes if o.Classes is 0.
//
// Each shows one figure. Its class, read as digits of one base, is an outline (so
// many lobes, with a hole or without), a texture and, in colour, a hue; place,
// size, turn, brightness, background and noise are random. What a linear model can
// read is the hue. Pictures are painted when they are asked for; the same n, seed,
// side and classes make the same set.
func GenerateImageNet(n int, o PictureOptions) (*Set, error) {
	return generatePictures("ImageNet", n, 6, o, figures{side: colourSide, classes: 1000}, imageNetMean())
}

// generatePictures makes a set of which 1 in holdout is for validation. f is what
// the options leave open.
func generatePictures(name string, n, holdout int, o PictureOptions, f figures, scale *levels) (*Set, error) {
	op := "generate " + name
	if err := checkCount(op, n); err != nil {
		return nil, err
	}
	var err error
	if f.side, err = o.side(op, f.side); err != nil {
		return nil, err
	}
	f.classes = cmp.Or(o.Classes, f.classes)
	if f.classes < 1 || f.classes > f.most() {
		return nil, &Error{Op: op, Kind: BadOption, Detail: fmt.Sprintf("%d classes; there are figures for 1 to %d", f.classes, f.most()), Do: "ask for so many"}
	}
	base := f.base()
	key := func(i int) rng.Key { return rng.NewKey(o.Seed, 'p', 'a', 'i', 'n', 't', uint64(i)) }
	labels := make([]int32, n)
	for i := range labels {
		labels[i] = int32(key(i).Intn(0, f.classes))
	}
	load := func(i int) ([]byte, error) { return f.paint(int(labels[i]), base, key(i), f.side, f.side), nil }
	identity := func(i int) string { return fmt.Sprintf("%d painted by %x", i, uint64(key(i))) }
	g := newGallery(o, f.planes(), f.side, labels, processors(), load, identity)
	ids, cut := all(n), n-max(n/holdout, 1)
	s := newPictureSet(name+" (generated)", f.names(base), g, ids[:cut], g, ids[cut:], scale)
	s.Generated = true
	return s, nil
}

// forms is how many outlines there are, six numbers of lobes with a hole or
// without; and how many textures, six patterns on light ground or on darker.
const forms = 12

// figures are the figures of a set.
type figures struct {
	side, classes int
	grey          bool
}

// base returns the smallest base in which the classes have two digits, in colour
// three.
func (f figures) base() int {
	for b := 1; ; b++ {
		if n := b * b; f.grey && n >= f.classes || !f.grey && n*b >= f.classes {
			return b
		}
	}
}

func (f figures) planes() int {
	if f.grey {
		return 1
	}
	return 3
}

// most returns how many classes there can be.
func (f figures) most() int {
	if f.grey {
		return forms * forms
	}
	return forms * forms * forms
}

// names returns the names of the classes, such as "outline-3-texture-0-hue-2".
func (f figures) names(base int) []string {
	names := make([]string, f.classes)
	for k := range names {
		names[k] = fmt.Sprintf("outline-%d-texture-%d", k%base, k/base%base)
		if !f.grey {
			names[k] += fmt.Sprintf("-hue-%d", k/base/base)
		}
	}
	return names
}

// paint returns the planes of a picture of the class, of the given size.
func (f figures) paint(class, base int, key rng.Key, width, height int) []byte {
	const noise = 8 // standard deviation, of 255
	between := func(i uint64, lo, hi float64) float64 { return lo + (hi-lo)*key.Float64(i) }
	radius := between(1, 0.25, 0.4) * float64(min(width, height))
	x, y := between(2, radius, float64(width)-radius), between(3, radius, float64(height)-radius)
	sin, cos := math.Sincos(between(4, 0, 2*math.Pi))
	light, ground := between(5, 150, 230), between(6, 20, 90)
	if f.grey {
		ground = between(6, 0, 40)
	}
	hue := 2 * math.Pi * (float64(class/base/base) + between(7, -0.2, 0.2)) / float64(base)

	planes, area := f.planes(), width*height
	var colour [3]float64
	for c := range planes {
		colour[c] = light
		if !f.grey {
			colour[c] *= 0.6 + 0.4*math.Cos(hue-2*math.Pi*float64(c)/3)
		}
	}
	pixels := make([]byte, planes*area)
	for i := range area {
		dx, dy := (float64(i%width)-x)/radius, (float64(i/width)-y)/radius
		u, v := dx*cos-dy*sin, dx*sin+dy*cos
		shade, inside := 0.0, outline(class%base, u, v)
		if inside {
			shade = texture(class/base%base, u, v)
		}
		for c := range planes {
			value := ground
			if inside {
				value = colour[c] * shade
			}
			value += noise * bell(key.Uint64(uint64(64+c*area+i)))
			if f.grey { // plankton is dark, and its ground light
				value = 255 - value
			}
			pixels[c*area+i] = byte(min(max(value, 0), 255))
		}
	}
	return pixels
}

// outline reports whether a point is inside the figure, which lies within the unit
// circle: a disc, or r < 1 - (1 + cos mθ)/4 with m = 2 to 6 lobes; from digit 6 on
// the same with a hole.
func outline(digit int, u, v float64) bool {
	r, m := math.Hypot(u, v), digit%6+1
	switch {
	case r >= 1 || digit >= 6 && r < 0.35:
		return false
	case m == 1 || r == 0:
		return r < 0.9
	}
	re, im := 1.0, 0.0 // (cos θ + i sin θ)ᵐ = cos mθ + i sin mθ
	for range m {
		re, im = (re*u-im*v)/r, (re*v+im*u)/r
	}
	return r < 1-(1+re)/4
}

// texture returns how light the figure is at a point.
func texture(digit int, u, v float64) float64 {
	stripe := func(x, width float64) bool { return math.Mod(x+8, 2*width) < width }
	dark := false
	switch r := math.Hypot(u, v); digit % 6 {
	case 1:
		dark = stripe(u, 0.35)
	case 2:
		dark = stripe(u, 0.15)
	case 3:
		dark = stripe(r, 0.25)
	case 4:
		dark = stripe(u, 0.25) != stripe(v, 0.25)
	case 5:
		dark = u < 0
	}
	switch {
	case dark:
		return 0.35
	case digit >= 6:
		return 0.65
	}
	return 1
}
