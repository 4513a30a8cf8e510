package faultnet

import (
	"context"
	"errors"
	"sync"

	"optimus/transport"
)

// Proxy stands between dialers and one listener: it listens itself, dials the
// target for each connection that it accepts, and passes frames on as its rule
// says. Members under test run unchanged, in other processes too; they only get
// the proxy's address instead of the target's.
//
// A rule of Nth(1, Answers(wire.PushAck), Action{Do: Drop}) delivers the first
// push and loses its answer: the retried push of PaddlePaddle/Paddle#11379. With
// Cut instead of Drop the connection is lost too, so the asker knows.
type Proxy struct {
	net    *Network // towards the target; obeys the rule
	l      transport.Listener
	target string
	wg     sync.WaitGroup

	ctx  context.Context
	stop context.CancelFunc

	mu   sync.Mutex
	open map[transport.Conn]struct{} // accepted and dialed
	done bool
}

// NewProxy starts a proxy for target, an address on n. Close it at the end.
func NewProxy(n transport.Network, target string, rule Rule) (*Proxy, error) {
	l, err := n.Listen()
	if err != nil {
		return nil, err
	}
	p := &Proxy{net: Wrap(n, rule), l: l, target: target, open: make(map[transport.Conn]struct{})}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.wg.Go(p.accept)
	return p, nil
}

// Addr is what to dial instead of the target.
func (p *Proxy) Addr() string { return p.l.Addr() }

// SetRule replaces the rule, for frames that pass from now on.
func (p *Proxy) SetRule(rule Rule) { p.net.SetRule(rule) }

// SetTarget changes where connections accepted from now on lead: to a server that
// was started anew.
func (p *Proxy) SetTarget(addr string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = addr
}

// Cut ends all connections; new ones are accepted and closed at once until
// Restore.
func (p *Proxy) Cut() { p.net.Cut() }

// Restore lets connections through again.
func (p *Proxy) Restore() { p.net.Restore() }

// Close ends the proxy and everything that goes through it, and waits for it.
func (p *Proxy) Close() error {
	p.stop()
	errs := []error{p.l.Close()}
	p.mu.Lock()
	p.done = true
	for c := range p.open {
		errs = append(errs, c.Close())
	}
	p.mu.Unlock()
	p.wg.Wait()
	return errors.Join(errs...)
}

func (p *Proxy) accept() {
	for {
		c, err := p.l.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(c) })
	}
}

// serve passes frames between an accepted connection and the target until either
// ends.
func (p *Proxy) serve(accepted transport.Conn) {
	defer p.forget(accepted)
	if !p.keep(accepted) {
		return
	}
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	dialed, err := p.net.Dial(p.ctx, target)
	if err != nil {
		return // the dialer sees its connection end, as it would without a proxy
	}
	defer p.forget(dialed)
	if !p.keep(dialed) {
		return
	}
	back := make(chan struct{})
	go func() {
		defer close(back)
		pump(dialed, accepted)
	}()
	pump(accepted, dialed)
	<-back
}

// pump passes frames on until one end fails, then closes both.
func pump(from, to transport.Conn) {
	defer from.Close()
	defer to.Close()
	for {
		f, err := from.Recv()
		if err != nil || to.Send(f) != nil {
			return
		}
		// Not released: in process the receiver now holds the same memory.
	}
}

// keep notes a connection for Close; false if the proxy is closing.
func (p *Proxy) keep(c transport.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.done {
		p.open[c] = struct{}{}
	}
	return !p.done
}

// forget closes a connection and takes it off the list.
func (p *Proxy) forget(c transport.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.open, c)
	// It may have ended before, for a reason that its users saw.
	_ = c.Close()
}
