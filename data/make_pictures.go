package data

import (
	"bytes"
	"fmt"
	"image"
	"image/color"
	"image/jpeg"
	"math"
	"slices"

	"optimus/internal/rng"
)

// album is pictures in class folders that are to be written.
type album struct {
	figures
	base             int
	shortest, widest int // sides, in pixels
	counts           []int
	seed             uint64
}

// newAlbum parts n pictures among as many classes as the original has, but at most one
// for ten pictures. Classes differ in size by up to a factor of spread.
func newAlbum(m *maker, f figures, shortest, widest int, spread float64) *album {
	f.classes = min(f.classes, max(m.n/10, min(2, m.n/2)))
	a := &album{figures: f, base: f.base(), shortest: shortest, widest: widest, counts: make([]int, f.classes), seed: m.seed}
	key := rng.NewKey(m.seed, 's', 'i', 'z', 'e', 's')
	weights, sum := make([]float64, f.classes), 0.0
	for k := range weights {
		weights[k] = math.Pow(spread, key.Float64(uint64(k)))
		sum += weights[k]
	}
	left := m.n
	for k := range a.counts {
		a.counts[k] = 1 + int(weights[k]/sum*float64(m.n-f.classes))
		left -= a.counts[k]
	}
	for k := 0; left > 0; k, left = k+1, left-1 { // what rounding left: less than one a class
		a.counts[k%f.classes]++
	}
	return a
}

// jpeg paints picture i and encodes it.
func (a *album) jpeg(class, i int) ([]byte, error) {
	key := rng.NewKey(a.seed, 'p', 'h', 'o', 't', 'o', uint64(i))
	side := func(i uint64) int { // small ones are likelier: its logarithm is uniform
		return int(float64(a.shortest) * math.Pow(float64(a.widest)/float64(a.shortest), key.Float64(i)))
	}
	width, height := side(0), side(1)
	pixels := a.paint(class, a.base, rng.NewKey(uint64(key), 'p', 'a', 'i', 'n', 't'), width, height)
	r := &raster{a.planes(), width, height, pixels}
	if key.Intn(2, 20) == 0 {
		r = r.grey()
	}
	var b bytes.Buffer
	err := jpeg.Encode(&b, r.image(), &jpeg.Options{Quality: 70 + key.Intn(3, 26)})
	return b.Bytes(), err
}

// image returns the picture in the form of the standard library.
func (r *raster) image() image.Image {
	bounds := image.Rect(0, 0, r.width, r.height)
	if r.planes == 1 {
		return &image.Gray{Pix: r.pixels, Stride: r.width, Rect: bounds}
	}
	area := r.width * r.height
	img := image.NewRGBA(bounds)
	for i := range area {
		img.SetRGBA(i%r.width, i/r.width, color.RGBA{r.pixels[i], r.pixels[area+i], r.pixels[2*area+i], 255})
	}
	return img
}

// write writes all pictures; name gives the place of picture j of a class, which is
// picture i of all.
func (a *album) write(m *maker, name func(class, j, i int) []string) error {
	var classes, numbers []int
	for k, count := range a.counts {
		for j := range count {
			classes, numbers = append(classes, k), append(numbers, j)
		}
	}
	return inParallel(processors(), len(classes), func(i int) error {
		b, err := a.jpeg(classes[i], i)
		if err != nil {
			return err
		}
		return m.put(b, name(classes[i], numbers[i], i)...)
	})
}

func writeCaltech(m *maker) error {
	a := newAlbum(m, figures{classes: 257}, 80, 800, 10)
	names := a.names(a.base)
	return a.write(m, func(class, j, _ int) []string {
		return []string{caltechFolders()[1], fmt.Sprintf("%03d.%s", class+1, names[class]), fmt.Sprintf("%03d_%04d.jpg", class+1, j+1)}
	})
}

// writeImageNet puts a sixth of each class, and at least one picture of all, into val.
func writeImageNet(m *maker) error {
	a := newAlbum(m, figures{classes: 1000}, 80, 800, 1.8)
	var words bytes.Buffer
	id := func(class int) string { return fmt.Sprintf("n%08d", 1440764+class) }
	for class, name := range a.names(a.base) {
		fmt.Fprintf(&words, "%s %s\n", id(class), name)
	}
	if err := m.put(words.Bytes(), synsetFile); err != nil {
		return err
	}
	largest := slices.Index(a.counts, slices.Max(a.counts))
	return a.write(m, func(class, j, i int) []string {
		held := a.counts[class] / 6
		if class == largest {
			held = max(held, 1)
		}
		if j < held {
			return []string{"val", id(class), fmt.Sprintf("ILSVRC2012_val_%08d.JPEG", i+1)}
		}
		return []string{"train", id(class), fmt.Sprintf("%s_%d.JPEG", id(class), j)}
	})
}

// writeNDSB1 also makes a tenth as many pictures without labels, and the form of a
// submission for them.
func writeNDSB1(m *maker) error {
	a := newAlbum(m, figures{classes: 121, grey: true}, 24, 422, 200)
	names := a.names(a.base)
	err := a.write(m, func(class, _, i int) []string { return []string{"train", names[class], fmt.Sprintf("%d.jpg", i+1)} })
	if err != nil {
		return err
	}
	form := &Submission{Classes: names}
	for i := m.n; i < m.n+max(m.n/10, 1); i++ {
		name := fmt.Sprintf("%d.jpg", i+1)
		b, err := a.jpeg(rng.NewKey(m.seed, 't', 'e', 's', 't').Intn(uint64(i), a.classes), i)
		if err == nil {
			err = m.put(b, "test", name)
		}
		if err != nil {
			return err
		}
		form.Images = append(form.Images, name)
		for range names {
			form.Probabilities = append(form.Probabilities, 1/float32(len(names)))
		}
	}
	var b bytes.Buffer
	if err := form.Write(&b); err != nil {
		return err
	}
	return m.put(b.Bytes(), ndsb1Form)
}
