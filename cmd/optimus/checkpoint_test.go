package main

import (
	"os"
	"strconv"

	"github.com/rogpeppe/go-internal/testscript"

	"optimus/elastic/checkpoint"
)

// save writes a checkpoint of two arrays, cut onto two servers.
func save(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: save ROOT SEQ STEP")
	}
	sequence, err := strconv.ParseInt(args[1], 10, 64)
	ts.Check(err)
	step, err := strconv.ParseInt(args[2], 10, 64)
	ts.Check(err)
	ones := func(n int) []float32 {
		values := make([]float32, n)
		for i := range values {
			values[i] = 1
		}
		return values
	}
	piece := func(block, offset, size int) checkpoint.PieceState {
		return checkpoint.PieceState{Block: block, Offset: offset, Size: size, Params: ones(size), Slots: [][]float32{ones(size)}}
	}
	shards := []checkpoint.Shard{
		{Server: 0, Pieces: []checkpoint.PieceState{piece(0, 0, 1000)}},
		{Server: 1, Pieces: []checkpoint.PieceState{piece(0, 1000, 200), piece(1, 0, 30)}},
	}
	stamp := checkpoint.Stamp{Sequence: sequence, Step: step, Slots: []string{"momentum"}}
	m := checkpoint.Manifest{Sequence: sequence, Step: step, Epoch: 3, Slots: stamp.Slots, Created: "2020-01-02T03:04:05Z",
		Arrays: []checkpoint.Array{{Name: "w", Shape: []int{40, 30}}, {Name: "b", Shape: []int{30}}}}
	dir := checkpoint.Dir(ts.MkAbs(args[0]), sequence, step)
	for _, shard := range shards {
		file, err := checkpoint.WriteShard(checkpoint.OS{}, dir, stamp, shard)
		ts.Check(err)
		m.Shards = append(m.Shards, file)
	}
	ts.Check(checkpoint.Commit(checkpoint.OS{}, dir, m))
}

// flip changes one byte of a file.
func flip(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: flip FILE OFFSET")
	}
	path := ts.MkAbs(args[0])
	data, err := os.ReadFile(path)
	ts.Check(err)
	at, err := strconv.Atoi(args[1])
	ts.Check(err)
	if at < 0 {
		at += len(data)
	}
	if at < 0 || at >= len(data) {
		ts.Fatalf("%s has %d bytes, none at %s", args[0], len(data), args[1])
	}
	data[at] ^= 0x10
	ts.Check(os.WriteFile(path, data, 0o644))
}
