package elastic

import (
	"encoding/json"

	"optimus/data/order"
)

// Ready is what the shell must do, in this order: append Journal and make it
// durable, then the rest. A decision that is not in the journal was never made.
type Ready struct {
	Journal  []Entry
	Launch   []Member
	Messages []Message
	Kill     []Kill
	Events   []Event
}

// Kill orders the end of a member that is lost or superfluous.
type Kill struct {
	Member Member
	Reason string
}

// EventKind names an event.
type EventKind string

// What the shell is told, for telemetry, status and answers to commands.
const (
	StepDone      EventKind = "step"        // all shares of Step are in Reports
	EvaluationRan EventKind = "evaluation"  // all shares of the evaluation of version Step
	PhaseBegan    EventKind = "phase"       // transition Gen entered Phase
	Committed     EventKind = "committed"   // generation Gen rules from Step on
	Aborted       EventKind = "aborted"     // transition Gen will not come: Reason
	MemberLost    EventKind = "lost"        // Member is gone: Reason
	StepSkipped   EventKind = "skipped"     // Step was vetoed: Reason; takes back its StepDone, if that came first
	SnapshotWhole EventKind = "snapshot"    // all shards of Snapshot are on disk
	SnapshotLost  EventKind = "no-snapshot" // the checkpoint at Step was not written: Reason
	// CheckpointWanted asks the shell for the newest checkpoint that it has
	// verified; its answer is Controller.CheckpointFound of the same Gen.
	CheckpointWanted EventKind = "checkpoint-wanted"
	Answered         EventKind = "answered" // command ID is done, Reason says what went wrong
	StateChanged     EventKind = "state"    // State, Reason
)

// Event is one thing that happened. Which fields count depends on Kind.
type Event struct {
	Kind    EventKind
	Gen     int
	Step    int64
	Phase   Phase
	State   State
	Reason  string
	Member  Member
	Command int64

	Reports  []Report // in rank order
	Workers  []int    // their ids
	Servers  int
	Epoch    int // that the examples of Step belong to (StepDone)
	Missing  int // workers lost with their report of a step that was made (StepDone)
	Transfer *Transfer
	Snapshot *SnapshotTaken
}

// Transfer describes a committed transition.
type Transfer struct {
	Generation *Generation
	From, To   [2]int // servers, workers
	Source     Source
	Boundary   int64
	Moves      int   // ranges that changed their server
	Elements   int64 // parameters that changed their server
	Bytes      int64 // the same with optimizer state
	AuxBytes   int64
	Params     uint64 // digest of all parameters at the boundary, after the move
	State      uint64 // digest of all optimizer state
	Command    int64
}

// SnapshotTaken is a snapshot whose shards are all written; it becomes a
// checkpoint when the shell has written its manifest and says so.
type SnapshotTaken struct {
	ID     int64
	Step   int64
	Gen    int
	Shards []json.RawMessage
	Ledger *order.Ledger // asp, ssp: which examples are done
}

// Entry is one line of the journal.
type Entry struct {
	Kind        string      `json:"kind"` // command, prepare, boundary, commit, abort, lost, skip, snapshot, checkpoint, state
	Gen         int         `json:"gen,omitempty"`
	Step        int64       `json:"step,omitempty"`
	Incarnation uint64      `json:"incarnation,omitempty"` // highest used so far
	Generation  *Generation `json:"generation,omitempty"`
	Source      Source      `json:"source,omitempty"`
	Member      *Member     `json:"member,omitempty"`
	Servers     int         `json:"servers,omitempty"`
	Workers     int         `json:"workers,omitempty"`
	Snapshot    int64       `json:"snapshot,omitempty"`
	State       State       `json:"state,omitempty"`
	Reason      string      `json:"reason,omitempty"`
}

// Past is what a journal says of the runs before.
type Past struct {
	Generation  int    // highest number used
	Incarnation uint64 // highest used
	Snapshot    int64  // highest id used
	Servers     int    // counts last acknowledged
	Workers     int
	State       State
}

// Replay reads a journal's entries in order.
func Replay(entries []Entry) Past {
	var p Past
	for _, e := range entries {
		p.Generation = max(p.Generation, e.Gen)
		p.Incarnation = max(p.Incarnation, e.Incarnation)
		p.Snapshot = max(p.Snapshot, e.Snapshot)
		switch e.Kind {
		case "command", "commit":
			if e.Servers > 0 {
				p.Servers, p.Workers = e.Servers, e.Workers
			}
		case "state":
			p.State = e.State
		}
	}
	return p
}
