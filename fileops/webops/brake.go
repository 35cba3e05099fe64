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
	maxMarks   = 5_000 // characters in a paragraph that may be Markdown
)

// A brake stops the parser of Markdown, which knows no context and takes a time
// that grows with the square of what it finds nested or in one paragraph. It is
// asked before each block and at each special character, takes part in nothing,
// and panics with the error in stop.
type brake struct {
	ctx   context.Context // of the run, which the parser does not outlive
	block ast.Node        // the paragraph that is being parsed
	marks int             // in there
}

// stopped is what a brake panics with.
type stopped struct{ err error }

func (b *brake) stop() {
	if b.ctx.Err() != nil {
		panic(stopped{context.Cause(b.ctx)})
	}
}

// release turns the panic of a brake into its error. It is deferred.
func release(err *error) {
	switch p := recover().(type) {
	case nil:
	case stopped:
		*err = p.err
	default:
		panic(p)
	}
}

// blockBrake and inlineBrake are a brake as the two kinds of parsers.
type (
	blockBrake  struct{ *brake }
	inlineBrake struct{ *brake }
)

// Trigger implements parser.BlockParser: what quotes, lists and notes begin with.
func (blockBrake) Trigger() []byte { return []byte(">-+*[0123456789") }

// Open implements parser.BlockParser. It opens nothing.
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
