package blocks

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// Stream is the folder of a stream.
type Stream struct {
	Account string
	Name    string
	Dir     string
}

// The server's names.
const (
	storeFolder   = "jetstream"
	streamsFolder = "streams"
	blockFolder   = "msgs"
	purgedFolder  = "__new_msgs__" // becomes msgs at the end of a purge
	blockSuffix   = ".blk"
	keySuffix     = ".key"
	indexFile     = "index.db"
	metaFile      = "meta.inf"
	metaSumFile   = "meta.sum"
	metaKeyFile   = "meta.key"
)

// Streams returns the streams below an embedded server's store folder, sorted by account
// and name. Like the server it passes over folders whose names begin with a dot: their
// deletion was interrupted. One that has blocks and no meta.inf is among them, though the
// server leaves it out, and empties it when the stream is made again. A store folder that
// holds nothing yet has no streams.
func Streams(dir string) ([]Stream, error) {
	if _, err := os.ReadDir(filepath.Join(dir, storeFolder)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the streams in %s: %w", dir, err)
	}
	folders, err := filepath.Glob(filepath.Join(escape(dir), storeFolder, "*", streamsFolder, "*"))
	if err != nil {
		return nil, fmt.Errorf("list the streams in %s: %w", dir, err)
	}
	var out []Stream
	for _, folder := range folders {
		s := Stream{filepath.Base(filepath.Dir(filepath.Dir(folder))), filepath.Base(folder), folder}
		if strings.HasPrefix(s.Name, ".") {
			continue
		}
		files, err := blockFiles(filepath.Join(folder, blockFolder))
		if _, unset := os.Stat(filepath.Join(folder, metaFile)); unset == nil || err == nil && len(files) > 0 {
			out = append(out, s)
		}
	}
	return out, nil
}

// escape makes a path a pattern that matches nothing else.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// file is a block file.
type file struct {
	number uint32
	path   string
	size   int64
}

// folder returns the folder whose blocks the server will read: that of an interrupted
// purge, if the purge had reached the point from which the server completes it.
func (s Stream) folder() (string, error) {
	purged := filepath.Join(s.Dir, purgedFolder)
	files, err := blockFiles(purged)
	if err != nil {
		return "", err
	}
	if len(files) > 0 {
		return purged, nil
	}
	return filepath.Join(s.Dir, blockFolder), nil
}

// blockFiles returns the block files of a folder in the order of their numbers, none if
// there is no such folder.
func blockFiles(folder string) ([]file, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list the blocks in %s: %w", folder, err)
	}
	var out []file
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), blockSuffix)
		n, err := strconv.ParseUint(name, 10, 32)
		if !ok || err != nil || strconv.FormatUint(n, 10) != name {
			continue
		}
		info, err := e.Info()
		if err != nil {
			return nil, fmt.Errorf("list the blocks in %s: %w", folder, err)
		}
		out = append(out, file{uint32(n), filepath.Join(folder, e.Name()), info.Size()})
	}
	slices.SortFunc(out, func(a, b file) int { return int(int64(a.number) - int64(b.number)) })
	return out, nil
}

// read reads a block file into buf, which grows if need be.
func (f file) read(buf []byte) ([]byte, error) {
	r, err := os.Open(f.path)
	if err != nil {
		return buf, fmt.Errorf("read block: %w", err)
	}
	defer r.Close()
	buf = slices.Grow(buf[:0], int(f.size))[:f.size]
	if _, err := io.ReadFull(r, buf); err != nil {
		return buf, fmt.Errorf("read block %s: %w", f.path, err)
	}
	return buf, nil
}

// end returns the last eight bytes of a block file, zeros if it has fewer.
func (f file) end() (sum [sumSize]byte, err error) {
	if f.size < sumSize {
		return sum, nil
	}
	r, err := os.Open(f.path)
	if err != nil {
		return sum, fmt.Errorf("read block: %w", err)
	}
	defer r.Close()
	if _, err := r.ReadAt(sum[:], f.size-sumSize); err != nil {
		return sum, fmt.Errorf("read block %s: %w", f.path, err)
	}
	return sum, nil
}

// encrypted reports whether the server encrypts the stream.
func (s Stream) encrypted(folder string) bool {
	_, err := os.Stat(filepath.Join(s.Dir, metaKeyFile))
	keys, _ := filepath.Glob(filepath.Join(escape(folder), "*"+keySuffix))
	return err == nil || len(keys) > 0
}

// limits are the settings of a stream by which the server removes messages without
// leaving a tombstone.
type limits struct {
	Retention string `json:"retention"`
	Messages  int64  `json:"max_msgs"`
	Bytes     int64  `json:"max_bytes"`
	Age       int64  `json:"max_age"`
	Each      int64  `json:"max_msgs_per_subject"`
	TTL       bool   `json:"allow_msg_ttl"`
}

// any reports whether one of them is set.
func (l limits) any() bool {
	return l.Messages > 0 || l.Bytes > 0 || l.Age > 0 || l.Each > 0 || l.TTL || l.Retention != "" && l.Retention != "limits"
}

// settings reads the stream's limits. It fails where the server would leave out the
// stream.
func (s Stream) settings() (l limits, err error) {
	meta, err := os.ReadFile(filepath.Join(s.Dir, metaFile))
	if err != nil {
		return l, err
	}
	sum, err := os.ReadFile(filepath.Join(s.Dir, metaSumFile))
	if err != nil {
		return l, err
	}
	d := newDigest(s.Name)
	_, _ = d.Write(meta)
	if hex.EncodeToString(d.Sum(nil)) != string(sum) {
		return l, fmt.Errorf("the checksum in %s does not match", metaSumFile)
	}
	if s.encrypted(filepath.Join(s.Dir, blockFolder)) {
		return l, nil
	}
	return l, json.Unmarshal(meta, &l)
}
