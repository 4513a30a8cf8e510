package main

import (
	"bytes"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"optimus/data"
)

// TestRun measures a generated set: sentences, which need no Pillow, are far faster to
// fill than to train on.
func TestRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(0))
	sets := t.TempDir()
	if err := data.Make(t.Context(), "mr", filepath.Join(sets, "mr"), 500, 1); err != nil {
		t.Fatal(err)
	}
	var out, progress bytes.Buffer
	err := run(t.Context(), []string{"--sets", sets, "--workloads", "cnn-rand,kaggle", "--rounds", "1", "--turn", "20ms", "--python", "/no/python"}, &out, &progress)
	if err != nil {
		t.Fatalf("%v\n%s%s", err, &out, &progress)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	row := strings.Fields(lines[len(lines)-1])
	if len(lines) != 2 || len(row) != 7 || row[0] != "cnn-rand" || row[1] != "mr" || row[5] != "-" || row[6] != "-" {
		t.Fatalf("%s", &out)
	}
	if ratio, err := strconv.ParseFloat(row[4], 64); err != nil || ratio < leastToStep {
		t.Errorf("filling is %s times as fast as training", row[4])
	}
	for _, part := range []string{"no comparison with Pillow: /no/python", "kaggle: the set is not there"} {
		if !strings.Contains(progress.String(), part) {
			t.Errorf("%q is not in %s", part, &progress)
		}
	}
}

func TestRunRefuses(t *testing.T) {
	for _, args := range [][]string{{}, {"--sets", "x", "y"}, {"--sets", "x", "--rounds", "0"}, {"--sets", "x", "--workloads", "resnet"}, {"--none"}} {
		var out bytes.Buffer
		if err := run(t.Context(), args, &out, &out); err == nil {
			t.Errorf("%q was taken", args)
		}
	}
}

// TestFiller: a turn goes round the set, and through all of a small one.
func TestFiller(t *testing.T) {
	s := &counted{seen: map[int]int{}}
	f := &filler{split: s, batch: 4}
	if speed, err := f.turn(time.Nanosecond); err != nil || speed <= 0 {
		t.Fatal(speed, err)
	}
	if len(s.seen) != 10 || f.next == 0 && s.seen[0] != s.seen[9] {
		t.Errorf("%d of 10 examples were filled: %v", len(s.seen), s.seen)
	}
}

// counted is a split of ten examples that notes which were asked for.
type counted struct{ seen map[int]int }

func (c *counted) Len() int { return 10 }

func (c *counted) Fill(ids []int, b *data.Batch) error {
	for _, id := range ids {
		c.seen[id]++
	}
	time.Sleep(time.Microsecond)
	return nil
}

func TestMedian(t *testing.T) {
	for _, c := range []struct {
		of   []float64
		want float64
	}{{nil, 0}, {[]float64{3}, 3}, {[]float64{9, 1}, 5}, {[]float64{9, 1, 2}, 2}} {
		if got := median(slices.Clone(c.of)); got != c.want {
			t.Errorf("median of %v is %v, want %v", c.of, got, c.want)
		}
	}
}
