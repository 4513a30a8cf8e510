package data

import (
	"io"
	"math"
)

// pictures is labelled pictures of one size, as bytes in planes.
type pictures struct {
	planes, side int
	pixels       []byte // planes·side·side a picture
	labels       []byte
}

func (p *pictures) size() int { return p.planes * p.side * p.side }

func (p *pictures) at(i int) []byte { return p.pixels[i*p.size() : (i+1)*p.size()] }

// newBytePictures makes a set, with the normalisation of its training pictures.
func newBytePictures(name string, train, valid *pictures, classes []string) *Set {
	scale := train.normalisation()
	return &Set{
		Name:    name,
		Classes: classes,
		Picture: []int{train.planes, train.side, train.side},
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
	area := p.side * p.side
	for i := range p.labels {
		picture := p.at(i)
		for c := range p.planes {
			for _, v := range picture[c*area : (c+1)*area] {
				counts[c][v]++
			}
		}
	}
	n := float64(max(len(p.labels), 1) * area)
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
	planes, side := s.from.planes, s.from.side
	area, size := side*side, s.from.size()
	b.resize(len(ids), 2)
	pixels := b.Inputs[0].floats(len(ids), planes, side, side)
	labels := b.Inputs[1].ints(len(ids))
	for i, id := range ids {
		if err := checkID("read picture", id, s.Len()); err != nil {
			return err
		}
		row, picture := pixels[i*size:(i+1)*size], s.from.at(id)
		for c := range planes {
			level := &s.scale[c]
			plane := row[c*area : (c+1)*area]
			for j, v := range picture[c*area : (c+1)*area] {
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
