package faultfs

import (
	"io/fs"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
)

// Crash cuts the power and restarts. What was synced is there. Of what was not,
// nothing is there if rng is nil; else each change of a folder survives or not by
// itself, and of each file a random part of the bytes that were not synced: a
// disk may write what it was not told to, in any order. (That is harsher than a
// journalling file system, which keeps or loses the two halves of a rename
// together.)
func (f *FS) Crash(rng *rand.Rand) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.root.crash(rng)
	f.dead, f.fault = false, nil
}

func (n *node) crash(rng *rand.Rand) {
	if n.seen == nil {
		n.data = survivor(n.disk, n.data, rng)
		n.disk = slices.Clone(n.data)
		return
	}
	after := maps.Clone(n.durable)
	for _, name := range union(n.seen, n.durable) {
		if rng == nil || n.seen[name] == n.durable[name] || rng.IntN(2) == 0 {
			continue
		}
		if child, ok := n.seen[name]; ok {
			after[name] = child
		} else {
			delete(after, name)
		}
	}
	n.seen, n.durable = after, maps.Clone(after)
	for _, name := range slices.Sorted(maps.Keys(after)) { // in order, so that a seed replays
		after[name].name = name
		after[name].crash(rng)
	}
}

// survivor is what a file holds after a crash: its durable bytes, and perhaps
// some of those seen beyond them.
func survivor(disk, seen []byte, rng *rand.Rand) []byte {
	if rng == nil || len(seen) <= len(disk) {
		return disk
	}
	n := len(disk) + rng.IntN(len(seen)-len(disk)+1)
	return slices.Clone(seen[:n])
}

// union lists the names of both sets in order.
func union(a, b map[string]*node) []string {
	names := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(names)
	return slices.Compact(names)
}

// Flip changes one byte of a file, on disk too, by xor with mask. It reports a
// file or an offset that does not exist.
func (f *FS) Flip(name string, offset int64, mask byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	n, err := f.lookup(name)
	if err == nil && (n.seen != nil || offset < 0 || offset >= int64(len(n.data))) {
		err = fs.ErrInvalid
	}
	if err != nil {
		return pathError("flip", name, err)
	}
	n.data[offset] ^= mask
	n.disk = slices.Clone(n.data)
	return nil
}

// Files lists the paths of all files, sorted.
func (f *FS) Files() []string {
	f.mu.Lock()
	defer f.mu.Unlock()
	var paths []string
	var walk func(n *node, at string)
	walk = func(n *node, at string) {
		if n.seen == nil {
			paths = append(paths, at)
			return
		}
		for name, child := range n.seen {
			walk(child, strings.TrimSuffix(at, "/")+"/"+name)
		}
	}
	walk(f.root, "/")
	slices.Sort(paths)
	return paths
}
