// Package optimus is the truth of the jobs of the Optimus paper (Peng et al., EuroSys 2018), for package sim.
//
// A [Kind] is one of the nine workloads of Table 1. Its loss follows the curve of Fig 5, and it has converged, as the
// scheduler is told too, when the loss has fallen by less than the owner's threshold for three epochs running.
//
// Its speed comes from measurements ([Tables]): synchronous jobs from a testbed's table of step times, asynchronous
// ones from the points of Fig 9. Between the measured p and w the logarithm of the step time is interpolated. Kinds
// that nobody has measured take the table of a related kind, scaled by facts that [Kinds] lists. Fig 9 was measured on
// slower machines than the testbed's table; as one worker does the same in both modes, an asynchronous step is scaled to
// take as long as a synchronous one with one ps and one worker.
//
// A step is computation and transfer, and only the transfer depends on where the tasks are. A task that talks to r
// tasks on other nodes and to l on its own needs r/inter + l/intra for it, in the effective bandwidths that were
// measured between and within nodes; a ps talks to all workers, a worker to all ps (Fig 10), and a synchronous step
// takes as long as its slowest task. The tables were measured on 13 servers with tasks spread by load, so there a job
// has the speed of the table, and elsewhere its transfer takes longer or shorter in proportion.
//
// The scheduler sees none of this ([Job.Show]): it gets a fit of Eqn 3 or 4 to five noisy probes and to the speeds
// measured since, and a forecast from noisy losses with outliers.
package optimus
