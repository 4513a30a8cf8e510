package data

import (
	"fmt"
	"math"

	"optimus/internal/rng"
)

// GenerateCIFAR10 makes n pictures (a sixth of them for validation, as in the
// original) with the shape of [OpenCIFAR10]'s set. Class k is an outline, a
// texture and a hue, k read as digits; where the figure lies, its size, how it
// is turned, brightness, background and noise are random. A small convolutional
// net passes 90 %; a linear model does not, as there is no pixel that tells.
// The same n and seed always make the same set.
func GenerateCIFAR10(n int, seed uint64) (*Set, error) {
	if err := checkCount("generate CIFAR-10", n); err != nil {
		return nil, err
	}
	cut := n - max(n/6, 1)
	train, valid := newCIFAR10(), newCIFAR10()
	for i := range n {
		dst := train
		if i >= cut {
			dst = valid
		}
		key := rng.NewKey(seed, 'c', 'i', 'f', uint64(i))
		class := key.Intn(0, cifarClasses)
		dst.labels = append(dst.labels, byte(class))
		dst.pixels = newFigure(class, key).paint(dst.pixels, key)
	}
	s := newBytePictures("CIFAR-10 (generated)", train, valid, figureNames())
	s.Generated = true
	return s, nil
}

// digits reads a class as outline, texture and hue.
func digits(class int) (outline, texture, hue int) {
	return class % 3, class / 3 % 2, class / 6
}

// figureNames returns the names of the classes, such as "cold-striped-disc".
func figureNames() []string {
	outlines := [3]string{"disc", "ring", "cross"}
	textures := [2]string{"plain", "striped"}
	hues := [2]string{"warm", "cold"}
	names := make([]string, cifarClasses)
	for k := range names {
		o, t, h := digits(k)
		names[k] = fmt.Sprintf("%s-%s-%s", hues[h], textures[t], outlines[o])
	}
	return names
}

// figure is what one picture shows.
type figure struct {
	outline, texture int
	colour, ground   [3]float64
	x, y, radius     float64 // in pixels
	sin, cos         float64 // of its turn
}

// newFigure draws the chances of a picture of the class.
func newFigure(class int, key rng.Key) *figure {
	between := func(i uint64, lo, hi float64) float64 { return lo + (hi-lo)*key.Float64(i) }
	f := &figure{radius: between(1, 7, 11)}
	var hue int
	f.outline, f.texture, hue = digits(class)
	f.x = between(2, f.radius, cifarSide-f.radius)
	f.y = between(3, f.radius, cifarSide-f.radius)
	f.sin, f.cos = math.Sincos(between(4, 0, 2*math.Pi))
	light, strength := between(5, 130, 230), between(6, 0.35, 0.6)
	f.colour = [3]float64{light, light * between(7, 0.6, 0.9), light * strength}
	if hue == 1 {
		f.colour[0], f.colour[2] = f.colour[2], f.colour[0]
	}
	for c := range f.ground {
		f.ground[c] = between(8+uint64(c), 20, 140)
	}
	return f
}

// paint appends the picture's three planes.
func (f *figure) paint(pixels []byte, key rng.Key) []byte {
	const noise = 12 // standard deviation, of 255
	n := len(pixels)
	pixels = append(pixels, make([]byte, cifarPixels)...)
	for i := range cifarPlane {
		cover, shade := f.at(float64(i%cifarSide), float64(i/cifarSide))
		for c := range f.colour {
			v := f.ground[c]*(1-cover) + f.colour[c]*shade*cover
			v += noise * bell(key.Uint64(uint64(64+c*cifarPlane+i)))
			pixels[n+c*cifarPlane+i] = byte(min(max(v, 0), 255))
		}
	}
	return pixels
}

// bell makes one draw into a value of mean 0 and variance 1, near enough to
// normal: the sum of its four uniform quarters (variance 4/12).
func bell(u uint64) float64 {
	sum := u&0xffff + u>>16&0xffff + u>>32&0xffff + u>>48
	return (float64(sum)/(1<<16) - 2) * 1.7320508
}

// at returns whether a pixel is the figure's (1) or the ground's (0), and how
// light the figure's texture is there.
func (f *figure) at(px, py float64) (cover, shade float64) {
	dx, dy := (px-f.x)/f.radius, (py-f.y)/f.radius
	u, v := dx*f.cos-dy*f.sin, dx*f.sin+dy*f.cos
	r := math.Hypot(u, v)
	inside := false
	switch f.outline {
	case 0:
		inside = r < 0.9
	case 1:
		inside = r < 1 && r > 0.5
	case 2:
		inside = r < 1 && min(math.Abs(u), math.Abs(v)) < 0.3
	}
	shade = 1
	if f.texture == 1 && math.Mod(u+4, 0.5) < 0.25 {
		shade = 0.4
	}
	if inside {
		cover = 1
	}
	return cover, shade
}
