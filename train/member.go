package train

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"

	"optimus/elastic"
	"optimus/elastic/checkpoint"
	"optimus/internal/failure"
	"optimus/ps"
	"optimus/ps/pieces"
	"optimus/transport"
	"optimus/worker"
)

// member runs one task of a job, wherever it was launched.
type member struct {
	self    elastic.Member
	layout  *layout
	task    *Task // workers only
	link    elastic.Link
	network transport.Network
	log     *slog.Logger
	slow    func() // tests: called once per step
	tune    tuning
}

func (m *member) run(ctx context.Context) error {
	if m.self.Role == elastic.Server {
		return m.serve(ctx)
	}
	return m.work(ctx)
}

func (m *member) serve(ctx context.Context) error {
	l := m.layout
	return ps.Serve(ctx, ps.ServerConfig{Self: m.self, Run: l.Run, Link: m.link, Network: m.network, Store: l.store(),
		Seed: l.Plan.Seed, Log: m.log, Beat: m.tune.Beat,
		Write: func(id, step int64, server int, parts []pieces.Part) (json.RawMessage, error) {
			return writeShard(l, id, step, server, parts)
		},
		Read: func(path string, ids []pieces.ID, fill func(pieces.Part) error) error {
			return readPieces(l, path, ids, fill)
		}})
}

func (m *member) work(ctx context.Context) error {
	l := m.layout
	model, err := m.task.New(l.Capacity)
	if err != nil {
		m.link.Send(elastic.Message{Kind: elastic.Failed, From: m.self, Reason: err.Error()})
		m.link.Close()
		return err
	}
	defer model.Close()
	client := ps.NewClient(ps.ClientConfig{Self: m.self, Run: l.Run, Network: m.network, Params: append(append(l.Params[:0:0], l.Params...), l.Aux...),
		Mode: l.mode(), Carried: l.Carried > 0, ClipNorm: l.Optimizer.ClipNorm, Retry: m.tune.Retry})
	defer client.Close()
	blocks := make([]worker.Block, len(l.Params))
	for i, p := range l.Params {
		blocks[i] = worker.Block{Name: p.Name, Rows: p.Rows}
	}
	if err := m.link.Send(elastic.Message{Kind: elastic.Hello, From: m.self, PID: os.Getpid()}); err != nil {
		return err
	}
	return worker.Run(ctx, worker.Config{Self: m.self, Link: m.link, Model: model, Exchanger: client, Plan: l.Plan, Mode: l.mode(),
		Steps: l.Steps, Blocks: blocks, Aux: len(l.Aux), Carried: l.Carried, Validation: l.Validation, Batch: l.Capacity, RecordIDs: true,
		Beat: m.tune.Beat, Slow: m.slow})
}

// writeShard saves a server's parts as its shard of a checkpoint.
func writeShard(l *layout, id, step int64, server int, parts []pieces.Part) (json.RawMessage, error) {
	shard := checkpoint.Shard{Server: server}
	for _, p := range parts {
		shard.Pieces = append(shard.Pieces, checkpoint.PieceState{Block: p.Block, Offset: p.Offset, Size: p.Size,
			Params: p.Params, Slots: p.Slots, Updates: p.Updates})
	}
	dir := checkpoint.Dir(l.Checkpoints, id, step)
	file, err := checkpoint.WriteShard(checkpoint.OS{}, dir, checkpoint.Stamp{Sequence: id, Step: step, Slots: l.Optimizer.SlotNames()}, shard)
	if err != nil {
		_ = os.Remove(dir) // unless another server has written into it
		return nil, err
	}
	return json.Marshal(file)
}

// readPieces fills a server's pieces from a checkpoint, whatever its cut.
func readPieces(l *layout, path string, ids []pieces.ID, fill func(pieces.Part) error) error {
	r, err := checkpoint.Load(checkpoint.OS{}, path)
	if err != nil {
		return err
	}
	defer r.Close()
	for _, id := range ids {
		part := pieces.Part{Block: id.Block, Offset: id.Offset, Size: id.Size, Params: make([]float32, id.Size)}
		if id.Block < len(l.Params) {
			for range l.Optimizer.Slots() {
				part.Slots = append(part.Slots, make([]float32, id.Size))
			}
		}
		if part.Updates, err = r.Read(id.Block, id.Offset, part.Params, part.Slots); err != nil {
			return err
		}
		if err := fill(part); err != nil {
			return err
		}
	}
	return nil
}

// RunMember is the main of a child process: it runs one member of the job whose
// layout lies at path, controlled over the Unix socket, until it is dismissed or
// the supervisor is gone.
func RunMember(ctx context.Context, path, socket string, self elastic.Member, log *slog.Logger) error {
	l, err := readLayout(path)
	if err != nil {
		return failure.E("start member", self.String(), "", err, "it is started by `optimus train`, not by hand")
	}
	m := &member{self: self, layout: l, network: transport.TCP("127.0.0.1", transport.Config{}), log: log}
	if self.Role == elastic.Worker {
		if m.task, err = Open(l.Job); err != nil {
			return err
		}
		if m.task.Examples != l.Plan.Examples || m.task.Fingerprint != l.Fingerprint {
			return fmt.Errorf("start member %s: the data changed under the job: it has %d examples, of fingerprint %.12s, and here are %d, of %.12s; restore them, or start the job anew",
				self, l.Plan.Examples, l.Fingerprint, m.task.Examples, m.task.Fingerprint)
		}
	}
	link, err := dialLink(ctx, socket)
	if err != nil {
		return err
	}
	m.link = link
	return m.run(ctx)
}
