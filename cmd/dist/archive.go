package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"io"
	"time"
)

// entry is a file of an archive.
type entry struct {
	name string // with slashes
	data []byte
	// program reports whether the file is executable.
	program bool
}

// mode is the permission bits of the file.
func (e entry) mode() int64 {
	if e.program {
		return 0o755
	}
	return 0o644
}

// tarGz returns entries as a compressed tar archive. The time of each is when; users, groups and
// the name of the archive are not recorded.
func tarGz(entries []entry, when time.Time) ([]byte, error) {
	var out bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		return nil, err
	}
	archive := tar.NewWriter(compressed)
	for _, e := range entries {
		header := &tar.Header{Typeflag: tar.TypeReg, Name: e.name, Mode: e.mode(), Size: int64(len(e.data)), ModTime: when, Format: tar.FormatUSTAR}
		if err := archive.WriteHeader(header); err != nil {
			return nil, err
		}
		if _, err := archive.Write(e.data); err != nil {
			return nil, err
		}
	}
	return closed(&out, archive, compressed)
}

// zipped returns entries as a zip archive. The time of each is when.
func zipped(entries []entry, when time.Time) ([]byte, error) {
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	for _, e := range entries {
		header := &zip.FileHeader{Name: e.name, Method: zip.Deflate, Modified: when.UTC()}
		header.SetMode(0o644)
		if e.program {
			header.SetMode(0o755)
		}
		w, err := archive.CreateHeader(header)
		if err != nil {
			return nil, err
		}
		if _, err := w.Write(e.data); err != nil {
			return nil, err
		}
	}
	return closed(&out, archive)
}

// closed closes the writers, inner ones first, and returns what they wrote to out.
func closed(out *bytes.Buffer, writers ...io.Closer) ([]byte, error) {
	for _, w := range writers {
		if err := w.Close(); err != nil {
			return nil, err
		}
	}
	return out.Bytes(), nil
}
