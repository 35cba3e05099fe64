// Package texmath converts formulas in TeX to MathML Core, which browsers draw themselves.
//
// It knows the part of LaTeX and amsmath that formulas in Markdown use: scripts,
// fractions, roots, delimiters, accents, alphabets, symbols, functions, matrices and
// aligned equations. It has no macros. A formula with anything else is an error, so that
// the caller can show the source instead of a wrong formula.
package texmath

import (
	"errors"
	"fmt"
	"html"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Limits of a formula.
const (
	maxFormula = 20_000 // bytes
	maxDepth   = 60     // of groups
)

// ErrUnsupported reports that a formula is not converted: it has an error, or a command
// that this package does not know.
var ErrUnsupported = errors.New("texmath: unsupported formula")

// Convert returns a formula as an element <math>. With display it is a block.
func Convert(tex string, display bool) (mathml string, err error) {
	if len(tex) > maxFormula {
		return "", ErrUnsupported
	}
	p := &parser{src: []rune(tex), display: display}
	row, err := p.row("")
	if t := p.peek(); err == nil && display && (t == `\\` || t == "&") && !strings.Contains(tex, `\begin{aligned}`) {
		return Convert(`\begin{aligned}`+tex+`\end{aligned}`, true)
	}
	if err == nil && p.peek() != "" {
		err = p.fail("unexpected %q", p.peek())
	}
	if err != nil {
		return "", err
	}
	mode := "inline"
	if display {
		mode = "block"
	}
	return `<math display="` + mode + `">` + join(row) + `</math>`, nil
}

// A node is an element of a formula.
type node struct {
	xml    string
	limits bool // scripts stand above and below in a displayed formula
	under  bool // scripts stand above and below everywhere
	named  bool // a function, which stands apart from its argument
}

func join(row []node) string {
	if len(row) == 1 {
		return row[0].xml
	}
	var b strings.Builder
	b.WriteString("<mrow>")
	for _, n := range row {
		b.WriteString(n.xml)
	}
	b.WriteString("</mrow>")
	return b.String()
}

func element(name, content string) string { return "<" + name + ">" + content + "</" + name + ">" }

func operator(s string) node {
	return node{xml: element("mo", html.EscapeString(s))}
}

// A parser reads a formula.
type parser struct {
	src     []rune
	pos     int
	depth   int
	display bool
	style   string // the current alphabet
}

func (p *parser) fail(message string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(message, args...))
}

// peek returns the next token without spaces: a command with its backslash, or one
// character. It is "" at the end.
func (p *parser) peek() string {
	pos := p.pos
	t := p.next()
	p.pos = pos
	return t
}

func (p *parser) next() string {
	for p.pos < len(p.src) {
		if c := p.src[p.pos]; c == '%' { // a comment
			for p.pos < len(p.src) && p.src[p.pos] != '\n' {
				p.pos++
			}
		} else if !unicode.IsSpace(c) {
			break
		}
		p.pos++
	}
	if p.pos >= len(p.src) {
		p.pos = len(p.src)
		return ""
	}
	start := p.pos
	p.pos++
	if p.src[start] != '\\' || p.pos >= len(p.src) {
		return string(p.src[start:p.pos])
	}
	for p.pos < len(p.src) && isLetter(p.src[p.pos]) {
		p.pos++
	}
	if p.pos == start+1 {
		p.pos++
	}
	return string(p.src[start:p.pos])
}

func isLetter(c rune) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }

// ends reports whether a token ends a row. The caller reads it.
func ends(t, end string) bool {
	switch t {
	case "", "}", "&", `\\`, `\cr`, `\right`, `\end`, `\middle`:
		return true
	}
	return t == end
}

// row reads up to a token that ends a row, or up to end.
func (p *parser) row(end string) (row []node, err error) {
	if p.depth++; p.depth > maxDepth {
		return nil, p.fail("too deep")
	}
	defer func() { p.depth-- }()
	for {
		t := p.peek()
		if ends(t, end) {
			return row, nil
		}
		switch t {
		case `\over`, `\choose`, `\atop`:
			p.next()
			rest, err := p.row(end)
			if err != nil {
				return nil, err
			}
			thick := ""
			if t != `\over` {
				thick = ` linethickness="0"`
			}
			f := node{xml: "<mfrac" + thick + ">" + join(row) + join(rest) + "</mfrac>"}
			if t == `\choose` {
				f = fence("(", f.xml, ")")
			}
			return []node{f}, nil
		case `\displaystyle`, `\textstyle`, `\scriptstyle`, `\limits`, `\nolimits`, `\nonumber`, `\notag`, `\allowbreak`, `\nobreak`:
			p.next()
			continue
		case `\rm`, `\bf`, `\it`, `\cal`, `\sf`, `\tt`:
			p.next()
			old := p.style
			p.style = t[1:]
			rest, err := p.row(end)
			p.style = old
			return append(row, rest...), err
		}
		n, err := p.scripted()
		if err != nil {
			return nil, err
		}
		row = append(row, n)
		if t := p.peek(); n.named && t != "(" && t != "[" && t != `\left` && t != "," && t != "=" && !ends(t, end) {
			row = append(row, node{xml: `<mspace width="0.167em"/>`})
		}
	}
}

// scripted reads an atom with its scripts.
func (p *parser) scripted() (node, error) {
	base := node{xml: "<mrow></mrow>"}
	var err error
	if t := p.peek(); t != "^" && t != "_" && t != "'" {
		if base, err = p.atom(); err != nil {
			return node{}, err
		}
	}
	var sub, sup string
	primes, power := false, false
	for {
		switch t := p.peek(); t {
		case "'":
			n := 0
			for ; p.peek() == "'" && n < 5; n++ {
				p.next()
			}
			if sup != "" || n == 5 {
				return node{}, p.fail("too many primes")
			}
			sup, primes = element("mo", strings.Repeat("′", n)), true
			continue
		case "^", "_":
			p.next()
			arg, err := p.arg()
			if err != nil {
				return node{}, err
			}
			if t == "_" {
				if sub != "" {
					return node{}, p.fail("double index")
				}
				sub = arg
			} else {
				if power {
					return node{}, p.fail("double exponent")
				}
				sup += arg
				power = true
			}
			continue
		case `\limits`, `\nolimits`:
			p.next()
			base.under, base.limits = t == `\limits`, false
			continue
		}
		break
	}
	if primes {
		sup = element("mrow", sup)
	}
	names := [3]string{"msub", "msup", "msubsup"}
	if base.under || base.limits && p.display {
		names = [3]string{"munder", "mover", "munderover"}
	}
	switch {
	case sub != "" && sup != "":
		return node{xml: element(names[2], base.xml+sub+sup), named: base.named}, nil
	case sub != "":
		return node{xml: element(names[0], base.xml+sub), named: base.named}, nil
	case sup != "":
		return node{xml: element(names[1], base.xml+sup), named: base.named}, nil
	}
	return base, nil
}

// arg reads a group or one atom.
func (p *parser) arg() (string, error) {
	if t := p.peek(); ends(t, "") || t == "^" || t == "_" {
		return "", p.fail("an argument is missing before %q", t)
	}
	if c := p.peek(); c[0] >= '0' && c[0] <= '9' { // one digit, not a number
		return element("mn", alphabet(p.style, p.next())), nil
	}
	n, err := p.atom()
	return n.xml, err
}

// raw reads a group without interpreting it.
func (p *parser) raw() (string, error) {
	if p.next() != "{" {
		return "", p.fail("{ is missing")
	}
	start, depth := p.pos, 1
	for ; p.pos < len(p.src); p.pos++ {
		switch p.src[p.pos] {
		case '\\':
			p.pos++
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				s := string(p.src[start:p.pos])
				p.pos++
				return s, nil
			}
		}
	}
	return "", p.fail("} is missing")
}

// text reads a group of text.
func (p *parser) text() (string, error) {
	s, err := p.raw()
	if err != nil {
		return "", err
	}
	s = strings.NewReplacer(`\ `, " ", `\,`, " ", `\%`, "%", `\&`, "&", `\#`, "#", `\_`, "_", `\{`, "{", `\}`, "}", "~", "\u00a0").Replace(s)
	if strings.ContainsAny(s, `\${}`) {
		return "", p.fail("a command in text")
	}
	// Spaces at the ends of an element do not count.
	if strings.HasPrefix(s, " ") {
		s = "\u00a0" + s[1:]
	}
	if strings.HasSuffix(s, " ") {
		s = s[:len(s)-1] + "\u00a0"
	}
	return html.EscapeString(s), nil
}

// atom reads an atom without scripts.
func (p *parser) atom() (node, error) {
	t := p.next()
	if ends(t, "") {
		return node{}, p.fail("unexpected %q", t)
	}
	switch c, _ := utf8.DecodeRuneInString(t); {
	case t == "{":
		old := p.style
		row, err := p.row("")
		p.style = old
		if err == nil && p.next() != "}" {
			err = p.fail("} is missing")
		}
		return node{xml: join(row)}, err
	case c == '\\':
		return p.command(t)
	case c >= '0' && c <= '9':
		for p.pos < len(p.src) {
			d := p.src[p.pos]
			point := d == '.' && p.pos+1 < len(p.src) && p.src[p.pos+1] >= '0' && p.src[p.pos+1] <= '9'
			if !point && (d < '0' || d > '9') {
				break
			}
			t += string(d)
			p.pos++
		}
		return node{xml: element("mn", alphabet(p.style, t))}, nil
	case unicode.IsLetter(c):
		return node{xml: p.identifier(t)}, nil
	case c == '|':
		return node{xml: `<mo stretchy="false" lspace="0" rspace="0">|</mo>`}, nil
	case c == '(' || c == ')' || c == '[' || c == ']' || c == '/':
		return node{xml: `<mo stretchy="false">` + t + "</mo>"}, nil
	case c == '-':
		return operator("−"), nil
	case c == '*':
		return operator("∗"), nil
	case c == '~':
		return node{xml: `<mspace width="0.333em"/>`}, nil
	case c == '$' || c == '#' || c == '\\':
		return node{}, p.fail("unexpected %q", t)
	}
	return operator(t), nil
}

// identifier returns a letter in the current alphabet.
func (p *parser) identifier(s string) string {
	switch p.style {
	case "":
		return element("mi", html.EscapeString(s))
	case "rm":
		return `<mi mathvariant="normal">` + html.EscapeString(s) + "</mi>"
	}
	return element("mi", html.EscapeString(alphabet(p.style, s)))
}

// styled reads an argument in an alphabet. Roman letters form a word.
func (p *parser) styled(style string) (node, error) {
	old := p.style
	p.style = style
	defer func() { p.style = old }()
	if style == "rm" && p.peek() == "{" {
		pos := p.pos
		if s, err := p.raw(); err == nil && strings.IndexFunc(s, func(r rune) bool { return !isLetter(r) }) < 0 && len(s) > 1 {
			return node{xml: element("mi", s)}, nil
		}
		p.pos = pos
	}
	xml, err := p.arg()
	return node{xml: xml}, err
}

func fence(open, content, end string) node {
	side := func(s string) string {
		if s == "" {
			return ""
		}
		return `<mo fence="true" stretchy="true">` + html.EscapeString(s) + "</mo>"
	}
	return node{xml: element("mrow", side(open)+content+side(end))}
}

// delimiter reads a delimiter. It is "" for a dot.
func (p *parser) delimiter() (string, error) {
	t := p.next()
	if d, ok := delimiters[t]; ok {
		return d, nil
	}
	switch t {
	case "(", ")", "[", "]", "|", "/":
		return t, nil
	}
	return "", p.fail("unknown delimiter %q", t)
}

// command converts a command.
func (p *parser) command(t string) (node, error) {
	name := t[1:]
	if n, ok := p.symbol(name); ok {
		return n, nil
	}
	if s, ok := accents[name]; ok {
		return p.accent(name, s)
	}
	if style, ok := styles[name]; ok {
		return p.styled(style)
	}
	if d, ok := delimiters[t]; ok && d != "" {
		return node{xml: `<mo stretchy="false">` + html.EscapeString(d) + "</mo>"}, nil
	}
	switch name {
	case "frac", "dfrac", "tfrac", "cfrac", "binom", "dbinom", "tbinom", "overset", "stackrel", "underset":
		return p.fraction(name)
	case "sqrt":
		return p.root()
	case "left":
		return p.paired()
	case "begin":
		return p.environment()
	case "text", "mbox", "textrm", "textnormal", "hbox", "textup":
		s, err := p.text()
		return node{xml: element("mtext", s)}, err
	case "textbf", "textit":
		s, err := p.text()
		style := map[string]string{"textbf": "font-weight:bold", "textit": "font-style:italic"}[name]
		return node{xml: `<mtext style="` + style + `">` + s + "</mtext>"}, err
	case "operatorname":
		star := p.pos < len(p.src) && p.src[p.pos] == '*'
		if star {
			p.pos++
		}
		s, err := p.text()
		return node{xml: `<mi mathvariant="normal">` + s + "</mi>", limits: star, named: true}, err
	case "big", "Big", "bigg", "Bigg", "bigl", "Bigl", "biggl", "Biggl", "bigr", "Bigr", "biggr", "Biggr", "bigm", "Bigm", "biggm", "Biggm":
		size := map[string]string{"big": "1.2em", "Big": "1.8em", "bigg": "2.4em", "Bigg": "3em"}[strings.TrimRight(name, "lrm")]
		d, err := p.delimiter()
		return node{xml: `<mo stretchy="true" symmetric="true" minsize="` + size + `" maxsize="` + size + `">` + html.EscapeString(d) + "</mo>"}, err
	case "not":
		return p.negated()
	case "bmod", "mod":
		return node{xml: `<mo lspace="0.2em" rspace="0.2em">mod</mo>`}, nil
	case "pmod":
		a, err := p.arg()
		return node{xml: `<mspace width="0.4em"/><mo stretchy="false">(</mo><mi>mod</mi><mspace width="0.3em"/>` + a + `<mo stretchy="false">)</mo>`}, err
	case "boxed", "fbox":
		a, err := p.arg()
		return node{xml: `<mrow style="border:1px solid;padding:0.2em">` + a + "</mrow>"}, err
	case "phantom", "hphantom", "vphantom":
		a, err := p.arg()
		return node{xml: element("mphantom", a)}, err
	case "xrightarrow", "xleftarrow":
		a, err := p.arg()
		arrow := map[string]string{"xrightarrow": "→", "xleftarrow": "←"}[name]
		return node{xml: element("mover", `<mo stretchy="true">`+arrow+"</mo>"+`<mpadded lspace="0.3em" width="+0.6em">`+a+"</mpadded>")}, err
	case "tag":
		s, err := p.text()
		return node{xml: `<mspace width="2em"/><mtext>(` + s + ")</mtext>"}, err
	case "label":
		_, err := p.raw()
		return node{}, err
	}
	return node{}, p.fail("unknown command %q", t)
}

// symbol returns a command without arguments that the tables list.
func (p *parser) symbol(name string) (node, bool) {
	if s, ok := identifiers[name]; ok {
		if first, _ := utf8.DecodeRuneInString(s); unicode.IsUpper(first) && p.style == "" {
			return node{xml: `<mi mathvariant="normal">` + s + "</mi>"}, true
		}
		return node{xml: p.identifier(s)}, true
	}
	if s, ok := operators[name]; ok {
		return operator(s), true
	}
	if s, ok := large[name]; ok {
		n := operator(s)
		n.limits = !strings.HasSuffix(name, "int")
		return n, true
	}
	if s, ok := functions[name]; ok {
		return node{xml: element("mi", s), limits: withLimits[name], named: true}, true
	}
	if width, ok := spaces[name]; ok {
		return node{xml: `<mspace width="` + width + `"/>`}, true
	}
	return node{}, false
}

// accent puts the mark s over or under the argument.
func (p *parser) accent(name, s string) (node, error) {
	arg, err := p.arg()
	tag, extra := "mover", ` accent="true"`
	if strings.HasPrefix(name, "under") {
		tag, extra = "munder", ` accentunder="true"`
	}
	stretchy := `<mo stretchy="false">`
	if strings.HasPrefix(name, "wide") || strings.HasPrefix(name, "over") || strings.HasPrefix(name, "under") {
		stretchy = `<mo stretchy="true">`
	}
	return node{xml: "<" + tag + extra + ">" + arg + stretchy + s + "</mo></" + tag + ">", under: strings.HasSuffix(name, "brace")}, err
}

// fraction reads the two arguments of a fraction, or of another pair that is set one above the other.
func (p *parser) fraction(name string) (node, error) {
	a, err := p.arg()
	if err != nil {
		return node{}, err
	}
	b, err := p.arg()
	switch {
	case strings.HasSuffix(name, "binom"):
		return fence("(", `<mfrac linethickness="0">`+a+b+"</mfrac>", ")"), err
	case name == "underset":
		return node{xml: element("munder", b+a)}, err
	case name == "overset" || name == "stackrel":
		return node{xml: element("mover", b+a)}, err
	case name == "dfrac" || name == "cfrac":
		return node{xml: `<mstyle displaystyle="true">` + element("mfrac", a+b) + "</mstyle>"}, err
	}
	return node{xml: element("mfrac", a+b)}, err
}

// root reads the argument of a root, and its index if it has one.
func (p *parser) root() (node, error) {
	if p.peek() != "[" {
		a, err := p.arg()
		return node{xml: element("msqrt", a)}, err
	}
	p.next()
	index, err := p.row("]")
	if err != nil {
		return node{}, err
	}
	if p.next() != "]" {
		return node{}, p.fail("] is missing")
	}
	a, err := p.arg()
	return node{xml: element("mroot", a+join(index))}, err
}

// negated strikes out the relation that follows.
func (p *parser) negated() (node, error) {
	n, err := p.atom()
	i := strings.LastIndex(n.xml, "</mo>")
	if err == nil && (i < 0 || i+len("</mo>") != len(n.xml)) {
		err = p.fail("\\not before something else than a relation")
	}
	if err != nil {
		return node{}, err
	}
	return node{xml: n.xml[:i] + "\u0338" + n.xml[i:]}, nil
}

// paired reads what follows \left.
func (p *parser) paired() (node, error) {
	open, err := p.delimiter()
	if err != nil {
		return node{}, err
	}
	content := ""
	for {
		row, err := p.row("")
		if err != nil {
			return node{}, err
		}
		content += join(row)
		switch t := p.next(); t {
		case `\middle`:
			d, err := p.delimiter()
			if err != nil {
				return node{}, err
			}
			content += `<mo stretchy="true">` + html.EscapeString(d) + "</mo>"
		case `\right`:
			end, err := p.delimiter()
			return fence(open, content, end), err
		default:
			return node{}, p.fail("\\right is missing")
		}
	}
}

// environment reads what follows \begin.
func (p *parser) environment() (node, error) {
	name, err := p.raw()
	if err != nil {
		return node{}, err
	}
	e, ok := environments[strings.TrimSuffix(name, "*")]
	if !ok {
		return node{}, p.fail("unknown environment %q", name)
	}
	columns := e.columns
	if name == "array" || name == "alignedat" || name == "alignat" {
		spec, err := p.raw()
		if err != nil {
			return node{}, err
		}
		if name == "array" {
			columns = strings.Map(func(r rune) rune {
				if strings.ContainsRune("lcr", r) {
					return r
				}
				return -1
			}, spec)
		}
	}
	var b strings.Builder
	b.WriteString(`<mtable`)
	if e.display {
		b.WriteString(` displaystyle="true"`)
	}
	b.WriteString(">")
	column := 0
	row := ""
	cell := func() error {
		nodes, err := p.row("")
		align := "c"
		if columns != "" {
			align = string(columns[column%len(columns)])
		}
		style := "text-align:" + map[string]string{"l": "left", "c": "center", "r": "right"}[align]
		if e.tight { // the sides of an equation stand together
			style += map[string]string{"r": ";padding-right:0", "l": ";padding-left:0"}[align]
		}
		row += `<mtd style="` + style + `">` + join(nodes) + "</mtd>"
		column++
		return err
	}
	for {
		for p.peek() == `\hline` {
			p.next()
		}
		if err := cell(); err != nil {
			return node{}, err
		}
		switch t := p.next(); t {
		case "&":
			continue
		case `\\`, `\cr`:
			if p.pos < len(p.src) && p.src[p.pos] == '[' { // extra space
				for p.pos < len(p.src) && p.src[p.pos] != ']' {
					p.pos++
				}
				p.pos++
			}
			b.WriteString(element("mtr", row))
			row, column = "", 0
			if p.peek() != `\end` {
				continue
			}
			p.next()
		case `\end`:
			b.WriteString(element("mtr", row))
		default:
			return node{}, p.fail("\\end is missing")
		}
		break
	}
	if end, err := p.raw(); err != nil || end != name {
		return node{}, p.fail("\\end{%s} is missing", name)
	}
	b.WriteString("</mtable>")
	return fence(e.open, b.String(), e.end), nil
}
