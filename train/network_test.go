package train

import (
	"testing"
	"time"

	"optimus/internal/faultnet"
	"optimus/internal/wire"
	"optimus/spec"
	"optimus/transport"
)

// TestBO04_LostAnswer: a push whose answer is lost, or whose connection breaks
// after the server took it, is sent again and counts once, in every mode.
func TestBO04_LostAnswer(t *testing.T) {
	run := func(mode spec.Mode, rule faultnet.Rule) string {
		j := newJob(t, spec.InProc, 2, 1, 6)
		j.spec.Workload, j.spec.Mode, j.o.Task = "", mode, wideTask()
		if mode == spec.SSP {
			j.spec.Staleness = 1
		}
		j.o.Tune.Retry = 200 * time.Millisecond
		j.o.network = faultnet.Wrap(transport.InProcess(), rule)
		j.start(t.Context())
		r, err := j.wait()
		if err != nil {
			t.Fatal(err)
		}
		return r.ParamsSHA256
	}
	for _, mode := range []spec.Mode{spec.BSP, spec.ASP, spec.SSP} {
		want := run(mode, nil)
		for name, do := range map[string]faultnet.Action{"drop": {Do: faultnet.Drop}, "cut": {Do: faultnet.Cut}} {
			for _, kind := range []wire.Kind{wire.PushAck, wire.Pulled} {
				if got := run(mode, faultnet.Nth(2, faultnet.Answers(kind), do)); got != want {
					t.Errorf("%s, %s %v: parameters differ from a run without faults", mode, name, kind)
				}
			}
		}
	}
}
