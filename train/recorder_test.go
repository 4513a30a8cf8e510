package train

import (
	"errors"
	"io"
	"testing"

	"optimus/elastic"
	"optimus/telemetry"
)

// TestLastCheckpoint: manifests may be written in another order than their saves
// were taken; the last checkpoint is the latest save that is whole.
func TestLastCheckpoint(t *testing.T) {
	out := telemetry.NewWriter(io.Discard, telemetry.Config{})
	defer out.Close()
	r := newRecorder(new(layout), new(Task), out, nil, 0)
	for _, save := range []struct {
		id, step int64
		err      error
	}{{1, 20, nil}, {4, 80, errors.New("disk full")}, {3, 60, nil}, {2, 40, nil}} {
		r.checkpoint(elastic.SnapshotTaken{ID: save.id, Step: save.step}, "at", "sha", save.err)
	}
	r.checkpoint(elastic.SnapshotTaken{ID: 2, Step: 40}, "older", "older", nil)
	if dir, step := r.saved(); dir != "at" || step != 60 || r.sha != "sha" {
		t.Errorf("the last checkpoint is %q of step %d with digest %q, want that of step 60", dir, step, r.sha)
	}
}
