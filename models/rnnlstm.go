package models

import (
	"optimus/compute"
	"optimus/compute/optim"
	"optimus/data"
	"optimus/nn"
)

// rnnLSTM is the language model of MXNet's Gluon example word_language_model on the
// Penn Treebank, after Zaremba et al., "Recurrent neural network regularization"
// (2014): words of width 200, two LSTM layers of 200, dropout 0.2 around each.
//
// With a vocabulary of 10,000 words it has 11 blocks and 4,653,200 parameters: the
// embedding 2,000,000 (by rows); for each layer 160,000 + 160,000 + 800 + 800; the
// classifier 2,000,000 + 10,000.
//
// It differs from the script in three things. A window of 35 words begins with a
// state of zeros, not with that of the window before, since an example may be on any
// worker. A step has 20 windows, as in the paper's experiments, not 32: in trials on
// PTB that led to a lower perplexity after the same examples. And the learning rate
// does not follow the validation loss.
func rnnLSTM() Workload {
	w := languageModel(200, 10000)
	w.tiny = func() Workload { return shrunk(languageModel(48, 300), 10, 16) }
	return w
}

// ptbWindow is how many words an example has.
const ptbWindow = 35

// languageModel has layers of so many units; its full data set so many words.
func languageModel(units, vocabulary int) Workload {
	// The script has a learning rate of 1 for the sum over a window's words, and bounds
	// the norm of that sum by 0.2 a word; the gradient here is the mean over words.
	optimizer := optim.Config{Kind: optim.SGD, LR: ptbWindow, ClipNorm: 0.2}
	return Workload{
		Name: "rnn-lstm", Type: "RNN", Application: "language modeling", Dataset: "PTB", Examples: 1002000,
		Open:     func(dir string, o Options) (*data.Set, error) { return data.OpenPTB(dir) },
		Generate: func(o Options) (*data.Set, error) { return data.GeneratePTB(defaultTo(o.N, 5000), o.Seed) },
		Program: func(s *data.Set) (*compute.Program, error) {
			ok := len(s.Classes) == 0 && len(s.Vocabulary) > 1 && s.SequenceLength > 0
			if err := want(ok, "rnn-lstm", s, "a running text in windows"); err != nil {
				return nil, err
			}
			return languageLayers(units, len(s.Vocabulary), s.SequenceLength)
		},
		Full:      func() (*compute.Program, error) { return languageLayers(units, vocabulary, ptbWindow) },
		Optimizer: optimizer, Batch: 20, Epochs: 40,
	}
}

func languageLayers(units, vocabulary, window int) (*compute.Program, error) {
	const dropout = 0.2
	n := nn.New("rnn-lstm")
	time := n.Time("words", window)
	x := n.Dropout(n.Embedding("embed", n.IntsOver(time, "tokens", 1, vocabulary), units, optim.Init{Kind: optim.Uniform, Scale: 0.1}), dropout)
	for _, name := range []string{"lstm1", "lstm2"} {
		x = n.Dropout(n.LSTM(name, x, nn.Recurrent{Units: units, Init: glorot(units, 4*units)}), dropout)
	}
	n.TokenCrossEntropy(n.Dense("fc", x, vocabulary, glorot(units, vocabulary)), n.IntsOver(time, "next", 1, vocabulary), compute.None)
	return n.Program()
}

// glorot is MXNet's default Xavier: uniform, with the mean of both fans (Glorot and
// Bengio, 2010, equation 16).
func glorot(in, out int) optim.Init { return nn.Xavier(optim.Uniform, (in+out)/2, 3) }
