// Package reftest writes tables of the reference pages from Go source, and holds the pages to them.
//
// A type is described by its doc comment, and each field by the comment before or behind it. The
// text of a page is that comment with Go names replaced by the names in JSON.
package reftest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Source is what the Go files of some packages declare.
type Source struct {
	types map[string]*Type // by package.Name
	// consts are the values of the constants that are texts, by package.Name.
	consts map[string]string
}

// Type is a declared type.
type Type struct {
	// ID is package.Name.
	ID, Name string
	// Doc is the doc comment as it stands in the source.
	Doc string
	// Fields are those of a struct. Nil: the type is none.
	Fields []Field
	// Under is the type that it is declared as, such as string.
	Under string
	// Values are the constants of the type, in the order of the source.
	Values []Value
}

// Field is a field of a struct that JSON has.
type Field struct {
	// Name is that in Go, JSON that on the wire.
	Name, JSON string
	// Type is a type as [Source.Type] takes it, after any [] and * before it.
	Type string
	// Doc is its comment as it stands in the source. Empty: it has none.
	Doc string
	// Always reports whether it is written when it is zero, too.
	Always bool
	// Inline reports whether the fields of its type stand in its place.
	Inline bool
}

// Value is a constant of a type.
type Value struct {
	// Name is that in Go, Text its value.
	Name, Text string
	// Doc is its comment. Empty: it has none.
	Doc string
}

// Parse reads the Go files of some directories, without tests.
func Parse(t testing.TB, dirs ...string) *Source {
	t.Helper()
	s := &Source{types: make(map[string]*Type), consts: make(map[string]string)}
	for _, dir := range dirs {
		names, err := filepath.Glob(filepath.Join(dir, "*.go"))
		if err != nil || len(names) == 0 {
			t.Fatalf("Go files of %s: got %d, error %v", dir, len(names), err)
		}
		for _, name := range names {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				t.Fatal(err)
			}
			for _, decl := range f.Decls {
				if decl, ok := decl.(*ast.GenDecl); ok {
					s.declare(f.Name.Name, decl)
				}
			}
		}
	}
	return s
}

// Type returns the type of that package.Name. It ends the test if there is none.
func (s *Source) Type(t testing.TB, id string) *Type {
	t.Helper()
	typ := s.types[id]
	if typ == nil {
		t.Fatalf("type %s: not declared in the packages that were read", id)
	}
	return typ
}

// Consts returns the exported constants of a package that are texts, by name.
func (s *Source) Consts(pkg string) map[string]string {
	list := make(map[string]string)
	for id, value := range s.consts {
		if name, ok := strings.CutPrefix(id, pkg+"."); ok && ast.IsExported(name) {
			list[name] = value
		}
	}
	return list
}

// declare reads the types and constants of a declaration.
func (s *Source) declare(pkg string, decl *ast.GenDecl) {
	for _, spec := range decl.Specs {
		switch spec := spec.(type) {
		case *ast.TypeSpec:
			doc := spec.Doc
			if doc == nil {
				doc = decl.Doc
			}
			s.declareType(pkg, spec, doc.Text())
		case *ast.ValueSpec:
			if decl.Tok == token.CONST {
				s.declareConst(pkg, spec)
			}
		}
	}
}

func (s *Source) declareType(pkg string, spec *ast.TypeSpec, doc string) {
	t := s.typeOf(pkg, spec.Name.Name)
	t.Doc = doc
	of, ok := spec.Type.(*ast.StructType)
	if !ok {
		t.Under = typeText(pkg, spec.Type)
		return
	}
	for _, f := range of.Fields.List {
		t.Fields = append(t.Fields, fieldsOf(pkg, f)...)
	}
}

func (s *Source) declareConst(pkg string, spec *ast.ValueSpec) {
	for i, name := range spec.Names {
		if i >= len(spec.Values) {
			continue
		}
		lit, ok := spec.Values[i].(*ast.BasicLit)
		if !ok || lit.Kind != token.STRING {
			continue
		}
		text, _ := strconv.Unquote(lit.Value) // the parser has read it
		s.consts[pkg+"."+name.Name] = text
		if spec.Type != nil && name.IsExported() {
			t := s.typeOf(pkg, typeText(pkg, spec.Type)[len(pkg)+1:])
			t.Values = append(t.Values, Value{name.Name, text, comment(spec.Doc, spec.Comment)})
		}
	}
}

// typeOf returns the type of that name, which is perhaps declared later.
func (s *Source) typeOf(pkg, name string) *Type {
	id := pkg + "." + name
	if s.types[id] == nil {
		s.types[id] = &Type{ID: id, Name: name}
	}
	return s.types[id]
}

// fieldsOf returns the fields that a line of a struct declares, without those that JSON does not have.
func fieldsOf(pkg string, f *ast.Field) (list []Field) {
	tag := ""
	if f.Tag != nil {
		text, _ := strconv.Unquote(f.Tag.Value) // the parser has read it
		tag = reflect.StructTag(text).Get("json")
	}
	name, options, _ := strings.Cut(tag, ",")
	typ := typeText(pkg, f.Type)
	if len(f.Names) == 0 {
		return []Field{{Name: typ[strings.LastIndexByte(typ, '.')+1:], Type: typ, Inline: true}}
	}
	for _, id := range f.Names {
		if !id.IsExported() || name == "-" {
			continue
		}
		list = append(list, Field{
			Name: id.Name, JSON: name, Type: typ, Doc: comment(f.Doc, f.Comment),
			Always: !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero"),
		})
	}
	return list
}

// comment returns the comment before a declaration, or else that behind it.
func comment(before, behind *ast.CommentGroup) string {
	if text := before.Text(); text != "" {
		return text
	}
	return behind.Text()
}

// builtin are the types that are of no package.
var builtin = []string{"any", "bool", "byte", "float64", "int", "int64", "string", "uint8", "uint32", "uint64"}

// typeText returns a type as Go writes it, with the package of every declared one.
func typeText(pkg string, e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		if slices.Contains(builtin, e.Name) {
			return e.Name
		}
		return pkg + "." + e.Name
	case *ast.SelectorExpr:
		return e.X.(*ast.Ident).Name + "." + e.Sel.Name
	case *ast.StarExpr:
		return "*" + typeText(pkg, e.X)
	case *ast.ArrayType:
		return "[]" + typeText(pkg, e.Elt)
	case *ast.MapType:
		return "map[" + typeText(pkg, e.Key) + "]" + typeText(pkg, e.Value)
	}
	return pkg + ".?"
}
