// Package sim runs a whole workload through a scheduling policy in no time.
//
// The policy is the one that the daemon runs: [Run] calls policy.Step and obeys. What the jobs do is told by their
// [Process], from measured tables, so a policy is judged by the truth and not by its own estimates.
//
// Time goes from event to event: rounds of scheduling, arrivals, completions, nodes that fail or become slow and
// recover. Between two events nothing changes, and a process computes what it gets done meanwhile.
//
// Rounds lie at the multiples of an interval, the first at one interval, as long as there are jobs. A job waits for
// the next round, and one that ends between two rounds holds its place until the later. With [Config.Reactive] a
// round is also held at each arrival and completion, and when a node fails or comes back.
//
// A change of a job's allocation, its first included, costs [Config.Restart] seconds in which it holds its GPUs but
// gets nothing done; another change begins them anew.
package sim
