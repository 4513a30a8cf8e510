package models

import (
	"optimus/compute"
	"optimus/compute/optim"
	"optimus/data"
	"optimus/data/bpe"
	"optimus/nn"
)

// seq2seq translates with the sizes of the WMT tutorial of Sockeye (October 2017): an
// LSTM of 256 cells in each direction over the source; an LSTM of 512 cells for the
// target with dot attention and input feeding (Luong et al., 2015), begun from what
// the first says at the last word; words of width 256.
//
// With 4,000 words per language it has 23 blocks and 9,090,464 parameters, near the
// paper's 9.1 M, whose configuration is not known. As in the tutorial these words are
// pieces of a byte-pair encoding that both languages share, but of 4,000 merges, not
// 30,000; and as so few make more pieces of a sentence, up to 100 are read, not 60. Of
// whole words 4,000 would leave every fourth or fifth unknown. The metric is BLEU of
// greedy decoding, in the words that the pieces make.
//
// Generated sentences have few words, which stay whole; so they do in the size Tiny,
// whose 400 pieces would be little more than letters. Options.Merges overrules both.
func seq2seq() Workload {
	w := translation(256, 4000, 4000)
	w.tiny = func() Workload {
		t := shrunk(translation(48, 400, WholeWords), 6, 16)
		t.Optimizer.LR = 0.005
		return t
	}
	return w
}

// The longest sentences that are read.
const (
	longestWords  = 60
	longestPieces = 100
)

// translation has words of so many values, and cells in proportion; real text is cut by
// so many merges.
func translation(width, words, merges int) Workload {
	optimizer := optim.Default(optim.Adam)
	optimizer.LR, optimizer.Clip = 0.0003, 1
	pairs := func(merges int) data.PairOptions {
		if merges == WholeWords {
			return data.PairOptions{Words: words, MaxWords: longestWords}
		}
		return data.PairOptions{Words: max(words, merges), MaxWords: longestPieces, Merges: merges}
	}
	return Workload{
		Name: "seq2seq", Type: "RNN", Application: "machine translation", Dataset: "WMT17", Examples: 1000000,
		Open: func(dir string, o Options) (*data.Set, error) {
			return data.OpenWMT17(dir, pairs(defaultTo(o.Merges, merges)))
		},
		Generate: func(o Options) (*data.Set, error) {
			return data.GenerateWMT17(defaultTo(o.N, 20000), o.Seed, pairs(defaultTo(o.Merges, WholeWords)))
		},
		Program: func(s *data.Set) (*compute.Program, error) {
			ok := len(s.Vocabulary) > 0 && len(s.Target) > 0 && s.SequenceLength > 0
			if err := want(ok, "seq2seq", s, "sentences and their translations"); err != nil {
				return nil, err
			}
			t := translator{width: width, words: len(s.Vocabulary), targets: len(s.Target), longest: s.SequenceLength}
			if s.Merges() != nil {
				t.pieces = s.Target
			}
			return t.layers()
		},
		Full: func() (*compute.Program, error) {
			return translator{width: width, words: words, targets: words, longest: longestWords}.layers()
		},
		Optimizer: optimizer, Batch: 64, Epochs: 20, Pieces: true,
	}
}

// translator translates sentences of up to longest words.
type translator struct {
	width, words, targets, longest int
	pieces                         []string // the target's, where they make words
}

func (t translator) layers() (*compute.Program, error) {
	n, width, words, targets, longest := nn.New("seq2seq"), t.width, t.words, t.targets, t.longest
	from, to := n.Time("source", longest), n.Time("target", longest+1) // with the word that begins or ends it
	vector := optim.Init{Kind: optim.Uniform, Scale: 0.1}
	source := n.Embedding("source", n.IntsOver(from, "words", 1, words), width, vector)
	lengths := n.Lengths("length", from)
	target := n.Embedding("target", n.IntsOver(to, "before", 1, targets), width, vector)
	cells := nn.Recurrent{Units: width, Lengths: &lengths, Init: glorot(width, 4*width)}
	ahead := n.LSTM("encoder.ahead", source, cells)
	cells.Reverse = true
	memory := n.Concat(ahead, n.LSTM("encoder.back", source, cells))
	last := n.LastStep(memory, &lengths)
	start := func(name string) *nn.Value { return n.Tanh(n.Dense(name, last, 2*width, glorot(2*width, 2*width))) }
	y := n.AttentionDecoder("decoder", target, memory, start("start.h"), start("start.c"), nn.Attention{Lengths: &lengths, Init: glorot(3*width, 8*width)})
	scores, next := n.Dense("fc", y, targets, glorot(2*width, targets)), n.IntsOver(to, "next", 1, targets)
	n.TokenCrossEntropy(scores, next, data.PaddingToken)
	n.BLEUOfPieces(scores, next, data.BeginToken, data.EndToken, t.pieces, bpe.Mark)
	return n.Program()
}
