package archiveops

import "strings"

// Limits of paths in an archive. The formats allow longer paths, but systems cannot
// unpack them. The limits also bound the memory of a tree.
const (
	maxPath  = 1000 // bytes
	maxDepth = 32   // folders
)

// A tree makes the paths of an archive safe and unique. Its paths are relative and
// consist of names that [EntryNames] allows. They differ in more than case. All
// spellings of a folder get the same path. The zero value is an empty tree.
type tree struct {
	names namer
	sub   map[string]*tree // subfolders, by their folded original name
	name  string           // name in the parent folder
	made  bool             // folder has returned its path
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

// folder returns the path of a folder with a trailing slash. It returns false
// for the root, and for a folder that it has already returned.
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

// safeParts splits a path into safe names. It drops parts that lead out of the
// archive. If the path is too long or deep, it drops folders in the middle.
func safeParts(path string) []string {
	var parts []string
	for part := range strings.FieldsFuncSeq(path, func(r rune) bool { return r == '/' || r == '\\' }) {
		if part == "." || part == ".." || len(parts) == 0 && isDrive(part) {
			continue
		}
		if len(parts) <= maxDepth { // else the part replaces its predecessor
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

// isDrive reports whether a name is a drive letter with a colon.
func isDrive(name string) bool {
	return len(name) == 2 && name[1] == ':' && ('a' <= name[0]|0x20 && name[0]|0x20 <= 'z')
}
