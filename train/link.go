package train

import (
	"context"
	"encoding/json"
	"errors"
	"sync"

	"google.golang.org/grpc"

	"optimus/elastic"
	"optimus/internal/rpc"
)

var errLinkClosed = errors.New("the link is closed")

// queue is an unbounded first-in-first-out queue of messages: the controller
// never waits for a member.
type queue struct {
	mu     sync.Mutex
	ready  sync.Cond
	list   []elastic.Message
	closed bool
}

func newQueue() *queue {
	q := new(queue)
	q.ready.L = &q.mu
	return q
}

func (q *queue) push(m elastic.Message) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed {
		return errLinkClosed
	}
	q.list = append(q.list, m)
	q.ready.Signal()
	return nil
}

// pop waits for a message; what was pushed before close still comes out.
func (q *queue) pop() (elastic.Message, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.list) == 0 && !q.closed {
		q.ready.Wait()
	}
	if len(q.list) == 0 {
		return elastic.Message{}, errLinkClosed
	}
	m := q.list[0]
	q.list = q.list[1:]
	return m, nil
}

func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.ready.Broadcast()
}

// pipe is the link of a member in this process.
type pipe struct {
	in      *queue
	deliver func(elastic.Message)
}

func (p *pipe) Send(m elastic.Message) error {
	p.in.mu.Lock()
	closed := p.in.closed
	p.in.mu.Unlock()
	if closed {
		return errLinkClosed
	}
	p.deliver(m)
	return nil
}
func (p *pipe) Recv() (elastic.Message, error) { return p.in.pop() }
func (p *pipe) Close() error                   { p.in.close(); return nil }

// stream is the link of a child process: a gRPC stream to the supervisor.
type stream struct {
	mu     sync.Mutex
	client *rpc.Client
	s      grpc.BidiStreamingClient[rpc.Envelope, rpc.Envelope]
	cancel context.CancelFunc
}

func dialLink(ctx context.Context, socket string) (*stream, error) {
	client, err := rpc.Dial(ctx, socket)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	s, err := client.Attach(ctx)
	if err != nil {
		cancel()
		client.Close()
		return nil, err
	}
	return &stream{client: client, s: s, cancel: cancel}, nil
}

func (l *stream) Send(m elastic.Message) error {
	e, err := envelope(m)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.s.Send(e)
}

func (l *stream) Recv() (elastic.Message, error) {
	e, err := l.s.Recv()
	if err != nil {
		return elastic.Message{}, err
	}
	return message(e)
}

func (l *stream) Close() error {
	l.cancel()
	return l.client.Close()
}

func envelope(m elastic.Message) (*rpc.Envelope, error) {
	b, err := json.Marshal(m)
	return &rpc.Envelope{Kind: string(m.Kind), Body: b}, err
}

func message(e *rpc.Envelope) (m elastic.Message, err error) {
	err = json.Unmarshal(e.Body, &m)
	return m, err
}
