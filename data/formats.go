package data

import (
	"path"
	"slices"

	"optimus/data/source"
)

// format is one of the sets as it lies on disk.
type format struct {
	name  string // in lower case, as the command line has it
	title string
	// is reports whether a folder looks like the set.
	is   func(dir source.Path) bool
	open func(dir source.Path, f *faults) (*Set, error)
	// write makes a generated set in the original's format.
	write       func(m *maker) error
	least, most int // examples that can be made
}

// formats are all sets.
func formats() []format {
	return []format{
		{"mr", "MR", holds(mrFolder, mrNeg, mrPos),
			func(dir source.Path, f *faults) (*Set, error) { return openMR(dir, Options{}, f) }, writeMR, 2, 1 << 20},
		{"ptb", "PTB", holds(ptbTrain, path.Join("data", ptbTrain), path.Join("simple-examples", "data", ptbTrain)),
			openPTB, writePTB, 2, 1 << 20},
		{"text8", "text8", holds(text8File, text8File+".zip"),
			func(dir source.Path, f *faults) (*Set, error) { return openText8(dir, Options{}, f) }, writeText8, 50, text8Most},
		{"wmt17", "WMT17", isWMT17,
			func(dir source.Path, f *faults) (*Set, error) { return openWMT17(dir, PairOptions{}, f) }, writeWMT17, 2, 1 << 20},
		{"mnist", "MNIST", isMNIST, openMNIST, writeMNIST, 2, 1 << 20},
		{"caltech", "Caltech", func(dir source.Path) bool {
			return holds(caltechFolders()...)(dir) || slices.Contains(caltechFolders(), dir.Base())
		}, func(dir source.Path, f *faults) (*Set, error) { return openCaltech(dir, PictureOptions{}, f) }, writeCaltech, 2, 1 << 20},
		{"imagenet", "ImageNet", isImageNet,
			func(dir source.Path, f *faults) (*Set, error) { return openImageNet(dir, PictureOptions{}, f) }, writeImageNet, 2, 1 << 20},
		{"librispeech", "LibriSpeech", isSpeech,
			func(dir source.Path, f *faults) (*Set, error) { return openLibriSpeech(dir, Options{}, f) }, writeLibriSpeech, 2, 1 << 20},
		{"ndsb1", "NDSB1", func(dir source.Path) bool { return holds("train")(dir) && !isImageNet(dir) }, checkNDSB1, writeNDSB1, 2, 1 << 20},
		{"cifar10", "CIFAR-10", isCIFAR10, openCIFAR10, writeCIFAR10, 2, 1 << 20},
	}
}

// holds returns a function that reports whether one of the names is in a folder.
func holds(names ...string) func(dir source.Path) bool {
	return func(dir source.Path) bool {
		return slices.ContainsFunc(names, func(name string) bool { return dir.Join(name).Exists() })
	}
}

func isWMT17(dir source.Path) bool {
	for _, name := range append(wmtNames()[0], wmtNames()[1]...) {
		if dir.Matches(name+"*."+wmtLanguages()[0], path.Join("wmt17", name+"*."+wmtLanguages()[0])) {
			return true
		}
	}
	return false
}

func isImageNet(dir source.Path) bool { return holds("val", synsetFile)(dir) }

func isSpeech(dir source.Path) bool {
	return holds(speechFolder)(dir) || dir.Base() == speechFolder ||
		dir.Matches("*"+speechList, "[0-9]*/*"+speechList, "[0-9]*/[0-9]*/*"+speechList, "train-*/*/*/*"+speechList, "dev-*/*/*/*"+speechList)
}

func isMNIST(dir source.Path) bool {
	return dir.Matches("*idx3-ubyte*", "mnist/*idx3-ubyte*", "MNIST/raw/*idx3-ubyte*")
}

func isCIFAR10(dir source.Path) bool {
	return holds(cifarFolder, cifarTest)(dir) || dir.Matches("data_batch_*")
}

// checkNDSB1 reads what training does not, too.
func checkNDSB1(dir source.Path, f *faults) (*Set, error) {
	set, err := openNDSB1(dir, PictureOptions{}, f)
	if err != nil {
		return nil, err
	}
	if err := verifyTest(dir, f); err != nil {
		return nil, err
	}
	if form := dir.Join(ndsb1Form); form.Exists() {
		if _, err := readSubmission(form); err != nil {
			return set, f.need(err)
		}
	}
	return set, nil
}
