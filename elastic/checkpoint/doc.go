// Package checkpoint saves and restores the state of a training job as files.
//
// # Idea
//
// One checkpoint is one folder, `<root>/<sequence>-step<step>/`. Every server
// writes its pieces into a file of its own, `server-<i>.safetensors`, in
// parallel and without knowing of the others. When all are durable the
// controller writes `manifest.json`, last: a folder with a manifest is complete,
// one without is what a killed save left. Each file appears under its name only
// after its bytes are on disk (temporary name, fsync, rename, fsync of the
// folder), so no crash leaves a half file under a whole file's name.
//
// Which checkpoint is the newest is said by the sequence number in the manifest,
// a count of saves. Not by the step, which goes back when a job is restored by
// hand, and not by the name's order as text.
//
// Tensors are named `block@offset` and, for optimizer state,
// `block@offset/slot`: where a piece lies in its array is in its name, and the
// manifest knows the arrays' global shapes. So [Reader.Read] returns any range
// of any array whatever cut it was saved with, by range reads, and a job is
// restored onto any number of servers.
//
// The manifest carries a SHA-256 of each shard, a CRC-32C of each tensor and a
// SHA-256 of itself: [Verify] finds any flipped byte and names file and tensor.
// [Newest] makes only the cheap checks (manifest, sizes, headers, one step in
// all shards) and falls back to the checkpoint before where they fail;
// [NewestVerified] reads all of it and falls back likewise.
//
// A save:
//
//	dir := checkpoint.Dir(root, sequence, step)               // sequence from NextSequence
//	file, err := checkpoint.WriteShard(fs, dir, stamp, shard) // on each server
//	err = checkpoint.Commit(fs, dir, manifest)                // once, with all files
//	removed, err := checkpoint.Prune(fs, root, keep, from)    // only after success
//
// The format has a page of its own: docs/formats/checkpoint.md.
package checkpoint
