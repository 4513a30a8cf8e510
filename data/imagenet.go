package data

import (
	"bufio"
	"bytes"
	"fmt"
	"slices"
	"strings"

	"optimus/data/source"
)

const (
	opImageNet = "open ImageNet"
	doImageNet = "give a folder that holds train/WNID/*.JPEG and val/WNID/*.JPEG of ILSVRC2012"
	synsetFile = "synset_words.txt"
	colourSide = 256 // Caltech's too
)

// OpenImageNet reads ILSVRC2012 (Russakovsky et al., 2015), or a part of it, in
// class folders named by WordNet ids: dir/train/WNID/*.JPEG to train on and
// dir/val/WNID/*.JPEG to validate. The classes are the folders of train, in order;
// their names are looked up in dir/synset_words.txt ("n01440764 tench, Tinca
// tinca" a line) where that exists. Pictures as in [OpenCaltech].
func OpenImageNet(dir string, o PictureOptions) (*Set, error) {
	return openAt(opImageNet, dir, func(dir source.Path) (*Set, error) { return openImageNet(dir, o, &faults{}) })
}

func openImageNet(dir source.Path, o PictureOptions, f *faults) (*Set, error) {
	if err := o.begin(f, opImageNet); err != nil {
		return nil, err
	}
	side, err := o.side(opImageNet, colourSide)
	if err != nil {
		return nil, err
	}
	if dir, err = folder(opImageNet, dir, "", doImageNet); err != nil {
		return nil, err
	}
	train, err := listClasses(f, dir.Join("train"), doImageNet)
	if err != nil {
		return nil, err
	}
	valid, err := listClasses(f, dir.Join("val"), "sort the pictures of ILSVRC2012_img_val.tar into folders by their WordNet ids, as in train")
	if err != nil {
		return nil, err
	}
	if err := valid.relabel(train.classes); err != nil {
		return nil, err
	}
	words, err := synsetWords(dir.Join(synsetFile))
	if err != nil {
		return nil, err
	}
	names := slices.Clone(train.classes)
	for k, id := range names {
		if words[id] != "" {
			names[k] = id + " " + words[id]
		}
	}
	return newPictureSet("ImageNet", names, train.gallery(o, 3, side, colourSquare(side)), all(len(train.files)),
		valid.gallery(o, 3, side, colourSquare(side)), all(len(valid.files)), imageNetMean()).without(f), nil
}

// relabel gives the pictures the labels that their folders have among classes.
func (l *classFolders) relabel(classes []string) error {
	for i := range l.files {
		f := &l.files[i]
		k, ok := slices.BinarySearch(classes, l.classes[f.label])
		if !ok {
			return &Error{Op: opImageNet, Path: l.dir.Join(l.classes[f.label]).String(), Kind: BadLabel, Detail: "there is no folder of that name in train", Do: doImageNet}
		}
		f.label = int32(k)
	}
	l.classes = classes
	return nil
}

// synsetWords reads what WordNet ids stand for; without the file, nothing.
func synsetWords(path source.Path) (map[string]string, error) {
	if !path.Exists() {
		return nil, nil
	}
	text, err := readSized(opImageNet, path, 1<<20, doImageNet)
	if err != nil {
		return nil, err
	}
	words := map[string]string{}
	lines := bufio.NewScanner(bytes.NewReader(text))
	for n := 1; lines.Scan(); n++ {
		id, text, ok := strings.Cut(strings.TrimSpace(lines.Text()), " ")
		if !ok && id != "" {
			return nil, &Error{Op: opImageNet, Path: path.String(), Kind: BadFormat, Detail: fmt.Sprintf("line %d is not a WordNet id and words: %q", n, id), Do: "fetch the file again, or remove it"}
		}
		words[id] = text
	}
	if err := lines.Err(); err != nil {
		return nil, &Error{Op: opImageNet, Path: path.String(), Kind: BadFormat, Detail: err.Error(), Do: "fetch the file again, or remove it", Err: err}
	}
	return words, nil
}
