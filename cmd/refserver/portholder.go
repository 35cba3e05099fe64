package main

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
)

// portHolder describes the process that listens on the port of a TCP address, such as "nginx (process
// 123)". Without one that this user may see it returns "another program". It reads the tables of
// proc(5), so it knows processes on Linux only.
func portHolder(addr string) string {
	const unknown = "another program"
	tcp, err := net.ResolveTCPAddr("tcp", addr)
	if err != nil {
		return unknown
	}
	sockets := make(map[string]bool) // as links of /proc/PID/fd name them
	for _, table := range []string{"/proc/net/tcp", "/proc/net/tcp6"} {
		text, _ := os.ReadFile(table)
		for line := range strings.Lines(string(text)) {
			// Slot, local address, remote address, state (0A: listening), …; field 9 is the inode.
			f := strings.Fields(line)
			if len(f) > 9 && f[3] == "0A" && strings.HasSuffix(f[1], fmt.Sprintf(":%04X", tcp.Port)) {
				sockets["socket:["+f[9]+"]"] = true
			}
		}
	}
	if len(sockets) == 0 {
		return unknown
	}
	files, _ := filepath.Glob("/proc/[0-9]*/fd/*")
	for _, file := range files {
		if to, err := os.Readlink(file); err != nil || !sockets[to] {
			continue
		}
		process := filepath.Dir(filepath.Dir(file))
		if name, err := os.ReadFile(filepath.Join(process, "comm")); err == nil {
			return fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), filepath.Base(process))
		}
	}
	return unknown
}
