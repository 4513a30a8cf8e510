// Package scheduler is the home of the scheduler's brain. It holds no code of its own; the parts are below it.
//
//   - estimate predicts how much training a job still needs and how fast any configuration would do it, from what the
//     job has shown so far.
//   - policy decides, once per interval, what each job gets: policy.Step is the whole scheduler, a pure function from a
//     state and a view of the cluster to the next state and the decisions. The daemon that runs jobs and the simulator
//     call the very same function.
//   - place puts the tasks of jobs on nodes: Theorem 1 of the Optimus paper, and the rules it is compared with.
//   - sim runs a workload through policy.Step against measured truth.
//   - trace reads workloads and measured speeds, and draws arrivals.
//
// Everything here is pure: values in, decisions out. Nothing reads a clock, starts a goroutine, opens a file or a
// socket, or draws a random number that its caller did not seed; equal arguments give equal results on every
// machine, whatever the order in which jobs and nodes are listed.
package scheduler
