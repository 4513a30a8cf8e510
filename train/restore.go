package train

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"optimus/data/order"
	"optimus/elastic"
	"optimus/elastic/checkpoint"
	"optimus/internal/failure"
	"optimus/internal/rundir"
	"optimus/telemetry"
)

// FindCheckpoint turns the argument of --resume, a job's name or a folder, into
// the folder of one checkpoint of which every byte is as it was written: the
// newest such one of a job or of a folder of checkpoints; the damaged ones that
// are newer come back with what is wrong with them in Err. The folder of one
// checkpoint means that one alone. A job goes before a folder of its name.
func FindCheckpoint(root, where string) (dir string, damaged []checkpoint.Info, err error) {
	d, err := rundir.Open(root, where)
	if err != nil {
		if info, serr := os.Stat(where); serr != nil || !info.IsDir() {
			return "", nil, err
		}
		if _, err := os.Stat(filepath.Join(where, "manifest.json")); err == nil {
			return where, nil, checkpoint.Verify(checkpoint.OS{}, where)
		}
		d = &rundir.Dir{Path: where}
	}
	at, err := CheckpointRoot(d)
	if err != nil {
		return "", nil, err
	}
	newest, damaged, err := checkpoint.NewestVerified(checkpoint.OS{}, at, 0)
	for i, d := range damaged {
		if e, ok := errors.AsType[*checkpoint.Error](d.Err); ok { // its advice, to load another, is what is done here
			bare := *e
			bare.Do = ""
			damaged[i].Err = &bare
		}
	}
	if err != nil && len(damaged) > 0 {
		return "", damaged, failure.E("resume", where, failure.Corrupt, fmt.Errorf("no checkpoint is whole: %w", damaged[0].Err), "start it anew as another --job")
	}
	return newest.Dir, damaged, err
}

// CheckpointRoot is the folder that holds a job's checkpoints: where its run was
// told to put them, else in the job's folder, wherever that is now. A folder that
// is not a job's is taken to hold them itself.
func CheckpointRoot(d *rundir.Dir) (string, error) {
	text, err := os.ReadFile(d.Spec())
	if errors.Is(err, fs.ErrNotExist) {
		if info, err := os.Stat(d.Checkpoints()); err == nil && info.IsDir() {
			return d.Checkpoints(), nil
		}
		return d.Path, nil
	}
	if err != nil {
		return "", failure.E("read", d.Spec(), "", err, "check its permissions")
	}
	var l struct { // all that is needed, so that the jobs of a newer program can be read
		Checkpoints string `json:"checkpoints"`
		Job         struct {
			CheckpointDir string `json:"checkpoint_dir"`
		} `json:"job"`
	}
	if err := json.Unmarshal(text, &l); err != nil {
		return "", failure.E("read", d.Spec(), failure.Corrupt, err, "give the folder of the checkpoints instead of the job")
	}
	if l.Job.CheckpointDir == "" || l.Checkpoints == "" {
		return d.Checkpoints(), nil
	}
	return l.Checkpoints, nil
}

// findCheckpoint looks for the checkpoint that a job which has lost a server goes
// on from, and tells the controller. Those that it passes over are named in
// telemetry and log.
func (c *coordinator) findCheckpoint(gen int) {
	c.onDisk(func() {
		found, damaged, err := newestWhole(c.layout.Checkpoints, c.first, c.from, c.layout.Plan)
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
func newestWhole(root string, first int64, from *elastic.Newest, plan order.Plan) (found *elastic.Newest, damaged []checkpoint.Info, err error) {
	info, damaged, err := checkpoint.NewestVerified(checkpoint.OS{}, root, first)
	if err == nil {
		found, err = goingOn(info.Dir, info.Manifest, plan)
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
func goingOn(dir string, m *checkpoint.Manifest, plan order.Plan) (*elastic.Newest, error) {
	n := &elastic.Newest{Step: m.Step, Dir: dir}
	if len(m.Cursor) == 0 {
		return n, nil // of a synchronous job, before those had a cursor
	}
	var at order.Cursor
	if err := json.Unmarshal(m.Cursor, &at); err != nil {
		return nil, err
	}
	n.Ledger = at.Ledger()
	return n, at.Fits(plan)
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
