package ps

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"optimus/elastic"
	"optimus/ps/pieces"
	"optimus/transport"
)

// ServerConfig is what one server needs. All fields but the durations are
// required.
type ServerConfig struct {
	Self    elastic.Member
	Run     uint64
	Link    elastic.Link
	Network transport.Network
	Store   pieces.Config // NonFinite and Vote are set by the server
	Seed    uint64
	Log     *slog.Logger

	// Write saves the parts of a snapshot and returns what the controller puts
	// into the manifest. Read fills a range from a checkpoint.
	Write func(id, step int64, server int, parts []pieces.Part) (json.RawMessage, error)
	Read  func(checkpoint string, ids []pieces.ID, fill func(pieces.Part) error) error

	Beat     time.Duration // between signs of life (default 1 s)
	Patience time.Duration // bound of every wait for another server (default 5 min)
}

// Server holds pieces of the model and serves workers. Its goroutines are: one
// that carries out the protocol machine's orders, one for each connection, and
// short ones that send pieces or write snapshots.
type Server struct {
	cfg    ServerConfig
	store  *pieces.Store
	member elastic.ServerMember
	ln     transport.Listener
	events chan func() // run on the goroutine of the orders
	ctx    context.Context
	stop   context.CancelCauseFunc
	wg     sync.WaitGroup

	gate   sync.RWMutex // pushes hold it for reading; a freeze waits for them
	frozen bool         // no push of this generation or one before is taken
	ruling atomic.Pointer[ruling]
	votes  chan pieces.Vote
	pieces int // that this server holds in the ruling generation

	conns struct {
		sync.Mutex
		open map[transport.Conn]bool
	}

	incoming  *incoming
	sending   func()           // gives up what is being sent to the owners of the next generation; may be nil
	snapshots map[int64]func() // cancels the watch of an armed snapshot, by id
	armedAt   map[int64]int64
}

// Serve runs a server until it is dismissed (nil), its link breaks or ctx ends.
func Serve(ctx context.Context, cfg ServerConfig) error {
	if cfg.Beat <= 0 {
		cfg.Beat = time.Second
	}
	if cfg.Patience <= 0 {
		cfg.Patience = 5 * time.Minute
	}
	s := &Server{cfg: cfg, member: elastic.ServerMember{Self: cfg.Self}, events: make(chan func(), 64), votes: make(chan pieces.Vote, 1),
		snapshots: map[int64]func(){}, armedAt: map[int64]int64{}}
	s.conns.open = map[transport.Conn]bool{}
	cfg.Store.NonFinite, cfg.Store.Vote = s.vetoed, s.voted
	var err error
	if s.store, err = pieces.New(cfg.Store); err != nil {
		return err
	}
	if s.ln, err = cfg.Network.Listen(); err != nil {
		return fmt.Errorf("%s: %w", cfg.Self, err)
	}
	s.ctx, s.stop = context.WithCancelCause(ctx)
	defer s.stop(nil)
	s.wg.Go(s.accept)
	s.wg.Go(s.listen)
	if cfg.Store.Mode == pieces.BSP && cfg.Store.Optimizer.ClipNorm > 0 {
		s.wg.Go(s.canvass)
	}
	s.send(elastic.Message{Kind: elastic.Hello, Addr: s.ln.Addr(), PID: os.Getpid()})
	err = s.loop()
	s.stop(err)
	s.close()
	s.wg.Wait()
	return err
}

func (s *Server) close() {
	s.ln.Close()
	s.cfg.Link.Close()
	s.store.Close()
	s.conns.Lock()
	for c := range s.conns.open {
		c.Close()
	}
	s.conns.Unlock()
}

func (s *Server) send(m elastic.Message) {
	m.From = s.cfg.Self
	s.cfg.Link.Send(m) // a broken link shows in listen
}

// listen hands the controller's messages to the loop, in order.
func (s *Server) listen() {
	for {
		m, err := s.cfg.Link.Recv()
		if err != nil {
			s.stop(fmt.Errorf("%s: the controller's link ended: %w", s.cfg.Self, err))
			return
		}
		s.post(func() {
			for _, o := range s.member.Receive(m) {
				s.do(o)
			}
		})
	}
}

// post runs fn on the loop's goroutine.
func (s *Server) post(fn func()) {
	select {
	case s.events <- fn:
	case <-s.ctx.Done():
	}
}

func (s *Server) loop() error {
	beat := time.NewTicker(s.cfg.Beat)
	defer beat.Stop()
	for {
		select {
		case <-s.ctx.Done():
			if err := context.Cause(s.ctx); err != errDismissed {
				return err
			}
			return nil
		case fn := <-s.events:
			fn()
		case <-beat.C:
			s.send(elastic.Message{Kind: elastic.Beat, Step: s.store.MaxStaleness()})
		}
	}
}

var errDismissed = fmt.Errorf("dismissed")

// fail tells the controller that this server cannot go on.
func (s *Server) fail(err error) {
	s.cfg.Log.Error("server cannot go on", "member", s.cfg.Self.String(), "error", err)
	s.send(elastic.Message{Kind: elastic.Failed, Reason: err.Error()})
}

func (s *Server) vetoed(v pieces.Veto) {
	s.send(elastic.Message{Kind: elastic.Vetoed, Gen: s.generation(), Step: v.Step, Culprit: v.Worker, Block: v.Block})
}

// do carries out one order. It does not block: what takes time posts its result.
func (s *Server) do(o elastic.Order) {
	var err error
	switch o.Do {
	case elastic.DoInstall:
		err = s.install(o)
	case elastic.DoReady:
		s.send(elastic.Message{Kind: elastic.Prepared, Gen: o.Gen.Number})
	case elastic.DoFill:
		err = s.fillFrom(o)
	case elastic.DoSend:
		s.sendPieces(o)
	case elastic.DoReset:
		err = s.reset(o)
	case elastic.DoCommit:
		err = s.commit(o)
	case elastic.DoDrop:
		s.endSending()
		if in := s.incoming; in != nil && in.gen.Number == o.Gen.Number {
			s.incoming = nil
			err = s.store.Drop(o.Gen.Number)
		}
	case elastic.DoFreeze:
		s.freeze(int(o.Step))
	case elastic.DoSnapshot:
		s.arm(o)
	case elastic.DoForget:
		s.forget(o.From)
	case elastic.DoQuit:
		if s.ctx.Err() == nil { // a beat that was under way is answered by a dismissal too
			s.cfg.Log.Info("server dismissed", "member", s.cfg.Self.String(), "why", o.Why)
		}
		s.stop(errDismissed)
	}
	if err != nil {
		s.fail(err)
	}
}

// freeze refuses pushes from here on, so that no piece moves, but for a step that
// was voted on, while the controller looks for the version that all servers have.
func (s *Server) freeze(gen int) {
	s.gate.Lock()
	s.frozen = true
	s.gate.Unlock()
	lowest := s.store.Promised()
	if s.pieces == 0 {
		lowest = elastic.NoVersion
	}
	s.send(elastic.Message{Kind: elastic.Halted, Gen: gen, Step: lowest})
}

// reset takes the pieces back to the version From and, for a skipped step, gives
// it the number Step.
func (s *Server) reset(o elastic.Order) error {
	if s.cfg.Store.Mode != pieces.BSP {
		return nil
	}
	if o.Step > o.From {
		return s.store.Relabel(o.From, o.Step)
	}
	return s.store.Rewind(o.From)
}

func (s *Server) commit(o elastic.Order) error {
	s.gate.Lock()
	defer s.gate.Unlock()
	s.rule(o.Gen) // first: the commit applies what was set aside, and that may veto or vote
	if err := s.store.Commit(o.Gen.Number); err != nil {
		return err
	}
	s.endSending() // it has arrived, or nothing could be committed
	s.frozen, s.incoming = false, nil
	s.pieces = len(owned(o.Gen, o.Gen.Index(s.cfg.Self)))
	return nil
}

// arm prepares snapshot o.ID: it is pinned the moment all pieces have version
// o.Step, and written in the background.
func (s *Server) arm(o elastic.Order) {
	server := o.Gen.Index(s.cfg.Self)
	reply := elastic.Message{Kind: elastic.Snapshotted, Gen: o.Gen.Number, ID: o.ID, Step: o.Step}
	version := o.Step
	if s.cfg.Store.Mode != pieces.BSP {
		version = 0
	}
	s.armedAt[o.ID] = o.Step
	s.snapshots[o.ID] = s.store.Watch(version, func() {
		snap, err := s.store.Pin(o.Step)
		s.wg.Go(func() {
			if err == nil {
				reply.Shard, err = s.cfg.Write(o.ID, o.Step, server, snap.Parts())
				snap.Release()
			}
			if err != nil {
				reply.Reason = err.Error()
			}
			s.post(func() { delete(s.snapshots, o.ID); delete(s.armedAt, o.ID) })
			s.send(reply)
		})
	})
	s.send(elastic.Message{Kind: elastic.Armed, Gen: o.Gen.Number, ID: o.ID, Step: o.Step})
}

// forget cancels the snapshots that are armed beyond a version.
func (s *Server) forget(version int64) {
	if s.cfg.Store.Mode != pieces.BSP {
		return
	}
	for id, at := range s.armedAt {
		if at > version {
			s.snapshots[id]()
			delete(s.snapshots, id)
			delete(s.armedAt, id)
		}
	}
}
