// Package elastic decides who trains what, and how a job passes from one
// membership to the next without a stop.
//
// # Idea
//
// Three deterministic state machines, in the manner of etcd's raft library:
// the Controller of a job, and one member machine each for a server and a
// worker. Messages, commands and ticks go in; messages, journal entries and
// orders to the shell come out. Nothing here reads a clock, opens a socket or
// starts a goroutine, so that every interleaving can be replayed from a script
// (testdata/*.txt), and the live system runs the very code that was tested.
//
// # Generations
//
// A Generation is one membership together with one assignment of the model's
// pieces. Its number only grows, is never used twice, and is part of every
// frame on the wire: that is what fences a member that was thought dead. A
// member's identity is (role, id, incarnation); a replacement gets a new
// incarnation, never its predecessor's.
//
// # Transitions
//
// Every change, the first start included, is one procedure:
//
//	launch   newcomers start and say Hello
//	prepare  all members of the next generation learn it, connect, allocate
//	switch   a boundary s is fixed; servers bring version s to its new owners
//	commit   journalled, then told: the next generation applies steps
//
// What differs is where version s comes from (Source): initial values, a
// checkpoint, the old owners, or the very same servers. In a smooth transition
// nobody stops: workers run to s under the old generation, and compute step
// s+1 by pulling s from the old owners and pushing to the new ones, which
// buffer it until the commit. Workers hold a lease (they may run to step L), so
// that a boundary of at least the largest L granted needs no pause to agree on.
// After a loss or a veto the members are halted first and the boundary is the
// newest version that every piece has, or the newest checkpoint that is whole. A
// server that has voted on the next version (clipping by the norm) counts as having
// it: it comes without another push.
//
// # Without common steps
//
// In modes asp and ssp a piece applies a push when it comes, so that no version
// is the same everywhere but when nobody pushes. Before pieces are cut, and for a
// checkpoint, the workers drain: each finishes the push that it has begun, on all
// pieces, reports it and says Halted, and begins none. Only then do the servers
// stand still. A push is on some pieces only where its worker was lost in the
// midst of it; the examples of that push are then used again. A worker that does
// not answer is lost after Config.PhaseLimit; one that waits for a lost server
// gives its push up, since all pieces then come from a checkpoint.
//
// Decisions are journalled before they are acted on: see Ready.
package elastic
