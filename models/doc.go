// Package models holds the workloads: what `optimus train` can train.
//
// A Workload ties a data set, the Program of its model and the settings it is
// trained with. There is one file per workload; the first nine are the jobs of
// the Optimus paper (Table 1), in its order, and smaller ones for tests and first
// steps come after them.
//
// The sizes of some models depend on their data (a vocabulary, the longest
// sentence), so a Program is made for a data.Set; what the listing shows is the
// model for the whole original data set.
//
// A workload may come in a second size, [Tiny], which is the same architecture with
// fewer units and filters: Workload.At.
package models
