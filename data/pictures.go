package data

import (
	"io"
	"math"
)

// newCIFAR10 makes the set, with the normalisation of its training pictures.
func newCIFAR10(name string, train, valid *pictures, classes []string) *Set {
	scale := train.normalisation()
	return &Set{
		Name:    name,
		Classes: classes,
		Picture: []int{3, cifarSide, cifarSide},
		Train:   &pictureSplit{train, scale},
		Valid:   &pictureSplit{valid, scale},
	}
}

// levels maps a byte of a channel to the model's input.
type levels [3][256]float32

// normalisation returns the map to mean 0 and standard deviation 1 over all
// pixels of each channel; a channel of one value becomes 0.
func (p *pictures) normalisation() *levels {
	var counts [3][256]int64
	for i := range p.labels {
		picture := p.at(i)
		for c := range counts {
			for _, v := range picture[c*cifarPlane : (c+1)*cifarPlane] {
				counts[c][v]++
			}
		}
	}
	n := float64(max(len(p.labels), 1) * cifarPlane)
	scale := &levels{}
	for c := range counts {
		var sum, squares int64
		for v, k := range counts[c] {
			sum += int64(v) * k
			squares += int64(v) * int64(v) * k
		}
		mean := float64(sum) / n
		std := math.Sqrt(max(float64(squares)/n-mean*mean, 0))
		if std < 1e-6 {
			std = 1
		}
		for v := range scale[c] {
			scale[c][v] = float32((float64(v) - mean) / std)
		}
	}
	return scale
}

// pictureSplit is all of the pictures, normalised.
type pictureSplit struct {
	from  *pictures
	scale *levels
}

func (s *pictureSplit) Len() int { return len(s.from.labels) }

func (s *pictureSplit) Fill(ids []int, b *Batch) error {
	b.resize(len(ids), 2)
	pixels := b.Inputs[0].floats(len(ids), 3, cifarSide, cifarSide)
	labels := b.Inputs[1].ints(len(ids))
	for i, id := range ids {
		if err := checkID("read picture", id, s.Len()); err != nil {
			return err
		}
		row, picture := pixels[i*cifarPixels:(i+1)*cifarPixels], s.from.at(id)
		for c := range s.scale {
			level := &s.scale[c]
			plane := row[c*cifarPlane : (c+1)*cifarPlane]
			for j, v := range picture[c*cifarPlane : (c+1)*cifarPlane] {
				plane[j] = level[v]
			}
		}
		labels[i] = int32(s.from.labels[id])
	}
	return nil
}

func (s *pictureSplit) digest(w io.Writer) {
	w.Write(s.from.labels)
	w.Write(s.from.pixels)
}
