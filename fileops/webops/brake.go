package webops

import (
	"context"

	"github.com/filewright/filewright/fileops"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

const (
	maxNesting = 100   // of quotes, lists and notes
	maxMarks   = 5_000 // special characters of Markdown in a paragraph
)

// A brake stops the Markdown parser, which ignores contexts. The parser's time grows
// with the square of nesting depth and of paragraph length. The parser calls the brake
// before each block and at each special character. The brake changes nothing and panics
// with the error in stopped.
type brake struct {
	ctx   context.Context // of the run, which outlives the parser
	block ast.Node        // the current paragraph
	marks int             // special characters in block
}

// stopped is the panic value of a brake.
type stopped struct{ err error }

func (b *brake) stop() {
	if b.ctx.Err() != nil {
		panic(stopped{context.Cause(b.ctx)})
	}
}

// release recovers the panic of a brake and stores its error. Call it with defer.
func release(err *error) {
	switch p := recover().(type) {
	case nil:
	case stopped:
		*err = p.err
	default:
		panic(p)
	}
}

// blockBrake and inlineBrake adapt a brake to the two kinds of parsers.
type (
	blockBrake  struct{ *brake }
	inlineBrake struct{ *brake }
)

// Trigger implements parser.BlockParser. It returns the first characters of quotes,
// lists and notes.
func (blockBrake) Trigger() []byte { return []byte(">-+*[0123456789") }

// Open implements parser.BlockParser. It never opens a block.
func (b blockBrake) Open(parent ast.Node, _ text.Reader, _ parser.Context) (ast.Node, parser.State) {
	b.stop()
	depth := 0
	for n := parent; n != nil; n = n.Parent() {
		if depth++; depth > maxNesting {
			panic(stopped{fileops.Fail(fileops.ErrLimit, nil, "the text is nested more than %d levels deep", maxNesting)})
		}
	}
	return nil, parser.NoChildren
}

// Continue implements parser.BlockParser.
func (blockBrake) Continue(ast.Node, text.Reader, parser.Context) parser.State { return parser.Close }

// Close implements parser.BlockParser.
func (blockBrake) Close(ast.Node, text.Reader, parser.Context) {}

// CanInterruptParagraph implements parser.BlockParser.
func (blockBrake) CanInterruptParagraph() bool { return true }

// CanAcceptIndentedLine implements parser.BlockParser.
func (blockBrake) CanAcceptIndentedLine() bool { return true }

// Trigger implements parser.InlineParser.
func (inlineBrake) Trigger() []byte { return []byte("[]!*_~`<") }

// Parse implements parser.InlineParser. It takes nothing.
func (b inlineBrake) Parse(parent ast.Node, _ text.Reader, _ parser.Context) ast.Node {
	b.stop()
	if parent != b.block {
		b.block, b.marks = parent, 0
	}
	if b.marks++; b.marks > maxMarks {
		panic(stopped{fileops.Fail(fileops.ErrLimit, nil, "a paragraph has more than %d characters that mark something", maxMarks)})
	}
	return nil
}
