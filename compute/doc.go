// Package compute is the seam between a model and the machine that runs it.
//
// A model's step is a Program: a list of operations over buffers, forward and
// backward, together with the blocks that the servers hold for it. Package nn
// writes Programs, a backend (compute/cpu, cuda) compiles one to an Executable
// for a given batch capacity, and a worker drives the Executable: it sets
// parameters as they arrive, runs steps, and reads gradients as they get ready.
//
// Three rules make a step fit for data-parallel training.
//
//   - Sums, not means. A gradient, a loss and an auxiliary statistic are sums
//     over the batch, with an integer weight beside them; one division happens
//     at the root. So a batch may be cut into shares of any size, even none.
//   - Marks. The steps of a Program say before which step a block is first
//     needed (Wait) and after which one its gradient is final (Ready), so that a
//     worker can pull and push block by block while the rest still computes.
//   - Keys. Whatever is random (dropout, augmentation) is a function of (seed,
//     epoch, example, layer, element), never of the worker or the batch.
//
// Buffers are example-major: a batch of N examples uses the first N of the
// capacity, and nothing behind them is read.
package compute
