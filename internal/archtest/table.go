package archtest

import (
	"slices"
	"strings"
)

// row is one folder of the architecture and the folders below it that have no
// row of their own.
type row struct {
	folder string
	// imports are the folders whose packages this one may import, besides its
	// own row's, internal/... and the standard library. A folder stands for
	// its row. "*" is every row.
	imports []string
	// except are folders that "*" does not cover, unless imports names them.
	except []string
	// pure forbids clocks, goroutines, sockets, files, global randomness and,
	// but for those of modules, packages from elsewhere.
	pure    bool
	modules []string // prefixes of import paths from elsewhere
	// standard forbids packages from elsewhere without being pure.
	standard bool
	// unlinked are folders, and prefixes of import paths from elsewhere, that
	// nothing which this one is built from may import.
	unlinked []string
}

// table is the architecture: the design's table of folders, with what its text
// adds to it.
func table() []row {
	return []row{
		{folder: "spec", standard: true},
		{folder: "telemetry"},
		{folder: "paa", pure: true},
		{folder: "scheduler", imports: []string{"spec", "telemetry"}, pure: true, modules: []string{"gonum.org/"}},
		{folder: "data", imports: []string{"data/order"}},
		{folder: "data/order", pure: true},
		{folder: "elastic", imports: []string{"paa", "data/order"}, pure: true},
		{folder: "elastic/checkpoint", imports: []string{"elastic", "paa", "data/order"}},
		{folder: "transport"},
		{folder: "compute", imports: []string{"compute/cpu", "compute/optim"}},
		{folder: "compute/cpu", imports: []string{"compute", "compute/optim"}},
		{folder: "compute/optim", imports: []string{"compute"}},
		{folder: "cuda", imports: []string{"compute", "compute/optim"}},
		{folder: "nn", imports: []string{"compute", "compute/optim"}},
		{folder: "models", imports: []string{"nn", "data", "data/order", "compute", "compute/optim"}},
		// The task that it makes of a graph is one of train's.
		{folder: "models/graph", imports: []string{"compute", "compute/optim", "data/order", "elastic/checkpoint", "train", "worker"}},
		{folder: "ps/pieces", imports: []string{"elastic", "paa", "compute/optim"}},
		{folder: "ps", imports: []string{"ps/pieces", "elastic", "paa", "transport", "compute/optim"}},
		// The batch of a step is a pure function that a worker calls itself.
		{folder: "worker", imports: []string{"elastic", "data/order", "transport", "compute"}},
		{folder: "ring", imports: []string{"ps/pieces", "transport"}},
		{folder: "launch", imports: []string{"spec"}},
		{folder: "train", imports: []string{"*"}, except: []string{"models/graph", "daemon", "cmd/optimus", "benchmarks"}},
		{folder: "daemon", imports: []string{"spec", "telemetry", "scheduler", "launch"}},
		// `optimus reproduce` regenerates the papers' figures itself.
		{folder: "cmd/optimus", imports: []string{"*", "benchmarks/paper"}, except: []string{"models/graph", "benchmarks"},
			unlinked: []string{"models/graph", "gorgonia.org"}},
		{folder: "benchmarks", imports: []string{"*"}},
		{folder: "benchmarks/paper", imports: []string{"*"}, except: []string{"models/graph", "cmd/optimus", "benchmarks"}},
		{folder: "internal"},
		// The network that loses and delays frames wraps the transport's own
		// interface.
		{folder: "internal/faultnet", imports: []string{"transport"}},
	}
}

// rowOf returns the row of a folder: that of its longest prefix.
func rowOf(dir string) (row, bool) {
	var best row
	found := false
	for _, r := range table() {
		if within(dir, r.folder) && len(r.folder) > len(best.folder) {
			best, found = r, true
		}
	}
	return best, found
}

// within reports whether dir is folder or lies below it.
func within(dir, folder string) bool {
	return dir == folder || strings.HasPrefix(dir, folder+"/")
}

// mayImport reports whether a package of row r may import the one in dir.
func (r row) mayImport(dir string) bool {
	if within(dir, "internal") {
		return true
	}
	target, ok := rowOf(dir)
	if !ok {
		return false
	}
	if target.folder == r.folder {
		return true
	}
	if slices.Contains(r.imports, target.folder) {
		return true
	}
	for _, e := range r.except {
		if within(target.folder, e) {
			return false
		}
	}
	return slices.Contains(r.imports, "*")
}

// allows reports whether a package of row r may import path from outside the
// module and the standard library.
func (r row) allows(path string) bool {
	if !r.pure && !r.standard {
		return true
	}
	for _, m := range r.modules {
		if strings.HasPrefix(path, m) {
			return true
		}
	}
	return false
}
