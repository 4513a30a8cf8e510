// Package archtest holds the project to its own architecture: which package may
// import which, which packages are pure, and the rules of style that a program
// can check. Its test runs over the whole module, so a breach is a failed test
// that names the file, the rule and the reason.
//
// The rules are the table of this package (table.go), one row per folder. They
// bind what is shipped: a test may import any package of the module. A folder
// that has a go.mod of its own is another module and is left alone.
package archtest

import (
	"cmp"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Violation is one breach of one rule.
type Violation struct {
	File   string // path within the module, slash separated
	Rule   string
	Reason string
}

// String returns "file: rule: reason".
func (v Violation) String() string { return v.File + ": " + v.Rule + ": " + v.Reason }

// Check reads the module in fsys, whose import path is module, and returns
// every violation, sorted. The error is about files that cannot be read or
// parsed.
func Check(fsys fs.FS, module string) ([]Violation, error) {
	m := &tree{module: module, packages: map[string]*pkg{}}
	if err := m.load(fsys); err != nil {
		return nil, fmt.Errorf("read module %s: %w", module, err)
	}
	var found []Violation
	report := func(file, rule, format string, args ...any) {
		found = append(found, Violation{file, rule, fmt.Sprintf(format, args...)})
	}
	for _, p := range m.packages {
		checkImports(m, p, report)
		checkLinked(m, p, report)
		checkPurity(m, p, report)
		checkDoc(p, report)
		for _, f := range p.files {
			checkStyle(p, f, report)
		}
	}
	checkCycles(m, report)
	for _, f := range m.assembly {
		checkLength(f, report)
	}
	slices.SortFunc(found, func(a, b Violation) int {
		return cmp.Or(cmp.Compare(a.File, b.File), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Reason, b.Reason))
	})
	return slices.Compact(found), nil
}

// reporter takes one violation.
type reporter func(file, rule, format string, args ...any)

// tree is a parsed module.
type tree struct {
	module   string
	packages map[string]*pkg // by folder; "." is the root
	assembly []*file
}

// pkg is the Go files of one folder, tests included.
type pkg struct {
	dir   string
	files []*file
}

// file is one source file. The syntax is nil for assembly.
type file struct {
	path      string
	syntax    *ast.File
	lines     int
	test      bool
	generated bool
}

func (m *tree) load(fsys fs.FS) error {
	return fs.WalkDir(fsys, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skipped(fsys, name, d.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		switch path.Ext(name) {
		case ".go", ".s":
			return m.add(fsys, name)
		}
		return nil
	})
}

// skipped reports folders that the go command leaves out, and other modules.
func skipped(fsys fs.FS, name, base string) bool {
	if name == "." {
		return false
	}
	if strings.HasPrefix(base, ".") || strings.HasPrefix(base, "_") || base == "testdata" || base == "vendor" {
		return true
	}
	_, err := fs.Stat(fsys, path.Join(name, "go.mod"))
	return err == nil
}

func (m *tree) add(fsys fs.FS, name string) error {
	src, err := fs.ReadFile(fsys, name)
	if err != nil {
		return err
	}
	f := &file{path: name, lines: strings.Count(string(src), "\n"), test: strings.HasSuffix(name, "_test.go")}
	if path.Ext(name) == ".s" {
		f.generated = strings.HasPrefix(string(src), "// Code generated ")
		m.assembly = append(m.assembly, f)
		return nil
	}
	f.syntax, err = parser.ParseFile(token.NewFileSet(), name, src, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	f.generated = ast.IsGenerated(f.syntax)
	dir := path.Dir(name)
	if m.packages[dir] == nil {
		m.packages[dir] = &pkg{dir: dir}
	}
	m.packages[dir].files = append(m.packages[dir].files, f)
	return nil
}

// shipped yields the files of p that are not tests.
func (p *pkg) shipped(yield func(*file) bool) {
	for _, f := range p.files {
		if !f.test && !yield(f) {
			return
		}
	}
}
