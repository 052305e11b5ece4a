package faulttest

import (
	"fmt"
	"go/ast"
	"go/build"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// source holds the functions of one package, except those of its tests.
type source struct {
	name  string // of the package
	funcs []function
}

// function is a declared function and the file that declares it.
type function struct {
	name string // of a method: State.Open
	code []lexeme
	file
}

// file is a Go file.
type file struct {
	path string
	text []byte
}

// openSource reads the package in dir, as built for this system.
func openSource(dir string) (*source, error) {
	if dir == "" {
		dir = "."
	}
	p, err := build.ImportDir(dir, 0)
	if err != nil {
		return nil, err
	}
	s := &source{name: p.Name}
	for _, name := range p.GoFiles {
		path := filepath.Join(dir, name)
		text, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if err := s.add(file{path, text}); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// add adds the functions of a file.
func (s *source) add(f file) error {
	fset := token.NewFileSet()
	parsed, err := parser.ParseFile(fset, filepath.Base(f.path), f.text, parser.SkipObjectResolution)
	if err != nil {
		return err
	}
	all := lex(f.text)
	for _, decl := range parsed.Decls {
		d, ok := decl.(*ast.FuncDecl)
		if !ok {
			continue
		}
		start, end := fset.Position(d.Pos()).Offset, fset.Position(d.End()).Offset
		code := slices.DeleteFunc(slices.Clone(all), func(l lexeme) bool { return l.start < start || l.end > end })
		s.funcs = append(s.funcs, function{nameOf(d), code, f})
	}
	return nil
}

// nameOf returns the name of a function, with the type of its receiver.
func nameOf(d *ast.FuncDecl) string {
	if d.Recv == nil || len(d.Recv.List) == 0 {
		return d.Name.Name
	}
	return plainName(types.ExprString(d.Recv.List[0].Type) + "." + d.Name.Name)
}

// plainName returns a name as in Fault.Func without pointer and type parameters:
// (*decision).advance and *decision.advance are decision.advance.
func plainName(name string) string {
	recv, method, isMethod := strings.Cut(strings.Trim(name, "(*"), ".")
	if !isMethod {
		return recv
	}
	recv, _, _ = strings.Cut(strings.TrimSuffix(recv, ")"), "[")
	return recv + "." + method
}

// plant returns the file of the fault's function, changed.
func (s *source) plant(f Fault) (file, error) {
	fn, err := s.find(f)
	if err != nil {
		return file{}, err
	}
	old := lex([]byte(f.Old))
	var matches []span
	for i := range fn.code {
		if end, ok := matchAt(fn.code[i:], old); ok {
			matches = append(matches, span{fn.code[i].start, fn.code[i+end-1].end})
		}
	}
	if len(matches) != 1 {
		return file{}, miscounted(fn, f, old, matches)
	}
	at := matches[0]
	text := slices.Concat(fn.text[:at.start], []byte(f.New), fn.text[at.end:])
	if text, err = withImports(text, f.New); err != nil {
		return file{}, fmt.Errorf("%s (%s) is no Go with New in place, correct it in the table: %w", f.Func, fn.base(), err)
	}
	return file{fn.path, text}, nil
}

// span is a part of a file, in bytes.
type span struct{ start, end int }

// find returns the function of a fault.
func (s *source) find(f Fault) (function, error) {
	var found []function
	for _, fn := range s.funcs {
		if fn.name == plainName(f.Func) {
			found = append(found, fn)
		}
	}
	switch len(found) {
	case 0:
		return function{}, fmt.Errorf("function %s not found in package %s: it moved or was renamed; correct Func in the table, or drop the fault if its mechanism is gone%s",
			f.Func, s.name, closest(s.funcs, lex([]byte(f.Old))))
	case 1:
		return found[0], nil
	}
	return function{}, fmt.Errorf("function %s is declared %d times in package %s: choose another function", f.Func, len(found), s.name)
}

// miscounted returns the error for code that does not occur once in its function.
func miscounted(fn function, f Fault, old []lexeme, matches []span) error {
	if len(matches) == 0 {
		return fmt.Errorf("%q occurs 0 times in %s (%s), want 1: the code changed or moved; correct Old in the table, or drop the fault if its mechanism is gone%s",
			f.Old, f.Func, fn.base(), closest([]function{fn}, old))
	}
	var lines []string
	for _, p := range matches {
		lines = append(lines, fmt.Sprint(fn.line(p.start)))
	}
	return fmt.Errorf("%q occurs %d times in %s (%s, lines %s), want 1: add to Old what stands beside the right one",
		f.Old, len(matches), f.Func, fn.base(), strings.Join(lines, ", "))
}

// closest returns the line in funcs that shares the longest run of tokens with old; empty if
// there is none.
func closest(funcs []function, old []lexeme) string {
	most, text := 0, ""
	for _, fn := range funcs {
		for i := range fn.code {
			for j := range old {
				if n := shared(fn.code[i:], old[j:]); n > most {
					line := fn.line(fn.code[i].start)
					most, text = n, fmt.Sprintf("; closest is %s, %s:%d: %s", fn.name, fn.base(), line, fn.lineText(line))
				}
			}
		}
	}
	return text
}

func (f file) base() string { return filepath.Base(f.path) }

// line returns the number of the line at an offset.
func (f file) line(offset int) int { return 1 + strings.Count(string(f.text[:offset]), "\n") }

func (f file) lineText(line int) string {
	return strings.TrimSpace(strings.Split(string(f.text), "\n")[line-1])
}
