// Package place puts the tasks of jobs, parameter servers (ps) and workers, on the nodes of a cluster.
//
// The traffic between a ps and a worker of one node is free, so what matters is how a job's tasks are grouped. In
// one step a ps on node k exchanges its part of the model with the w − w_k workers that are elsewhere, a worker with
// the p − p_k ps elsewhere; the slowest task decides ([Traffic], Fig 10 of the Optimus paper). Theorem 1 of that
// paper says: use the fewest servers on which the tasks can be dealt evenly, the same number of ps on each and the
// same number of workers on each.
//
// The theorem assumes equal servers, counts that the number of servers divides, and servers without room to spare.
// [Optimus] is the paper's algorithm ([Paper]) or, by default, one that also handles what the theorem leaves out:
// nodes of different shapes, surplus tasks, and jobs that do better with all ps on few nodes. [Spread] is the
// default of Kubernetes, [Pack] Tetris's packing, [MostFree] fills the emptiest node first; they exist so that
// placement can be swapped while the allocation stays.
//
// A [Space] holds what is free on each node. It keeps nodes ranked by what they have free, in heaps, so that placing
// a task costs O(log n) on n nodes. Resources are integers in units of the caller's choice (millicores, bytes), so
// that what is taken and given back always adds up exactly.
package place
