package train

import (
	"encoding/json"
	"fmt"
	"time"

	"optimus/data/order"
	"optimus/elastic"
	"optimus/elastic/checkpoint"
	"optimus/telemetry"
)

// findCheckpoint looks for the checkpoint that a job which has lost a server goes
// on from, and tells the controller. Those that it passes over are named in
// telemetry and log.
func (c *coordinator) findCheckpoint(gen int) {
	c.onDisk(func() {
		found, damaged, err := newestWhole(c.layout.Checkpoints, c.first, c.from)
		c.post(func() {
			for _, d := range damaged {
				c.log.Warn("checkpoint is damaged and passed over", "dir", d.Dir, "step", d.Step, "why", d.Err)
				c.rec.write(telemetry.Checkpoint{Time: time.Now(), Generation: gen, Step: d.Step, Sequence: d.Sequence, Dir: d.Dir,
					Error: "passed over: " + d.Err.Error()})
			}
			if err != nil {
				c.ctl.CheckpointFound(gen, nil, err.Error())
				return
			}
			c.log.Info("checkpoint is whole and restored", "dir", found.Dir, "step", found.Step)
			c.ctl.CheckpointFound(gen, found, "")
		})
	})
}

// newestWhole returns the newest checkpoint of this run of which every byte is as
// it was written, or else the one that the run began from. Of this run are those
// in root with a sequence of at least first: what else lies there may belong to a
// history that the run does not go on with.
func newestWhole(root string, first int64, from *elastic.Newest) (found *elastic.Newest, damaged []checkpoint.Info, err error) {
	info, damaged, err := checkpoint.NewestVerified(checkpoint.OS{}, root, first)
	if err == nil {
		found, err = goingOn(info.Dir, info.Manifest)
		return found, damaged, err
	}
	if from != nil {
		bad := checkpoint.Verify(checkpoint.OS{}, from.Dir)
		if bad == nil {
			return from, damaged, nil
		}
		damaged = append(damaged, checkpoint.Info{Dir: from.Dir, Step: from.Step, Err: bad})
	}
	if n := len(damaged); n > 0 {
		err = fmt.Errorf("all %d are damaged, the newest: %w", n, damaged[0].Err)
	}
	return nil, damaged, err
}

// goingOn is what the controller must know of a checkpoint to go on from it.
func goingOn(dir string, m *checkpoint.Manifest) (*elastic.Newest, error) {
	n := &elastic.Newest{Step: m.Step, Dir: dir}
	if len(m.Cursor) == 0 {
		return n, nil
	}
	n.Ledger = new(order.Ledger)
	return n, json.Unmarshal(m.Cursor, n.Ledger)
}

// onDisk runs fn on a goroutine of its own, after those that were given before
// it: a checkpoint is not pruned while another is chosen.
func (c *coordinator) onDisk(fn func()) {
	before, done := c.disk, make(chan struct{})
	c.disk = done
	c.wg.Go(func() {
		if before != nil {
			<-before
		}
		defer close(done)
		fn()
	})
}
