package archtest

import (
	"slices"
	"strconv"
	"strings"
)

// imported yields the import paths of f.
func (f *file) imported(yield func(string) bool) {
	for _, spec := range f.syntax.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err == nil && !yield(path) {
			return
		}
	}
}

// folder returns the folder of an import path of the module.
func (m *tree) folder(path string) (string, bool) {
	if path == m.module {
		return ".", true
	}
	return strings.CutPrefix(path, m.module+"/")
}

// standard reports whether path is of the standard library: its first element
// has no dot.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

// checkImports holds the shipped files of p to its row.
func checkImports(m *tree, p *pkg, report reporter) {
	r, ok := rowOf(p.dir)
	if !ok {
		report(p.files[0].path, "layout", "the folder %s is in no row of the table; the architecture has a place for each thing", p.dir)
		return
	}
	for f := range p.shipped {
		for path := range f.imported {
			dir, ours := m.folder(path)
			switch {
			case ours && !r.mayImport(dir):
				report(f.path, "import", "%s may not import %s: its row allows %s", r.folder, dir, r.allowed())
			case ours:
			case path == "C":
				report(f.path, "cgo", "the program builds without a C compiler")
			case !standard(path) && !r.allows(path):
				report(f.path, "import", "%s may not import %s: it keeps to the standard library", r.folder, path)
			}
		}
	}
}

// checkLinked holds all that p is built from to what its row leaves unlinked.
func checkLinked(m *tree, p *pkg, report reporter) {
	r, _ := rowOf(p.dir)
	if len(r.unlinked) == 0 {
		return
	}
	m.walk(p.dir, map[string]bool{}, func(f *file, path string) {
		dir, ours := m.folder(path)
		for _, u := range r.unlinked {
			if within(path, u) || ours && within(dir, u) {
				report(f.path, "link", "imports %s, which would be linked into %s", path, p.dir)
			}
		}
	})
}

// walk visits the imports of the shipped files of the package in dir and of all
// packages of the module that these lead to.
func (m *tree) walk(dir string, seen map[string]bool, visit func(f *file, path string)) {
	p := m.packages[dir]
	if p == nil || seen[dir] {
		return
	}
	seen[dir] = true
	for f := range p.shipped {
		for path := range f.imported {
			visit(f, path)
			if next, ours := m.folder(path); ours {
				m.walk(next, seen, visit)
			}
		}
	}
}

func (r row) allowed() string {
	list := append(slices.Clone(r.imports), "internal")
	text := strings.Join(list, ", ")
	if len(r.except) > 0 {
		text += ", except " + strings.Join(r.except, ", ")
	}
	return text
}

// checkCycles reports rows that import one another through shipped files. The
// compiler refuses cycles of packages; these would be cycles of ideas. The
// parts of compute are one idea.
func checkCycles(m *tree, report reporter) {
	edges := map[string]map[string]string{} // idea → idea → a file that imports it
	for _, p := range m.packages {
		r, _ := rowOf(p.dir)
		from := idea(r.folder)
		for f := range p.shipped {
			for path := range f.imported {
				dir, ours := m.folder(path)
				target, known := rowOf(dir)
				to := idea(target.folder)
				if !ours || !known || to == from {
					continue
				}
				if edges[from] == nil {
					edges[from] = map[string]string{}
				}
				edges[from][to] = max(f.path, edges[from][to])
			}
		}
	}
	for from, targets := range edges {
		for to, file := range targets {
			if reaches(edges, to, from, map[string]bool{}) {
				report(file, "cycle", "%s imports %s, which leads back to it", from, to)
			}
		}
	}
}

// idea is the unit of a cycle: a row, with those of compute as one.
func idea(folder string) string {
	if within(folder, "compute") {
		return "compute"
	}
	return folder
}

func reaches(edges map[string]map[string]string, from, to string, seen map[string]bool) bool {
	if from == to {
		return true
	}
	if seen[from] {
		return false
	}
	seen[from] = true
	for next := range edges[from] {
		if reaches(edges, next, to, seen) {
			return true
		}
	}
	return false
}
