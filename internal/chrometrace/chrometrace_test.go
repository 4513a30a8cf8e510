package chrometrace_test

import (
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"optimus/internal/chrometrace"
)

func Example() {
	t := chrometrace.Trace{Processes: []chrometrace.Process{{
		Name:     "node-0",
		Threads:  []chrometrace.Thread{{Name: "1", Spans: []chrometrace.Span{{Name: "job-1", Start: 60, End: 90.5, Args: map[string]string{"tasks": "1 ps"}}}}},
		Counters: []chrometrace.Counter{{Name: "GPUs", Samples: []chrometrace.Sample{{At: 60, Values: map[string]float64{"used": 4}}}}},
	}}}
	if err := t.Write(os.Stdout); err != nil {
		panic(err)
	}
	// Output:
	// {"displayTimeUnit":"ms","traceEvents":[
	// {"name":"process_name","ph":"M","ts":0,"pid":1,"tid":0,"args":{"name":"node-0"}},
	// {"name":"process_sort_index","ph":"M","ts":0,"pid":1,"tid":0,"args":{"sort_index":1}},
	// {"name":"GPUs","ph":"C","ts":60000000,"pid":1,"tid":0,"args":{"used":4}},
	// {"name":"thread_name","ph":"M","ts":0,"pid":1,"tid":1,"args":{"name":"1"}},
	// {"name":"thread_sort_index","ph":"M","ts":0,"pid":1,"tid":1,"args":{"sort_index":1}},
	// {"name":"job-1","ph":"X","ts":60000000,"dur":30500000,"pid":1,"tid":1,"args":{"tasks":"1 ps"}}
	// ]}
}

// Lanes keep all spans, in order and apart, and there are as many lanes as spans
// overlap at some time.
func TestLanes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spans := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) chrometrace.Span {
			start := float64(rapid.IntRange(0, 20).Draw(t, "start"))
			return chrometrace.Span{Start: start, End: start + float64(rapid.IntRange(1, 8).Draw(t, "length"))}
		}), 0, 20).Draw(t, "spans")
		lanes := chrometrace.Lanes(spans)
		n := 0
		for _, l := range lanes {
			for i, s := range l {
				if n++; i > 0 && l[i-1].End > s.Start {
					t.Fatalf("%v and %v overlap", l[i-1], s)
				}
			}
		}
		most := 0
		for _, a := range spans {
			at := 0
			for _, b := range spans {
				if b.Start <= a.Start && a.Start < b.End {
					at++
				}
			}
			most = max(most, at)
		}
		if n != len(spans) || len(lanes) != most {
			t.Fatalf("%d of %d spans in %d lanes; %d overlap", n, len(spans), len(lanes), most)
		}
	})
}

type full struct{}

func (full) Write([]byte) (int, error) { return 0, io.ErrShortWrite }

func TestWriteFails(t *testing.T) {
	if err := (chrometrace.Trace{}).Write(full{}); !errors.Is(err, io.ErrShortWrite) {
		t.Errorf("error %v", err)
	}
	var empty strings.Builder
	if err := (chrometrace.Trace{}).Write(&empty); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n]}\n", empty.String()); diff != "" {
		t.Error(diff)
	}
}
