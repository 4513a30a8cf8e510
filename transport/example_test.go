package transport_test

import (
	"context"
	"fmt"
	"log"
	"time"

	"optimus/internal/wire"
	"optimus/transport"
)

// A worker pulls one piece from a server.
func Example() {
	network := transport.InProcess()
	l, err := network.Listen()
	if err != nil {
		log.Fatal(err)
	}
	defer l.Close()
	go func() { // the server
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		for {
			asked, err := c.Recv()
			if err != nil {
				return
			}
			answer := &wire.Frame{Header: asked.Header, Values: []float32{0.5, 0.25}}
			answer.Kind = wire.Pulled
			if err := c.Send(answer); err != nil {
				return
			}
		}
	}()

	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	conn, err := network.Dial(ctx, l.Addr())
	if err != nil {
		log.Fatal(err)
	}
	caller := transport.NewCaller(conn, nil)
	defer caller.Close()
	answer, err := caller.Call(ctx, &wire.Frame{Header: wire.Header{Kind: wire.Pull, Step: 12, Size: 2}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(answer.Kind, answer.Step, answer.Values)
	answer.Release()
	// Output: pulled 12 [0.5 0.25]
}
