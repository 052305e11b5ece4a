package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"slices"
	"testing"
	"time"
)

var (
	noon    = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)
	entries = []entry{{name: "r/LICENSE", data: []byte("terms")}, {name: "r/reprise", data: bytes.Repeat([]byte("program "), 1000), program: true}}
)

// Two archives of the same entries have the same bytes, also if the local zone is another.
func TestArchivesAreEqual(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func([]entry, time.Time) ([]byte, error){"tar.gz": tarGz, "zip": zipped} {
		first, err := write(entries, noon)
		if err != nil {
			t.Fatal(err)
		}
		second, err := write(entries, noon.In(time.FixedZone("", 3600)))
		if err != nil || !bytes.Equal(first, second) {
			t.Errorf("%s: the second archive differs, %v", name, err)
		}
	}
}

func TestTarGz(t *testing.T) {
	t.Parallel()
	data, err := tarGz(entries, noon)
	if err != nil {
		t.Fatal(err)
	}
	plain, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	archive := tar.NewReader(plain)
	for _, want := range entries {
		h, err := archive.Next()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(archive)
		if err != nil || h.Name != want.name || h.Mode != want.mode() || !h.ModTime.Equal(noon) || h.Uid != 0 || h.Uname != "" || !bytes.Equal(got, want.data) {
			t.Errorf("%+v holds %d bytes, %v", h, len(got), err)
		}
	}
	if _, err := archive.Next(); err != io.EOF {
		t.Errorf("behind the last file: %v", err)
	}
}

func TestZip(t *testing.T) {
	t.Parallel()
	data, err := zipped(entries, noon)
	if err != nil {
		t.Fatal(err)
	}
	archive, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil || len(archive.File) != len(entries) {
		t.Fatalf("%v, %d files", err, len(archive.File))
	}
	for i, f := range archive.File {
		r, err := f.Open()
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(r)
		if err != nil || f.Name != entries[i].name || int64(f.Mode().Perm()) != entries[i].mode() || !f.Modified.Equal(noon) || !bytes.Equal(got, entries[i].data) {
			t.Errorf("%+v holds %d bytes, %v", f.FileHeader, len(got), err)
		}
	}
}

func TestTargets(t *testing.T) {
	t.Parallel()
	for list, want := range map[string][]target{"": all, "linux/arm64,linux/arm64": {{"linux", "arm64"}}, "windows/amd64,darwin/arm64": {{"windows", "amd64"}, {"darwin", "arm64"}}} {
		if got, err := parseTargets(list); err != nil || !slices.Equal(got, want) {
			t.Errorf("%q: %v, %v", list, got, err)
		}
	}
	for _, list := range []string{"plan9/amd64", "linux", "linux/amd64,"} {
		if got, err := parseTargets(list); err == nil {
			t.Errorf("%q: %v", list, got)
		}
	}
}

func TestSourceTime(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1795867200")
	if got, err := sourceTime(t.TempDir()); err != nil || !got.Equal(noon) {
		t.Errorf("%v, %v", got, err)
	}
	t.Setenv("SOURCE_DATE_EPOCH", "noon")
	if got, err := sourceTime(t.TempDir()); err == nil {
		t.Errorf("%v", got)
	}
}

func TestVersionIsNeeded(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"--version", "../v1"}, {"--version", "v1", "--only", "plan9/mips"}, {"--nothing"}} {
		if err := run(args); err == nil {
			t.Errorf("%q builds a release", args)
		}
	}
}
