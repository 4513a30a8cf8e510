package train

import (
	"io"
	"log/slog"

	"optimus/elastic"
)

// jobLog writes to the job's log, and to the caller's if there is one.
func jobLog(w io.Writer, caller *slog.Logger) *slog.Logger {
	var own slog.Handler = slog.NewTextHandler(w, nil)
	if caller != nil {
		own = slog.NewMultiHandler(own, caller.Handler())
	}
	return slog.New(own)
}

// logEvents returns what writes the controller's events to a log, one line for
// each that a reader may look for afterwards. Steps have none, so that a long
// job's log stays short; of skipped steps, whose number has no bound either, the
// first, second, fourth, eighth and so on are named.
func logEvents(log *slog.Logger) func(elastic.Event) {
	skipped := 0
	return func(e elastic.Event) {
		why := slog.String("why", e.Reason)
		if e.Reason == "" {
			why = slog.Attr{} // handlers leave it out
		}
		switch e.Kind {
		case elastic.StateChanged:
			log.Info("job is "+string(stateOf(e.State)), why)
		case elastic.Committed:
			g := e.Transfer.Generation
			log.Info("generation begins", "generation", g.Number, "after_step", e.Step, "servers", len(g.Servers), "workers", len(g.Workers), why)
		case elastic.Aborted:
			log.Warn("generation is given up", "generation", e.Gen, why)
		case elastic.MemberLost:
			log.Warn("member is lost", "member", e.Member.String(), why)
		case elastic.StepSkipped:
			if skipped++; skipped&(skipped-1) == 0 {
				log.Warn("step is skipped", "step", e.Step, "skipped", skipped, why)
			}
		case elastic.SnapshotWhole:
			log.Info("checkpoint's shards are on disk", "step", e.Snapshot.Step)
		case elastic.SnapshotLost:
			log.Warn("checkpoint was not written", "step", e.Step, why)
		}
	}
}
