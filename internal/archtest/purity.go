package archtest

import (
	"go/ast"
	"path"
	"slices"
	"strconv"
	"strings"
)

// impure are the packages that a pure package may not import, with what they
// would bring in. Folders below them are meant as well.
func impure() map[string]string {
	return map[string]string{
		"net":         "sockets",
		"os":          "files and processes",
		"io/ioutil":   "files",
		"syscall":     "the operating system",
		"sync":        "goroutines",
		"context":     "goroutines and clocks",
		"runtime":     "the scheduler",
		"log":         "a global logger",
		"math/rand":   "randomness that is not keyed; use internal/rng",
		"crypto/rand": "randomness that is not keyed; use internal/rng",
		"unsafe":      "memory without types",
	}
}

// clock are the functions of package time that read or wait for a clock.
func clock() []string {
	return []string{"Now", "Since", "Until", "Sleep", "After", "AfterFunc", "Tick", "NewTimer", "NewTicker"}
}

// checkPurity holds the shipped files of a pure package to values in, values
// out: no forbidden import, go statement, clock, or way to files and sockets
// through a package of ours.
func checkPurity(m *tree, p *pkg, report reporter) {
	if r, ok := rowOf(p.dir); !ok || !r.pure {
		return
	}
	for f := range p.shipped {
		for imp := range f.imported {
			if what, ok := forbidden(imp, impure()); ok {
				report(f.path, "pure", "imports %s (%s)", imp, what)
			}
			if dir, ours := m.folder(imp); ours {
				if via := m.reachesWorld(dir, map[string]bool{}); via != "" {
					report(f.path, "pure", "imports %s, which reaches files or sockets in %s", dir, via)
				}
			}
		}
		checkStatements(f, report)
	}
}

// checkStatements looks for goroutines and clocks.
func checkStatements(f *file, report reporter) {
	timeName := f.nameOf("time")
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			report(f.path, "pure", "starts a goroutine")
		case *ast.SelectorExpr:
			if x, ok := n.X.(*ast.Ident); ok && timeName != "" && x.Name == timeName && slices.Contains(clock(), n.Sel.Name) {
				report(f.path, "pure", "uses time.%s: take the time as an argument or in ticks", n.Sel.Name)
			}
		}
		return true
	})
	if timeName == "." {
		report(f.path, "pure", "imports time with a dot, which hides its clocks")
	}
}

// reachesWorld returns a shipped file, reachable by imports from the package
// in dir, that imports net or os; "" if there is none.
func (m *tree) reachesWorld(dir string, seen map[string]bool) string {
	p := m.packages[dir]
	if p == nil || seen[dir] {
		return ""
	}
	seen[dir] = true
	world := map[string]string{"net": "", "os": ""}
	for f := range p.shipped {
		for imp := range f.imported {
			if _, ok := forbidden(imp, world); ok {
				return f.path
			}
			if next, ours := m.folder(imp); ours {
				if via := m.reachesWorld(next, seen); via != "" {
					return via
				}
			}
		}
	}
	return ""
}

// forbidden looks up imp, or the folder above it, in list.
func forbidden(imp string, list map[string]string) (string, bool) {
	for name, what := range list {
		if within(imp, name) {
			return what, true
		}
	}
	return "", false
}

// nameOf returns the name under which f imports pkg, "" if it does not.
func (f *file) nameOf(pkg string) string {
	for _, spec := range f.syntax.Imports {
		if p, err := strconv.Unquote(spec.Path.Value); err != nil || p != pkg {
			continue
		}
		if spec.Name != nil {
			return spec.Name.Name
		}
		return strings.TrimPrefix(path.Base(pkg), "/")
	}
	return ""
}
