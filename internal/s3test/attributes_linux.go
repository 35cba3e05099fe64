package s3test

import "golang.org/x/sys/unix"

// hasAttributes reports whether files in dir can have extended attributes.
func hasAttributes(dir string) bool {
	return unix.Setxattr(dir, "user.s3test", []byte("x"), 0) == nil
}
