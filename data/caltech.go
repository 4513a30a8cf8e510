package data

import (
	"fmt"
	"strings"

	"optimus/data/source"
	"optimus/internal/rng"
)

const (
	opCaltech    = "open Caltech"
	doCaltech    = "unpack Caltech-101 or Caltech-256 and give the folder that holds 101_ObjectCategories or 256_ObjectCategories"
	caltechTrain = 60 // pictures of a class
)

func caltechFolders() []string { return []string{"101_ObjectCategories", "256_ObjectCategories"} }

// OpenCaltech reads Caltech-101 (Fei-Fei et al., 2004) or Caltech-256 (Griffin et
// al., 2007): dir/101_ObjectCategories/CLASS/*.jpg, or dir/256_ObjectCategories.
// Every folder is a class, the one of clutter or background too. Of each class, 60
// pictures are to train on and the others to validate, as MXNet's script for
// Caltech-256 has it; of a class of fewer than 75, a fifth is to validate. Which
// they are, the seed says.
//
// Inputs of a batch: [N,3,Side,Side] float32, [N] int32 labels. The middle square
// of a picture is scaled to Side × Side; ImageNet's mean is taken off.
func OpenCaltech(dir string, o PictureOptions) (*Set, error) {
	return openAt(opCaltech, dir, func(dir source.Path) (*Set, error) { return openCaltech(dir, o, &faults{}) })
}

func openCaltech(dir source.Path, o PictureOptions, f *faults) (*Set, error) {
	if err := o.begin(f, opCaltech); err != nil {
		return nil, err
	}
	side, err := o.side(opCaltech, colourSide)
	if err != nil {
		return nil, err
	}
	for _, sub := range caltechFolders() {
		if dir, err = folder(opCaltech, dir, sub, doCaltech); err != nil {
			return nil, err
		}
	}
	name := "Caltech"
	if number, _, ok := strings.Cut(dir.Base(), "_ObjectCategories"); ok {
		name += "-" + number
	}
	l, err := listClasses(f, dir, doCaltech)
	if err != nil {
		return nil, err
	}
	if only := l.files[0].label; l.files[len(l.files)-1].label == only { // as where sets of other shapes have their test pictures
		return nil, &Error{Op: opCaltech, Path: dir.String(), Kind: Empty, Detail: fmt.Sprintf("of %d folders only %q has pictures, which leaves nothing to tell apart", len(l.classes), l.classes[only]), Do: doCaltech}
	}
	train, valid := l.perClass(caltechTrain, o.Seed)
	g := l.gallery(o, 3, side, colourSquare(side))
	return newPictureSet(name, l.classes, g, train, g, valid, imageNetMean()).without(f), nil
}

// perClass parts the pictures of each class: at most limit, and at most all but a
// fifth, to train on.
func (l *classFolders) perClass(limit int, seed uint64) (train, valid []int32) {
	first := 0
	for k := range l.classes {
		n := 0
		for first+n < len(l.files) && int(l.files[first+n].label) == k {
			n++
		}
		ids := shuffled(n, rng.NewKey(seed, 'c', 'l', 'a', 's', 's', uint64(k)))
		for i := range ids {
			ids[i] += int32(first)
		}
		cut := min(limit, n-n/5)
		train, valid = append(train, ids[:cut]...), append(valid, ids[cut:]...)
		first += n
	}
	return train, valid
}
