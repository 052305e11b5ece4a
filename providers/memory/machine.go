package memory

import (
	"io/fs"
	"math"
	"os"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
)

// unknown is the memory that a machine is taken to have if its size cannot be read, in bytes.
const unknown = 4 << 30

// Default returns the bound of a node that is not given one: a quarter of the memory that
// this process may use, in bytes. That is the machine's, or what its control group or
// GOMEMLIMIT allows if that is less. Systems other than Linux are taken to have 4 GiB.
func Default() int64 {
	return machine(os.DirFS("/"), debug.SetMemoryLimit(-1)) / 4
}

// Machine returns the memory of the machine, or what the control group of this process
// allows if that is less, in bytes. Systems other than Linux are taken to have 4 GiB.
func Machine() int64 { return machine(os.DirFS("/"), math.MaxInt64) }

// machine returns the smallest of the limits in the files of a Linux system and of Go's own.
func machine(root fs.FS, limit int64) int64 {
	least := int64(math.MaxInt64)
	for _, file := range groupLimits(root) {
		if n, err := strconv.ParseInt(strings.TrimSpace(read(root, file)), 10, 64); err == nil && n > 0 {
			least = min(least, n)
		}
	}
	for line := range strings.Lines(read(root, "proc/meminfo")) {
		if rest, ok := strings.CutPrefix(line, "MemTotal:"); ok {
			if kib, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64); err == nil {
				least = min(least, kib<<10)
			}
		}
	}
	if least = min(least, limit); least == math.MaxInt64 {
		return unknown
	}
	return least
}

// groupLimits returns the files that may limit the memory of this process: those of its
// control group and of the groups above it, in both versions of control groups.
func groupLimits(root fs.FS) (files []string) {
	const groups, groups1 = "sys/fs/cgroup", "sys/fs/cgroup/memory"
	add := func(group string) {
		files = append(files, groups+group+"/memory.max", groups+group+"/memory.high", groups1+group+"/memory.limit_in_bytes")
	}
	for line := range strings.Lines(read(root, "proc/self/cgroup")) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(parts) != 3 || parts[0] != "0" && !slices.Contains(strings.Split(parts[1], ","), "memory") {
			continue
		}
		for group := path.Clean("/" + parts[2]); group != "/"; group = path.Dir(group) {
			add(group)
		}
	}
	add("")
	return files
}

// read returns the text of a file, or nothing if it cannot be read.
func read(root fs.FS, file string) string {
	text, err := fs.ReadFile(root, file)
	if err != nil {
		return ""
	}
	return string(text)
}
