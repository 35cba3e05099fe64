package dataops

import (
	"bufio"
	"errors"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops"
)

// A layout is the location of the rows in a JSON file.
type layout int

const (
	inArray   layout = iota // each element is a row
	inLines                 // each value of the file is a row
	inObject                // each member is a row, with its name as key
	inMember                // the elements of one member are rows
	inColumns               // each member is a column
	single                  // the whole file is a row
)

// A kind is the type of a row.
type kind int

const (
	noKind kind = iota // null
	simple
	array
	object
)

func kindOf(token byte) kind {
	switch token {
	case '{':
		return object
	case '[':
		return array
	case tokenNull:
		return noKind
	}
	return simple
}

// A jsonTable reads a JSON file as a table.
type jsonTable struct {
	src    *source
	layout layout
	list   string // member name for inMember
	alone  bool   // for inMember: the object has no other members

	rows    kind  // of all rows except null
	root    *node // root of the columns
	parent  *node // parent of the names in rows: root, or the node of the list
	columns []*node
	names   int  // total bytes of column names
	width   int  // longest row, if rows are arrays
	heading bool // the first row is an array of strings
	seen    int  // rows read so far

	row    row
	fixed  row // cells that all rows share
	learn  bool
	joined []byte
}

// A node is a member name in rows. It is a column if any row has a value for it.
type node struct {
	name     string
	parent   *node
	children map[string]*node
	bytes    int  // of the dotted name
	col      int  // index in jsonTable.columns, -1 if it is not a column
	value    bool // some row has a value other than null
}

// A row holds the cells of a row; each is a part of text.
type row struct {
	text  []byte
	cells []span
}

type span struct{ from, to int }

func (r *row) reset() {
	r.text = r.text[:0]
	clear(r.cells)
}

// set makes text[from:] the cell of a column.
func (r *row) set(col, from int) {
	for col >= len(r.cells) {
		r.cells = append(r.cells, span{})
	}
	r.cells[col] = span{from, len(r.text)}
}

func (r *row) get(col int) []byte {
	if col >= len(r.cells) {
		return nil
	}
	return r.text[r.cells[col].from:r.cells[col].to]
}

// fromJSON writes the table in src to w.
func fromJSON(src *source, w tableWriter) error {
	src.passes = 3
	t := &jsonTable{src: src, root: &node{col: -1}}
	t.parent = t.root
	err := t.convert(w)
	var syn *syntaxError
	if errors.As(err, &syn) {
		line, column, lerr := t.position(syn.offset)
		if lerr != nil {
			return lerr
		}
		return fileops.Fail(fileops.ErrCorruptInput, err, "the file is not valid JSON: line %d, column %d: %s", line, column, syn.what)
	}
	return err
}

// position returns the line and column of an offset. Columns count characters.
func (t *jsonTable) position(offset int64) (line, column int64, err error) {
	r := bufio.NewReaderSize(t.src.text(), chunk)
	line, column = 1, 1
	for i := int64(0); i < offset; {
		c, n, err := r.ReadRune()
		if err != nil {
			return 0, 0, err
		}
		i += int64(n)
		if column++; c == '\n' {
			line, column = line+1, 1
		}
	}
	return line, column, nil
}

func (t *jsonTable) convert(w tableWriter) error {
	if err := t.survey(); err != nil {
		return err
	}
	if t.layout == inColumns {
		return t.transpose(w)
	}
	t.learn = true
	if err := t.each(t.learnRow); err != nil {
		return err
	}
	t.learn = false
	t.fixed, t.row = t.row, row{}
	if t.layout != inMember || t.alone {
		t.fixed = row{}
	}
	switch t.rows {
	case noKind:
		return notTabular("the file has no values")
	case array:
		return t.writeArrays(w)
	}
	return t.writeNamed(w)
}

// survey determines the layout. It reads the whole file, so all errors occur
// before any output.
func (t *jsonTable) survey() error {
	s := newScanner(t.src.text())
	k, err := s.next()
	if err != nil {
		return err
	}
	if k == tokenEnd {
		return fileops.Fail(fileops.ErrCorruptInput, nil, "the file is empty")
	}
	if k == '}' || k == ']' || k == ':' || k == ',' {
		return s.unexpected(k, "a value")
	}
	var o survey
	if k == '{' {
		err = o.read(s)
	} else {
		err = s.skip(k)
	}
	if err != nil {
		return err
	}
	more, err := s.next()
	if err != nil {
		return err
	}
	switch {
	case more != tokenEnd:
		t.layout = inLines
		for ; more != tokenEnd; more, err = s.next() {
			if err != nil {
				return err
			}
			if more == '}' || more == ']' || more == ':' || more == ',' {
				return s.unexpected(more, "the end of the file or another value")
			}
			if err := s.skip(more); err != nil {
				return err
			}
		}
		return err
	case k == '[':
		t.layout = inArray
	case k == '{':
		t.layout, t.list, t.alone = o.layout()
		if t.layout == inMember && !t.alone {
			n, err := t.child(t.root, []byte(t.list))
			if err != nil {
				return err
			}
			t.parent = n
		}
	default:
		return notTabular("the file contains a single value")
	}
	return nil
}

// A survey counts the members of an object by kind.
type survey struct {
	members, objects, nulls, arrays int
	simple, length                  int // arrays without nested values; their common length, or -1
	lists                           int // arrays of objects
	list                            string
}

func (o *survey) read(s *scanner) error {
	return s.members(func(key []byte, k byte) error {
		o.members++
		switch k {
		case '{':
			o.objects++
		case tokenNull:
			o.nulls++
		case '[':
			o.arrays++
			n, nested, objects := 0, 0, 0 // objects includes null
			if err := s.elements(func(k byte) error {
				n++
				switch k {
				case '{':
					nested++
					objects++
				case '[':
					nested++
				case tokenNull:
					objects++
				}
				return s.skip(k)
			}); err != nil {
				return err
			}
			if o.arrays == 1 {
				o.list, o.length = string(key), n
			}
			if n != o.length {
				o.length = -1
			}
			switch {
			case nested == 0:
				o.simple++
			case objects == n:
				o.lists++
				o.list = string(key)
			}
			return nil
		}
		return s.skip(k)
	})
}

func (o *survey) layout() (l layout, list string, alone bool) {
	switch {
	case o.objects > 0 && o.objects+o.nulls == o.members:
		return inObject, "", false
	case o.members == 1 && o.arrays == 1:
		return inMember, o.list, true
	case o.members > 1 && o.simple == o.members && o.length > 0:
		return inColumns, "", false
	case o.arrays == 1 && o.lists == 1:
		return inMember, o.list, false
	}
	return single, "", false
}

// each calls do for each row. do must read the value.
func (t *jsonTable) each(do func(s *scanner, key []byte, kind byte) error) error {
	s := newScanner(t.src.text())
	element := func(k byte) error { return do(s, nil, k) }
	k, err := s.value()
	switch {
	case err != nil:
		return err
	case t.layout == inArray:
		return s.elements(element)
	case t.layout == inObject:
		return s.members(func(key []byte, k byte) error { return do(s, key, k) })
	case t.layout == inMember:
		return s.members(func(key []byte, k byte) error {
			switch {
			case k == '[' && string(key) == t.list:
				return s.elements(element)
			case !t.learn:
				return s.skip(k)
			}
			n, err := t.child(t.root, key)
			if err != nil {
				return err
			}
			return t.value(s, n, k)
		})
	case t.layout == single:
		return element(k)
	}
	for ; k != tokenEnd; k, err = s.next() {
		if err != nil {
			return err
		}
		if err := element(k); err != nil {
			return err
		}
	}
	return err
}

// learnRow records the columns of a row.
func (t *jsonTable) learnRow(s *scanner, _ []byte, k byte) error {
	t.seen++
	this := kindOf(k)
	if t.rows == noKind {
		t.rows = this
	} else if this != noKind && this != t.rows {
		return notTabular("the file mixes objects, arrays and other values as rows")
	}
	switch this {
	case array:
		n, texts := 0, 0
		err := s.elements(func(k byte) error {
			if n++; n > maxColumns {
				return tooManyNames()
			}
			if k == tokenString && len(s.raw) > 2 {
				texts++
			}
			return s.skip(k)
		})
		if t.seen == 1 {
			t.heading = texts == n && n > 0
		} else if n > t.width {
			t.heading = false // the first row lacks some column names
		}
		t.width = max(t.width, n)
		return err
	case object:
		return s.members(func(key []byte, k byte) error {
			n, err := t.child(t.parent, key)
			if err != nil {
				return err
			}
			return t.columnsOf(s, n, k)
		})
	case simple:
		n, err := t.valueNode()
		if err != nil {
			return err
		}
		return t.columnsOf(s, n, k)
	}
	return nil
}

// valueNode returns the column for rows that are neither objects nor arrays.
func (t *jsonTable) valueNode() (*node, error) {
	if t.layout == inMember {
		return t.child(t.root, []byte(t.list))
	}
	return t.child(t.root, []byte("value"))
}

// columnsOf records the columns that a value at n needs.
func (t *jsonTable) columnsOf(s *scanner, n *node, k byte) error {
	if k == '{' {
		if members, err := t.members(s, n, t.columnsOf); err != nil || members > 0 {
			return err
		}
	} else if err := s.skip(k); err != nil {
		return err
	}
	return t.column(n, k)
}

// members calls each for the members of an object at n, and returns their number.
func (t *jsonTable) members(s *scanner, n *node, each func(*scanner, *node, byte) error) (int, error) {
	members := 0
	err := s.members(func(key []byte, k byte) error {
		members++
		child, err := t.child(n, key)
		if err != nil {
			return err
		}
		return each(s, child, k)
	})
	return members, err
}

// child returns the child of n with a name, and creates it if it does not exist.
func (t *jsonTable) child(n *node, key []byte) (*node, error) {
	if k, ok := n.children[string(key)]; ok {
		return k, nil
	}
	k := &node{name: string(key), parent: n, col: -1, bytes: n.bytes + 1 + len(key)}
	if n.children == nil {
		n.children = make(map[string]*node)
	}
	n.children[k.name] = k
	if t.names += k.bytes; t.names > maxNames {
		return nil, tooManyNames()
	}
	return k, nil
}

// column turns n into a column.
func (t *jsonTable) column(n *node, k byte) error {
	if k != tokenNull {
		n.value = true
	}
	if n.col >= 0 {
		return nil
	}
	n.col = len(t.columns)
	t.columns = append(t.columns, n)
	if len(t.columns) > maxColumns {
		return tooManyNames()
	}
	return nil
}

// value appends a value at n to the cells of the row.
func (t *jsonTable) value(s *scanner, n *node, k byte) error {
	from := len(t.row.text)
	if k == '{' {
		if members, err := t.members(s, n, t.value); err != nil || members > 0 {
			return err
		}
		t.row.text = append(t.row.text, "{}"...)
	} else if err := t.text(s, k); err != nil {
		return err
	}
	if err := t.column(n, k); err != nil {
		return err
	}
	t.row.set(n.col, from)
	return nil
}

// text appends the cell text of a value to the row.
func (t *jsonTable) text(s *scanner, k byte) error {
	from := len(t.row.text)
	var err error
	switch k {
	case '{':
		t.row.text, err = s.compact(t.row.text, k)
	case '[':
		t.joined = t.joined[:0]
		n, nested := 0, false
		text := slices.Concat(t.row.text, []byte{'['})
		err = s.elements(func(k byte) error {
			if n++; n > 1 {
				text = append(text, ',')
				t.joined = append(t.joined, "; "...)
			}
			if k == '{' || k == '[' {
				nested = true
			} else {
				t.joined = s.text(t.joined, k)
			}
			var err error
			text, err = s.compact(text, k)
			return err
		})
		if nested {
			text = append(text, ']')
		} else {
			text = append(text[:from], t.joined...)
		}
		t.row.text = text
	default:
		t.row.text = s.text(t.row.text, k)
	}
	switch {
	case err != nil:
		return err
	case len(t.row.text)-from > maxCell:
		return tooLong("a cell")
	case len(t.row.text) > maxRow:
		return tooLong("a row")
	}
	return nil
}

// writeNamed writes rows that are objects or simple values.
func (t *jsonTable) writeNamed(w tableWriter) error {
	var order []int
	var names []string
	if t.layout == inObject {
		names = append(names, "key")
	}
	for _, n := range t.columns {
		if !n.value && len(n.children) > 0 {
			continue // null where other rows have an object
		}
		order = append(order, n.col)
		names = append(names, n.path())
	}
	if len(order) == 0 {
		return notTabular("the file has no values")
	}
	uniqueNames(names, true)
	cells := make([][]byte, len(names))
	for i, n := range names {
		cells[i] = []byte(n)
	}
	if err := w.start(cells, len(cells)); err != nil {
		return err
	}
	err := t.each(func(s *scanner, key []byte, k byte) error {
		t.row.reset()
		t.row.text = append(t.row.text, t.fixed.text...)
		t.row.cells = append(t.row.cells[:0], t.fixed.cells...)
		var err error
		switch kindOf(k) {
		case object:
			err = s.members(func(key []byte, k byte) error {
				n, err := t.child(t.parent, key)
				if err != nil {
					return err
				}
				return t.value(s, n, k)
			})
		case simple:
			var n *node
			if n, err = t.valueNode(); err == nil {
				err = t.value(s, n, k)
			}
		}
		if err != nil {
			return err
		}
		out := cells
		if t.layout == inObject {
			out[0], out = key, out[1:]
		}
		for i, col := range order {
			out[i] = t.row.get(col)
		}
		return w.row(cells)
	})
	if err != nil {
		return err
	}
	return w.close()
}

// path returns the dotted name of n.
func (n *node) path() string {
	var parts []string
	for ; n.parent != nil; n = n.parent {
		parts = append(parts, n.name)
	}
	slices.Reverse(parts)
	return strings.Join(parts, ".")
}

// writeArrays writes rows that are arrays. Columns have no names, but the first
// row may be a header.
func (t *jsonTable) writeArrays(w tableWriter) error {
	if t.width == 0 {
		return notTabular("the file has no values")
	}
	if !t.heading {
		if err := w.start(nil, t.width); err != nil {
			return err
		}
	}
	cells := make([][]byte, t.width)
	first := true
	err := t.each(func(s *scanner, _ []byte, k byte) error {
		t.row.reset()
		clear(cells)
		if k == '[' {
			i := 0
			if err := s.elements(func(k byte) error {
				from := len(t.row.text)
				if err := t.text(s, k); err != nil {
					return err
				}
				t.row.set(i, from)
				i++
				return nil
			}); err != nil {
				return err
			}
			for i := range cells {
				cells[i] = t.row.get(i)
			}
		}
		if first && t.heading {
			first = false
			return w.start(cells, t.width)
		}
		return w.row(cells)
	})
	if err != nil {
		return err
	}
	return w.close()
}

// maxTransposed is the maximum size in bytes of a file that contains arrays as columns.
// The columns are held in memory.
const maxTransposed = 16 << 20

// transpose writes a table whose columns are the members of an object.
func (t *jsonTable) transpose(w tableWriter) error {
	if size := t.src.job.Input().Size(); size > maxTransposed {
		return fileops.Fail(fileops.ErrLimit, nil, "the file contains an array for each column; such a file may have at most %d MiB, but it has %d MiB", maxTransposed>>20, size>>20)
	}
	type column struct {
		text []byte
		ends []uint32
	}
	var columns []*column
	var names []string
	index := make(map[string]*column)
	err := t.each(func(s *scanner, _ []byte, _ byte) error {
		return s.members(func(key []byte, _ byte) error {
			c := index[string(key)]
			if c == nil {
				if len(names) == maxColumns {
					return tooManyNames()
				}
				c = new(column)
				columns, names = append(columns, c), append(names, string(key))
				index[string(key)] = c
			}
			*c = column{} // the last member with a name overrides earlier members
			return s.elements(func(k byte) error {
				c.text = s.text(c.text, k)
				c.ends = append(c.ends, uint32(len(c.text)))
				return nil
			})
		})
	})
	if err != nil {
		return err
	}
	cells := make([][]byte, len(columns))
	for i, n := range names {
		cells[i] = []byte(n)
	}
	if err := w.start(cells, len(cells)); err != nil {
		return err
	}
	for r := range columns[0].ends {
		if err := t.src.ctx.Err(); err != nil {
			return err
		}
		for i, c := range columns {
			from := uint32(0)
			if r > 0 {
				from = c.ends[r-1]
			}
			cells[i] = c.text[from:c.ends[r]]
		}
		if err := w.row(cells); err != nil {
			return err
		}
	}
	return w.close()
}
