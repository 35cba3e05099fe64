package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/charset"
	"github.com/filewright/filewright/internal/pagelist"
)

// sectionSize is the size in bytes of a section of a document without pages.
const sectionSize = 6_000

// addReadDocument adds the tool that reads a document, if some format can be read.
func (t *tools) addReadDocument(server *sdk.Server) {
	readable := false
	for e := range t.matrix.Entries() {
		if readable = t.waysToRead(e.Format) != nil; readable {
			break
		}
	}
	if !readable {
		return
	}
	server.AddTool(&sdk.Tool{
		Name: "read_document",
		Description: "Read a document as Markdown, with its headings, lists and tables: PDF, Office, HTML, EPUB, mail, tables, slides, and scans or pictures by text recognition. " +
			"A PDF is read by pages, other documents by sections of about one page. The first line of the result says which part it is.",
		InputSchema: object{"type": "object", "additionalProperties": false, "required": []string{"file"}, "properties": object{
			"file":         object{"type": "string", "description": t.Files},
			"pages":        object{"type": "string", "pattern": "^" + pagelist.Pattern + "$", "description": `Pages or sections, such as "11-20", "1,3,-1"; negative numbers count from the end. Default: the first ten.`},
			"password":     object{"type": "string", "description": "Password of an encrypted document."},
			"ocr_language": object{"type": "string", "description": "Language of scanned pages, as the parameter of convert."},
		}},
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(bool)},
	}, t.handler(t.readDocument))
}

// waysToRead returns the formats through which a file is converted to Markdown, which is the last of
// them, or nil if that is not possible. Sheets keep their tables through HTML; anything else that
// cannot become Markdown directly becomes a PDF, which has pages.
func (t *tools) waysToRead(f format.Format) []format.Format {
	if f == format.MD || f == format.TXT {
		return []format.Format{}
	}
	can := func(from, to format.Format) bool {
		_, _, err := t.Registry.Resolve(actionConvert, []format.Format{from}, fileops.Args{"convert_to": string(to)})
		return err == nil
	}
	if can(f, format.MD) {
		return []format.Format{format.MD}
	}
	between := []format.Format{format.PDF, format.HTML}
	if f.Family() == format.Sheet {
		slices.Reverse(between)
	}
	for _, b := range between {
		if can(f, b) && can(b, format.MD) {
			return []format.Format{b, format.MD}
		}
	}
	return nil
}

func (t *tools) readDocument(ctx context.Context, args fileops.Args, progress func(float64)) (*sdk.CallToolResult, error) {
	file, _ := args["file"].(string)
	if file == "" {
		return nil, errors.New("file is required: the document to read")
	}
	list, _ := args["pages"].(string)
	f, err := t.Backend.Open(ctx, file)
	if err != nil {
		return nil, err
	}
	f.Close()
	from := format.Parse(f.Name)
	ways := t.waysToRead(from)
	if ways == nil {
		return nil, fmt.Errorf("%s cannot be read as a document; list_formats shows what is possible", f.Name)
	}
	var temporary []string
	defer func() {
		for _, name := range temporary {
			// What remains expires, or is removed with the scratch directory.
			_ = t.Backend.Remove(context.WithoutCancel(ctx), name)
		}
	}()
	var warnings []fileops.Warning
	for len(ways) > 1 { // the intermediate format
		results, err := t.Backend.Run(ctx, Call{Action: actionConvert, Files: []string{file}, Args: t.pass(args, from, ways[0]), Temporary: true, Progress: progress})
		if err != nil {
			return nil, err
		}
		for _, r := range results {
			temporary = append(temporary, r.File)
			warnings = append(warnings, r.Warnings...)
		}
		if len(results) != 1 {
			return nil, fmt.Errorf("%s cannot be read as one document", f.Name)
		}
		delete(args, "password") // the intermediate file has none
		file, from, ways = results[0].File, ways[0], ways[1:]
	}
	if len(ways) == 0 {
		return t.readText(ctx, file, list)
	}
	call := Call{Action: actionConvert, Files: []string{file}, Args: t.pass(args, from, format.MD), Temporary: true, Progress: progress}
	if from == format.PDF {
		return t.readPages(ctx, call, args, list, warnings)
	}
	text, more, err := t.text(ctx, call)
	if err != nil {
		return nil, err
	}
	return t.sections(text, list, append(warnings, more...))
}

// pass returns the arguments of a conversion: the target, and those of args that it accepts.
func (t *tools) pass(args fileops.Args, from, to format.Format) fileops.Args {
	out := fileops.Args{"convert_to": string(to)}
	for _, name := range []string{"password", "ocr_language"} {
		if v, ok := args[name]; ok {
			out[name] = v
			if _, _, err := t.Registry.Resolve(actionConvert, []format.Format{from}, out); err != nil {
				delete(out, name)
			}
		}
	}
	return out
}

// readPages reads pages of a PDF.
func (t *tools) readPages(ctx context.Context, c Call, args fileops.Args, list string, warnings []fileops.Warning) (*sdk.CallToolResult, error) {
	inspect := Call{Action: actionInspect, Files: c.Files, Args: fileops.Args{}, Temporary: true, Progress: func(float64) {}}
	if v, ok := args["password"]; ok {
		inspect.Args["password"] = v
	}
	report, _, err := t.text(ctx, inspect)
	if err != nil {
		return nil, err
	}
	var about struct {
		PDF struct {
			Pages int `json:"pages"`
		} `json:"pdf"`
	}
	if err := json.Unmarshal([]byte(report), &about); err != nil {
		return nil, err
	}
	total := about.PDF.Pages
	pages, err := pagelist.Parse(cmp.Or(list, first(total)), total)
	if err != nil {
		return nil, err
	}
	c.Args["pages"] = ranges(pages)
	text, more, err := t.text(ctx, c)
	if err != nil {
		return nil, err
	}
	return t.part(position("page", pages, total, list == ""), text, append(warnings, more...)), nil
}

// atOnce is the number of pages that are read without a parameter pages.
const atOnce = 10

// first returns the list of the first pages of total.
func first(total int) string { return fmt.Sprintf("1-%d", min(atOnce, max(1, total))) }

// position returns the first line of a result: which pages or sections it is, and how to go on after
// the first ones.
func position(unit string, chosen []int, total int, firstOnes bool) string {
	if len(chosen) == total {
		return fmt.Sprintf("The whole document (%s).", count(unit, total))
	}
	if len(chosen) != 1 {
		unit += "s"
	}
	head := fmt.Sprintf("%s%s %s of %d.", strings.ToUpper(unit[:1]), unit[1:], ranges(chosen), total)
	if firstOnes {
		head += fmt.Sprintf(" Continue with pages=%q.", fmt.Sprintf("%d-%d", atOnce+1, min(total, 2*atOnce)))
	}
	return head
}

func count(unit string, n int) string {
	if n == 1 {
		return "1 " + unit
	}
	return fmt.Sprintf("%d %ss", n, unit)
}

// ranges writes pages, counted from 0, as a list such as "1-3,5".
func ranges(pages []int) string {
	var out []string
	for i := 0; i < len(pages); {
		j := i
		for j+1 < len(pages) && pages[j+1] == pages[j]+1 {
			j++
		}
		if i == j {
			out = append(out, strconv.Itoa(pages[i]+1))
		} else {
			out = append(out, fmt.Sprintf("%d-%d", pages[i]+1, pages[j]+1))
		}
		i = j + 1
	}
	return strings.Join(out, ",")
}

// readText reads a file that is text already.
func (t *tools) readText(ctx context.Context, file, list string) (*sdk.CallToolResult, error) {
	var b bytes.Buffer
	if err := t.read(ctx, &b, file); err != nil {
		return nil, err
	}
	return t.sections(string(charset.Decode(b.Bytes())), list, nil)
}

// sections returns the chosen sections of a text.
func (t *tools) sections(text, list string, warnings []fileops.Warning) (*sdk.CallToolResult, error) {
	all := cut(text, sectionSize)
	chosen, err := pagelist.Parse(cmp.Or(list, first(len(all))), len(all))
	if err != nil {
		return nil, err
	}
	var b strings.Builder
	for _, i := range chosen {
		b.WriteString(all[i])
	}
	return t.part(position("section", chosen, len(all), list == ""), b.String(), warnings), nil
}

// part returns a part of a document, with a first line that says which.
func (t *tools) part(head, text string, warnings []fileops.Warning) *sdk.CallToolResult {
	if len(text) > t.MaxText {
		kept := cut(text, t.MaxText)[0]
		head += fmt.Sprintf(" Only the first %d of %d bytes of this part are here; read fewer pages at a time.", len(kept), len(text))
		text = kept
	}
	r := textResult(head + "\n\n" + text)
	if len(warnings) > 0 {
		var b strings.Builder
		for _, w := range warnings {
			fmt.Fprintf(&b, "warning: %s (%s)\n", w.Message, w.Code)
		}
		r.Content = append(r.Content, &sdk.TextContent{Text: b.String()})
	}
	return r
}

// cut divides a text into parts of about size bytes, at blank lines outside of code blocks where that
// is possible, else at ends of lines. The parts together are the text; there is at least one.
func cut(text string, size int) []string {
	var parts []string
	start, blank, line, code := 0, 0, 0, false
	for at := 0; at < len(text); {
		end := strings.IndexByte(text[at:], '\n')
		if end = at + end + 1; end == at {
			end = len(text)
		}
		content := strings.TrimSpace(text[at:end])
		if strings.HasPrefix(content, "```") {
			code = !code
		}
		if end-start > size && line > start {
			cutAt := line
			if blank > start {
				cutAt = blank
			}
			parts = append(parts, text[start:cutAt])
			start = cutAt
		}
		if line = end; content == "" && !code {
			blank = end
		}
		at = end
	}
	if start < len(text) || len(parts) == 0 {
		parts = append(parts, text[start:])
	}
	return parts
}
