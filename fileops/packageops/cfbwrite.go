package packageops

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf16"
)

// A cfbNode is a stream or a storage to be written into a compound file.
type cfbNode struct {
	name     string
	size     int64                   // of a stream
	content  func(w io.Writer) error // writes that many bytes; nil for a storage
	children []*cfbNode              // of a storage

	start       uint32
	left, right uint32 // numbers of entries
	child, self uint32
	red         bool
}

// maxCFBStream is the size in bytes of the largest stream in a file with sectors
// of 512 bytes ([MS-CFB] 2.6.1).
const maxCFBStream = 1 << 31

var errCFBSize = errors.New("packageops: too large for a compound file")

// writeCompound writes a compound file of version 3 in one go: the large streams
// first, then the small ones, each in the order of the nodes. The contents of
// small ones are therefore asked for last.
func writeCompound(w io.Writer, nodes []*cfbNode) error {
	root := &cfbNode{name: "Root Entry", children: nodes, left: cfbNone, right: cfbNone}
	entries := []*cfbNode{root}
	arrange(root, &entries)

	const sector = 512
	sectors := func(n int64) uint32 { return uint32((n + sector - 1) / sector) }
	var fat, miniFAT []uint32
	chain := func(table []uint32, n uint32) []uint32 {
		for i := range n {
			table = append(table, uint32(len(table))+1)
			if i == n-1 {
				table[len(table)-1] = cfbEnd
			}
		}
		return table
	}
	var large, small []*cfbNode
	for _, e := range streams(nodes, nil) {
		switch {
		case e.size > maxCFBStream:
			return errCFBSize
		case e.size >= cfbMiniCutoff:
			large = append(large, e)
			e.start = uint32(len(fat))
			fat = chain(fat, sectors(e.size))
		default:
			small = append(small, e)
			e.start = uint32(len(miniFAT))
			miniFAT = chain(miniFAT, uint32((e.size+cfbMiniSize-1)/cfbMiniSize))
		}
	}
	root.size = int64(len(miniFAT)) * cfbMiniSize
	root.start = uint32(len(fat))
	fat = chain(fat, sectors(root.size))
	miniStart := uint32(len(fat))
	fat = chain(fat, sectors(int64(len(miniFAT))*4))
	dirStart := uint32(len(fat))
	fat = chain(fat, sectors(int64(len(entries))*128))

	// The table describes its own sectors too, and those that list them.
	var nFAT, nDIF uint32
	for {
		f := sectors(int64(uint32(len(fat))+nFAT+nDIF) * 4)
		d := uint32(0)
		if f > 109 {
			d = (f - 109 + 126) / 127
		}
		if f == nFAT && d == nDIF {
			break
		}
		nFAT, nDIF = f, d
	}
	fatStart := uint32(len(fat))
	for range nFAT {
		fat = append(fat, cfbFATSector)
	}
	difStart := uint32(len(fat))
	for range nDIF {
		fat = append(fat, cfbDIFSector)
	}

	le := binary.LittleEndian
	head := make([]byte, 76, sector)
	copy(head, cfbMagic)
	le.PutUint16(head[24:], 0x3e) // minor version
	le.PutUint16(head[26:], 3)
	le.PutUint16(head[28:], 0xfffe) // byte order
	le.PutUint16(head[30:], 9)
	le.PutUint16(head[32:], 6)
	le.PutUint32(head[44:], nFAT)
	le.PutUint32(head[48:], dirStart)
	le.PutUint32(head[56:], cfbMiniCutoff)
	le.PutUint32(head[60:], cfbEnd)
	if len(miniFAT) > 0 {
		le.PutUint32(head[60:], miniStart)
		le.PutUint32(head[64:], sectors(int64(len(miniFAT))*4))
	} else {
		root.start = cfbEnd
	}
	le.PutUint32(head[68:], cfbEnd)
	if nDIF > 0 {
		le.PutUint32(head[68:], difStart)
	}
	le.PutUint32(head[72:], nDIF)
	for i := range uint32(109) {
		head = le.AppendUint32(head, numberOr(i < nFAT, fatStart+i, cfbFree))
	}
	if _, err := w.Write(head); err != nil {
		return err
	}
	for _, e := range large {
		if err := e.write(w, sector); err != nil {
			return err
		}
	}
	var rest bytes.Buffer
	for _, e := range small {
		if err := e.write(&rest, cfbMiniSize); err != nil {
			return err
		}
	}
	pad(&rest, sector, 0)
	for _, n := range miniFAT {
		rest.Write(le.AppendUint32(nil, n))
	}
	pad(&rest, sector, 0xff)
	for _, e := range entries {
		rest.Write(e.entry(e == root))
	}
	for rest.Len()%sector != 0 {
		rest.Write((&cfbNode{left: cfbNone, right: cfbNone, child: cfbNone}).entry(false))
	}
	for _, n := range fat {
		rest.Write(le.AppendUint32(nil, n))
	}
	pad(&rest, sector, 0xff)
	for i := range nDIF {
		for k := range uint32(127) {
			n := 109 + i*127 + k
			rest.Write(le.AppendUint32(nil, numberOr(n < nFAT, fatStart+n, cfbFree)))
		}
		rest.Write(le.AppendUint32(nil, numberOr(i < nDIF-1, difStart+i+1, cfbEnd)))
	}
	_, err := rest.WriteTo(w)
	return err
}

// streams returns the streams among nodes and below them, in order.
func streams(nodes, out []*cfbNode) []*cfbNode {
	for _, n := range nodes {
		if n.content == nil {
			out = streams(n.children, out)
		} else {
			out = append(out, n)
		}
	}
	return out
}

func numberOr(ok bool, n, other uint32) uint32 {
	if ok {
		return n
	}
	return other
}

func pad(b *bytes.Buffer, unit int, with byte) {
	for b.Len()%unit != 0 {
		b.WriteByte(with)
	}
}

// write writes the content of a stream and fills its last sector.
func (e *cfbNode) write(w io.Writer, unit int64) error {
	c := &counter{w: w}
	if err := e.content(c); err != nil {
		return err
	}
	if c.n != e.size {
		return errors.New("packageops: a stream has another size than announced")
	}
	if r := c.n % unit; r > 0 {
		_, err := w.Write(make([]byte, unit-r))
		return err
	}
	return nil
}

type counter struct {
	w io.Writer
	n int64
}

func (c *counter) Write(p []byte) (int, error) {
	n, err := c.w.Write(p)
	c.n += int64(n)
	return n, err
}

// arrange gives the entries below s numbers and makes a red-black tree of the
// children of each storage: in the order of the length of their names, then of
// the names in capitals ([MS-CFB] 2.6.4). In a tree that is halved at each node
// only the lowest level, if it is not full, is red.
func arrange(s *cfbNode, entries *[]*cfbNode) {
	s.child = cfbNone
	kids := slices.SortedFunc(slices.Values(s.children), func(a, b *cfbNode) int {
		return cmp.Or(cmp.Compare(len(a.name), len(b.name)), cmp.Compare(strings.ToUpper(a.name), strings.ToUpper(b.name)))
	})
	for _, k := range kids {
		k.left, k.right, k.child = cfbNone, cfbNone, cfbNone
		k.self = uint32(len(*entries))
		*entries = append(*entries, k)
	}
	levels := 0
	for n := len(kids) + 1; n > 1; n /= 2 {
		levels++
	}
	var tree func(kids []*cfbNode, depth int) uint32
	tree = func(kids []*cfbNode, depth int) uint32 {
		if len(kids) == 0 {
			return cfbNone
		}
		mid := (len(kids) - 1) / 2
		k := kids[mid]
		k.red = depth >= levels
		k.left, k.right = tree(kids[:mid], depth+1), tree(kids[mid+1:], depth+1)
		return k.self
	}
	s.child = tree(kids, 0)
	for _, k := range kids {
		if k.content == nil {
			arrange(k, entries)
		}
	}
}

// entry returns an entry of the directory ([MS-CFB] 2.6.1). One without a name
// is unused.
func (e *cfbNode) entry(root bool) []byte {
	le := binary.LittleEndian
	b := make([]byte, 128)
	if e.name != "" {
		u := utf16.Encode([]rune(e.name))
		for i, c := range u {
			le.PutUint16(b[2*i:], c)
		}
		le.PutUint16(b[64:], uint16(2*len(u)+2))
		switch {
		case root:
			b[66] = 5
		case e.content == nil:
			b[66] = 1
		default:
			b[66] = 2
		}
		if !e.red {
			b[67] = 1
		}
	}
	le.PutUint32(b[68:], e.left)
	le.PutUint32(b[72:], e.right)
	le.PutUint32(b[76:], e.child)
	le.PutUint32(b[116:], e.start)
	le.PutUint64(b[120:], uint64(e.size))
	return b
}
