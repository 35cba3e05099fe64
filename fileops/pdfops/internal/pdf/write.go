package pdf

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"hash"
	"io"
	"maps"
	"math"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/klauspost/compress/zlib"
	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// objectsPerStream is the number of objects in one object stream. More objects
// hardly compress better, and a reader must inflate all of them to read one.
const objectsPerStream = 200

// Write writes the reachable objects with new numbers. Objects other than
// streams go into object streams (ISO 32000-2, 7.5.7 and 7.5.8), except in a
// classic file, which PDF/A-1 requires. enc may be nil.
func (d *Document) Write(out io.Writer, classic bool, enc *Encryption) error {
	w := &writer{doc: d, out: out, enc: enc, numbers: make(map[int]int), hash: sha256.New()}
	order := d.Reachable()
	for i, nr := range order {
		w.numbers[nr] = i + 1
	}
	w.entries = make([]entry, len(order)+1)
	w.entries[0] = entry{kind: 0, b: 65535}
	version := d.Version
	if lowest := "1.5"; !classic && version < lowest {
		version = lowest
	}
	if enc != nil && version < "1.7" {
		version = "1.7"
	}
	w.printf("%%PDF-%s\n%%\xe2\xe3\xcf\xd3\n", version)
	var separate, together []int
	for _, nr := range order {
		if _, ok := d.Objects[nr].(*types.StreamDict); ok || classic {
			separate = append(separate, nr)
		} else {
			together = append(together, nr)
		}
	}
	packing := w.pack(together)
	defer packing.close()
	for _, nr := range separate {
		w.object(w.numbers[nr], d.Objects[nr])
	}
	w.objectStreams(packing)
	trailer := types.Dict{"Root": Ref(d.Root)}
	if _, ok := w.numbers[d.Info]; ok {
		trailer["Info"] = Ref(d.Info)
	}
	if enc != nil {
		nr := w.next()
		w.begin(nr)
		w.buf = w.serialize(w.buf, enc.dict, nil)
		w.printf("\nendobj\n")
		// Not renumbered: no object of the document has this number.
		w.numbers[-1] = nr
		trailer["Encrypt"] = Ref(-1)
	}
	if w.err != nil {
		return w.err
	}
	w.flush()
	sum := w.hash.Sum(nil)[:16] // as long as the MD5 that the standard suggests, but faster
	id := d.ID
	if len(id) == 0 {
		id = sum
	}
	trailer["ID"] = types.Array{types.NewHexLiteral(id), types.NewHexLiteral(sum)}
	if classic {
		w.table(trailer)
	} else {
		w.crossReferenceStream(trailer)
	}
	w.flush()
	return w.err
}

// An entry is the location of an object: unused (0), at offset a (1), or at
// index b in object stream a (2).
type entry struct {
	kind byte
	a    int64
	b    int
}

type writer struct {
	doc     *Document
	out     io.Writer
	enc     *Encryption
	numbers map[int]int // from the document's object numbers to those of the file
	entries []entry
	off     int64 // offset of buf in the file
	buf     []byte
	hash    hash.Hash
	err     error
}

func (w *writer) next() int {
	w.entries = append(w.entries, entry{})
	return len(w.entries) - 1
}

func (w *writer) printf(format string, args ...any) {
	w.buf = fmt.Appendf(w.buf, format, args...)
	if len(w.buf) > 1<<20 {
		w.flush()
	}
}

// flush writes the buffer to the file.
func (w *writer) flush() {
	w.write(w.buf)
	w.buf = w.buf[:0]
}

// write writes b to the file, without the buffer.
func (w *writer) write(b []byte) {
	if w.err == nil {
		w.hash.Write(b)
		_, w.err = w.out.Write(b)
	}
	w.off += int64(len(b))
}

// small is the most bytes that are copied to the buffer: this is faster than a write of their own.
const small = 64 << 10

// put writes b to the file after the buffer, or adds it to the buffer.
func (w *writer) put(b []byte) {
	if len(b) <= small {
		w.buf = append(w.buf, b...)
		return
	}
	w.flush()
	w.write(b)
}

func (w *writer) begin(nr int) {
	w.entries[nr] = entry{kind: 1, a: w.off + int64(len(w.buf))}
	w.printf("%d 0 obj\n", nr)
}

func (w *writer) object(nr int, o types.Object) {
	w.begin(nr)
	s, ok := o.(*types.StreamDict)
	if !ok {
		w.buf = w.serialize(w.buf, o, w.enc)
		w.printf("\nendobj\n")
		return
	}
	w.stream(s.Dict, s.Raw, !identity(s))
}

// identity reports whether a stream has a Crypt filter that exempts it from
// encryption.
func identity(s *types.StreamDict) bool {
	return len(s.FilterPipeline) > 0 && s.FilterPipeline[0].Name == "Crypt"
}

func (w *writer) stream(dict types.Dict, raw []byte, encrypt bool) {
	if w.enc != nil && encrypt {
		raw = w.enc.seal(raw)
	}
	dict = maps.Clone(dict)
	dict["Length"] = types.Integer(len(raw))
	w.buf = w.serialize(w.buf, dict, w.enc)
	w.printf("stream\n")
	for part := range slices.Chunk(raw, 1<<20) {
		w.put(part)
		w.doc.used(len(part))
	}
	w.printf("\nendstream\nendobj\n")
}

// A packing compresses the object streams of a file, as many at the same time as there are processors,
// while other objects are written.
type packing struct {
	streams []*objectStream
	slots   chan struct{} // one for each stream that is in memory
	stopped chan struct{}
	running sync.WaitGroup
}

// pack starts to compress objects in streams. The caller must close the packing, and not change the document
// or the numbers before.
func (w *writer) pack(objects []int) *packing {
	workers := runtime.GOMAXPROCS(0)
	p := &packing{slots: make(chan struct{}, 4*workers), stopped: make(chan struct{})}
	for part := range slices.Chunk(objects, objectsPerStream) {
		p.streams = append(p.streams, &objectStream{nr: w.next(), objects: part, packed: make(chan struct{})})
	}
	var next atomic.Int64
	for range min(workers, len(p.streams)) {
		p.running.Go(func() {
			for {
				select {
				case <-p.stopped:
					return
				case p.slots <- struct{}{}:
				}
				// The first stream that is not in memory yet: the one that is needed first.
				i := int(next.Add(1)) - 1
				if i >= len(p.streams) {
					return
				}
				p.streams[i].pack(w)
			}
		})
	}
	return p
}

func (p *packing) close() {
	close(p.stopped)
	p.running.Wait()
}

// objectStreams writes streams when they are packed, and frees their slots.
func (w *writer) objectStreams(p *packing) {
	for _, s := range p.streams {
		<-s.packed
		if s.panicked != nil {
			panic(s.panicked)
		}
		for i, o := range s.objects {
			w.entries[w.numbers[o]] = entry{kind: 2, a: int64(s.nr), b: i}
		}
		w.begin(s.nr)
		w.stream(types.Dict{
			"Type": types.Name("ObjStm"), "N": types.Integer(len(s.objects)), "First": types.Integer(s.first),
			"Filter": types.Name("FlateDecode"),
		}, s.data, true)
		s.data = nil
		<-p.slots
	}
}

// An objectStream holds objects that are compressed together.
type objectStream struct {
	nr      int
	objects []int         // their numbers in the document
	packed  chan struct{} // closed when the fields below are set
	first   int           // offset of the first object in the inflated data
	data    []byte

	panicked any // what pack panicked with; it belongs to the goroutine of the run
}

// pack sets first and data. It does not change w.
func (s *objectStream) pack(w *writer) {
	defer close(s.packed)
	defer func() { s.panicked = recover() }()
	var index, body []byte
	for _, o := range s.objects {
		index = append(strconv.AppendInt(index, int64(w.numbers[o]), 10), ' ')
		index = append(strconv.AppendInt(index, int64(len(body)), 10), ' ')
		// Its strings are encrypted with the stream, not separately.
		body = append(w.serialize(body, w.doc.Objects[o], nil), '\n')
	}
	s.first = len(index)
	s.data = Deflate(append(index, body...))
}

func (w *writer) table(trailer types.Dict) {
	start := w.off + int64(len(w.buf))
	w.printf("xref\n0 %d\n", len(w.entries))
	for _, e := range w.entries {
		if e.kind == 0 {
			w.printf("%010d %05d f \n", e.a, e.b)
		} else {
			w.printf("%010d %05d n \n", e.a, 0)
		}
	}
	trailer["Size"] = types.Integer(len(w.entries))
	w.printf("trailer\n")
	w.buf = w.serialize(w.buf, trailer, nil)
	w.printf("\nstartxref\n%d\n%%%%EOF\n", start)
}

func (w *writer) crossReferenceStream(trailer types.Dict) {
	start := w.off + int64(len(w.buf))
	nr := w.next()
	w.begin(nr)
	wide := 1 // bytes of an offset field
	for n := start; n > 255; n >>= 8 {
		wide++
	}
	columns := 1 + wide + 2
	rows := make([]byte, 0, len(w.entries)*(columns+1))
	row, above := make([]byte, columns), make([]byte, columns)
	for _, e := range w.entries {
		row[0] = e.kind
		for i := range wide {
			row[1+i] = byte(e.a >> (8 * (wide - 1 - i)))
		}
		row[1+wide], row[2+wide] = byte(e.b>>8), byte(e.b)
		rows = append(rows, 2) // PNG filter "up"
		for i := range row {
			rows = append(rows, row[i]-above[i])
		}
		copy(above, row)
	}
	data := Deflate(rows)
	trailer["Type"] = types.Name("XRef")
	trailer["Size"] = types.Integer(len(w.entries))
	trailer["W"] = types.NewIntegerArray(1, wide, 2)
	trailer["Filter"] = types.Name("FlateDecode")
	trailer["DecodeParms"] = types.Dict{"Predictor": types.Integer(12), "Columns": types.Integer(columns)}
	trailer["Length"] = types.Integer(len(data))
	w.buf = w.serialize(w.buf, trailer, nil)
	w.printf("stream\n")
	w.buf = append(w.buf, data...)
	w.printf("\nendstream\nendobj\nstartxref\n%d\n%%%%EOF\n", start)
}

// serialize appends the text of a direct object with new numbers in its
// references. A reference to a missing object becomes null.
func (w *writer) serialize(b []byte, o types.Object, enc *Encryption) []byte {
	number := func(nr int) (int, bool) { n, ok := w.numbers[nr]; return n, ok }
	return appendRenumbered(b, o, number, enc)
}

// AppendObject appends the text of a direct object.
func AppendObject(b []byte, o types.Object) []byte {
	return appendRenumbered(b, o, func(nr int) (int, bool) { return nr, true }, nil)
}

func appendRenumbered(b []byte, o types.Object, number func(int) (int, bool), enc *Encryption) []byte {
	switch v := o.(type) {
	case types.Dict:
		b = append(b, "<<"...)
		signature := isSignature(v)
		for _, k := range slices.Sorted(maps.Keys(v)) {
			e := enc
			if signature && k == "Contents" {
				e = nil // ISO 32000-2, 7.6.2
			}
			b = appendName(b, k)
			b = appendRenumbered(spaced(b, v[k]), v[k], number, e)
		}
		return append(b, ">>"...)
	case types.Array:
		b = append(b, '[')
		for i, e := range v {
			if i > 0 {
				b = spaced(b, e)
			}
			b = appendRenumbered(b, e, number, enc)
		}
		return append(b, ']')
	case types.IndirectRef:
		if nr, ok := number(v.ObjectNumber.Value()); ok {
			return append(strconv.AppendInt(b, int64(nr), 10), " 0 R"...)
		}
		return append(b, "null"...)
	case types.Name:
		return appendName(b, string(v))
	case types.Integer:
		return strconv.AppendInt(b, int64(v), 10)
	case types.Float:
		return AppendFloat(b, float64(v))
	case types.Boolean:
		return strconv.AppendBool(b, bool(v))
	case types.StringLiteral:
		if enc == nil {
			b = append(append(b, '('), v...)
			return append(b, ')')
		}
		s, err := types.Unescape(string(v))
		if err != nil {
			s = []byte(v)
		}
		return fmt.Appendf(b, "<%x>", enc.seal(s))
	case types.HexLiteral:
		if enc == nil {
			b = append(append(b, '<'), v...)
			return append(b, '>')
		}
		return fmt.Appendf(b, "<%x>", enc.seal(unhex(string(v))))
	case *types.StreamDict:
		return appendRenumbered(b, v.Dict, number, enc)
	}
	return append(b, "null"...)
}

func isSignature(v types.Dict) bool {
	_, ok := v["ByteRange"]
	return ok
}

// spaced appends a space if o needs a delimiter before it.
func spaced(b []byte, o types.Object) []byte {
	switch o.(type) {
	case types.Dict, types.Array, types.Name, types.StringLiteral, types.HexLiteral:
		return b
	}
	return append(b, ' ')
}

func appendName(b []byte, s string) []byte {
	b = append(b, '/')
	for i := range len(s) {
		c := s[i]
		if c <= ' ' || c > '~' || strings.IndexByte("()<>[]{}/%#", c) >= 0 {
			b = fmt.Appendf(b, "#%02x", c)
		} else {
			b = append(b, c)
		}
	}
	return b
}

// AppendFloat appends a real number.
func AppendFloat(b []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(b, '0')
	}
	s := strconv.FormatFloat(f, 'f', -1, 64)
	if !strings.Contains(s, ".") {
		s += ".0" // keeps it a real number
	}
	return append(b, s...)
}

// Deflate compresses at the highest level that is fast enough. On noise the
// maximum level takes more than a hundred times as long as the middle levels (33
// s against 0.2 s for 3 MB), and it cannot be interrupted.
func Deflate(b []byte) []byte {
	level := zlib.BestCompression
	switch {
	case len(b) > 4<<20:
		level = 6
	case len(b) > 64<<10:
		level = 7
	}
	var out bytes.Buffer
	zip(&out, b, level)
	return out.Bytes()
}

// DeflatedSize returns the size of b after fast compression.
func DeflatedSize(b []byte) int {
	var n counter
	zip(&n, b, zlib.BestSpeed)
	return int(n)
}

// compressors has idle ones, by level. Allocating one takes longer than compressing a short stream.
var compressors [zlib.BestCompression + 1]sync.Pool // of *compressor

// A compressor writes to what it compresses for at the moment, so that an idle one keeps no result.
type compressor struct {
	zlib *zlib.Writer
	to   io.Writer
}

func (c *compressor) Write(b []byte) (int, error) { return c.to.Write(b) }

// zip compresses b to a writer that never fails.
func zip(to io.Writer, b []byte, level int) {
	c, _ := compressors[level].Get().(*compressor)
	var err error
	if c == nil {
		c = new(compressor)
		c.zlib, err = zlib.NewWriterLevel(c, level)
	} else {
		c.zlib.Reset(c)
	}
	c.to = to
	if err == nil {
		_, err = c.zlib.Write(b)
	}
	if err == nil {
		err = c.zlib.Close()
	}
	if err != nil { // impossible
		panic(err)
	}
	c.to = nil
	compressors[level].Put(c)
}

type counter int

func (c *counter) Write(b []byte) (int, error) {
	*c += counter(len(b))
	return len(b), nil
}
