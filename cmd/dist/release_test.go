package main

import (
	"archive/zip"
	"bytes"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// long skips t unless REPRISE_DIST is set, as by make test-dist.
func long(t *testing.T) {
	t.Helper()
	if os.Getenv("REPRISE_DIST") == "" {
		t.Skip("left to make test-dist: it builds the program several times")
	}
}

// sources returns the files that git has, or would have.
func sources(t *testing.T) []string {
	t.Helper()
	git := exec.Command("git", "ls-files", "--cached", "--others", "--exclude-standard")
	git.Dir = root
	out, err := git.Output()
	if err != nil {
		t.Skipf("no list of the files of the tree: %v", err)
	}
	var list []string
	for _, name := range strings.Fields(string(out)) {
		if info, err := os.Stat(filepath.Join(root, name)); err == nil && info.Mode().IsRegular() {
			list = append(list, name)
		}
	}
	return list
}

// copied copies the tree to another folder.
func copied(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "elsewhere")
	for _, name := range sources(t) {
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// Archives that are built in two folders are equal byte for byte, and their program reports the version.
func TestTwoBuilds(t *testing.T) {
	long(t)
	here := target{runtime.GOOS, runtime.GOARCH}
	var sums [2]string
	for i, from := range []string{root, copied(t)} {
		r := release{root: from, out: t.TempDir(), version: "v0.1.0", time: noon}
		if err := r.build([]target{here}); err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(filepath.Join(r.out, "checksums.txt"))
		if err != nil {
			t.Fatal(err)
		}
		sums[i] = string(data)
		if i == 0 && here.os == "linux" {
			script := "sha256sum -c checksums.txt && tar xzf *.tar.gz && ./reprise_*/reprise version"
			sh := exec.Command("sh", "-c", script)
			sh.Dir = r.out
			if out, err := sh.CombinedOutput(); err != nil || !strings.HasSuffix(string(out), "\nv0.1.0\n") {
				t.Errorf("%s: %v\n%s", script, err, out)
			}
		}
	}
	if sums[0] != sums[1] {
		t.Errorf("two builds have the checksums\n%s\n%s", sums[0], sums[1])
	}
}

// The program is built for every platform of a release.
func TestPlatforms(t *testing.T) {
	long(t)
	r := release{root: root, out: t.TempDir(), version: "v0.1.0", time: noon}
	shared, err := r.shared()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range all {
		program, err := r.compile(p)
		if err != nil {
			t.Errorf("%s: %v", p, err)
			continue
		}
		name, data, err := r.archive(p, program, shared)
		if err != nil {
			t.Errorf("%s: %v", p, err)
			continue
		}
		t.Logf("%s: %d bytes", name, len(data))
		if is, err := platform(program); err != nil || is != p {
			t.Errorf("%s: the program is for %s, %v", p, is, err)
		}
		if p.os == "windows" {
			if archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data))); err != nil || len(archive.File) < len(shared) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// platform returns what a program was built for.
func platform(program []byte) (t target, err error) {
	info, err := buildinfo.Read(bytes.NewReader(program))
	if err != nil {
		return target{}, err
	}
	for _, s := range info.Settings {
		switch s.Key {
		case "GOOS":
			t.os = s.Value
		case "GOARCH":
			t.arch = s.Value
		}
	}
	return t, nil
}

const (
	modulePath = "github.com/reprise-dev/reprise"
	tag        = "v0.1.0"
)

// The module of the tree can be installed with go install, and the program reports its version.
// The go command refuses a module with too large or wrongly named files.
func TestInstall(t *testing.T) {
	long(t)
	proxy, goBin, cache := t.TempDir(), t.TempDir(), t.TempDir()
	serveModule(t, filepath.Join(proxy, modulePath, "@v"))
	known, err := exec.Command("go", "env", "GOMODCACHE", "GOPROXY").Output()
	if err != nil {
		t.Fatal(err)
	}
	downloaded, others, _ := strings.Cut(strings.TrimSpace(string(known)), "\n")
	install := exec.Command("go", "install", modulePath+"/cmd/reprise@"+tag)
	install.Dir = t.TempDir()
	// -trimpath takes what is compiled from the cache, and changes nothing that the program reports.
	install.Env = append(os.Environ(), "GOPROXY="+strings.Join([]string{"file://" + proxy, "file://" + filepath.Join(downloaded, "cache", "download"), others}, ","),
		"GOMODCACHE="+cache, "GOBIN="+goBin, "GOSUMDB=off", "GOFLAGS=-trimpath -modcacherw", "CGO_ENABLED=0", "GOWORK=off")
	if out, err := install.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(filepath.Join(goBin, target{os: runtime.GOOS}.program()), "version").CombinedOutput()
	if err != nil || strings.TrimSpace(string(out)) != tag {
		t.Errorf("the program is %s, %v", out, err)
	}
}

// serveModule writes the tree to a folder in the layout of a module proxy.
func serveModule(t *testing.T, dir string) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	files := sources(t)
	var nested []string
	for _, name := range files {
		if folder, ok := strings.CutSuffix(name, "/go.mod"); ok {
			nested = append(nested, folder+"/")
		}
	}
	var zipFile bytes.Buffer
	archive := zip.NewWriter(&zipFile)
	for _, name := range files {
		if hasPrefix(name, nested) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		w, err := archive.Create(fmt.Sprintf("%s@%s/%s", modulePath, tag, name))
		if err == nil {
			_, err = w.Write(data)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	info, err := json.Marshal(map[string]any{"Version": tag, "Time": noon})
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"list": []byte(tag + "\n"), tag + ".zip": zipFile.Bytes(), tag + ".mod": mod, tag + ".info": info} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("the module has %d bytes", zipFile.Len())
}

func hasPrefix(name string, prefixes []string) bool {
	for _, p := range prefixes {
		if strings.HasPrefix(name, p) {
			return true
		}
	}
	return false
}
