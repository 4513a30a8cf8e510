package archtest_test

import (
	"os"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"optimus/internal/archtest"
)

// TestProject checks the module that this package is part of.
func TestProject(t *testing.T) {
	found, err := archtest.Check(os.DirFS("../.."), "optimus")
	if err != nil {
		t.Fatal(err)
	}
	for _, v := range found {
		t.Error(v)
	}
}

func TestViolations(t *testing.T) {
	long := strings.Repeat("// line\n", archtest.MaxLines+1)
	tests := []struct {
		name  string
		files map[string]string
		want  []string
	}{
		{"clean", map[string]string{
			"paa/a.go":       "// Package paa assigns.\npackage paa\nimport \"sort\"\nvar _ = sort.Ints\n",
			"elastic/e.go":   "// Package elastic is pure.\npackage elastic\nimport (\"optimus/paa\"; \"time\")\nvar _ = paa.X\nvar _ time.Duration\n",
			"paa/a_test.go":  "package paa_test\nimport (\"os\"; \"optimus/worker\")\n",
			"paa/testdata/x": "no Go",
		}, nil},
		{"row forbids", map[string]string{
			"transport/t.go": "// Package transport moves.\npackage transport\nimport \"optimus/worker\"\n",
		}, []string{"transport/t.go: import: transport may not import worker: its row allows internal"}},
		{"except", map[string]string{
			"train/t.go": "// Package train runs.\npackage train\nimport (\"optimus/launch\"; \"optimus/daemon/store\")\n",
		}, []string{"train/t.go: import: train may not import daemon/store: its row allows *, internal, except models/graph, daemon, cmd/optimus, benchmarks"}},
		{"named though excepted", map[string]string{
			"cmd/optimus/main.go": "// Optimus runs.\npackage main\nimport (\"optimus/benchmarks/paper/figures\"; \"optimus/benchmarks/step\")\n",
		}, []string{"cmd/optimus/main.go: import: cmd/optimus may not import benchmarks/step: its row allows *, benchmarks/paper, internal, except models/graph, benchmarks"}},
		{"own folder below", map[string]string{
			"daemon/d.go":       "// Package daemon serves.\npackage daemon\nimport \"optimus/daemon/store\"\n",
			"daemon/store/s.go": "// Package store keeps.\npackage store\nimport \"optimus/elastic\"\n",
		}, []string{"daemon/store/s.go: import: daemon may not import elastic: its row allows spec, telemetry, scheduler, launch, internal"}},
		{"from elsewhere", map[string]string{
			"spec/s.go":      "// Package spec is.\npackage spec\nimport \"github.com/x/y\"\n",
			"scheduler/s.go": "// Package scheduler is.\npackage scheduler\nimport (\"gonum.org/v1/gonum/mat\"; \"github.com/x/y\")\n",
		}, []string{
			"scheduler/s.go: import: scheduler may not import github.com/x/y: it keeps to the standard library",
			"spec/s.go: import: spec may not import github.com/x/y: it keeps to the standard library",
		}},
		{"unknown folder", map[string]string{
			"utils/u.go": "// Package utils is everything.\npackage utils\n",
		}, []string{"utils/u.go: layout: the folder utils is in no row of the table; the architecture has a place for each thing"}},
		{"cgo", map[string]string{
			"cuda/c.go": "// Package cuda is.\npackage cuda\nimport \"C\"\n",
		}, []string{"cuda/c.go: cgo: the program builds without a C compiler"}},
		{"impure", map[string]string{
			"data/order/o.go": "// Package order is pure.\npackage order\nimport (t \"time\"; \"os/exec\"; \"sync/atomic\")\nfunc f() { go f(); t.Sleep(1); _ = t.Now }\n",
		}, []string{
			"data/order/o.go: pure: imports os/exec (files and processes)",
			"data/order/o.go: pure: imports sync/atomic (goroutines)",
			"data/order/o.go: pure: starts a goroutine",
			"data/order/o.go: pure: uses time.Now: take the time as an argument or in ticks",
			"data/order/o.go: pure: uses time.Sleep: take the time as an argument or in ticks",
		}},
		{"impure by way of", map[string]string{
			"paa/p.go":                "// Package paa is pure.\npackage paa\nimport \"optimus/internal/a\"\n",
			"internal/a/a.go":         "// Package a is.\npackage a\nimport \"optimus/internal/b\"\n",
			"internal/b/b.go":         "// Package b is.\npackage b\nimport \"net/http\"\n",
			"elastic/checkpoint/c.go": "// Package checkpoint writes files.\npackage checkpoint\nimport (\"os\"; \"optimus/elastic\")\n",
		}, []string{"paa/p.go: pure: imports internal/a, which reaches files or sockets in internal/b/b.go"}},
		{"cycle of rows", map[string]string{
			"internal/faultnet/f.go": "// Package faultnet loses.\npackage faultnet\nimport \"optimus/transport\"\n",
			"transport/t.go":         "// Package transport moves.\npackage transport\nimport \"optimus/internal/faultnet\"\n",
		}, []string{
			"internal/faultnet/f.go: cycle: internal/faultnet imports transport, which leads back to it",
			"transport/t.go: cycle: transport imports internal/faultnet, which leads back to it",
		}},
		{"linked", map[string]string{
			"cmd/optimus/main.go":    "// Optimus runs.\npackage main\nimport \"optimus/daemon\"\n",
			"daemon/d.go":            "// Package daemon serves.\npackage daemon\nimport \"optimus/daemon/web\"\n",
			"daemon/web/w.go":        "// Package web shows.\npackage web\nimport \"gorgonia.org/tensor\"\n",
			"daemon/web/w_test.go":   "package web\nimport \"gorgonia.org/gorgonia\"\n",
			"models/graph/g.go":      "// Package graph trains graphs.\npackage graph\nimport (\"gorgonia.org/gorgonia\"; \"optimus/train\")\n",
			"benchmarks/graphs/b.go": "// Package graphs measures.\npackage graphs\nimport \"optimus/models/graph\"\n",
		}, []string{"daemon/web/w.go: link: imports gorgonia.org/tensor, which would be linked into cmd/optimus"}},
		{"printing", map[string]string{
			"nn/n.go":             "// Package nn is.\npackage nn\nimport f \"fmt\"\nfunc g() { f.Println(); println(); _ = f.Sprint() }\n",
			"nn/n_test.go":        "package nn\nimport \"fmt\"\nfunc h() { fmt.Println() }\n",
			"cmd/optimus/main.go": "// Optimus prints.\npackage main\nimport \"fmt\"\nfunc main() { fmt.Println() }\n",
		}, []string{
			"nn/n.go: print: calls fmt.Println in a library; return the text or take an io.Writer",
			"nn/n.go: print: calls the builtin println; return the text or take an io.Writer",
		}},
		{"init", map[string]string{
			"models/m.go":  "// Package models is.\npackage models\nfunc init() {}\n",
			"models/pb.go": "// Code generated by x. DO NOT EDIT.\n\npackage models\nfunc init() {}\n",
		}, []string{"models/m.go: init: work at import time hides from the reader; do it where it is asked for"}},
		{"package doc", map[string]string{
			"ring/a.go": "// Package ring is.\npackage ring\n",
			"ring/b.go": "// Package ring is again.\npackage ring\n",
			"ps/a.go":   "package ps\n",
		}, []string{
			"ps/a.go: package doc: no file of the package says in a comment what it is for",
			"ring/b.go: package doc: ring/a.go has the package's comment already; one file has it",
		}},
		{"length", map[string]string{
			"ps/a.go":                "// Package ps is.\npackage ps\n" + long,
			"ps/b.go":                "// Code generated by x. DO NOT EDIT.\n\npackage ps\n" + long,
			"compute/cpu/a.s":        long,
			"compute/cpu/b.s":        "// Code generated by command: go run gen.go. DO NOT EDIT.\n" + long,
			"compute/cpu/gen/go.mod": "module gen\n",
			"compute/cpu/gen/g.go":   "package gen\n" + long,
		}, []string{
			"compute/cpu/a.s: length: 601 lines, the limit is 600; divide it by what it does",
			"ps/a.go: length: 603 lines, the limit is 600; divide it by what it does",
		}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			fsys := fstest.MapFS{}
			for name, text := range test.files {
				fsys[name] = &fstest.MapFile{Data: []byte(text)}
			}
			found, err := archtest.Check(fsys, "optimus")
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, v := range found {
				got = append(got, v.String())
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("violations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestUnreadable(t *testing.T) {
	fsys := fstest.MapFS{"paa/a.go": &fstest.MapFile{Data: []byte("package")}}
	if _, err := archtest.Check(fsys, "optimus"); err == nil || !strings.Contains(err.Error(), "paa/a.go") {
		t.Errorf("error %v does not name the file that cannot be parsed", err)
	}
}
