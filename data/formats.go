package data

import (
	"path/filepath"
	"slices"
)

// format is one of the sets as it lies on disk.
type format struct {
	name  string // in lower case, as the command line has it
	title string
	// is reports whether a folder looks like the set.
	is   func(dir string) bool
	open func(dir string, f *faults) (*Set, error)
	// write makes a generated set in the original's format.
	write       func(m *maker) error
	least, most int // examples that can be made
}

// formats are all sets, in the order in which a folder is compared with them.
func formats() []format {
	return []format{
		{"mr", "MR", holds(mrFolder, mrNeg, mrPos),
			func(dir string, f *faults) (*Set, error) { return openMR(dir, Options{}, f) }, writeMR, 2, 1 << 20},
		{"ptb", "PTB", holds(ptbTrain, filepath.Join("data", ptbTrain), filepath.Join("simple-examples", "data", ptbTrain)),
			openPTB, writePTB, 2, 1 << 20},
		{"text8", "text8", holds(text8File, text8File+".zip"),
			func(dir string, f *faults) (*Set, error) { return openText8(dir, Options{}, f) }, writeText8, 50, text8Most},
		{"wmt17", "WMT17", isWMT17,
			func(dir string, f *faults) (*Set, error) { return openWMT17(dir, PairOptions{}, f) }, writeWMT17, 2, 1 << 20},
		{"mnist", "MNIST", isMNIST, openMNIST, writeMNIST, 2, 1 << 20},
		{"caltech", "Caltech", func(dir string) bool {
			return holds(caltechFolders()...)(dir) || slices.Contains(caltechFolders(), filepath.Base(dir))
		}, func(dir string, f *faults) (*Set, error) { return openCaltech(dir, PictureOptions{}, f) }, writeCaltech, 2, 1 << 20},
		{"imagenet", "ImageNet", holds("val", synsetFile),
			func(dir string, f *faults) (*Set, error) { return openImageNet(dir, PictureOptions{}, f) }, writeImageNet, 2, 1 << 20},
		{"librispeech", "LibriSpeech", isSpeech,
			func(dir string, f *faults) (*Set, error) { return openLibriSpeech(dir, Options{}, f) }, writeLibriSpeech, 2, 1 << 20},
		{"ndsb1", "NDSB1", holds("train"), checkNDSB1, writeNDSB1, 2, 1 << 20},
		{"cifar10", "CIFAR-10", isCIFAR10, openCIFAR10, writeCIFAR10, 2, 1 << 20},
	}
}

// holds returns a function that reports whether one of the names is in a folder.
func holds(names ...string) func(dir string) bool {
	return func(dir string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return exists(filepath.Join(dir, name)) })
	}
}

func matches(dir string, patterns ...string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool {
		found, err := filepath.Glob(filepath.Join(dir, pattern))
		return err == nil && len(found) > 0
	})
}

func isWMT17(dir string) bool {
	for _, name := range append(wmtNames()[0], wmtNames()[1]...) {
		if matches(dir, name+"*."+wmtLanguages()[0], filepath.Join("wmt17", name+"*."+wmtLanguages()[0])) {
			return true
		}
	}
	return false
}

func isSpeech(dir string) bool {
	return holds(speechFolder)(dir) || filepath.Base(dir) == speechFolder || matches(dir, "*"+speechList, "*/*"+speechList, "*/*/*"+speechList, "train-*/*/*/*"+speechList, "dev-*/*/*/*"+speechList)
}

func isMNIST(dir string) bool {
	return matches(dir, "*idx3-ubyte*", "mnist/*idx3-ubyte*", "MNIST/raw/*idx3-ubyte*")
}

func isCIFAR10(dir string) bool {
	return holds(cifarFolder, cifarTest)(dir) || matches(dir, "data_batch_*")
}

// checkNDSB1 reads what training does not, too.
func checkNDSB1(dir string, f *faults) (*Set, error) {
	set, err := openNDSB1(dir, PictureOptions{}, f)
	if err != nil {
		return nil, err
	}
	if err := verifyTest(dir, f); err != nil {
		return nil, err
	}
	if form := filepath.Join(dir, ndsb1Form); exists(form) {
		if _, err := ReadSubmission(form); err != nil {
			return set, f.need(err)
		}
	}
	return set, nil
}
