package archiveops

import (
	"context"
	"io"
	"reflect"
	"strconv"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// A content is an archive: the input, or what was made of it.
type content interface {
	Name() string
	Size() int64
	Format() format.Format
	Reader() *io.SectionReader
}

// A part is a content within a file.
type part struct {
	name       string
	r          io.ReaderAt
	from, size int64
}

func (p *part) Name() string              { return p.name }
func (p *part) Size() int64               { return p.size }
func (p *part) Format() format.Format     { return format.Parse(p.name) }
func (p *part) Reader() *io.SectionReader { return io.NewSectionReader(p.r, p.from, p.size) }

// reads returns the formats of inputs.
func (c *converter) reads() []format.Format {
	all := []format.Format{
		format.ZIP, format.SevenZip, format.RAR,
		format.TAR, format.TarGZ, format.TarBZ2, format.TarXZ, format.TarZst, format.TarLZ4, format.TarLZMA, format.TarLZ,
		format.GZ, format.BZ2, format.XZ, format.Zst, format.LZ4, format.LZMA, format.LZ, format.DEB,
	}
	if c.tar != nil {
		all = append(all, format.ISO, format.CAB, format.CPIO, format.AR, format.RPM, format.LZH)
	}
	return all
}

// hasPassword reports whether archives of a format can be encrypted.
func hasPassword(f format.Format) bool {
	return f == format.ZIP || f == format.SevenZip || f == format.RAR
}

// targets returns the formats of results for inputs of a format.
func (c *converter) targets(from format.Format) (out []string) {
	all := []format.Format{format.ZIP, format.TAR, format.TarGZ, format.TarZst}
	if c.tar != nil {
		all = append(all, format.SevenZip, format.TarXZ, format.TarBZ2)
	}
	for _, f := range all {
		if f != from {
			out = append(out, string(f))
		}
	}
	return out
}

// addFormat adds a format to the entry with the same parameters.
func addFormat(to []fileops.Accept, f format.Format, params fileops.Schema) []fileops.Accept {
	for i := range to {
		if reflect.DeepEqual(to[i].Params, params) {
			to[i].Formats = append(to[i].Formats, f)
			return to
		}
	}
	return append(to, fileops.Accept{Formats: []format.Format{f}, Params: params})
}

// name returns the name of the engine.
func (c *converter) name() string {
	if c.tar == nil {
		return engineName
	}
	return engineName + ", bsdtar " + c.tar.Version
}

// content returns the archive in the input of a job, in a format that this package reads
// itself. The caller must call release.
func (c *converter) content(ctx context.Context, job *fileops.Job) (in content, release func(), err error) {
	switch in := job.Input(); in.Format() {
	case format.DEB:
		p, err := installed(in)
		return p, func() {}, err
	case format.ISO, format.CAB, format.CPIO, format.AR, format.RPM, format.LZH:
		return c.tar.read(ctx, job, c.limits, nil)
	default:
		return in, func() {}, nil
	}
}

// installed returns the files that a Debian package installs: its member data.tar (deb(5)).
// A member of an ar archive has a header of 60 bytes, with the name at 0 and the size in
// decimal digits at 48, and starts at an even offset.
func installed(in *fileops.File) (content, error) {
	const head = 60
	var b [head]byte
	for at := int64(len("!<arch>\n")); ; {
		if _, err := in.Reader().ReadAt(b[:], at); err != nil {
			return nil, fileops.Fail(fileops.ErrCorruptInput, err, "the package is damaged or incomplete: its files are missing")
		}
		at += head
		size, err := strconv.ParseInt(strings.TrimSpace(string(b[48:58])), 10, 64)
		if err != nil || string(b[58:]) != "`\n" || size < 0 || size > in.Size()-at {
			return nil, fileops.Fail(fileops.ErrCorruptInput, err, "the package is damaged or incomplete")
		}
		name := strings.TrimRight(string(b[:16]), " /")
		if strings.HasPrefix(name, "data.tar") {
			p := &part{name: name, r: in.Reader(), from: at, size: size}
			switch p.Format() {
			case format.TAR, format.TarGZ, format.TarXZ, format.TarZst, format.TarBZ2, format.TarLZMA:
				return p, nil
			}
			return nil, fileops.Fail(fileops.ErrUnsupportedInput, nil, "the files of the package are compressed by an unknown method")
		}
		at += size + size%2
	}
}
