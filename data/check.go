package data

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Report is what [Check] found.
type Report struct {
	Format   string // a set's name, "CIFAR-10 batch", "picture" or "text"
	Examples int    // of both splits; records or lines of a file
	Words    int    // of a text
	Set      *Set   // of a folder
}

// Check reads a folder of one of the sets, or a single file of one, whole and
// says what it is; all pictures and recordings are decoded, and the error is of the first that
// cannot be. A folder is taken for a set by its files' and folders' names, and a
// file for a batch of CIFAR-10 by its own: *.bin, or data_batch_*, the name in the
// Python version; for a picture by .jpg, .jpeg or .png. Every other file is text
// with a sentence a line.
func Check(path string) (Report, error) {
	info, err := os.Stat(path)
	if err != nil {
		return Report{}, systemError("check", path, err, "check the path")
	}
	base := filepath.Base(path)
	switch {
	case info.IsDir():
		return checkFolder(path)
	case strings.HasSuffix(base, ".bin") || strings.HasPrefix(base, "data_batch_"):
		p := &pictures{}
		err := readPictures(path, p)
		return Report{Format: "CIFAR-10 batch", Examples: len(p.labels)}, err
	case isPicture(base):
		_, err := readPicture(path)
		return Report{Format: "picture", Examples: 1}, err
	default:
		s := &sentences{}
		err := readText("check text", path, 0, mrWords, newLexicon(), s)
		return Report{Format: "text", Examples: s.len(), Words: len(s.tokens)}, err
	}
}

func checkFolder(dir string) (r Report, err error) {
	has := func(names ...string) bool {
		return slices.ContainsFunc(names, func(name string) bool { return exists(filepath.Join(dir, name)) })
	}
	switch {
	case has(mrFolder, mrNeg, mrPos):
		r.Set, err = OpenMR(dir, Options{})
	case has(ptbTrain, filepath.Join("data", ptbTrain)):
		r.Set, err = OpenPTB(dir)
	case has(text8File):
		r.Set, err = OpenText8(dir, Options{})
	case has(wmtTrain + "." + wmtLanguages()[0]):
		r.Set, err = OpenWMT17(dir, PairOptions{})
	case has(speechFolder) || filepath.Base(dir) == speechFolder:
		r.Set, err = OpenLibriSpeech(dir, Options{})
	case has(caltechFolders()...) || slices.Contains(caltechFolders(), filepath.Base(dir)):
		r.Set, err = OpenCaltech(dir, PictureOptions{})
	case has("val", synsetFile):
		r.Set, err = OpenImageNet(dir, PictureOptions{})
	case has("train"):
		r.Set, err = OpenNDSB1(dir, PictureOptions{})
	default:
		r.Set, err = OpenCIFAR10(dir)
	}
	if err != nil {
		return r, err
	}
	r.Format, r.Examples = r.Set.Name, r.Set.Train.Len()+r.Set.Valid.Len()
	return r, r.Set.decodeAll()
}

// decodeAll reads every picture and recording that is not in memory as it is.
func (s *Set) decodeAll() error {
	for _, split := range []Split{s.Train, s.Valid} {
		var read func(i int) error
		switch p := split.(type) {
		case *gallerySplit:
			read = func(i int) error { _, err := p.from.at(int(p.ids[i])); return err }
		case *speechSplit:
			read = func(i int) error { _, err := p.read(int(p.ids[i])); return err }
		default:
			continue
		}
		if err := inParallel(split.Len(), read); err != nil {
			return err
		}
	}
	return nil
}
