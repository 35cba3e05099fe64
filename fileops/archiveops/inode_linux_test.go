package archiveops_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// bsdtar leaves out entries that have the device and inode numbers of its output.
func TestInodeOfTheResult(t *testing.T) {
	t.Parallel()
	probe, err := os.Create(filepath.Join(t.TempDir(), "probe"))
	systest.NoError(t, err)
	defer probe.Close()
	var st unix.Stat_t
	systest.NoError(t, unix.Fstat(int(probe.Fd()), &st))
	var b bytes.Buffer
	add := func(name string, inode uint32, mode uint32, content string) {
		fmt.Fprintf(&b, "070701%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%08x%s\x00", inode, mode, 0, 0, 1, 0,
			len(content), unix.Major(uint64(st.Dev)), unix.Minor(uint64(st.Dev)), 0, 0, len(name)+1, 0, name)
		b.Write(make([]byte, -b.Len()&3))
		b.WriteString(content)
		b.Write(make([]byte, -b.Len()&3))
	}
	const files = 4000 // new files get numbers close to each other
	for i := range files {
		add(fmt.Sprintf("f%d", i), uint32(st.Ino)+uint32(i)-files/2, unix.S_IFREG|0o644, "content")
	}
	add("TRAILER!!!", 0, 0, "")
	got := unpacked(t, mustRun(t, action(t, "convert"), toZIP(), fileops.Bytes("in.cpio", b.Bytes())))
	if len(got) != files {
		t.Errorf("%d of %d files", len(got), files)
	}
}
