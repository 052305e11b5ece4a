package memory

import (
	"math"
	"testing"
	"testing/fstest"
)

func TestMachine(t *testing.T) {
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	meminfo := file("MemFree:  100 kB\nMemTotal:       8388608 kB\n")
	for name, c := range map[string]struct {
		root  fstest.MapFS
		limit int64
		want  int64
	}{
		"no Linux":    {fstest.MapFS{}, math.MaxInt64, unknown},
		"machine":     {fstest.MapFS{"proc/meminfo": meminfo}, math.MaxInt64, 8 << 30},
		"Go's limit":  {fstest.MapFS{"proc/meminfo": meminfo}, 1 << 30, 1 << 30},
		"container":   {fstest.MapFS{"proc/meminfo": meminfo, "sys/fs/cgroup/memory.max": file("536870912\n")}, math.MaxInt64, 512 << 20},
		"unlimited":   {fstest.MapFS{"proc/meminfo": meminfo, "sys/fs/cgroup/memory.max": file("max\n")}, math.MaxInt64, 8 << 30},
		"old limit":   {fstest.MapFS{"proc/meminfo": meminfo, "sys/fs/cgroup/memory/memory.limit_in_bytes": file("1073741824\n")}, math.MaxInt64, 1 << 30},
		"old, no end": {fstest.MapFS{"proc/meminfo": meminfo, "sys/fs/cgroup/memory/memory.limit_in_bytes": file("9223372036854771712\n")}, math.MaxInt64, 8 << 30},
		"service": {fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/system.slice/reprise.service\n"),
			"sys/fs/cgroup/system.slice/memory.max":                 file("2147483648\n"),
			"sys/fs/cgroup/system.slice/reprise.service/memory.max": file("max\n"),
		}, math.MaxInt64, 2 << 30},
		"throttled": {fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("0::/user.slice\n"),
			"sys/fs/cgroup/user.slice/memory.high": file("1073741824\n"),
		}, math.MaxInt64, 1 << 30},
		"old service": {fstest.MapFS{
			"proc/meminfo": meminfo, "proc/self/cgroup": file("3:cpu:/a\n2:hugetlb,memory:/system.slice/reprise.service\n"),
			"sys/fs/cgroup/memory/system.slice/memory.limit_in_bytes": file("2147483648\n"),
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes":            file("1024\n"),
		}, math.MaxInt64, 2 << 30},
	} {
		if got := machine(c.root, c.limit); got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}
