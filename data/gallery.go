package data

import (
	"cmp"
	"io"
	"runtime"
	"sync"
	"sync/atomic"
)

// gallery is labelled pictures of one size that are made when they are asked for:
// decoded from files, or painted. The first that are made are kept, up to so many
// bytes, and never given up for others: as each epoch asks for every
// picture once, in an order of its own, no picture is likelier than another to be
// asked for next, and a picture that is kept saves its work once an epoch.
type gallery struct {
	planes, side int // of the pictures as they are kept
	labels       []int32
	// load returns the planes·side·side bytes of a picture. It is called by many
	// goroutines and always returns the same for the same picture.
	load func(i int) ([]byte, error)
	// identity is what tells picture i from others, for the fingerprint: its file's
	// name, size and version, or what it is painted from.
	identity func(i int) string
	width    int // pictures that are loaded at once

	kept []atomic.Pointer[[]byte]
	room atomic.Int64 // bytes
}

func newGallery(o PictureOptions, planes, side int, labels []int32, width int, load func(i int) ([]byte, error), identity func(i int) string) *gallery {
	g := &gallery{planes: planes, side: side, labels: labels, load: load, identity: identity, width: width, kept: make([]atomic.Pointer[[]byte], len(labels))}
	g.room.Store(cmp.Or(o.Cache, standardCache))
	return g
}

func (g *gallery) at(i int) ([]byte, error) {
	if p := g.kept[i].Load(); p != nil {
		return *p, nil
	}
	pixels, err := g.load(i)
	if err != nil {
		return nil, err
	}
	size := int64(len(pixels))
	if g.room.Add(-size) < 0 || !g.kept[i].CompareAndSwap(nil, &pixels) {
		g.room.Add(size) // the cache is full, or another goroutine was as fast
	}
	return pixels, nil
}

// gallerySplit is some pictures of a gallery, as a model sees them: three
// channels, each value mapped by scale.
type gallerySplit struct {
	from  *gallery
	ids   []int32
	scale *levels
}

func (s *gallerySplit) Len() int { return len(s.ids) }

func (s *gallerySplit) Fill(ids []int, b *Batch) error {
	for _, id := range ids {
		if err := checkID("read picture", id, len(s.ids)); err != nil {
			return err
		}
	}
	g := s.from
	area := g.side * g.side
	b.resize(len(ids), 2)
	pixels := b.Inputs[0].floats(len(ids), 3, g.side, g.side)
	labels := b.Inputs[1].ints(len(ids))
	return inParallel(g.width, len(ids), func(i int) error {
		id := int(s.ids[ids[i]])
		picture, err := g.at(id)
		if err != nil {
			return err
		}
		labels[i] = g.labels[id]
		for c := range s.scale {
			level, from := &s.scale[c], c%g.planes*area
			plane := pixels[(3*i+c)*area:][:area]
			for j, v := range picture[from : from+area] {
				plane[j] = level[v]
			}
		}
		return nil
	})
}

// digest is of what the pictures are made from: to decode all of a large set
// would take longer than many a job.
func (s *gallerySplit) digest(w io.Writer) {
	writeInts(w, s.from.planes, s.from.side)
	for _, id := range s.ids {
		writeInts(w, int(s.from.labels[id]))
		writeStrings(w, []string{s.from.identity(int(id))})
	}
}

// processors is the width for what takes their time alone.
func processors() int { return runtime.GOMAXPROCS(0) }

// inParallel calls f for 0..n-1 on up to width goroutines. After
// an error it begins no more, and returns the error of the lowest that failed.
func inParallel(width, n int, f func(i int) error) error {
	errs := make([]error, n)
	var next atomic.Int64
	var failed atomic.Bool
	var group sync.WaitGroup
	for range min(n, width) {
		group.Go(func() {
			for i := int(next.Add(1)) - 1; i < n && !failed.Load(); i = int(next.Add(1)) - 1 {
				if errs[i] = f(i); errs[i] != nil {
					failed.Store(true)
				}
			}
		})
	}
	group.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
