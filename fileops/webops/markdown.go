package webops

import (
	"bytes"
	"context"
	_ "embed"
	"html"
	"regexp"
	"runtime"
	"strings"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/charset"
	"github.com/filewright/filewright/internal/worktime"
	"github.com/yuin/goldmark"
	emoji "github.com/yuin/goldmark-emoji"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	gmhtml "github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
	"github.com/yuin/goldmark/util"
)

//go:embed markdown.css
var markdownStyle string

var (
	// frontMatter matches metadata before the text, for publishing programs.
	frontMatter = regexp.MustCompile(`(?s)\A---[ \t]*\n(.*?)\n(?:---|\.\.\.)[ \t]*(?:\n|\z)`)
	matterTitle = regexp.MustCompile(`(?m)^title:[ \t]*(.+?)[ \t]*$`)
)

// markdownPage prints Markdown in GitHub's dialect: CommonMark with tables, task lists,
// strikethrough, links without brackets, footnotes, alerts, formulas and :names: of
// emoji. It keeps HTML, which has no more rights here than in a page.
//
// It fails with [fileops.ErrLimit] if parsing exceeds the time limit of a document.
func (e *Engine) markdownPage(ctx context.Context, job *fileops.Job, in []byte) (_ page, err error) {
	runtime.LockOSThread() // for worktime.Thread
	defer runtime.UnlockOSThread()
	ctx, cancel := e.pool.limited(ctx, worktime.Thread())
	defer cancel()
	defer release(&err)
	stop := &brake{ctx: ctx}
	src := bytes.ReplaceAll(charset.Decode(in), []byte("\r\n"), []byte("\n"))
	title := ""
	if m := frontMatter.FindSubmatchIndex(src); m != nil {
		if t := matterTitle.FindSubmatch(src[m[2]:m[3]]); t != nil {
			title = strings.Trim(string(t[1]), `"'`)
		}
		src = src[m[1]:]
	}
	tex := &formulas{}
	md := goldmark.New(
		goldmark.WithExtensions(extension.GFM, extension.Footnote, emoji.Emoji, tex),
		goldmark.WithParserOptions(
			parser.WithBlockParsers(util.Prioritized(blockBrake{stop}, 0)), parser.WithInlineParsers(util.Prioritized(inlineBrake{stop}, 0)),
			parser.WithAutoHeadingID(), parser.WithASTTransformers(util.Prioritized(alerts{}, 500))),
		goldmark.WithRendererOptions(gmhtml.WithUnsafe()),
	)
	root := md.Parser().Parse(text.NewReader(src))
	warnSource(job, root, src, tex.failed)
	var body bytes.Buffer
	if title != "" {
		body.WriteString("<h1>" + html.EscapeString(title) + "</h1>\n")
	}
	if err := md.Renderer().Render(&body, src, root); err != nil {
		return page{}, fileops.Fail(fileops.ErrCorruptInput, err, "the text cannot be read as Markdown")
	}
	if title == "" {
		title = firstHeading(root, src)
	}
	if title == "" {
		title = format.Base(job.Input().Name())
	}
	l := newLayout(job.Params, textMargin, false)
	return page{html: document(title, markdownStyle, string(refresh.ReplaceAll(body.Bytes(), nil))), layout: l, lost: func(l losses) { l.warn(job) }}, nil
}

// warnSource warns about diagrams and formulas that are shown as their source.
func warnSource(job *fileops.Job, root ast.Node, src []byte, formulas bool) {
	diagrams := false
	_ = ast.Walk(root, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if c, ok := n.(*ast.FencedCodeBlock); ok && entering {
			switch strings.ToLower(string(c.Language(src))) {
			case "mermaid", "plantuml", "graphviz", "dot":
				diagrams = true
			case "latex-math":
				formulas = true
			}
		}
		return ast.WalkContinue, nil
	})
	if diagrams {
		job.Warn(fileops.WarnLayoutSimplified, "Diagrams are shown as their source text.")
	}
	if formulas {
		job.Warn(fileops.WarnLayoutSimplified, "Formulas are shown as their TeX source.")
	}
}

// firstHeading returns the text of the first level-1 heading.
func firstHeading(root ast.Node, src []byte) string {
	for n := root.FirstChild(); n != nil; n = n.NextSibling() {
		if h, ok := n.(*ast.Heading); ok && h.Level == 1 {
			return plain(h, src)
		}
	}
	return ""
}

func plain(n ast.Node, src []byte) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if entering {
			switch n := n.(type) {
			case *ast.Text:
				b.Write(n.Segment.Value(src))
			case *ast.String:
				b.Write(n.Value)
			}
		}
		return ast.WalkContinue, nil
	})
	return strings.TrimSpace(b.String())
}

// alerts is GitHub's extension for quotes that start with [!NOTE] and the like.
type alerts struct{}

var alertMark = regexp.MustCompile(`^\[!(NOTE|TIP|IMPORTANT|WARNING|CAUTION)\][ \t]*\n?$`)

// Transform implements parser.ASTTransformer.
func (alerts) Transform(doc *ast.Document, reader text.Reader, _ parser.Context) {
	src := reader.Source()
	_ = ast.Walk(doc, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		quote, ok := n.(*ast.Blockquote)
		if !ok || !entering {
			return ast.WalkContinue, nil
		}
		first, ok := quote.FirstChild().(*ast.Paragraph)
		if !ok || first.Lines().Len() == 0 {
			return ast.WalkContinue, nil
		}
		line := first.Lines().At(0)
		m := alertMark.FindSubmatch(line.Value(src))
		if m == nil {
			return ast.WalkContinue, nil
		}
		// The parsed first line is the marker.
		for c := first.FirstChild(); c != nil; {
			next := c.NextSibling()
			t, ok := c.(*ast.Text)
			if !ok || t.Segment.Start >= line.Stop {
				break
			}
			first.RemoveChild(first, c)
			c = next
		}
		kind := string(m[1])
		quote.SetAttributeString("class", []byte("alert "+strings.ToLower(kind)))
		title := ast.NewParagraph()
		title.SetAttributeString("class", []byte("alert-title"))
		title.AppendChild(title, ast.NewString([]byte(kind[:1]+strings.ToLower(kind[1:]))))
		quote.InsertBefore(quote, first, title)
		if first.ChildCount() == 0 {
			quote.RemoveChild(quote, first)
		}
		return ast.WalkContinue, nil
	})
}
