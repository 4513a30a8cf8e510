// Package faultnet breaks networks on purpose: it wraps a transport.Network, or
// stands between two members as a proxy, and lets a rule decide about each frame.
// Tests use it to lose the answer to a push, to cut a server off within a
// transition, to deliver twice.
//
// A rule sees frames and nothing else, so what happens depends on what was said
// and never on when: the same exchange meets the same faults in each run.
package faultnet

import (
	"sync"
	"time"

	"optimus/internal/wire"
)

// Direction says which way a frame goes.
type Direction uint8

// The directions of a connection.
const (
	ToListener Direction = iota // from who dialed to who accepted: requests
	ToDialer                    // back: answers
)

// String returns the direction for messages.
func (d Direction) String() string {
	if d == ToListener {
		return "to listener"
	}
	return "to dialer"
}

// Verb is what happens to a frame.
type Verb uint8

// The verbs.
const (
	Deliver   Verb = iota
	Drop           // lose it; its sender believes it sent
	Cut            // lose it and end the connection
	Duplicate      // deliver it twice
)

// Action is a rule's decision about a frame. Its zero value delivers.
type Action struct {
	Do    Verb
	After time.Duration // wait before; frames behind it in its direction wait too
}

// Rule decides about each frame that passes. Frames of all connections and both
// directions may pass at the same time: a rule with memory guards it. It must not
// keep or change the frame.
type Rule func(d Direction, f *wire.Frame) Action

// Match is a condition on a frame.
type Match func(d Direction, f *wire.Frame) bool

// Answers matches frames of a kind on their way back to who asked.
func Answers(k wire.Kind) Match {
	return func(d Direction, f *wire.Frame) bool { return d == ToDialer && f.Kind == k }
}

// Requests matches frames of a kind on their way to who is asked.
func Requests(k wire.Kind) Match {
	return func(d Direction, f *wire.Frame) bool { return d == ToListener && f.Kind == k }
}

// Nth returns a rule that does act to the nth frame that matches, counted from 1,
// and delivers all others.
func Nth(n int, match Match, act Action) Rule {
	var mu sync.Mutex
	seen := 0
	return func(d Direction, f *wire.Frame) Action {
		if !match(d, f) {
			return Action{}
		}
		mu.Lock()
		defer mu.Unlock()
		if seen++; seen == n {
			return act
		}
		return Action{}
	}
}

// Every returns a rule that does act to every frame that matches.
func Every(match Match, act Action) Rule {
	return func(d Direction, f *wire.Frame) Action {
		if match(d, f) {
			return act
		}
		return Action{}
	}
}

// First returns a rule that asks all rules, so that each can count, and does what
// the first of them says that does not simply deliver.
func First(rules ...Rule) Rule {
	return func(d Direction, f *wire.Frame) Action {
		var act Action
		for _, rule := range rules {
			if a := rule(d, f); act == (Action{}) {
				act = a
			}
		}
		return act
	}
}
