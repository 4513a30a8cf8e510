package compute

import "math"

// Counts are sums over a batch from which a Metric is made. Those of shares add up
// to those of the batch, so a metric of a whole set is exact however it was split.
type Counts [10]int64

// Metric says what the Counts of a Program are.
type Metric string

// The metrics.
const (
	// Accuracy is Counts[0] predictions that hit, of Weight.
	Accuracy Metric = "accuracy"
	// Perplexity is e to the mean loss; it needs no counts.
	Perplexity Metric = "perplexity"
	// BLEU is Papineni et al. (2002), equation 3, up to four-grams: Counts[n-1]
	// matching n-grams (clipped) of Counts[3+n], lengths Counts[8] of the
	// candidates and Counts[9] of the references. Perplexity goes with it.
	BLEU Metric = "bleu"
	// CharacterErrors is Counts[0] edits over Counts[1] characters of the
	// references; the word error rate, Counts[2] over Counts[3], goes with it.
	CharacterErrors Metric = "cer"
)

// Figure is a named value of a metric.
type Figure struct {
	Name  string
	Value float64
}

// Figures returns what a result amounts to: first the metric, then what goes with
// it. A share of nothing is 0; a model without a metric has no figures.
func (m Metric) Figures(r Result) []Figure {
	switch m {
	case Accuracy:
		return []Figure{{string(m), share(r.Counts[0], r.Weight)}}
	case Perplexity:
		return []Figure{{string(m), math.Exp(r.Mean())}}
	case BLEU:
		return []Figure{{string(m), bleu(r.Counts)}, {string(Perplexity), math.Exp(r.Mean())}}
	case CharacterErrors:
		return []Figure{{string(m), share(r.Counts[0], r.Counts[1])}, {"wer", share(r.Counts[2], r.Counts[3])}}
	}
	return nil
}

func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}

// bleu is the geometric mean of the four precisions times the penalty for brevity,
// times 100.
func bleu(c Counts) float64 {
	logs := 0.0
	for n := range 4 {
		logs += math.Log(share(c[n], c[4+n])) / 4
	}
	brevity := math.Min(0, 1-float64(c[9])/math.Max(float64(c[8]), 1))
	return 100 * math.Exp(logs+brevity)
}
