// Package conv computes convolutions directly, without a matrix of columns, in
// all three directions of training.
//
// # Idea
//
// Pictures lie in blocks of 16 channels (NCHW16c): one AVX-512 register holds a
// pixel's block. A kernel keeps a tile of outputs, say 14 pixels × 32 channels, in
// registers while it runs through the taps of the filter: every input value is
// multiplied with the weights of all the tile's channels. Left and right of a
// picture lie columns of zeros, its halo, so that a tile need not know where
// the picture ends; but a tap whose pixel or row is all padding is left out, which
// saves a tenth of the work on 7×7 pictures.
//
//   - Forward and backward-data are one engine (gather.go). With strides,
//     backward-data is one pass of stride 1 for each phase of the input pixel.
//   - Backward-weights (outer.go) adds outer products of inputs and gradients, pixel
//     by pixel, to a tile of the gradient in registers.
//   - A strided 1×1 first copies the pixels that it takes together (thin.go).
//   - Inputs of up to 4 channels stay in plain planes: the places of a filter's row
//     take the part of the 16 channels.
//   - Groups of 1, 2, 4 or 8 channels have kernels of their own, which permute the lanes
//     of a block. Other groups run one by one or, where their channels do not fill
//     blocks, some together with zeros between.
//
// The loops around the kernels keep what is read again near: see tune in plan.go.
// The kernels fetch, on the way, what later calls will read.
//
// # Use
//
// New plans a shape once, Replan goes on to pictures of another height. X, Y and DX
// say how pictures lie; PackForward and PackBackward bring filters into the order of
// the kernels, UnpackGradient brings gradients back. Forward and BackwardData take a range of samples,
// BackwardWeights and UnpackTasks a range of tasks, so that any number of goroutines can share
// the work. Nothing is allocated once a plan has run.
//
// Every output is one float32 sum in an order that the plan fixes: at one level the
// bits do not depend on how the work is shared. Arrays are fastest where they
// begin at multiples of 64 bytes, as large ones from make do.
package conv
