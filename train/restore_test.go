package train

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"optimus/elastic"
	"optimus/elastic/checkpoint"
	"optimus/internal/failure"
	"optimus/spec"
	"optimus/telemetry"
)

// flip changes one bit of a checkpoint's parameters on disk.
func flip(t *testing.T, dir string) {
	t.Helper()
	path := filepath.Join(dir, "server-0.safetensors")
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	raw[len(raw)-3] ^= 4
	if err := os.WriteFile(path, raw, 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestDamagedCheckpoint: a server is lost when the newest checkpoints have a
// flipped bit. The job says so and goes on from the newest one that is whole, at
// its step; if none is whole it ends and says why.
func TestDamagedCheckpoint(t *testing.T) {
	for _, test := range []struct {
		mode    spec.Mode
		damaged int // of 3
	}{{spec.BSP, 1}, {spec.BSP, 2}, {spec.BSP, 3}, {spec.ASP, 2}, {spec.SSP, 1}, {spec.SSP, 3}} {
		t.Run(fmt.Sprintf("%s, %d of 3", test.mode, test.damaged), func(t *testing.T) {
			defer goleak.VerifyNone(t)
			j := newCounter(t, test.mode, 2, 3)
			j.spec.Keep = 100
			hurry := j.slowly()
			kill := j.killer()
			j.start(t.Context())
			var saved []string
			for i := range 3 {
				j.step(4 * (i + 1))
				saved = append(saved, j.save())
			}
			for _, dir := range saved[3-test.damaged:] {
				flip(t, dir)
			}
			kill(elastic.Server, 1)
			hurry()
			got, err := j.wait()
			checkPassedOver(t, j, saved[3-test.damaged:])
			if test.damaged == 3 {
				if failure.KindOf(err) != failure.LostMember || !strings.Contains(err.Error(), "no checkpoint is whole: all 3 are damaged") || !strings.Contains(err.Error(), saved[2]) {
					t.Fatalf("nothing to go on from: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if at, want := restoredAt(t, j), stepOf(t, saved[2-test.damaged]); !slices.Equal(at, []int64{want}) {
				t.Errorf("restored at steps %v, want %d", at, want)
			}
			checkWhole(t, got.Checkpoint)
			checkUse(t, j, 3)
		})
	}
}

// slowly makes each of the job's steps slow until hurry is called: what must
// happen in the midst of training happens there, however busy the machine is.
func (j *job) slowly() (hurry func()) {
	var fast atomic.Bool
	j.o.Slow = func(int) func() {
		return func() {
			if !fast.Load() {
				time.Sleep(40 * time.Millisecond)
			}
		}
	}
	return func() { fast.Store(true) }
}

// killer returns what ends a member of the job.
func (j *job) killer() func(role elastic.Role, id int) {
	var c *coordinator
	j.o.reach = func(x *coordinator) { c = x }
	return func(role elastic.Role, id int) {
		c.post(func() {
			for m := range c.running {
				if m.Role == role && m.ID == id {
					c.starter.kill(m)
				}
			}
		})
	}
}

func stepOf(t *testing.T, dir string) int64 {
	t.Helper()
	r, err := checkpoint.Load(checkpoint.OS{}, dir)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	return r.Manifest().Step
}

// checkPassedOver checks that telemetry and log name the damaged checkpoints.
func checkPassedOver(t *testing.T, j *job, want []string) {
	t.Helper()
	var got []string
	for _, r := range records(t, j.o.Root, "job") {
		if r, ok := r.(telemetry.Checkpoint); ok && strings.Contains(r.Error, "passed over: verify") {
			got = append(got, r.Dir)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("telemetry names %v, want %v", got, want)
	}
}

// restoredAt returns the steps of the checkpoints that the job went on from.
func restoredAt(t *testing.T, j *job) (steps []int64) {
	t.Helper()
	for _, r := range records(t, j.o.Root, "job") {
		if r, ok := r.(telemetry.GenerationStart); ok && r.Source == telemetry.SourceCheckpoint {
			steps = append(steps, r.Step)
		}
	}
	return steps
}

// TestDamagedStart: a resumed job that has saved nothing yet goes back to the
// checkpoint that it began from, even beside a newer one, which is of a history
// that it does not go on with; it fails if that has been damaged since.
func TestDamagedStart(t *testing.T) {
	defer goleak.VerifyNone(t)
	first := newCounter(t, spec.BSP, 2, 2)
	first.spec.Epochs, first.spec.Steps = 1, 30
	first.start(t.Context())
	first.step(5)
	began := first.save()
	if _, err := first.wait(); err != nil {
		t.Fatal(err)
	}
	for _, damage := range []bool{false, true} {
		j := newCounter(t, spec.BSP, 2, 2)
		j.spec.Keep, j.spec.CheckpointDir, j.spec.Resume = 100, filepath.Dir(began), began
		hurry := j.slowly()
		kill := j.killer()
		j.start(t.Context())
		from := stepOf(t, began)
		j.step(int(from) + 5)
		if damage {
			flip(t, began)
		}
		kill(elastic.Server, 0)
		hurry()
		r, err := j.wait()
		if damage {
			if err == nil || !strings.Contains(err.Error(), "all 1 are damaged") {
				t.Errorf("its only checkpoint is damaged: %v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		if at := restoredAt(t, j); !slices.Equal(at, []int64{from, from}) {
			t.Errorf("restored at steps %v, want %d twice", at, from)
		}
		checkWhole(t, r.Checkpoint)
	}
}

// TestDamagedResume: a job that is resumed by its name goes on from its newest
// whole checkpoint, and its log names those that are damaged; one checkpoint that
// is named itself must be whole.
func TestDamagedResume(t *testing.T) {
	defer goleak.VerifyNone(t)
	o, job := testOptions(t), testJob(2, 2)
	o.Task, job.Name, job.Epochs, job.Keep = lin1(1, 2, 3, 4), "job", 1, 100
	var saved []string
	for range 3 {
		r, err := Run(t.Context(), job, o)
		if err != nil {
			t.Fatal(err)
		}
		saved = append(saved, r.Checkpoint)
		job.Resume, job.Epochs = "job", job.Epochs+1
	}
	flip(t, saved[2])
	dir, damaged, err := FindCheckpoint(o.Root, "job")
	if err != nil || dir != saved[1] || len(damaged) != 1 || damaged[0].Dir != saved[2] {
		t.Fatalf("found %s, passed over %v, %v", dir, damaged, err)
	}
	job.Resume = saved[2]
	if _, err := Run(t.Context(), job, o); failure.KindOf(err) != failure.Corrupt {
		t.Errorf("from the damaged one itself: %v", err)
	}
	job.Resume = "job"
	r, err := Run(t.Context(), job, o)
	if err != nil || r.Steps != 4 {
		t.Fatalf("%+v, %v", r, err)
	}
	log, err := os.ReadFile(filepath.Join(o.Root, "job", "logs", "job.log"))
	if err != nil || !strings.Contains(string(log), "damaged and passed over\" dir="+saved[2]) {
		t.Errorf("log %s, %v", log, err)
	}
	for _, dir := range []string{saved[0], saved[1], r.Checkpoint} {
		flip(t, dir)
	}
	if _, _, err := FindCheckpoint(o.Root, "job"); failure.KindOf(err) != failure.Corrupt || !strings.Contains(err.Error(), r.Checkpoint) {
		t.Errorf("none is whole: %v", err)
	}
}

// TestDamagedNothingSaved: a job that loses a server before its first checkpoint
// advises what was not done yet.
func TestDamagedNothingSaved(t *testing.T) {
	for every, want := range map[int]string{0: "train with --checkpoint-every N", 100000: "start it anew with --checkpoint-every below 100000"} {
		j := newCounter(t, spec.BSP, 2, 2)
		j.spec.CheckpointEvery = every
		j.slowly()
		kill := j.killer()
		j.start(t.Context())
		j.step(2)
		kill(elastic.Server, 1)
		if _, err := j.wait(); failure.KindOf(err) != failure.LostMember || !strings.Contains(err.Error(), want) {
			t.Errorf("checkpoints every %d steps: %v", every, err)
		}
	}
}
