package pdf

import (
	"bytes"
	"cmp"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"maps"
	"slices"
	"strconv"

	"github.com/pdfcpu/pdfcpu/pkg/pdfcpu/types"
)

// This file reads files that follow the standard, which most do, several times as fast as pdfcpu, which
// repairs others. It takes nothing for granted: at the first thing that pdfcpu might read differently it
// gives up, and pdfcpu reads the file. The objects are the same as those of pdfcpu; a test compares them.
// The content of streams is not copied, but remains part of the file.

const (
	quickDepth    = 50      // of nested arrays and dictionaries
	quickObjects  = 1 << 20 // objects in a file
	quickSections = 1000    // of the cross-reference table
)

// ParseSound is [Parse] for files that are not encrypted and follow the standard closely. It returns nil
// for all others.
func ParseSound(ctx context.Context, data []byte) *Document {
	if bytes.Contains(data, []byte("/Encrypt")) {
		return nil
	}
	return source{data: data}.quick(ctx, nil)
}

// DecryptSound is [Security.Decrypt] for files that follow the standard closely and are encrypted with
// AES-256. It returns nil for all others.
func (s *Security) DecryptSound(ctx context.Context, data, secret []byte) *Document {
	if !s.plain() {
		return nil
	}
	return source{data: data}.quick(ctx, secret)
}

// quick reads a file. key is that of its encryption with AES-256, or nil. quick returns nil if pdfcpu must
// read the file.
func (s source) quick(ctx context.Context, key []byte) *Document {
	version, ok := s.version()
	if !ok {
		return nil
	}
	q := &quickReader{source: s, places: make(map[int]place), names: make(map[string]types.Name), d: &Document{Version: version, skipped: make(map[int]bool), Encrypted: key != nil}}
	// The parts of a sound file do not overlap. Object streams are read twice, lengths sometimes too.
	q.left, q.packed = 3*len(s.data)+1<<16, MaxDecoded
	if key != nil {
		q.cipher = newAES(key)
	}
	if !q.tables() || !q.objects(ctx) || !q.catalog() {
		return nil
	}
	_, signs := q.names["ByteRange"]
	q.d.unsigned = !signs && !q.escaped
	return q.d
}

// version returns the version in the header, which must be at the start of the file.
func (s source) version() (string, bool) {
	const mark = "%PDF-"
	if len(s.data) < 16 || !bytes.HasPrefix(s.data, []byte(mark)) || s.data[8] != '\n' && s.data[8] != '\r' {
		return "", false
	}
	v := string(s.data[len(mark):8])
	return v, v == "2.0" || "1.0" <= v && v <= "1.7" && v[1] == '.'
}

// A place says where an object is.
type place struct {
	at         int // offset in the file, or index in the object stream
	generation int
	in         int  // number of the object stream; 0 if it is not in one
	free       bool // there is no such object
}

// A quickReader reads one file. Its methods report false if they meet anything unusual.
type quickReader struct {
	source
	places  map[int]place
	names   map[string]types.Name // that were read before
	d       *Document
	root    types.Object
	size    int // of the table, from the newest trailer; 0 before that is read
	nesting int
	left    int  // bytes of the file that may still be read
	packed  int  // bytes of object streams and tables that may still be unpacked
	escaped bool // a name is not in names as it is

	cipher     cipher.Block // nil if the file is not encrypted
	encryption int          // number of the encryption dictionary; 0 if it is not an object
}

// tables reads all sections of the cross-reference table, from the newest to the oldest.
func (q *quickReader) tables() bool {
	at, ok := q.newest()
	seen := make(map[int]bool)
	for ok {
		if seen[at] || at <= 0 || at >= len(q.data) || len(seen) == quickSections {
			return false
		}
		seen[at] = true
		trailer := q.section(at)
		if trailer == nil || trailer["Encrypt"] != nil && q.cipher == nil || trailer["XRefStm"] != nil || !q.trailer(trailer) {
			return false
		}
		prev := trailer["Prev"]
		if prev == nil {
			break
		}
		var n types.Integer
		n, ok = prev.(types.Integer)
		at = int(n)
	}
	return ok && len(q.places) <= quickObjects
}

// newest returns the offset of the newest section, which is near the end of the file.
func (q *quickReader) newest() (int, bool) {
	const mark, window = "startxref", 1024
	from := max(0, len(q.data)-window)
	i := bytes.LastIndex(q.data[from:], []byte(mark))
	if i < 0 {
		return 0, false
	}
	l := &Lexer{b: q.data, pos: from + i}
	if !l.keyword(mark) {
		return 0, false
	}
	at, ok := l.integer()
	l.skipWhite()
	return at, ok && bytes.HasPrefix(l.b[l.pos:], []byte("%%EOF"))
}

// trailer notes what a trailer says, unless a newer one says it.
func (q *quickReader) trailer(d types.Dict) bool {
	if q.size == 0 {
		n, ok := d["Size"].(types.Integer)
		if !ok || n <= 0 || n > quickObjects {
			return false
		}
		q.size = int(n)
	}
	if q.root == nil {
		q.root = d["Root"]
	}
	if ref, ok := d["Encrypt"].(types.IndirectRef); ok && q.encryption == 0 {
		q.encryption = ref.ObjectNumber.Value()
	}
	if info := d["Info"]; info != nil && q.d.Info == 0 {
		ref, ok := info.(types.IndirectRef)
		if !ok {
			return false
		}
		q.d.Info = ref.ObjectNumber.Value()
	}
	if id := d["ID"]; id != nil && q.d.ID == nil {
		a, ok := id.(types.Array)
		if !ok || len(a) != 2 {
			return false
		}
		q.d.ID = q.d.Text(a[0])
	}
	return true
}

// section reads a section of the table, and returns its trailer or nil.
func (q *quickReader) section(at int) types.Dict {
	l := &Lexer{b: q.data, pos: at}
	if !l.keyword("xref") {
		return q.tableStream(at)
	}
	for !l.keyword("trailer") {
		first, ok1 := l.integer()
		count, ok2 := l.integer()
		if !ok1 || !ok2 || first+count > quickObjects {
			return nil
		}
		for nr := first; nr < first+count; nr++ {
			offset, ok1 := l.integer()
			generation, ok2 := l.integer()
			used := l.keyword("n")
			if !ok1 || !ok2 || !used && !l.keyword("f") || used && (offset == 0 || nr == 0) {
				return nil
			}
			q.put(nr, place{at: offset, generation: generation, free: !used})
		}
	}
	o, ok := q.object(l)
	d, isDict := o.(types.Dict)
	if !ok || !isDict || !q.spend(l.pos-at) {
		return nil
	}
	return d
}

// spend counts bytes of the file that were read. It reports false if the parts of the file overlap.
func (q *quickReader) spend(n int) bool {
	q.left -= n
	return q.left >= 0
}

// unpack returns the content of a stream of the file's structure.
func (q *quickReader) unpack(s *types.StreamDict) ([]byte, bool) {
	b, err := Decode(s)
	q.packed -= len(b)
	return b, err == nil && q.packed >= 0
}

// put notes where an object is, unless a newer section says it.
func (q *quickReader) put(nr int, p place) {
	if _, ok := q.places[nr]; !ok {
		q.places[nr] = p
	}
}

// tableStream reads a section in a stream (ISO 32000-2, 7.5.8).
func (q *quickReader) tableStream(at int) types.Dict {
	l := &Lexer{b: q.data, pos: at}
	_, ok1 := l.integer()
	_, ok2 := l.integer()
	if !ok1 || !ok2 || !l.keyword("obj") {
		return nil
	}
	o, ok := q.body(l)
	s, isStream := o.(*types.StreamDict)
	if !ok || !isStream || s.Dict["Type"] != types.Name("XRef") {
		return nil
	}
	rows, unpacked := q.unpack(s)
	widths, ok := q.d.Numbers(s.Dict["W"], 3)
	size, isNumber := s.Dict["Size"].(types.Integer)
	if !unpacked || !ok || !isNumber || size > quickObjects {
		return nil
	}
	index := types.Array{types.Integer(0), size}
	if s.Dict["Index"] != nil {
		if index, ok = s.Dict["Index"].(types.Array); !ok {
			return nil
		}
	}
	if !q.rows(rows, [3]int{int(widths[0]), int(widths[1]), int(widths[2])}, index) {
		return nil
	}
	return s.Dict
}

// rows reads the entries of a section in a stream.
func (q *quickReader) rows(rows []byte, widths [3]int, index types.Array) bool {
	length := 0
	for _, w := range widths {
		if w < 0 || w > 7 {
			return false
		}
		length += w
	}
	for pair := range slices.Chunk(index, 2) {
		if len(pair) != 2 {
			return false
		}
		first, ok1 := pair[0].(types.Integer)
		count, ok2 := pair[1].(types.Integer)
		if !ok1 || !ok2 || first < 0 || count < 0 || first+count > quickObjects || len(rows) < int(count)*length {
			return false
		}
		for nr := int(first); nr < int(first+count); nr++ {
			var fields [3]int
			row := rows[:length]
			rows = rows[length:]
			for i, w := range widths {
				for _, c := range row[:w] {
					fields[i] = fields[i]<<8 | int(c)
				}
				row = row[w:]
			}
			if widths[0] == 0 {
				fields[0] = 1
			}
			switch fields[0] {
			case 0:
				q.put(nr, place{free: true})
			case 1:
				if nr == 0 || fields[1] == 0 {
					return false
				}
				q.put(nr, place{at: fields[1], generation: fields[2]})
			case 2:
				if nr == 0 || fields[1] == 0 {
					return false
				}
				q.put(nr, place{at: fields[2], in: fields[1]})
			default:
				return false
			}
		}
	}
	return len(rows) == 0
}

// objects reads all objects.
func (q *quickReader) objects(ctx context.Context) bool {
	q.d.Objects = make(map[int]types.Object, len(q.places))
	type member struct{ nr, index int }
	packed := make(map[int][]member) // by object stream
	for i, nr := range slices.Sorted(maps.Keys(q.places)) {
		if i%1000 == 0 && ctx.Err() != nil {
			return false
		}
		switch p := q.places[nr]; {
		case p.free, nr == q.encryption:
		case nr >= q.size:
			return false
		case p.in > 0:
			packed[p.in] = append(packed[p.in], member{nr, p.at})
		default:
			o, ok := q.numbered(nr, p)
			if !ok {
				return false
			}
			q.keep(nr, o)
		}
	}
	for _, container := range slices.Sorted(maps.Keys(packed)) {
		if ctx.Err() != nil {
			return false
		}
		members := packed[container]
		slices.SortFunc(members, func(a, b member) int { return cmp.Compare(a.index, b.index) })
		text, offsets, ok := q.objectStream(container)
		if !ok {
			return false
		}
		left := 2*len(text) + 1<<10 // the objects of a sound file do not overlap
		for _, m := range members {
			if m.index >= len(offsets) || offsets[m.index].nr != m.nr {
				return false
			}
			l := &Lexer{b: text, pos: offsets[m.index].at}
			o, ok := q.object(l)
			if left -= l.pos - offsets[m.index].at; !ok || left < 0 {
				return false
			}
			q.keep(m.nr, o)
		}
	}
	return true
}

// keep notes an object. Null is like an object that does not exist. The parts of the table and the streams
// of other objects are not objects of the document.
func (q *quickReader) keep(nr int, o types.Object) {
	if o == nil {
		return
	}
	if s, ok := o.(*types.StreamDict); ok && (s.Dict["Type"] == types.Name("XRef") || s.Dict["Type"] == types.Name("ObjStm")) {
		return
	}
	q.d.Objects[nr] = o
	q.d.Last = max(q.d.Last, nr)
}

// An offset says where in an object stream an object is.
type offset struct{ nr, at int }

// objectStream reads an object stream (ISO 32000-2, 7.5.7).
func (q *quickReader) objectStream(nr int) (text []byte, offsets []offset, ok bool) {
	p := q.places[nr]
	if p.in > 0 || p.free || p.at == 0 {
		return nil, nil, false
	}
	o, ok := q.numbered(nr, p)
	s, isStream := o.(*types.StreamDict)
	if !ok || !isStream || s.Dict["Type"] != types.Name("ObjStm") {
		return nil, nil, false
	}
	n, ok1 := s.Dict["N"].(types.Integer)
	first, ok2 := s.Dict["First"].(types.Integer)
	text, ok = q.unpack(s)
	if !ok || !ok1 || !ok2 || n < 0 || n > quickObjects || first < 0 || int(first) > len(text) {
		return nil, nil, false
	}
	l := &Lexer{b: text[:first]}
	for range n {
		nr, ok1 := l.integer()
		at, ok2 := l.integer()
		if !ok1 || !ok2 || at > len(text)-int(first) {
			return nil, nil, false
		}
		offsets = append(offsets, offset{nr, int(first) + at})
	}
	return text, offsets, true
}

// numbered reads the object at a place in the file.
func (q *quickReader) numbered(nr int, p place) (types.Object, bool) {
	if p.at >= len(q.data) || isSpace(q.data[p.at]) {
		return nil, false
	}
	l := &Lexer{b: q.data, pos: p.at}
	n, ok1 := l.integer()
	generation, ok2 := l.integer()
	if !ok1 || !ok2 || n != nr || generation != p.generation || !l.keyword("obj") {
		return nil, false
	}
	o, ok := q.body(l)
	if ok && q.cipher != nil {
		return q.decrypted(o)
	}
	return o, ok
}

// decrypted decrypts the strings and the stream in an object (ISO 32000-2, 7.6.3.3).
func (q *quickReader) decrypted(o types.Object) (_ types.Object, ok bool) {
	switch v := o.(type) {
	case types.StringLiteral:
		if v == "" {
			return v, true
		}
		b, err := types.Unescape(string(v))
		if err != nil {
			return nil, false
		}
		if b, ok = q.open(b); !ok {
			return nil, false
		}
		s, err := types.Escape(string(b))
		if err != nil {
			return nil, false
		}
		return types.StringLiteral(*s), true
	case types.HexLiteral:
		if v == "" {
			return v, true
		}
		b, ok := q.open(unhex(string(v)))
		return types.NewHexLiteral(b), ok
	case types.Array:
		for i := range v {
			if v[i], ok = q.decrypted(v[i]); !ok {
				return nil, false
			}
		}
	case types.Dict:
		if isSignature(v) { // a part of it is not encrypted
			return nil, false
		}
		for k := range v {
			if v[k], ok = q.decrypted(v[k]); !ok {
				return nil, false
			}
		}
	case *types.StreamDict:
		if v.Dict["Type"] == types.Name("XRef") {
			return o, true
		}
		if _, ok = q.decrypted(v.Dict); !ok {
			return nil, false
		}
		if v.Raw, ok = q.open(v.Raw); !ok {
			return nil, false
		}
		*v.StreamLength = int64(len(v.Raw))
		v.Dict["Length"] = types.Integer(len(v.Raw))
	}
	return o, true
}

// open decrypts the bytes of a string or a stream.
func (q *quickReader) open(b []byte) ([]byte, bool) {
	if len(b) < 2*aes.BlockSize || len(b)%aes.BlockSize != 0 {
		return nil, false
	}
	out := make([]byte, len(b)-aes.BlockSize)
	cipher.NewCBCDecrypter(q.cipher, b[:aes.BlockSize]).CryptBlocks(out, b[aes.BlockSize:])
	pad := int(out[len(out)-1])
	if pad == 0 || pad > aes.BlockSize {
		return nil, false
	}
	return out[:len(out)-pad], true
}

// body reads an object, with the content of a stream, up to its end.
func (q *quickReader) body(l *Lexer) (types.Object, bool) {
	from := l.pos
	o, ok := q.object(l)
	q.file.used(l.pos - from)
	if !ok {
		return nil, false
	}
	if d, isDict := o.(types.Dict); isDict && l.keyword("stream") {
		if o, ok = q.stream(l, d); !ok || !l.keyword("endstream") {
			return nil, false
		}
	}
	return o, l.keyword("endobj") && q.spend(l.pos-from)
}

// stream reads the content of a stream after its keyword.
func (q *quickReader) stream(l *Lexer, d types.Dict) (*types.StreamDict, bool) {
	switch rest := l.b[l.pos:]; {
	case bytes.HasPrefix(rest, []byte("\r\n")):
		l.pos += 2
	case bytes.HasPrefix(rest, []byte("\n")):
		l.pos++
	default:
		return nil, false
	}
	n, ok := q.length(d["Length"])
	if !ok || n > len(l.b)-l.pos || d["F"] != nil || !ended(l.b[l.pos+n:]) {
		return nil, false
	}
	filters, ok := q.filters(d)
	if !ok {
		return nil, false
	}
	length := int64(n)
	s := &types.StreamDict{Dict: d, StreamOffset: int64(l.pos), StreamLength: &length, FilterPipeline: filters, Raw: l.b[l.pos : l.pos+n : l.pos+n]}
	l.pos += n
	return s, true
}

// length returns the length of a stream, which another object may contain.
func (q *quickReader) length(o types.Object) (int, bool) {
	if ref, ok := o.(types.IndirectRef); ok {
		if q.nesting++; q.nesting > quickDepth { // such as a stream that has its own length
			return 0, false
		}
		defer func() { q.nesting-- }()
		nr := ref.ObjectNumber.Value()
		p, ok := q.places[nr]
		if !ok || p.free || p.in > 0 || p.at >= len(q.data) {
			return 0, false
		}
		if o, ok = q.numbered(nr, p); !ok {
			return 0, false
		}
	}
	n, ok := o.(types.Integer)
	return int(n), ok && n >= 0
}

// filters returns the filters of a stream, whose dictionary must contain them and their parameters.
func (q *quickReader) filters(d types.Dict) ([]types.PDFFilter, bool) {
	parameters := d["DecodeParms"]
	switch f := d["Filter"].(type) {
	case nil:
		return nil, true
	case types.Name:
		p, ok := parameters.(types.Dict)
		if len(p) == 0 {
			p = nil
		}
		return []types.PDFFilter{{Name: string(f), DecodeParms: p}}, knownFilter(f) && (ok || parameters == nil)
	case types.Array:
		var all []types.PDFFilter
		each, ok := parameters.(types.Array)
		if parameters != nil && (!ok || len(each) != len(f)) {
			return nil, false
		}
		for i, o := range f {
			name, ok := o.(types.Name)
			if !ok || !knownFilter(name) {
				return nil, false
			}
			next := types.PDFFilter{Name: string(name)}
			if each != nil && each[i] != nil {
				if next.DecodeParms, ok = each[i].(types.Dict); !ok {
					return nil, false
				}
			}
			all = append(all, next)
		}
		return all, true
	}
	return nil, false
}

// knownFilter reports whether a filter has a name of the standard. pdfcpu also knows abbreviations.
func knownFilter(name types.Name) bool {
	switch name {
	case "FlateDecode", "DCTDecode", "LZWDecode", "ASCII85Decode", "ASCIIHexDecode", "RunLengthDecode", "CCITTFaxDecode", "JBIG2Decode", "JPXDecode":
		return true
	}
	return false
}

// catalog checks that the document has a catalog, and reads its version.
func (q *quickReader) catalog() bool {
	ref, ok := q.root.(types.IndirectRef)
	if !ok {
		return false
	}
	q.d.Root = ref.ObjectNumber.Value()
	root, ok := q.d.Objects[q.d.Root].(types.Dict)
	if !ok || q.d.Dict(root["Pages"]) == nil {
		return false
	}
	switch v := root["Version"].(type) {
	case nil:
		return true
	case types.Name:
		if q.d.Version >= "1.4" {
			q.d.Version = string(v)
		}
		return v == "2.0" || "1.0" <= v && v <= "1.7" && len(v) == 3
	}
	return false
}

// object reads an object that is not a stream.
func (q *quickReader) object(l *Lexer) (types.Object, bool) {
	l.skipSpace()
	if l.pos >= len(l.b) {
		return nil, false
	}
	switch c := l.b[l.pos]; {
	case c == '/':
		return q.name(l)
	case c == '(':
		start := l.pos
		l.skipString()
		if l.pos > len(l.b) || l.b[l.pos-1] != ')' {
			return nil, false
		}
		return types.StringLiteral(l.b[start+1 : l.pos-1]), true
	case c == '<' && l.pos+1 < len(l.b) && l.b[l.pos+1] == '<':
		l.pos += 2
		return q.nested(l, true)
	case c == '<':
		return hexLiteral(l)
	case c == '[':
		l.pos++
		return q.nested(l, false)
	case c == '-' || c == '+' || c == '.' || '0' <= c && c <= '9':
		return numeric(l)
	}
	switch string(l.word()) {
	case "null":
		return nil, true
	case "true":
		return types.Boolean(true), true
	case "false":
		return types.Boolean(false), true
	}
	return nil, false
}

// name reads a name. Names are few, so that each has its memory only once.
func (q *quickReader) name(l *Lexer) (types.Name, bool) {
	l.pos++
	word := l.word()
	if name, ok := q.names[string(word)]; ok {
		return name, true
	}
	if slices.ContainsFunc(word, func(c byte) bool { return c < '!' || c > '~' }) {
		return "", false
	}
	s, err := types.DecodeName(string(word))
	q.escaped = q.escaped || s != string(word)
	name := types.Name(s)
	q.names[string(word)] = name
	return name, err == nil
}

// nested reads a dictionary or an array after its first delimiter.
func (q *quickReader) nested(l *Lexer, dict bool) (types.Object, bool) {
	if q.nesting++; q.nesting > quickDepth {
		return nil, false
	}
	defer func() { q.nesting-- }()
	if dict {
		return q.dict(l)
	}
	return q.array(l)
}

func (q *quickReader) dict(l *Lexer) (types.Dict, bool) {
	d := types.Dict{}
	for {
		l.skipSpace()
		if bytes.HasPrefix(l.b[min(l.pos, len(l.b)):], []byte(">>")) {
			l.pos += 2
			return d, true
		}
		if l.pos >= len(l.b) || l.b[l.pos] != '/' {
			return nil, false
		}
		key, ok := q.name(l)
		if !ok {
			return nil, false
		}
		o, ok := q.object(l)
		if _, twice := d[string(key)]; !ok || twice {
			return nil, false
		}
		if o != nil { // an entry of null is no entry
			d[string(key)] = o
		}
	}
}

func (q *quickReader) array(l *Lexer) (types.Array, bool) {
	a := types.Array{}
	for {
		l.skipSpace()
		if l.pos < len(l.b) && l.b[l.pos] == ']' {
			l.pos++
			return a, true
		}
		o, ok := q.object(l)
		if !ok {
			return nil, false
		}
		a = append(a, o)
	}
}

// hexLiteral reads a hexadecimal string with an even number of digits and no white space.
func hexLiteral(l *Lexer) (types.Object, bool) {
	i := bytes.IndexByte(l.b[l.pos:], '>')
	if i < 0 {
		return nil, false
	}
	digits := l.b[l.pos+1 : l.pos+i]
	l.pos += i + 1
	for _, c := range digits {
		if (c < '0' || c > '9') && (c < 'A' || c > 'F') && (c < 'a' || c > 'f') {
			return nil, false
		}
	}
	return types.HexLiteral(bytes.ToUpper(digits)), len(digits)%2 == 0
}

// numeric reads an integer, a reference or a real number.
func numeric(l *Lexer) (types.Object, bool) {
	word := l.word()
	digits, point := 0, false
	for i, c := range word {
		switch {
		case '0' <= c && c <= '9':
			digits++
		case c == '.' && !point:
			point = true
		case (c == '-' || c == '+') && i == 0:
		default:
			return nil, false
		}
	}
	if digits == 0 || digits > 15 && !point || digits > 40 {
		return nil, false
	}
	if point {
		f, err := strconv.ParseFloat(string(word), 64)
		return types.Float(f), err == nil
	}
	n, err := strconv.Atoi(string(word))
	if err != nil {
		return nil, false
	}
	if n >= 0 { // perhaps a reference, which has two more words
		after := l.pos
		if generation, ok := l.integer(); ok && l.keyword("R") {
			return types.IndirectRef{ObjectNumber: types.Integer(n), GenerationNumber: types.Integer(generation)}, true
		}
		l.pos = after
	}
	return types.Integer(n), true
}

// skipWhite skips white space, but not a comment.
func (l *Lexer) skipWhite() {
	for l.pos < len(l.b) && isSpace(l.b[l.pos]) {
		l.pos++
	}
}

// integer reads digits. It reports false, and may have read them, if they are no integer.
func (l *Lexer) integer() (int, bool) {
	l.skipWhite()
	n, start := 0, l.pos
	for l.pos < len(l.b) && '0' <= l.b[l.pos] && l.b[l.pos] <= '9' {
		n = 10*n + int(l.b[l.pos]-'0')
		l.pos++
	}
	whole := l.pos >= len(l.b) || isSpace(l.b[l.pos]) || isDelimiter(l.b[l.pos])
	return n, whole && 0 < l.pos-start && l.pos-start <= 15
}

// keyword reports whether a keyword follows, and reads it.
func (l *Lexer) keyword(word string) bool {
	l.skipWhite()
	start := l.pos
	if string(l.word()) == word {
		return true
	}
	l.pos = start
	return false
}
