package data

import (
	"os"
	"path/filepath"
	"strings"
)

// Report is what [Check] found.
type Report struct {
	Format   string // "MR", "CIFAR-10", "CIFAR-10 batch" or "text"
	Examples int    // of both splits; records or lines of a file
	Words    int    // of a text
	Set      *Set   // of a folder
}

// Check reads a folder of one of the sets, or a single file of one, whole and
// says what it is. A folder is taken for MR where it has one of MR's files, and
// a file for a batch of CIFAR-10 by its name: *.bin, or data_batch_*, the name
// in the Python version. Every other file is text with a sentence a line.
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
	default:
		s := &sentences{}
		err := readText("check text", path, 0, mrWords, newLexicon(), s)
		return Report{Format: "text", Examples: s.len(), Words: len(s.tokens)}, err
	}
}

func checkFolder(dir string) (r Report, err error) {
	r.Format = "CIFAR-10"
	for _, name := range []string{mrFolder, mrNeg, mrPos} {
		if exists(filepath.Join(dir, name)) {
			r.Format = "MR"
		}
	}
	if r.Format == "MR" {
		r.Set, err = OpenMR(dir, Options{})
	} else {
		r.Set, err = OpenCIFAR10(dir)
	}
	if err == nil {
		r.Examples = r.Set.Train.Len() + r.Set.Valid.Len()
	}
	return r, err
}
