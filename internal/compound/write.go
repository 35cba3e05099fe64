package compound

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

// A Node is a stream or a storage to write into a compound file. It can be
// written only once.
type Node struct {
	Name     string
	Size     int64                   // of a stream
	Content  func(w io.Writer) error // writes Size bytes; nil for a storage
	Children []*Node                 // of a storage

	start       uint32
	left, right uint32 // numbers of entries
	child, self uint32
	red         bool
}

// MaxStream is the largest stream in bytes that [Write] accepts: the maximum for
// files with sectors of 512 bytes ([MS-CFB] 2.6.1).
const MaxStream = 1 << 31

var errSize = errors.New("compound: too large for a compound file")

// Write writes a compound file of version 3 with nodes in its root storage. It
// writes sequentially: first streams of 4 KiB or more, then smaller streams, each in
// the order of the nodes. So it calls Content of small streams last.
func Write(w io.Writer, nodes []*Node) error {
	root := &Node{Name: "Root Entry", Children: nodes, left: none, right: none}
	entries := []*Node{root}
	arrange(root, &entries)

	const sector = 512
	sectors := func(n int64) uint32 { return uint32((n + sector - 1) / sector) }
	var fat, miniFAT []uint32
	chain := func(table []uint32, n uint32) []uint32 {
		for i := range n {
			table = append(table, uint32(len(table))+1)
			if i == n-1 {
				table[len(table)-1] = end
			}
		}
		return table
	}
	var large, small []*Node
	for _, e := range streams(nodes, nil) {
		switch {
		case e.Size > MaxStream:
			return errSize
		case e.Size >= miniCutoff:
			large = append(large, e)
			e.start = uint32(len(fat))
			fat = chain(fat, sectors(e.Size))
		default:
			small = append(small, e)
			e.start = uint32(len(miniFAT))
			miniFAT = chain(miniFAT, uint32((e.Size+miniSize-1)/miniSize))
		}
	}
	root.Size = int64(len(miniFAT)) * miniSize
	root.start = uint32(len(fat))
	fat = chain(fat, sectors(root.Size))
	miniStart := uint32(len(fat))
	fat = chain(fat, sectors(int64(len(miniFAT))*4))
	dirStart := uint32(len(fat))
	fat = chain(fat, sectors(int64(len(entries))*128))

	// The table also covers its own sectors, and the sectors that list them.
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
		fat = append(fat, fatSector)
	}
	difStart := uint32(len(fat))
	for range nDIF {
		fat = append(fat, difSector)
	}

	le := binary.LittleEndian
	head := make([]byte, 76, sector)
	copy(head, Magic)
	le.PutUint16(head[24:], 0x3e) // minor version
	le.PutUint16(head[26:], 3)
	le.PutUint16(head[28:], 0xfffe) // byte order
	le.PutUint16(head[30:], 9)
	le.PutUint16(head[32:], 6)
	le.PutUint32(head[44:], nFAT)
	le.PutUint32(head[48:], dirStart)
	le.PutUint32(head[56:], miniCutoff)
	le.PutUint32(head[60:], end)
	if len(miniFAT) > 0 {
		le.PutUint32(head[60:], miniStart)
		le.PutUint32(head[64:], sectors(int64(len(miniFAT))*4))
	} else {
		root.start = end
	}
	le.PutUint32(head[68:], end)
	if nDIF > 0 {
		le.PutUint32(head[68:], difStart)
	}
	le.PutUint32(head[72:], nDIF)
	for i := range uint32(109) {
		head = le.AppendUint32(head, numberOr(i < nFAT, fatStart+i, free))
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
		if err := e.write(&rest, miniSize); err != nil {
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
		rest.Write((&Node{left: none, right: none, child: none}).entry(false))
	}
	for _, n := range fat {
		rest.Write(le.AppendUint32(nil, n))
	}
	pad(&rest, sector, 0xff)
	for i := range nDIF {
		for k := range uint32(127) {
			n := 109 + i*127 + k
			rest.Write(le.AppendUint32(nil, numberOr(n < nFAT, fatStart+n, free)))
		}
		rest.Write(le.AppendUint32(nil, numberOr(i < nDIF-1, difStart+i+1, end)))
	}
	_, err := rest.WriteTo(w)
	return err
}

// streams appends the streams among nodes and below them, in order.
func streams(nodes, out []*Node) []*Node {
	for _, n := range nodes {
		if n.Content == nil {
			out = streams(n.Children, out)
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

// write writes the content of a stream and pads its last sector.
func (e *Node) write(w io.Writer, unit int64) error {
	c := &counter{w: w}
	if err := e.Content(c); err != nil {
		return err
	}
	if c.n != e.Size {
		return errors.New("compound: the content of a stream does not have the size of its node")
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

// arrange numbers the entries below s and builds a red-black tree of each
// storage's children. It sorts them by the length of their names, then by the names in
// capitals ([MS-CFB] 2.6.4). The tree is balanced. Its lowest level is red if it is
// incomplete; all other nodes are black.
func arrange(s *Node, entries *[]*Node) {
	s.child = none
	kids := slices.SortedFunc(slices.Values(s.Children), func(a, b *Node) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(strings.ToUpper(a.Name), strings.ToUpper(b.Name)))
	})
	for _, k := range kids {
		k.left, k.right, k.child = none, none, none
		k.self = uint32(len(*entries))
		*entries = append(*entries, k)
	}
	levels := 0
	for n := len(kids) + 1; n > 1; n /= 2 {
		levels++
	}
	var tree func(kids []*Node, depth int) uint32
	tree = func(kids []*Node, depth int) uint32 {
		if len(kids) == 0 {
			return none
		}
		mid := (len(kids) - 1) / 2
		k := kids[mid]
		k.red = depth >= levels
		k.left, k.right = tree(kids[:mid], depth+1), tree(kids[mid+1:], depth+1)
		return k.self
	}
	s.child = tree(kids, 0)
	for _, k := range kids {
		if k.Content == nil {
			arrange(k, entries)
		}
	}
}

// entry returns a directory entry ([MS-CFB] 2.6.1). An entry without a name is
// unused.
func (e *Node) entry(root bool) []byte {
	le := binary.LittleEndian
	b := make([]byte, 128)
	if e.Name != "" {
		u := utf16.Encode([]rune(e.Name))
		for i, c := range u {
			le.PutUint16(b[2*i:], c)
		}
		le.PutUint16(b[64:], uint16(2*len(u)+2))
		switch {
		case root:
			b[66] = 5
		case e.Content == nil:
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
	le.PutUint64(b[120:], uint64(e.Size))
	return b
}
