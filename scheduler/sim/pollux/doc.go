// Package pollux is the truth of the workloads of the Pollux paper (OSDI 2021): what six training jobs do on up to 16
// nodes of 4 GPUs, by the authors' measurements.
//
// A job is an [App] at some progress. Progress counts iterations at the initial batch size M₀; one iteration at a
// larger batch M gains
//
//	r = (σ² + g²) / (σ²/(M/M₀) + g²)
//
// of them, where g² and σ² are the measured squared norm and variance of the gradient at that batch and epoch. So a
// job gets on at r/T a second if an iteration takes T on its GPUs. An epoch ends at a measured progress, at a whole
// second, and the job with the last of its epochs.
//
// How a job may be run is its [Kind]. A scheduler learns of it as a real one would: a fixed job tells the speeds that
// were measured beforehand, an adaptive one what it finds out while it runs.
package pollux
