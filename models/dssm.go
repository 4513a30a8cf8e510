package models

import (
	"optimus/compute"
	"optimus/compute/optim"
	"optimus/data"
	"optimus/nn"
)

// dssm learns word vectors as sums of letter trigrams' vectors, which deep structured
// semantic models hash words to (Huang et al., 2013): a continuous bag of words with
// negative sampling, in the way of MXNet's example nce-loss/wordvec_subwords. The
// sum over the four words around tells the word from four others.
//
// Its one block is the table of trigrams of width 100, which the words around and
// the candidates share. The paper's 1.5 M parameters mean some 15,000 trigrams.
func dssm() Workload {
	w := trigramVectors(100, 15000, 2.34)
	w.tiny = func() Workload {
		t := shrunk(trigramVectors(32, 4000, 0.1), 5, 64) // small vectors: few texts teach little
		t.Optimizer.LR = 0.02
		return t
	}
	return w
}

// trigramVectors has vectors of so many values, Xavier's with a magnitude at the
// start; its full data set has so many trigrams.
func trigramVectors(width, trigrams int, magnitude float64) Workload {
	optimizer := optim.Default(optim.SGD)
	optimizer.LR = 0.3 / 5 // MXNet's logistic loss divides by the candidates
	return Workload{
		Name: "dssm", Type: "RNN", Application: "word representation", Dataset: "text8", Examples: 214288,
		Open:     func(dir string, o Options) (*data.Set, error) { return data.OpenText8(dir, data.Options{Seed: o.Seed}) },
		Generate: func(o Options) (*data.Set, error) { return data.GenerateText8(defaultTo(o.N, 200000), o.Seed) },
		Program: func(s *data.Set) (*compute.Program, error) {
			if err := want(s.Trigrams > 0 && len(s.Vocabulary) > 0, "dssm", s, "words in letter trigrams"); err != nil {
				return nil, err
			}
			return trigramTable(width, magnitude, len(s.Vocabulary), s.Trigrams)
		},
		Full:      func() (*compute.Program, error) { return trigramTable(width, magnitude, trigrams, 10) },
		Optimizer: optimizer, Batch: 256, Epochs: 20,
	}
}

// trigramTable has words of up to most trigrams.
func trigramTable(width int, magnitude float64, trigrams, most int) (*compute.Program, error) {
	const around, candidates = 4, 5
	n := nn.New("dssm")
	table := n.Table("trigrams", trigrams, width, nn.Xavier(optim.Uniform, width, magnitude))
	x := n.Bag("context", table, n.Ints("around", around*most, trigrams+1), 1)
	n.SampledLogistic(x, n.Bag("words", table, n.Ints("candidates", candidates*most, trigrams+1), candidates))
	return n.Program()
}
