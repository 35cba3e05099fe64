package dataops

import (
	"bufio"
	"context"
	"errors"
	"io"
	"strings"

	"golang.org/x/net/html"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/charset"
	"github.com/filewright/filewright/internal/delimited"
	"github.com/filewright/filewright/internal/language"
	"github.com/filewright/filewright/internal/report"
)

// Inspect returns the action "inspect" for text: its encoding and size, and for CSV and
// TSV the rows and columns.
func Inspect() fileops.Action {
	spec := report.Spec("go", "data", "Describes a text as JSON.", []format.Format{
		format.CSV, format.TSV, format.TXT, format.MD, format.HTML, format.XML, format.JSON, format.JSONL,
		format.SRT, format.VTT, format.ASS,
	})
	return fileops.Func(spec, func(ctx context.Context, job *fileops.Job) error {
		in := job.Input()
		open := charset.NewText
		if in.Format() == format.HTML || in.Format() == format.XML {
			open = charset.NewHTML
		}
		text, err := open(in.Reader(), in.Size())
		if err != nil {
			return err
		}
		r := report.New(job)
		r.Text = &report.Text{Encoding: text.Encoding()}
		var sample strings.Builder
		b := bufio.NewReaderSize(fileops.ContextReader(ctx, text.Reader()), 256<<10)
		last := '\n'
		for {
			c, _, err := b.ReadRune()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
			// A line ends with LF, CR or both (Unicode 5.8).
			if c == '\r' || c == '\n' && last != '\r' {
				r.Text.Lines++
			}
			r.Text.Characters++
			last = c
			if sample.Len() < languageSample {
				sample.WriteRune(c)
			}
		}
		if last != '\n' && last != '\r' {
			r.Text.Lines++
		}
		r.Text.Language = languageOf(sample.String(), in.Format())
		if in.Format() == format.CSV || in.Format() == format.TSV {
			if err := countCells(ctx, text, r); err != nil {
				return err
			}
		}
		return r.Write(job)
	})
}

// languageSample is the part of a text in bytes whose language is guessed.
const languageSample = 256 << 10

// languageOf guesses the language of a text, or of the text of a page. Data and tables have
// none.
func languageOf(sample string, f format.Format) string {
	switch f {
	case format.TXT, format.MD, format.SRT, format.VTT, format.ASS:
		return language.Detect(sample)
	case format.HTML:
		var text strings.Builder
		for z := html.NewTokenizer(strings.NewReader(sample)); ; {
			switch z.Next() {
			case html.ErrorToken: // the end
				return language.Detect(text.String())
			case html.TextToken:
				text.Write(z.Text())
				text.WriteByte(' ')
			case html.StartTagToken:
				if name, _ := z.TagName(); string(name) == "script" || string(name) == "style" {
					z.Next() // their content is one token
				}
			}
		}
	}
	return ""
}

// countCells adds the size of a table.
func countCells(ctx context.Context, text *charset.Text, r *report.Report) error {
	known := byte(0)
	if r.Format == format.TSV {
		known = '\t'
	}
	comma, rest, err := delimited.Sniff(fileops.ContextReader(ctx, text.Reader()), known)
	if err != nil {
		return err
	}
	rows := delimited.NewReader(rest, rune(comma))
	for {
		err := rows.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return err
		}
		r.Text.Columns = max(r.Text.Columns, rows.Len())
	}
	r.Text.Delimiter, r.Text.Rows = string(rune(comma)), rows.Rows()
	return nil
}
