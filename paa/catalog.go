package paa

import (
	"errors"
	"fmt"

	"optimus/internal/suggest"
)

// ErrModel reports a name that is not in the [Catalog].
var ErrModel = errors.New("unknown model")

// Model is the block list of a known model.
type Model struct {
	Name        string `json:"name"`
	Description string `json:"description"` // the configuration, in one line
	Sizes       []int  `json:"sizes"`       // elements per block, in model order
}

// Parameters is the number of elements of all blocks.
func (m Model) Parameters() int {
	n := 0
	for _, s := range m.Sizes {
		n += s
	}
	return n
}

// Vocabularies of the models whose data set decides a block's size.
const (
	cnnVocabulary  = 18764 // distinct tokens of the MR polarity set
	dssmTrigrams   = 15000 // distinct letter trigrams of text8, for the paper's 1.5 M parameters
	ptbVocabulary  = 10000
	seqVocabulary  = 4000 // joint BPE per side, for the paper's 9.1 M parameters
	speechAlphabet = 29   // a–z, apostrophe, space, CTC blank
)

// Catalog returns the known models: first the nine workloads of Optimus in the order of its Table 1, then the others
// that its §6 uses. The lists come from the models' architectures; running statistics of batch normalisation are no
// blocks. Each call makes a new list.
func Catalog() []Model {
	return []Model{
		{"resnext-110", "CIFAR-10, 3x28x28, 18 basic units per stage", resnext110()},
		{"resnet-50", "ImageNet, pre-activation, 1000 classes", resnet50()},
		{"inception-bn", "ImageNet, 1000 classes", inceptionBN(1000)},
		{"kaggle", "NDSB-1 plankton, 3x48x48, 121 classes", kaggle()},
		CNNRand(cnnVocabulary),
		{"dssm", fmt.Sprintf("letter-trigram word vectors, %d trigrams of width 100", dssmTrigrams), []int{dssmTrigrams * 100}},
		{"rnn-lstm", "PTB, 2 LSTM layers of 200, dropout", rnnLSTM(ptbVocabulary, 200, 2)},
		{"seq2seq", fmt.Sprintf("bi-LSTM encoder, LSTM decoder of 512, dot attention, vocabulary %d per side", seqVocabulary), seq2seq(seqVocabulary, 256, 512)},
		{"deepspeech2", "2 convolutions, 3 bi-GRU layers of 900", deepSpeech2(3, 900)},
		{"deepspeech2-default", "2 convolutions, 1 bi-GRU layer of 1760: MXNet's default.cfg", deepSpeech2(1, 1760)},
		{"vgg-11", "ImageNet, 1000 classes", vgg(1, 1, 2, 2, 2)},
		{"vgg-16", "ImageNet, 1000 classes", vgg(2, 2, 3, 3, 3)},
		{"resnext-101", "ImageNet, 32 groups of width 4, 1000 classes", resnext101()},
	}
}

// CNNRand is the text CNN with randomly initialised word vectors (Kim, 2014) as Optimus trains it: vocabulary×300 word
// vectors, 100 filters for each of the widths 3, 4 and 5, two classes. It has 300·vocabulary + 360,902 parameters.
func CNNRand(vocabulary int) Model {
	l := blocks{vocabulary * 300}
	for width := 3; width <= 5; width++ {
		l.dense(width*300, 100)
	}
	l.dense(300, 2)
	return Model{"cnn-rand", fmt.Sprintf("text CNN, vocabulary %d", vocabulary), l}
}

// Lookup finds a model of the [Catalog] by name. The error for an unknown name wraps [ErrModel] and says which may have
// been meant.
func Lookup(name string) (Model, error) {
	return suggest.Find(name, Catalog(), func(m Model) string { return m.Name }, ErrModel)
}
