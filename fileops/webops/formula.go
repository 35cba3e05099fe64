package webops

import (
	"bytes"
	"html"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"

	"github.com/filewright/filewright/internal/texmath"
)

// formulas is GitHub's extension for formulas in TeX: $…$, $`…`$, $$…$$ and blocks of the
// language math. A formula that cannot be converted stays as its source.
type formulas struct {
	failed bool // a formula was not converted
}

// Extend implements goldmark.Extender.
func (f *formulas) Extend(m goldmark.Markdown) {
	m.Parser().AddOptions(
		parser.WithInlineParsers(util.Prioritized(inlineFormula{f}, 90)), // before code
		parser.WithBlockParsers(util.Prioritized(blockFormula{f}, 690)),  // before fenced code
		parser.WithASTTransformers(util.Prioritized(f, 400)))
	m.Renderer().AddOptions(renderer.WithNodeRenderers(util.Prioritized(f, 100)))
}

var (
	inlineKind = ast.NewNodeKind("Formula")
	blockKind  = ast.NewNodeKind("FormulaBlock")
)

// A formulaSpan is a formula in a paragraph.
type formulaSpan struct {
	ast.BaseInline
	mathML string
}

// Kind implements ast.Node.
func (*formulaSpan) Kind() ast.NodeKind { return inlineKind }

// Dump implements ast.Node.
func (n *formulaSpan) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// A formulaBlock is a formula between lines of $$.
type formulaBlock struct {
	ast.BaseBlock
	mathML string // "" if it was not converted
	closed bool
}

// Kind implements ast.Node.
func (*formulaBlock) Kind() ast.NodeKind { return blockKind }

// Dump implements ast.Node.
func (n *formulaBlock) Dump(source []byte, level int) { ast.DumpHelper(n, source, level, nil, nil) }

// IsRaw implements ast.Node: the lines are not Markdown.
func (*formulaBlock) IsRaw() bool { return true }

type inlineFormula struct{ *formulas }

// Trigger implements parser.InlineParser.
func (inlineFormula) Trigger() []byte { return []byte{'$'} }

// isMoney reports whether text between two dollar signs is no formula. A formula has a
// command, an index or an exponent, or else no words.
func isMoney(tex string) bool {
	if strings.ContainsAny(tex, `\^_{`) {
		return false
	}
	letters := 0
	for word := range strings.FieldsFuncSeq(tex, func(r rune) bool { return !unicode.IsLetter(r) }) {
		if len(word) > 2 {
			return true
		}
		letters++
	}
	return letters == 0
}

// Parse implements parser.InlineParser.
func (f inlineFormula) Parse(_ ast.Node, block text.Reader, _ parser.Context) ast.Node {
	line, _ := block.PeekLine()
	before := block.PrecendingCharacter()
	if before == '$' || unicode.IsLetter(before) || unicode.IsDigit(before) {
		return nil
	}
	open, end := "$", "$"
	switch {
	case bytes.HasPrefix(line, []byte("$$")):
		open, end = "$$", "$$"
	case bytes.HasPrefix(line, []byte("$`")):
		open, end = "$`", "`$"
	}
	rest := line[len(open):]
	n := formulaEnd(rest, end)
	if n <= 0 {
		return nil
	}
	tex := string(rest[:n])
	if open == "$" {
		after := rest[n+1:]
		if unicode.IsSpace(rune(tex[0])) || unicode.IsSpace(rune(tex[n-1])) || len(after) > 0 && (after[0] == '$' || after[0] >= '0' && after[0] <= '9') || isMoney(tex) {
			return nil
		}
	}
	mathML, err := texmath.Convert(tex, open == "$$")
	if err != nil {
		f.failed = true
		return nil
	}
	block.Advance(len(open) + n + len(end))
	return &formulaSpan{mathML: mathML}
}

// formulaEnd returns the index of the end of a formula in a line, or -1.
func formulaEnd(line []byte, end string) int {
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\':
			i++
		case bytes.HasPrefix(line[i:], []byte(end)):
			return i
		}
	}
	return -1
}

// isClosed reports whether $$ comes before an empty line.
func isClosed(rest []byte) bool {
	for line := range bytes.Lines(rest) {
		if bytes.Contains(line, []byte("$$")) {
			return true
		}
		if util.IsBlank(line) {
			return false
		}
	}
	return false
}

type blockFormula struct{ *formulas }

// Trigger implements parser.BlockParser.
func (blockFormula) Trigger() []byte { return []byte{'$'} }

// Open implements parser.BlockParser. A formula on one line is left to the inline parser.
func (blockFormula) Open(_ ast.Node, reader text.Reader, _ parser.Context) (ast.Node, parser.State) {
	line, segment := reader.PeekLine()
	start := bytes.TrimLeft(line, " ")
	if !bytes.HasPrefix(start, []byte("$$")) || bytes.Contains(start[2:], []byte("$$")) {
		return nil, parser.NoChildren
	}
	if !isClosed(reader.Source()[segment.Stop:]) {
		return nil, parser.NoChildren
	}
	n := &formulaBlock{}
	segment.Start = segment.Stop - len(start) + 2
	n.Lines().Append(segment)
	reader.AdvanceToEOL()
	return n, parser.NoChildren
}

// Continue implements parser.BlockParser.
func (blockFormula) Continue(node ast.Node, reader text.Reader, _ parser.Context) parser.State {
	n := node.(*formulaBlock)
	line, segment := reader.PeekLine()
	if n.closed || util.IsBlank(line) {
		return parser.Close
	}
	if i := bytes.Index(line, []byte("$$")); i >= 0 {
		segment.Stop = segment.Start + i
		n.closed = true
	}
	n.Lines().Append(segment)
	reader.AdvanceToEOL()
	return parser.Continue | parser.NoChildren
}

// Close implements parser.BlockParser.
func (f blockFormula) Close(node ast.Node, reader text.Reader, _ parser.Context) {
	n := node.(*formulaBlock)
	var err error
	if n.mathML, err = texmath.Convert(string(n.Lines().Value(reader.Source())), true); err != nil {
		f.failed = true
	}
}

// CanInterruptParagraph implements parser.BlockParser.
func (blockFormula) CanInterruptParagraph() bool { return true }

// CanAcceptIndentedLine implements parser.BlockParser.
func (blockFormula) CanAcceptIndentedLine() bool { return false }

// Transform implements parser.ASTTransformer: it converts code blocks of the language
// math.
func (f *formulas) Transform(doc *ast.Document, reader text.Reader, _ parser.Context) {
	var blocks []*ast.FencedCodeBlock
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if c, ok := n.(*ast.FencedCodeBlock); ok && entering && strings.EqualFold(string(c.Language(reader.Source())), "math") {
			blocks = append(blocks, c)
		}
		return ast.WalkContinue, nil
	})
	for _, c := range blocks {
		mathML, err := texmath.Convert(string(c.Lines().Value(reader.Source())), true)
		if err != nil {
			f.failed = true
			continue
		}
		c.Parent().ReplaceChild(c.Parent(), c, &formulaBlock{mathML: mathML})
	}
}

// RegisterFuncs implements renderer.NodeRenderer.
func (*formulas) RegisterFuncs(r renderer.NodeRendererFuncRegisterer) {
	r.Register(inlineKind, func(w util.BufWriter, _ []byte, n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			_, _ = w.WriteString(n.(*formulaSpan).mathML)
		}
		return ast.WalkContinue, nil
	})
	r.Register(blockKind, func(w util.BufWriter, source []byte, node ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		n := node.(*formulaBlock)
		s := n.mathML
		if s == "" {
			s = "<pre><code>" + html.EscapeString(string(n.Lines().Value(source))) + "</code></pre>"
		}
		_, _ = w.WriteString(s + "\n")
		return ast.WalkContinue, nil
	})
}
