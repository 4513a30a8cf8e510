// Package paa decides which parameter server holds which part of a model.
//
// A model is a list of blocks, one per parameter array, of which only the sizes matter here: a block's
// index in the list is its name. A rule cuts blocks into pieces, contiguous ranges of one block, and gives
// each piece to one of p servers. Two things make an assignment good. The server with the most elements
// decides how long a step's traffic takes, so sizes should be even; and each piece costs every worker one
// push and one pull per step whatever its size, so there should be few pieces, evenly spread.
//
// [Assign] computes an assignment from nothing, by one of two rules: [RuleMXNet], the default of MXNet
// that the Optimus paper compares with, and [RulePAA], the paper's parameter assignment algorithm (§5.3).
// [Whole] deals arrays that must not be cut.
//
// [Reassign] is for a job that already runs: from the assignment in force and the servers that stay it
// makes the next assignment so that as few elements as possible change server, and [Diff] lists what moves
// between any two assignments.
//
// [Catalog] holds the block lists of known models, so that a plan can be made without building the model.
//
// Everything here is pure and deterministic: equal arguments give equal results on every machine, so each
// member of a job may compute its assignment itself.
package paa
