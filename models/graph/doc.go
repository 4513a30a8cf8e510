// Package graph trains a Gorgonia graph of one's own through the parameter
// servers: with several workers, rescaled while it runs, checkpointed, in every
// mode of synchronisation.
//
// # One graph for each size
//
// A Gorgonia graph has a fixed batch, and its loss is a mean over it. A worker's
// share of a step has any size: it depends on how many workers there are, and the
// last batch of an epoch is short. So a model is given as a function that builds
// the graph for a batch of n examples, and a worker builds one for each size that
// it meets. Nothing is padded and nothing is masked: the loss of a share is the one
// that the graph says, over exactly the share's examples. What is pushed is n times
// its gradients, with weight n; the servers add up and divide once, so the step
// is that of the whole batch:
//
//	∇(1/N · Σᵢ lossᵢ) = 1/N · Σ over workers of n · ∇(1/n · Σ over its share of lossᵢ)
//
// This holds for any loss that is a mean over examples. A share of a single example
// is computed as two of the same, whose mean is the same loss: many of Gorgonia's
// operations do not work on a batch of one.
//
// # How a job starts
//
// A learnable that has a value starts with it, as in any Gorgonia program. Gorgonia's
// initialisers (gorgonia.GlorotU) draw anew each time that a graph is built, so Wrap
// takes the values of one graph, and all servers start from these. They lie in the
// memory of this process, where the job must run (launch inproc, the default).
//
// A learnable without a value starts as Config.Init says. It draws by the job's seed:
// leave the values out where each run shall start alike.
//
// # What Gorgonia does and what it does not
//
// Gorgonia differentiates the graph (gorgonia.Grad) and its operations compute it;
// what walks along them is this package, and not one of Gorgonia's machines. Those
// run a graph on a goroutine of their own, where a panic in an operation, of which
// there are many, ends the program. Here it becomes an error that names the node.
//
// Gorgonia's kernels are several times slower than those of package nn, which is the
// better home of a model that is to be trained much. Of its parts, these do not go:
//
//   - batch norm keeps its running averages within the operation, where no server
//     can reach; a graph with one is refused.
//   - Sum and Mean over two axes at once are wrong, and nothing says so.
//   - dropout draws from a generator that no key sets: two runs with one seed differ.
package graph
