package pollux

import (
	"os"
	"testing"

	"optimus/scheduler/sim"
)

// Pollux searches at random, so its completion times are the published ones only in the mean: within 10 % over the
// workloads of an experiment; and at load 1.0 the policies come in the published order. All of it takes many minutes
// (OPTIMUS_SOAK); by default a workload with few rounds must do.
func TestPollux(t *testing.T) {
	all, soak := readPublished(t), os.Getenv("OPTIMUS_SOAK") != ""
	for _, c := range []struct {
		experiment, load string
		interval         float64
	}{
		{"jobload/pollux-0.5", "0.5", 60}, {"jobload/pollux-1.0", "1.0", 60}, {"jobload/pollux-1.5", "1.5", 60}, {"jobload/pollux-2.0", "2.0", 60},
		{"period/pollux-30s", "1.0", 30}, {"period/pollux-2m", "1.0", 120}, {"period/pollux-4m", "1.0", 240}, {"period/pollux-8m", "1.0", 480},
	} {
		names := workloads
		if !soak {
			if c.interval != 480 {
				continue
			}
			names = []string{"workload-6"}
		}
		t.Run(c.experiment, func(t *testing.T) {
			var ours, theirs float64
			for _, name := range names {
				w, want := workload(t, c.load, name), all[c.experiment][name].Mean
				got := simulate(t, w, "pollux", func(cfg *sim.Config) { cfg.Interval = c.interval }).MeanJCT
				t.Logf("%s: mean JCT %.1f s, published %.1f s, %+.1f %%", name, got, want, 100*(got/want-1))
				ours, theirs = ours+got, theirs+want
				if c.experiment != "jobload/pollux-1.0" {
					continue
				}
				tiresias, optimus := simulate(t, w, "tiresias").MeanJCT, simulate(t, w, "optimus+oracle").MeanJCT
				if got >= tiresias || tiresias >= optimus {
					t.Errorf("%s: mean JCT of Pollux %.1f, of Tiresias %.1f, of Optimus+Oracle %.1f s; want them in this order", name, got, tiresias, optimus)
				}
			}
			ratio := ours / theirs
			t.Logf("the mean is %.3f of the published", ratio)
			if !(ratio >= 0.9 && ratio <= 1.1) {
				t.Error("want it within 10 %")
			}
		})
	}
}

// BenchmarkWorkload6 runs the workload that the paper also ran on its testbed.
func BenchmarkWorkload6(b *testing.B) {
	for _, policyName := range []string{"tiresias", "optimus+oracle", "pollux"} {
		b.Run(policyName, func(b *testing.B) {
			w := workload(b, "1.0", "workload-6")
			for b.Loop() {
				b.ReportMetric(simulate(b, w, policyName).MeanJCT, "JCT-s")
			}
		})
	}
}
