package data

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// WriteMR writes a set of the shape of [OpenMR]'s to dir/rt-polarity.neg and
// .pos, in UTF-8: the training sentences and then the validation sentences, as
// the format knows no such parts. The folder is made where it is missing.
func WriteMR(dir string, s *Set) error {
	const op = "write MR"
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return systemError(op, dir, err, "check that the folder may be made")
	}
	for label, name := range mrFiles() {
		path := filepath.Join(dir, name)
		err := writeFile(op, path, func(w *bufio.Writer) error {
			for _, split := range []Split{s.Train, s.Valid} {
				if err := writeSentences(w, split, s.Vocabulary, int32(label)); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// writeSentences writes those with the label, each word followed by a space as
// in the original.
func writeSentences(w *bufio.Writer, split Split, words []string, label int32) error {
	var b Batch
	for i := range split.Len() {
		if err := split.Fill([]int{i}, &b); err != nil {
			return err
		}
		if len(b.Inputs) != 2 || len(b.Inputs[1].I) != 1 {
			return &Error{Op: "write MR", Kind: BadOption, Detail: "the set's inputs are not tokens and a label", Do: "give a set of sentences"}
		}
		if b.Inputs[1].I[0] != label {
			continue
		}
		for _, t := range b.Inputs[0].I {
			if t > 0 && int(t) < len(words) {
				w.WriteString(words[t])
				w.WriteByte(' ')
			}
		}
		w.WriteByte('\n')
	}
	return nil
}

// WriteCIFAR10 writes a set of [OpenCIFAR10] or [GenerateCIFAR10], bit for bit,
// to dir in the binary format, in five training files as the original (fewer
// where there are fewer examples). The folder is made where it is missing.
func WriteCIFAR10(dir string, s *Set) error {
	const op = "write CIFAR-10"
	train, ok1 := s.Train.(*pictureSplit)
	valid, ok2 := s.Valid.(*pictureSplit)
	if !ok1 || !ok2 {
		return &Error{Op: op, Kind: BadOption, Detail: "the set does not come from OpenCIFAR10 or GenerateCIFAR10, so its pixels are not known as bytes", Do: "give such a set"}
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return systemError(op, dir, err, "check that the folder may be made")
	}
	write := func(name string, p *pictures, lo, hi int) error {
		return writeFile(op, filepath.Join(dir, name), func(w *bufio.Writer) error {
			for i := lo; i < hi; i++ {
				w.WriteByte(p.labels[i])
				w.Write(p.at(i))
			}
			return nil // the buffer keeps the first error
		})
	}
	n := train.Len()
	files := max(min(5, n), 1)
	for k := range files {
		if err := write(fmt.Sprintf("data_batch_%d.bin", k+1), train.from, k*n/files, (k+1)*n/files); err != nil {
			return err
		}
	}
	if err := write(cifarTest, valid.from, 0, valid.Len()); err != nil {
		return err
	}
	return writeFile(op, filepath.Join(dir, cifarMeta), func(w *bufio.Writer) error {
		_, err := w.WriteString(strings.Join(s.Classes, "\n") + "\n\n")
		return err
	})
}
