package trace

import (
	"bytes"
	"errors"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"optimus/internal/shared"
)

var polluxApplications = []string{"bert", "cifar10", "deepspeech2", "imagenet", "ncf", "yolov3"}

func TestReadPollux(t *testing.T) {
	jobs, err := ReadPollux("w.csv", strings.NewReader("batch_size,name,time,application,num_replicas,extra\n384,b-0,53.5,bert,6,x\n32,n-1,7,ncf,1,\n"), polluxApplications)
	want := []PolluxJob{{"b-0", 53.5, "bert", 6, 384}, {"n-1", 7, "ncf", 1, 32}}
	if err != nil || !cmp.Equal(want, jobs) {
		t.Errorf("%v, %v", jobs, err)
	}
	files, err := filepath.Glob(shared.Dir(t, "pollux") + "/workloads*/*.csv")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		jobs, err := ReadPollux(file, bytes.NewReader(data), polluxApplications)
		if err != nil || len(jobs) != bytes.Count(data, []byte("\n"))-1 {
			t.Errorf("%s: %d jobs, %v", file, len(jobs), err)
		}
	}
}

func TestBadPollux(t *testing.T) {
	const header = "name,time,application,num_replicas,batch_size\n"
	for name, c := range map[string]struct {
		data  string
		line  int
		field string
	}{
		"empty":               {"", 0, ""},
		"missing column":      {"name,time,application,num_replicas\na,1,ncf,1\n", 1, "batch_size"},
		"negative time":       {header + "a,1,ncf,1,1\nb,-1,ncf,1,1\n", 3, "time"},
		"time NaN":            {header + "a,NaN,ncf,1,1\n", 2, "time"},
		"time Inf":            {header + "a,Inf,ncf,1,1\n", 2, "time"},
		"time no number":      {header + "a,soon,ncf,1,1\n", 2, "time"},
		"duplicate name":      {header + "a,1,ncf,1,1\na,2,ncf,1,1\n", 3, "name"},
		"no name":             {header + ",1,ncf,1,1\n", 2, "name"},
		"unknown application": {header + "a,1,gpt,1,1\n", 2, "application"},
		"no GPU":              {header + "a,1,ncf,0,1\n", 2, "num_replicas"},
		"part of a GPU":       {header + "a,1,ncf,0.5,1\n", 2, "num_replicas"},
		"huge":                {header + "a,1,ncf,99999999999,1\n", 2, "num_replicas"},
		"no batch":            {header + "a,1,ncf,1,0\n", 2, "batch_size"},
		"short line":          {header + "a,1,ncf,1\n", 2, ""},
		"quote":               {header + "\"a,1,ncf,1,1\n", 2, ""},
	} {
		jobs, err := ReadPollux("w.csv", strings.NewReader(c.data), polluxApplications)
		var e *FieldError
		if jobs != nil || !errors.As(err, &e) || e.File != "w.csv" || e.Line != c.line || e.Field != c.field {
			t.Errorf("%s: %v, %v; want an error on line %d, field %q", name, jobs, err, c.line, c.field)
		}
	}
}

func TestReadPolluxTables(t *testing.T) {
	times, err := ReadPolluxTimes("p.csv", strings.NewReader("placement,local_bsz,step_time,sync_time\n13,8,0.5,0.2\n4,9,0.25,0\n"))
	want := []PolluxTime{{[]int{1, 3}, 2, 4, 8, 0.5, 0.2}, {[]int{4}, 1, 4, 9, 0.25, 0}}
	if err != nil || !cmp.Equal(want, times) {
		t.Errorf("%v, %v", times, err)
	}
	times, err = ReadPolluxTimes("s.csv", strings.NewReader("num_nodes,num_replicas,local_bsz,step_time,sync_time\n6,24,8,0.5,0.2\n"))
	if want := []PolluxTime{{nil, 6, 24, 8, 0.5, 0.2}}; err != nil || !cmp.Equal(want, times) {
		t.Errorf("%v, %v", times, err)
	}
	const header = "progress,iteration,metric,grad_sqr,grad_var\n"
	epochs, err := ReadPolluxEpochs("v.csv", strings.NewReader(header+"1,2,-3,4,5\n2,3,4,0,0\n"))
	if want := []PolluxEpoch{{1, 2, -3, 4, 5}, {2, 3, 4, 0, 0}}; err != nil || !cmp.Equal(want, epochs) {
		t.Errorf("%v, %v", epochs, err)
	}
	for data, field := range map[string]string{
		"local_bsz,step_time,sync_time\n1,2,1\n":                            "placement",
		"placement,local_bsz,step_time,sync_time\n10,1,2,1\n":               "placement",
		"placement,local_bsz,step_time,sync_time\n1a,1,2,1\n":               "placement",
		"placement,local_bsz,step_time,sync_time\n1,0,2,1\n":                "local_bsz",
		"placement,local_bsz,step_time,sync_time\n1,1,NaN,1\n":              "step_time",
		"placement,local_bsz,step_time,sync_time\n1,1,2,2\n":                "sync_time",
		"num_nodes,num_replicas,local_bsz,step_time,sync_time\n0,1,1,2,1\n": "num_nodes",
	} {
		var e *FieldError
		if _, err := ReadPolluxTimes("p.csv", strings.NewReader(data)); !errors.As(err, &e) || e.Field != field {
			t.Errorf("%q: %v, want an error about %q", data, err, field)
		}
	}
	for _, data := range []string{header + "0,1,1,1,1\n", header + "2,1,1,1,1\n2,2,1,1,1\n"} {
		var e *FieldError
		if _, err := ReadPolluxEpochs("v.csv", strings.NewReader(data)); !errors.As(err, &e) || e.Field != "progress" {
			t.Errorf("%q: %v, want an error about progress", data, err)
		}
	}
}

func FuzzReadPollux(f *testing.F) {
	f.Add("name,time,application,num_replicas,batch_size\na,1,ncf,1,1\n")
	f.Add("name,time,application,num_replicas,batch_size\na,1e308,bert,2147483647,1\n\"b\n\",0,ncf,1,1\n")
	f.Fuzz(func(t *testing.T, data string) {
		jobs, err := ReadPollux("f.csv", strings.NewReader(data), polluxApplications)
		seen := map[string]bool{}
		for _, j := range jobs {
			if err != nil || j.Name == "" || seen[j.Name] || !(j.Submit >= 0) || math.IsInf(j.Submit, 1) || j.GPUs < 1 || j.Batch < 1 {
				t.Errorf("%+v, %v", j, err)
			}
			seen[j.Name] = true
		}
		if _, err := ReadPolluxTimes("f.csv", strings.NewReader(data)); err != nil && !strings.Contains(err.Error(), "f.csv") {
			t.Errorf("%v does not name the file", err)
		}
	})
}
