package optimus

import (
	"math"
)

// Kind is one of the nine workloads.
type Kind struct {
	Name string
	Beta [3]float64 // of its loss curve by epochs, l = 1/(β₀k + β₁) + β₂, at most 1 (Fig 5)

	Batch int // M, examples per step
	Steps int // per epoch

	Compute      float64 // seconds per step
	MB           float64 // model size
	Inter, Intra float64 // effective bandwidth between and within nodes, MB/s

	// Sync says where the step times of its synchronous jobs come from: those that were measured of a model, its
	// computation and its transfer each times a factor.
	Sync Source
}

// Source is a measured table and what it is scaled by; Why is where the factors come from, "" where they are 1.
type Source struct {
	Model             string
	Compute, Transfer float64
	Why               string
}

func measured(model string) Source { return Source{Model: model, Compute: 1, Transfer: 1} }

// Kinds returns the nine workloads in the order of Table 1. Times, sizes and bandwidths are those that the simulator of
// the paper's author has for them; where it has none, they are scaled by what the paper prints: the parameters of
// Table 1 and the hours of training on one GPU of Fig 2.
func Kinds() []Kind {
	const (
		resnet50Step  = .449
		resnext110    = .226
		kaggleEpoch   = 444 // ¾ of 37,920 images in batches of 64: a quarter is for validation
		resnextEpoch  = 390
		kaggleCompute = .23 / kaggleEpoch / (1.4 / resnextEpoch) // Fig 2: 0.23 h against 1.4 h, 100 epochs each
		speechCompute = 336. / 329                               // Fig 2
	)
	return []Kind{
		{Name: "ResNext-110", Beta: [3]float64{.0868, 1.2061, .1477}, Batch: 128, Steps: resnextEpoch,
			Compute: resnext110, MB: 6.92, Inter: 59.5, Intra: 63, Sync: measured("resnext-110")},
		{Name: "ResNet-50", Beta: [3]float64{.3555, 6.8353, .8528}, Batch: 32, Steps: 115,
			Compute: resnet50Step, MB: 102.2, Inter: 91.875, Intra: 306.5, Sync: measured("resnet-50")},
		{Name: "Inception-BN", Beta: [3]float64{.1610, .8484, .0001}, Batch: 128, Steps: 120,
			Compute: .815, MB: 42.1, Inter: 145.875, Intra: 1082.125,
			Sync: Source{"resnet-50", .372, .372, "measured with 1 ps and 1 worker: 169.8 examples/s in batches of 128, 0.754 s a step against ResNet-50's 2.027 s"}},
		{Name: "KAGGLE", Beta: [3]float64{.0555, 1.1210, .0421}, Batch: 64, Steps: kaggleEpoch,
			Compute: resnext110 * kaggleCompute, MB: 5.6, Inter: 59.5, Intra: 63,
			Sync: Source{"resnext-110", kaggleCompute, 1.4 / 1.7, "hours of Fig 2 per step, parameters of Table 1"}},
		{Name: "CNN-rand", Beta: [3]float64{.1166, .8088, .0001}, Batch: 50, Steps: 193,
			Compute: .585, MB: 24, Inter: 60.75, Intra: 159.625, Sync: measured("cnn-text-classification")},
		{Name: "DSSM", Beta: [3]float64{.2887, 4.9722, .7877}, Batch: 256, Steps: 349,
			Compute: .567, MB: 6, Inter: 92.125, Intra: 65.625, Sync: measured("dssm")},
		{Name: "RNN-LSTM", Beta: [3]float64{.1288, 1.8233, .3922}, Batch: 160, Steps: 165,
			Compute: .154, MB: 19.2, Inter: 10.375, Intra: 22.875, Sync: measured("wlm")},
		{Name: "Seq2Seq", Beta: [3]float64{.1885, 1.1117, .1009}, Batch: 64, Steps: 780,
			Compute: .075, MB: 36.5, Inter: 120.125, Intra: 181.125,
			Sync: Source{"wlm", .234, .234, "measured with 1 ps and 1 worker: 276.7 examples/s in batches of 64, 0.231 s a step against the language model's 0.988 s"}},
		{Name: "DeepSpeech2", Beta: [3]float64{.5989, 4.6673, .7684}, Batch: 32, Steps: 115,
			Compute: resnet50Step * speechCompute, MB: 152, Inter: 91.875, Intra: 306.5,
			Sync: Source{"resnet-50", speechCompute, 38. / 25, "hours of Fig 2, parameters of Table 1"}},
	}
}

// Patience is for how many epochs running the loss must have fallen by less than the threshold.
const Patience = 3

// Loss returns the normalised loss after some epochs: Fig 5, with its percent of progress as epochs.
func (k *Kind) Loss(epochs float64) float64 { return min(1, k.curve(epochs)) }

func (k *Kind) curve(epochs float64) float64 { return 1/(k.Beta[0]*epochs+k.Beta[1]) + k.Beta[2] }

// Threshold returns the decrease of the loss per epoch, as a fraction of the largest loss, at which an owner stops who
// asks for the part δ of the whole decrease that the curve has in it. The paper draws δ from 1 to 5 % and calls it
// normalised. Of the loss itself that would stop ResNet-50, DeepSpeech2 and DSSM, which lose an eighth to a fifth of it
// in all, before they have begun.
func (k *Kind) Threshold(delta float64) float64 {
	return delta * (k.Loss(0) - k.Beta[2]) / k.Loss(0)
}

// Epochs returns after how many epochs the noise-free loss has fallen by less than a threshold for [Patience] epochs
// running: β₀/((β₀k+β₁)(β₀(k+1)+β₁)) = threshold, solved for k.
func (k *Kind) Epochs(threshold float64) float64 {
	b0, b1, delta := k.Beta[0], k.Beta[1], threshold*k.Loss(0)
	x := (-b0 + math.Sqrt(b0*b0+4*b0/delta)) / 2
	return max(0, (x-b1)/b0) + Patience
}
