package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"optimus/benchmarks/step"
	"optimus/data"
)

// workload is a row of the table: a set on disk, and what Pillow does to its pictures.
type workload struct {
	name, folder string
	open         func(dir string) (*data.Set, error)
	pictures     picture
}

// picture says how Pillow makes the same of a picture file.
type picture struct {
	side   int
	grey   bool
	square bool   // cut the middle out
	files  string // a pattern below the set's folder
}

func workloads() []workload {
	cold := data.PictureOptions{Cache: -1}
	return []workload{
		{"resnet-50", "imagenet", func(dir string) (*data.Set, error) { return data.OpenImageNet(dir, cold) }, picture{side: 256, square: true, files: "train/*/*"}},
		{"inception-bn", "caltech101", func(dir string) (*data.Set, error) { return data.OpenCaltech(dir, cold) }, picture{side: 256, square: true, files: "*/*/*"}},
		{"kaggle", "ndsb1", func(dir string) (*data.Set, error) { return data.OpenNDSB1(dir, cold) }, picture{side: 48, grey: true, files: "train/*/*"}},
		{"resnext-110", "cifar10", data.OpenCIFAR10, picture{}},
		{"cnn-rand", "mr", func(dir string) (*data.Set, error) { return data.OpenMR(dir, data.Options{}) }, picture{}},
		{"dssm", "text8", func(dir string) (*data.Set, error) { return data.OpenText8(dir, data.Options{}) }, picture{}},
		{"rnn-lstm", "ptb", data.OpenPTB, picture{}},
		{"seq2seq", "wmt17", func(dir string) (*data.Set, error) { return data.OpenWMT17(dir, data.PairOptions{}) }, picture{}},
		{"deepspeech2", "librispeech", func(dir string) (*data.Set, error) { return data.OpenLibriSpeech(dir, data.Options{}) }, picture{}},
	}
}

var errNoSet = errors.New("the set is not there")

// result is a row: examples in a second of one core, and ratios.
type result struct {
	fill, step, pillow float64
	toStep, toPillow   float64 // how many times faster filling is
}

// measure lets the sides take turns. Ratios are medians over the rounds, as the
// machine may be faster in one than in another.
func measure(ctx context.Context, o options, w workload, pillow bool) (result, error) {
	dir := filepath.Join(o.sets, w.folder)
	if _, err := os.Stat(dir); err != nil {
		return result{}, fmt.Errorf("%w: %w", errNoSet, err)
	}
	set, err := w.open(dir)
	if err != nil {
		return result{}, err
	}
	s, err := step.New(step.Options{Workload: w.name})
	if err != nil {
		return result{}, err
	}
	defer s.Close()
	ours := &filler{split: set.Train, batch: s.Batch}
	var fills, steps, theirs, toStep, toPillow []float64
	for range o.rounds {
		if err := ctx.Err(); err != nil {
			return result{}, err
		}
		fill, err := ours.turn(o.turn)
		if err != nil {
			return result{}, err
		}
		trained, err := trainTurn(s, o.turn)
		if err != nil {
			return result{}, err
		}
		fills, steps, toStep = append(fills, fill), append(steps, trained), append(toStep, fill/trained)
		if pillow && w.pictures.side > 0 {
			p, err := pillowTurn(ctx, o.python, dir, w.pictures, o.turn)
			if err != nil {
				return result{}, err
			}
			theirs, toPillow = append(theirs, p), append(toPillow, fill/p)
		}
	}
	return result{median(fills), median(steps), median(theirs), median(toStep), median(toPillow)}, nil
}

// median of no values is 0.
func median(v []float64) float64 {
	if len(v) == 0 {
		return 0
	}
	v = slices.Sorted(slices.Values(v))
	return (v[(len(v)-1)/2] + v[len(v)/2]) / 2
}

// filler goes through a split again and again.
type filler struct {
	split data.Split
	batch int
	next  int
	into  data.Batch
	ids   []int
}

// turn fills batches for some time, at least once all or, of a large set, 64 batches,
// so that a turn has seen pictures of all sizes. It returns the examples per second of
// processor time.
func (f *filler) turn(least time.Duration) (float64, error) {
	begin, err := step.CPUTime()
	if err != nil {
		return 0, err
	}
	enough := min(f.split.Len(), 64*f.batch)
	for n := 0; ; {
		f.ids = f.ids[:0]
		for range f.batch {
			f.ids = append(f.ids, f.next)
			f.next = (f.next + 1) % f.split.Len()
		}
		if err := f.split.Fill(f.ids, &f.into); err != nil {
			return 0, err
		}
		n += f.batch
		end, err := step.CPUTime()
		if err != nil {
			return 0, err
		}
		if took := end - begin; n >= enough && took >= least {
			return float64(n) / took.Seconds(), nil
		}
	}
}

// trainTurn makes steps for some time.
func trainTurn(s *step.Step, least time.Duration) (float64, error) {
	n, took := 0, time.Duration(0)
	for took < least {
		t, err := s.Turn(1)
		if err != nil {
			return 0, err
		}
		n, took = n+s.Batch, took+t.CPU
	}
	return float64(n) / took.Seconds(), nil
}
