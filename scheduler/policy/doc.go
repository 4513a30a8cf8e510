// Package policy decides how many parameter servers and workers each job gets, and on which nodes.
//
// [Step] is the whole scheduler: given what was decided last ([State]) and what is now known of the cluster and its
// jobs ([View]), it returns the next state and one [Decision] per job. It is pure, so the daemon and the simulator
// run the same code, and a daemon that restarts goes on from the state that it stored.
//
// A [Policy] is an allocator, which chooses p and w, and a rule of package place, which chooses nodes. They are
// chosen by name ([ByName]) and can be mixed, as in the ablations of the Optimus paper:
//
//	optimus         marginal gains (§4.1), with every option of [Options] that is on where it is better
//	optimus-paper   the same to the letter of the paper
//	optimus+oracle  the Optimus of the Pollux paper: jobs without ps, true remaining work, jobs that keep their size stay
//	drf             dominant resource fairness; tasks spread as Kubernetes does
//	tetris          alignment and little remaining work; tasks packed
//	fifo, srtf      by arrival; by shortest remaining time
//	tiresias        jobs of fixed size in two queues, first those that have had little service
//	pollux          largest fitness of the jobs' goodputs, by genetic search; chooses batches too, for jobs without ps
//	pollux-artifact the same with what its authors' implementation does otherwise ([Quirks])
//
// Optimus's idea: a job with Q steps left that runs at f(p,w) steps/s ends in t = Q/f(p,w) seconds. Every job gets
// its least number of tasks; then one task at a time goes to the job whose t falls most per amount of the cluster
// that the task takes (Eqn 9), until nothing fits or nobody gains.
package policy
