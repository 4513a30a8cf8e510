package elastic

import (
	"slices"
	"sort"

	"optimus/paa"
)

// peer is a member that was launched and is not known to be gone.
type peer struct {
	Address
	pid     int
	hello   bool
	heard   int // tick of its last message
	born    int // tick of its launch
	done    int64
	doneGen int
	idle    bool // its last share was empty
}

// sorted returns the peers in a fixed order: servers first, then by id.
func (c *Controller) sorted() []*peer {
	list := make([]*peer, 0, len(c.peers))
	for _, p := range c.peers {
		list = append(list, p)
	}
	sort.Slice(list, func(i, j int) bool {
		a, b := list[i], list[j]
		if a.Role != b.Role {
			return a.Role < b.Role
		}
		if a.ID != b.ID {
			return a.ID < b.ID
		}
		return a.Incarnation < b.Incarnation
	})
	return list
}

// broadcast sends m to every peer that has said Hello.
func (c *Controller) broadcast(m Message) {
	for _, p := range c.sorted() {
		if p.hello {
			m.To = p.Member
			c.send(m)
		}
	}
}

// launch starts a new member.
func (c *Controller) launch(role Role, id int) Address {
	c.incarnation++
	m := Member{Role: role, ID: id, Incarnation: c.incarnation}
	c.peers[m] = &peer{Address: Address{Member: m}, born: c.now, heard: c.now}
	c.out.Launch = append(c.out.Launch, m)
	return Address{Member: m}
}

// dismiss sends a member away and forgets it.
func (c *Controller) dismiss(m Member, reason string) {
	if p := c.peers[m]; p != nil {
		if p.hello {
			c.send(Message{Kind: Dismiss, To: m, Reason: reason})
		} else {
			c.out.Kill = append(c.out.Kill, Kill{m, reason})
		}
		c.forgetMember(m)
	}
}

// forgetMember drops all that is kept of a member but its reports.
func (c *Controller) forgetMember(m Member) {
	delete(c.peers, m)
	delete(c.unwanted, m)
	c.releaseWork(m)
}

// membership chooses the members of a generation of p servers and w workers:
// those of the ruling one that are alive, lowest ids first, then newcomers.
func (c *Controller) membership(p, w int) (servers, workers []Address) {
	if c.gen != nil {
		for _, a := range c.gen.Servers {
			if len(servers) < p && c.alive(a.Member) && a.ID == len(servers) {
				servers = append(servers, a)
			} else if len(servers) < p {
				servers = append(servers, c.launch(Server, len(servers)))
			}
		}
		for _, a := range c.gen.Workers {
			if len(workers) < w && c.stays(a.Member) {
				workers = append(workers, a)
			}
		}
	}
	for len(servers) < p {
		servers = append(servers, c.launch(Server, len(servers)))
	}
	for id := 0; len(workers) < w; id++ {
		taken := func(a Address) bool { return a.ID == id }
		if !slices.ContainsFunc(workers, taken) {
			workers = append(workers, c.launch(Worker, id))
		}
	}
	slices.SortFunc(workers, func(a, b Address) int { return a.ID - b.ID })
	return servers, workers
}

// assign gives the next generation its assignment.
func (c *Controller) assign(g *Generation, source Source) (err error) {
	p := len(g.Servers)
	if c.gen == nil {
		g.Blocks, err = paa.Assign(c.cfg.Rule, c.cfg.Sizes, p)
	} else if p == len(c.gen.Servers) {
		g.Blocks = c.gen.Blocks
	} else {
		stay := make([]int, min(p, len(c.gen.Servers)))
		for i := range stay {
			stay[i] = i
		}
		g.Blocks, _, err = paa.Reassign(c.gen.Blocks, c.cfg.Sizes, stay, p)
	}
	if err != nil {
		return err
	}
	g.Aux, err = paa.Whole(c.cfg.Aux, p)
	return err
}
