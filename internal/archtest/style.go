package archtest

import (
	"go/ast"
	"strings"
)

// MaxLines is the longest that a source file may be, generated code excepted.
const MaxLines = 600

// checkDoc asks for the package comment in exactly one shipped file.
func checkDoc(p *pkg, report reporter) {
	var first, documented *file
	for f := range p.shipped {
		if first == nil {
			first = f
		}
		if f.syntax.Doc == nil || strings.TrimSpace(f.syntax.Doc.Text()) == "" {
			continue
		}
		if documented != nil {
			report(f.path, "package doc", "%s has the package's comment already; one file has it", documented.path)
			continue
		}
		documented = f
	}
	if first != nil && documented == nil {
		report(first.path, "package doc", "no file of the package says in a comment what it is for")
	}
}

// checkStyle holds one file to its length and, outside of programs, to
// returning what it has to say.
func checkStyle(p *pkg, f *file, report reporter) {
	checkLength(f, report)
	if f.test || f.generated {
		return
	}
	library := f.syntax.Name.Name != "main"
	for _, d := range f.syntax.Decls {
		if fn, ok := d.(*ast.FuncDecl); ok && library && fn.Recv == nil && fn.Name.Name == "init" {
			report(f.path, "init", "work at import time hides from the reader; do it where it is asked for")
		}
	}
	if library {
		checkPrinting(f, report)
	}
}

// checkPrinting forbids writing to standard output and the builtin print.
func checkPrinting(f *file, report reporter) {
	fmtName := f.nameOf("fmt")
	ast.Inspect(f.syntax, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		switch fn := call.Fun.(type) {
		case *ast.Ident:
			if fn.Name == "print" || fn.Name == "println" {
				report(f.path, "print", "calls the builtin %s; return the text or take an io.Writer", fn.Name)
			}
		case *ast.SelectorExpr:
			x, ok := fn.X.(*ast.Ident)
			if ok && fmtName != "" && x.Name == fmtName && strings.HasPrefix(fn.Sel.Name, "Print") {
				report(f.path, "print", "calls fmt.%s in a library; return the text or take an io.Writer", fn.Sel.Name)
			}
		}
		return true
	})
}

func checkLength(f *file, report reporter) {
	if !f.generated && f.lines > MaxLines {
		report(f.path, "length", "%d lines, the limit is %d; divide it by what it does", f.lines, MaxLines)
	}
}
