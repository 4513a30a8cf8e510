package seq

import "math"

// SampledLoss is the logistic loss of one true candidate, whose score is s[0], against sampled false ones:
//
//	loss = -log σ(s₀-n₀) - Σ log σ(nᵢ-sᵢ)   ds₀ = σ(s₀-n₀) - 1   dsᵢ = σ(sᵢ-nᵢ)
//
// With nᵢ = log(k·q(i)), for k samples drawn with the probabilities q, this is noise-contrastive estimation (Gutmann
// and Hyvärinen, 2010; Mnih and Teh, 2012). With noise nil, all nᵢ = 0, it is negative sampling (Mikolov et
// al., 2013). ds is written unless it is nil; it may be s.
func SampledLoss(ds, s, noise []float32) (loss float64) {
	if ds != nil {
		sized("SampledLoss", "ds", ds, len(s))
	}
	if noise != nil {
		sized("SampledLoss", "noise", noise, len(s))
	}
	for i, v := range s {
		x, sign := float64(v), 1.0
		if noise != nil {
			x -= float64(noise[i])
		}
		if i == 0 { // the mirror image of a false one
			x, sign = -x, -1
		}
		small := math.Exp(-math.Abs(x)) // neither this nor what follows overflows
		loss += max(x, 0) + math.Log1p(small)
		if ds == nil {
			continue
		}
		p := 1.0
		if x < 0 {
			p = small
		}
		ds[i] = float32(sign * p / (1 + small))
	}
	return loss
}
