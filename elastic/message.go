package elastic

import (
	"encoding/json"
	"fmt"

	"optimus/paa"
)

// Role is what a member does.
type Role string

// The roles. Controller is the sender of the controller's messages.
const (
	Server Role = "server"
	Worker Role = "worker"
)

// Member is one start of one task. Two members are the same only if all three
// fields agree; a timeout alone never decides identity.
type Member struct {
	Role        Role   `json:"role"`
	ID          int    `json:"id"`
	Incarnation uint64 `json:"incarnation"`
}

// String gives "worker 3#17", incarnation last.
func (m Member) String() string {
	return fmt.Sprintf("%s %d#%d", m.Role, m.ID, m.Incarnation)
}

// Address is a member and where its data plane listens.
type Address struct {
	Member
	Addr string `json:"addr,omitempty"`
}

// Generation is one membership and one assignment.
type Generation struct {
	Number int `json:"number"`
	// Servers holds the server of assignment index i at position i.
	Servers []Address `json:"servers"`
	// Workers is ordered by id; a worker's position is its rank.
	Workers []Address `json:"workers"`
	// Learned is the number of learned blocks; auxiliary array i is block
	// Learned+i on the wire.
	Learned int `json:"learned"`
	// Blocks assigns the learned blocks, Aux the auxiliary arrays.
	Blocks paa.Assignment `json:"blocks"`
	Aux    paa.Assignment `json:"aux"`
}

// Rank returns the position of a worker, or -1.
func (g *Generation) Rank(m Member) int { return position(g.Workers, m) }

// Index returns the assignment index of a server, or -1.
func (g *Generation) Index(m Member) int { return position(g.Servers, m) }

// Has reports whether m belongs to the generation.
func (g *Generation) Has(m Member) bool { return g.Rank(m) >= 0 || g.Index(m) >= 0 }

func position(list []Address, m Member) int {
	for i, a := range list {
		if a.Member == m {
			return i
		}
	}
	return -1
}

// Source says where the servers of a generation get the boundary's version.
type Source string

// The sources.
const (
	FromInit       Source = "init"       // initial values, a pure function of the seed
	FromCheckpoint Source = "checkpoint" // the files of Message.Checkpoint
	FromPeers      Source = "peers"      // the old owners, who send what moves
	FromSelf       Source = "self"       // the same servers hold the same pieces
)

// Kind names a message.
type Kind string

// Messages of members to the controller.
const (
	Hello       Kind = "hello"       // I run: address, process id
	Prepared    Kind = "prepared"    // ready for generation Gen
	Extracted   Kind = "extracted"   // server: version Step is complete here; its digest
	Received    Kind = "received"    // server: everything that server Peer sends has come
	Moved       Kind = "moved"       // server: every piece of Gen is here; its digest
	Halted      Kind = "halted"      // stopped; server: lowest version in Step; worker (asp, ssp): no push is under way
	Progress    Kind = "progress"    // worker: step Step is pushed and acknowledged
	Evaluated   Kind = "evaluated"   // worker: its share of the evaluation of version Step
	Vetoed      Kind = "vetoed"      // server: a non-finite value in step Step
	Armed       Kind = "armed"       // server: snapshot ID will be taken at Step
	Snapshotted Kind = "snapshotted" // server: snapshot ID is on disk
	Leaving     Kind = "leaving"     // worker: asked to leave by its owner
	Failed      Kind = "failed"      // cannot go on: Reason
	Beat        Kind = "beat"        // alive
	WantChunk   Kind = "want-chunk"  // worker (asp, ssp): finished Chunk, give me another
)

// Messages of the controller to members.
const (
	Prepare  Kind = "prepare"  // get ready for Next
	Switch   Kind = "switch"   // Step is the boundary of generation Gen
	Commit   Kind = "commit"   // generation Gen rules
	Drop     Kind = "drop"     // generation Gen will not come
	Halt     Kind = "halt"     // stop, answer Halted; with Source checkpoint all that is under way is void
	Resume   Kind = "resume"   // worker (asp, ssp): go on in the same generation after a halt
	Lease    Kind = "lease"    // worker: may run to Step
	Snapshot Kind = "snapshot" // server: write version Step as snapshot ID
	Evaluate Kind = "evaluate" // worker (asp, ssp): evaluate now
	GiveWork Kind = "chunk"    // worker (asp, ssp): a chunk, or none for now
	Dismiss  Kind = "dismiss"  // leave
)

// NoVersion is the Step of a server's Halted that holds no piece: it does not
// bound the version to go back to.
const NoVersion = -1

// Message is everything that travels between the controller and a member. Which
// fields count depends on Kind.
type Message struct {
	Kind Kind   `json:"kind"`
	From Member `json:"from,omitzero"` // the member that sends; zero from the controller
	To   Member `json:"to,omitzero"`   // the member addressed; zero to the controller

	Gen    int    `json:"gen,omitempty"`
	Step   int64  `json:"step,omitempty"`
	Reason string `json:"reason,omitempty"`

	// Hello
	Addr string `json:"addr,omitempty"`
	PID  int    `json:"pid,omitempty"`

	// Prepare, Switch and Halt
	Old        *Generation `json:"old,omitempty"`
	Next       *Generation `json:"next,omitempty"`
	Source     Source      `json:"source,omitempty"`
	Smooth     bool        `json:"smooth,omitempty"` // nobody stops
	Rewind     int64       `json:"rewind,omitempty"` // version that becomes the boundary's (FromSelf, FromPeers after a halt)
	Checkpoint string      `json:"checkpoint,omitempty"`

	// Commit: version Step still waits for its evaluation.
	Evaluate bool `json:"evaluate,omitempty"`
	// Commit: an old server is gone, so nobody need finish the boundary's step
	// there; what was pushed to it has been moved.
	Cut bool `json:"cut,omitempty"`

	// Moved, Extracted, Received
	Peer     int    `json:"peer,omitempty"`
	Params   uint64 `json:"params,omitempty"`
	State    uint64 `json:"state,omitempty"`
	Elements int64  `json:"elements,omitempty"` // parameters received from other servers
	Bytes    int64  `json:"bytes,omitempty"`    // the same with optimizer state
	AuxBytes int64  `json:"aux_bytes,omitempty"`

	// Snapshot, Armed, Snapshotted
	ID    int64           `json:"id,omitempty"`
	Shard json.RawMessage `json:"shard,omitempty"`

	// Vetoed: the worker rank's id, -1 for the sum.
	Culprit int    `json:"culprit,omitempty"`
	Block   string `json:"block,omitempty"`

	// Progress and Evaluated
	Report *Report `json:"report,omitempty"`

	// WantChunk and GiveWork
	Chunk *Work `json:"chunk,omitempty"`
}

// Report is what a worker measured over its share of one step or evaluation.
// Sums, never means: the controller divides once.
type Report struct {
	Loss    float64 `json:"loss"`
	Weight  int64   `json:"weight"`
	Counts  []int64 `json:"counts,omitempty"` // what the workload's metric is made of
	IDs     []int   `json:"ids,omitempty"`
	Pull    float64 `json:"pull_s,omitempty"`
	Compute float64 `json:"compute_s,omitempty"`
	Push    float64 `json:"push_s,omitempty"`
	// Staleness is the largest number of steps that the parameters of this
	// step lagged behind this worker's clock (ssp).
	Staleness int64 `json:"staleness,omitempty"`
}
