// Package seq holds what nets over sequences need beside products and cells: the CTC loss, dot attention, and the
// losses that stand for a softmax over a large vocabulary.
//
// Each function does one sequence or one position, so a caller spreads examples over cores, and the bits of
// an example depend neither on what else is in its batch nor on the level of the processor. Losses are float64; the
// exponentials in them are those of package math, which may differ in the last bit between architectures.
package seq
