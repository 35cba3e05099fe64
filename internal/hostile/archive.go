package hostile

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/flate"
	"compress/gzip"
	"io"
	"io/fs"
	"strings"
	"time"
)

// zipLinks returns an archive of symbolic links, each with a file below it.
func zipLinks(to ...string) string {
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i, target := range to {
		name := string(rune('a' + i))
		h := &zip.FileHeader{Name: name, Method: zip.Store}
		h.SetMode(0o777 | fs.ModeSymlink)
		w, err := z.CreateHeader(h)
		if err == nil {
			_, err = w.Write([]byte(target))
		}
		if err == nil {
			w, err = z.Create(name + "/below.txt")
		}
		if err == nil {
			_, err = w.Write([]byte("below"))
		}
		if err != nil {
			panic(err) // impossible: writes only to memory
		}
	}
	if err := z.Close(); err != nil {
		panic(err)
	}
	return b.String()
}

// hostileTar returns an archive with all kinds of names or, if links is set,
// with links, devices and paths through links.
func hostileTar(t target, links bool) string {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	add := func(h tar.Header) {
		content := ""
		if h.Typeflag == tar.TypeReg {
			content, h.Size = "text\n", 5
		}
		h.Mode, h.ModTime = 0o644, time.Unix(1e9, 0)
		if w.WriteHeader(&h) == nil { // some names fit into no header
			w.Write([]byte(content))
		}
	}
	if !links {
		for _, name := range append(Names(), t.path, "../../../../../../../../.."+t.path) {
			add(tar.Header{Name: name, Typeflag: tar.TypeReg})
		}
	} else {
		for i, to := range []string{t.path, "../../../../../../../../.." + t.path, "/", "..", "/proc/self/environ"} {
			name := string(rune('a' + i))
			add(tar.Header{Name: name, Typeflag: tar.TypeSymlink, Linkname: to})
			add(tar.Header{Name: name + "/below.txt", Typeflag: tar.TypeReg})
			add(tar.Header{Name: name, Typeflag: tar.TypeReg})
			add(tar.Header{Name: name + "-hard", Typeflag: tar.TypeLink, Linkname: to})
			add(tar.Header{Name: name + "-hard", Typeflag: tar.TypeReg})
		}
		add(tar.Header{Name: "memory", Typeflag: tar.TypeChar, Devmajor: 1, Devminor: 1})
		add(tar.Header{Name: "disk", Typeflag: tar.TypeBlock, Devmajor: 8})
		add(tar.Header{Name: "pipe", Typeflag: tar.TypeFifo})
	}
	if err := w.Close(); err != nil {
		panic(err) // impossible: writes only to memory
	}
	return b.String()
}

func gzipped(s string) string {
	return packed(s, func(w io.Writer) (io.WriteCloser, error) { return gzip.NewWriterLevel(w, gzip.BestCompression) })
}

func deflated(s string) string {
	return packed(s, func(w io.Writer) (io.WriteCloser, error) { return flate.NewWriter(w, flate.BestCompression) })
}

// packed returns s as a compressor writes it.
func packed(s string, to func(io.Writer) (io.WriteCloser, error)) string {
	var b bytes.Buffer
	w, err := to(&b)
	if err == nil {
		_, err = io.WriteString(w, s)
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		panic(err) // impossible: writes only to memory
	}
	return b.String()
}

// zeros returns n zero bytes.
func zeros(n int) string { return strings.Repeat("\x00", n) }
