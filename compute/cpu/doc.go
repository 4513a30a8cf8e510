// Package cpu compiles Programs for the processor.
//
// Compile assigns every buffer once, for the capacity, and turns each operation
// into a kernel: an object that owns its private state (the position of a
// maximum, a dropout mask) and runs the operation's passes. A step then walks
// the Program and allocates nothing.
//
// # Cores and bits
//
// With Threads above one, an executable keeps that many goroutines less one and
// splits each pass into tasks: forward and input gradients by sample, weight
// gradients by output tile, each tile summing the samples in their order. What a
// task covers is a function of the shapes alone, and package sgemm's bits do not
// depend on where a product is cut, so the bits of a step do not depend on the
// number of threads.
package cpu
