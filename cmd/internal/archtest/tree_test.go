package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
)

const module = "github.com/reprise-dev/reprise"

// root is the module, seen from this package.
const root = "../../.."

// file is a Go file of the tree.
type file struct {
	name    string // below the module, with slashes
	pkg     string // import path below the module
	test    bool
	ast     *ast.File
	lines   int
	imports []string
}

// tree is every Go file of the module.
func tree(t *testing.T) []file {
	t.Helper()
	files, err := readTree()
	if err != nil {
		t.Fatal(err)
	}
	if len(files) == 0 {
		t.Fatal("there is no Go code")
	}
	return files
}

// readTree reads every Go file of the module, once for all tests. It opens the files itself, so
// that a cached result of these tests is never older than the code.
var readTree = sync.OnceValues(func() (files []file, err error) {
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() {
			if path != root && (name == "testdata" || name == "vendor" || strings.HasPrefix(name, ".") || strings.HasPrefix(name, "_")) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, ".go") {
			return nil
		}
		f, err := read(path)
		if err == nil {
			files = append(files, f)
		}
		return err
	})
	return files, err
})

func read(path string) (file, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return file{}, err
	}
	rel, err := filepath.Rel(root, path)
	if err != nil {
		return file{}, err
	}
	return parse(filepath.ToSlash(rel), data)
}

func parse(name string, data []byte) (file, error) {
	f := file{name: name, test: strings.HasSuffix(name, "_test.go"), lines: strings.Count(string(data), "\n")}
	if i := strings.LastIndex(name, "/"); i >= 0 {
		f.pkg = name[:i]
	}
	var err error
	f.ast, err = parser.ParseFile(token.NewFileSet(), name, data, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return file{}, err
	}
	for _, spec := range f.ast.Imports {
		path, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return file{}, err
		}
		f.imports = append(f.imports, path)
	}
	return f, nil
}

// example reports whether the file holds examples for users.
func (f file) example() bool {
	return f.test && strings.HasPrefix(f.name[strings.LastIndex(f.name, "/")+1:], "example")
}

// calls reports whether the file mentions name, such as time.Sleep, in its code.
func (f file) calls(name string) bool {
	pkg, fn, _ := strings.Cut(name, ".")
	found := false
	ast.Inspect(f.ast, func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok && s.Sel.Name == fn {
			x, ok := s.X.(*ast.Ident)
			found = found || ok && x.Name == pkg
		}
		return !found
	})
	return found
}

// fits reports whether a pattern speaks for a package.
func fits(pattern, pkg string) bool {
	if below, ok := strings.CutSuffix(pattern, "/..."); ok {
		return pkg == below || strings.HasPrefix(pkg, below+"/")
	}
	return pkg == pattern
}

func fitsAny(patterns []string, pkg string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return fits(p, pkg) })
}

// roomOf is the most specific entry of the table for a package: an exact one,
// else the longest.
func roomOf(pkg string) (room, bool) {
	var best room
	found := false
	for _, r := range rooms {
		if r.path == pkg {
			return r, true
		}
		if fits(r.path, pkg) && len(r.path) > len(best.path) {
			best, found = r, true
		}
	}
	return best, found
}

// ours is an import as a path below the module.
func ours(path string) (string, bool) {
	if path == module {
		return "", true
	}
	return strings.CutPrefix(path, module+"/")
}

// of reports whether an import belongs to a module, in any major version, or to a
// standard package or one below it.
func of(path, module string) bool {
	return path == module || strings.HasPrefix(path, module+"/")
}

// standard reports whether an import is of the standard library.
func standard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}
