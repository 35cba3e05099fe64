package archiveops

import "strings"

// What a path in an archive has at most. The formats allow more, but no system
// could unpack it, and it bounds what a tree holds in memory.
const (
	maxPath  = 1000 // bytes
	maxDepth = 32   // folders
)

// A tree makes the paths of an archive safe and unique: relative, without "..",
// without what [EntryNames] removes from names, and different from all others
// even where case does not count. A folder has one path however its files spell
// it. The zero value is an empty tree.
type tree struct {
	names namer
	sub   map[string]*tree // folders, by the name they were asked for, folded
	name  string           // in the folder above
	made  bool             // was returned by folder
}

// file returns the path for a file.
func (t *tree) file(path string) string {
	parts := safeParts(path)
	if len(parts) == 0 {
		parts = []string{safeName("")}
	}
	last := len(parts) - 1
	dir, in := t.walk(parts[:last])
	return dir + in.names.unique(parts[last])
}

// folder returns the path for a folder, with a slash at its end, and false if
// it was returned already or is the root.
func (t *tree) folder(path string) (string, bool) {
	dir, in := t.walk(safeParts(path))
	first := in != t && !in.made
	in.made = true
	return dir, first
}

func (t *tree) walk(parts []string) (path string, in *tree) {
	var b strings.Builder
	in = t
	for _, name := range parts {
		key := fold(name)
		next := in.sub[key]
		if next == nil {
			if in.sub == nil {
				in.sub = make(map[string]*tree)
			}
			next = &tree{name: in.names.unique(name)}
			in.sub[key] = next
		}
		in = next
		b.WriteString(in.name)
		b.WriteByte('/')
	}
	return b.String(), in
}

// safeParts cuts a path into safe names. What leads out of the archive is
// dropped, and of a path that is too long or too deep the folders in the middle.
func safeParts(path string) []string {
	var parts []string
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == "." || part == ".." || len(parts) == 0 && isDrive(part) {
			continue
		}
		if len(parts) <= maxDepth { // the last one replaces the one before
			parts = append(parts, "")
		}
		parts[len(parts)-1] = part
	}
	size := 0
	for i, part := range parts {
		parts[i] = safeName(part)
		size += len(parts[i]) + 1
	}
	for n := len(parts); size > maxPath; n = len(parts) {
		size -= len(parts[n-2]) + 1
		parts = append(parts[:n-2], parts[n-1])
	}
	return parts
}

// isDrive tells whether a name is the letter of a drive.
func isDrive(name string) bool {
	return len(name) == 2 && name[1] == ':' && ('a' <= name[0]|0x20 && name[0]|0x20 <= 'z')
}
