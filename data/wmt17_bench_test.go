package data_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"optimus/benchmarks/step"
	"optimus/data"
	"optimus/internal/shared"
)

// BenchmarkWMT17 opens the real text, with whole words and with pieces of words, and
// fills batches of it. Both take turns with a step of the workload on one core, whose
// sentences all have 60 words, so that "open/need" and "fill/need" are how many times
// faster in processor time than such training that is.
func BenchmarkWMT17(b *testing.B) {
	dir := shared.Dir(b, "sets", "wmt17")
	var bytes int64
	for _, name := range []string{"train.tok.de", "train.tok.en", "newstest2012.tok.de", "newstest2012.tok.en"} {
		info, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			b.Fatal(err)
		}
		bytes += info.Size()
	}
	for name, o := range map[string]data.PairOptions{"words": {}, "pieces": {Merges: 4000, MaxWords: 100}} {
		b.Run(name, func(b *testing.B) { benchmarkWMT17(b, dir, bytes, o) })
	}
}

func benchmarkWMT17(b *testing.B, dir string, bytes int64, o data.PairOptions) {
	s, err := step.New(step.Options{Workload: "seq2seq"})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	var opened, filled, trained, steps, pairs, tokens float64
	b.SetBytes(bytes)
	for b.Loop() {
		begin := cpuTime(b)
		set, err := data.OpenWMT17(dir, o)
		if err != nil {
			b.Fatal(err)
		}
		opened += (cpuTime(b) - begin).Seconds()
		b.StopTimer()
		begin = cpuTime(b)
		var batch data.Batch
		for i := 0; i+s.Batch <= set.Train.Len(); i += s.Batch {
			ids := make([]int, s.Batch)
			for j := range ids {
				ids[j] = i + j
			}
			if err := set.Train.Fill(ids, &batch); err != nil {
				b.Fatal(err)
			}
			for _, n := range batch.Inputs[1].I {
				tokens += float64(n)
			}
			for _, n := range batch.Inputs[3].I {
				if n != data.PaddingToken {
					tokens++
				}
			}
		}
		filled += (cpuTime(b) - begin).Seconds()
		pairs += float64(set.Train.Len())
		turn, err := s.Turn(1)
		if err != nil {
			b.Fatal(err)
		}
		trained, steps = trained+turn.CPU.Seconds(), steps+1
		b.StartTimer()
	}
	need := steps * float64(s.Batch) / trained
	b.ReportMetric(tokens/opened, "opened-tokens/s")
	b.ReportMetric(tokens/filled, "filled-tokens/s")
	b.ReportMetric(pairs/opened, "opened-pairs/s")
	b.ReportMetric(pairs/opened/need, "open/need")
	b.ReportMetric(pairs/filled/need, "fill/need")
}

func cpuTime(b *testing.B) time.Duration {
	t, err := step.CPUTime()
	if err != nil {
		b.Fatal(err)
	}
	return t
}
