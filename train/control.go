package train

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"google.golang.org/grpc"

	"optimus/elastic"
	"optimus/internal/failure"
	"optimus/internal/rpc"
	"optimus/spec"
)

// control is the service on the run's Unix socket.
type control struct {
	rpc.UnimplementedControlServer
	c *coordinator
}

var errEnded = errors.New("the job has ended")

func (s *control) ended(op string) error {
	advice, ok := s.c.layout.resumable()
	if !ok {
		advice = "it left no checkpoint: start it anew"
	}
	return failure.E(op, s.c.layout.Job.Name, failure.Conflict, errEnded, advice)
}

// Attach joins a child process.
func (s *control) Attach(stream grpc.BidiStreamingServer[rpc.Envelope, rpc.Envelope]) error {
	e, err := stream.Recv()
	if err != nil {
		return err
	}
	first, err := message(e)
	if err != nil {
		return failure.E("attach", "member", failure.InvalidArgument, err, "")
	}
	q := newQueue()
	if !s.c.post(func() { s.c.attach(first.From, q) }) {
		return s.ended("attach")
	}
	s.c.receive(first)
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		for {
			m, err := q.pop()
			if err != nil {
				return
			}
			e, err := envelope(m)
			if err != nil || stream.Send(e) != nil {
				return
			}
		}
	}()
	for err == nil {
		if e, err = stream.Recv(); err == nil {
			var m elastic.Message
			if m, err = message(e); err == nil {
				s.c.receive(m)
			}
		}
	}
	q.close()
	s.c.post(func() { s.c.detach(first.From, q) })
	<-sent
	return nil
}

func (s *control) Status(context.Context, *rpc.StatusRequest) (*rpc.StatusReply, error) {
	status, _ := s.c.rec.Status()
	b, err := json.Marshal(status)
	return &rpc.StatusReply{StatusJson: b}, err
}

// Watch sends the status whenever it changes, at most ten times a second.
func (s *control) Watch(_ *rpc.WatchRequest, stream grpc.ServerStreamingServer[rpc.StatusReply]) error {
	for {
		status, changed := s.c.rec.Status()
		b, err := json.Marshal(status)
		if err != nil {
			return err
		}
		if err := stream.Send(&rpc.StatusReply{StatusJson: b}); err != nil || status.State.Final() {
			return err
		}
		select {
		case <-changed:
		case <-s.c.done:
		case <-stream.Context().Done():
			return nil
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-stream.Context().Done():
			return nil
		}
	}
}

// await runs a command and waits for the controller's answer.
func (s *control) await(ctx context.Context, op string, do func(id int64)) error {
	answer := make(chan error, 1)
	if !s.c.ask(do, func(err error) { answer <- err }) {
		return s.ended(op)
	}
	select {
	case err := <-answer:
		return err
	case <-s.c.done:
		select {
		case err := <-answer:
			return err
		default:
			return s.ended(op)
		}
	case <-ctx.Done():
		status, _ := s.c.rec.Status()
		return failure.E(op, s.c.layout.Job.Name, failure.Deadline, fmt.Errorf("not done in time: %s", status.Reason), "look at `optimus status`")
	}
}

// Rescale changes the counts and answers with what moved once the first step of
// the new generation is done.
func (s *control) Rescale(ctx context.Context, r *rpc.RescaleRequest) (*rpc.RescaleReply, error) {
	if r.TimeoutMs > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, time.Duration(r.TimeoutMs)*time.Millisecond)
		defer cancel()
	}
	report, err := s.rescale(ctx, int(r.Servers), int(r.Workers))
	if err != nil {
		return nil, err
	}
	b, err := json.Marshal(report)
	return &rpc.RescaleReply{ReportJson: b}, err
}

func (s *control) rescale(ctx context.Context, servers, workers int) (*spec.RescaleReport, error) {
	job := s.c.layout.Job
	for _, n := range []struct {
		name  string
		value int
		count spec.Count
	}{{"servers", servers, job.Servers}, {"workers", workers, job.Workers}} {
		if n.value < 0 || n.value > spec.MaxMembers {
			return nil, failure.E("rescale", job.Name, failure.InvalidArgument, fmt.Errorf("%d %s", n.value, n.name), fmt.Sprintf("give 1 to %d", spec.MaxMembers))
		}
		if n.value > 0 && !n.count.Allows(n.value) {
			return nil, failure.E("rescale", job.Name, failure.InvalidArgument, fmt.Errorf("%d %s: the job allows %v", n.value, n.name, n.count), "stay within its bounds")
		}
	}
	var id int64
	if err := s.await(ctx, "rescale", func(command int64) {
		id = command
		s.c.ctl.Rescale(command, servers, workers)
	}); err != nil {
		return nil, err
	}
	for {
		status, changed := s.c.rec.Status()
		if rep, open := s.c.rec.rescaled(id); rep != nil {
			return rep, nil
		} else if !open { // the counts were these already
			size := [2]int{status.Servers, status.Workers}
			return &spec.RescaleReport{Step: status.Step, From: size, To: size, Generation: status.Generation}, nil
		}
		select {
		case <-changed:
		case <-s.c.done:
			return nil, s.ended("rescale")
		case <-ctx.Done():
			return nil, failure.E("rescale", job.Name, failure.Deadline, errors.New("committed, but no step was made yet"), "look at `optimus status`")
		}
	}
}

// Checkpoint saves at the next possible step and waits until it is durable.
func (s *control) Checkpoint(ctx context.Context, _ *rpc.CheckpointRequest) (*rpc.CheckpointReply, error) {
	if err := s.await(ctx, "checkpoint", s.c.ctl.Checkpoint); err != nil {
		return nil, err
	}
	path, step := s.c.rec.saved()
	return &rpc.CheckpointReply{Path: path, Step: step}, nil
}

// Stop ends the job, after a checkpoint if asked.
func (s *control) Stop(_ context.Context, r *rpc.StopRequest) (*rpc.StopReply, error) {
	if !s.c.post(func() { s.c.ctl.Stop(r.Checkpoint, "stopped on command") }) {
		return nil, s.ended("stop")
	}
	return &rpc.StopReply{}, nil
}
