// Package nn builds Programs out of layers.
//
// A Net records layers as a model calls them, shape by shape; each layer emits
// its operation (compute.Op) and says which of its gradients somebody needs.
// Program then plays the record backwards and returns the finished step. The
// gradients are written by hand, operation by operation: there is no automatic
// differentiation, so what a step costs is what its layers say.
//
// A Value that several layers read adds their gradients up; data that is not
// learned (pictures, word ids) has no gradient, and none is computed for it.
//
// The first mistake (a shape that does not fit, a name used twice) is kept and
// returned by Program, so models are written without error handling in between.
package nn
