// Package mcp lets agents use Filewright: a server of the Model Context Protocol
// (https://modelcontextprotocol.io) with one tool for each action, and with tools that list the
// formats and read any document as Markdown.
//
// The tools work on the files of a [Backend]. [Local] runs actions in this process on the files below
// a directory, for agents that run beside them:
//
//	server := mcp.NewServer(mcp.Config{Backend: &mcp.Local{Root: ".", Registry: reg}, Registry: reg})
//	err := server.Run(ctx, &sdk.StdioTransport{})
//
// [New] adds the endpoint POST /mcp to a service. There the files are those of the API key's account,
// named by their file keys, and every action is an operation of the service.
package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/filewright/filewright/capability"
	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
)

// A Backend runs actions on the files of one caller.
type Backend interface {
	// Run runs an action and returns its results.
	Run(ctx context.Context, c Call) ([]Result, error)

	// Open returns a file. A file of another caller looks missing.
	Open(ctx context.Context, file string) (*Content, error)

	// Remove deletes a result of a Call with Temporary set.
	Remove(ctx context.Context, file string) error
}

// A Call asks a [Backend] to run an action.
type Call struct {
	Action    string
	Files     []string // names of the inputs, as the backend defines them
	Args      fileops.Args
	Output    string // where to put the results, as the backend defines it; "" lets it choose
	Temporary bool   // the caller of the backend reads the results and removes them

	Progress func(done float64) // from 0 to 1; never nil
}

// A Result is a file that an action made.
type Result struct {
	File     string // its name for the backend
	URI      string // of the MCP resource
	Name     string
	Size     int64  // bytes
	Link     string // to download it; "" if File is enough
	Warnings []fileops.Warning
}

// A Content is an open file.
type Content struct {
	io.ReadCloser
	Name string // with its extension
	Size int64  // bytes; -1: unknown
}

// Config configures a server. Backend and Registry are required.
type Config struct {
	Backend  Backend
	Registry *fileops.Registry // the actions that Backend can run
	Version  string            // of the program, for clients

	// Files describes the parameter file of the tools, and Output the parameter output. The tools
	// have no parameter output if it is "".
	Files, Output string

	// Resources is the URI template of the results. "" means that they are no resources.
	Resources string

	// MaxText limits the size in bytes of a text that a tool returns; 0 means 100 kB. MaxResource
	// limits the size of a resource that a client reads; 0 means 8 MiB.
	MaxText     int
	MaxResource int64
}

const (
	defaultText     = 100_000
	defaultResource = 8 << 20
)

// NewServer returns an MCP server. It offers what the registry offers, so tools of missing engines do
// not exist.
func NewServer(c Config) *sdk.Server {
	c.MaxText, c.MaxResource = cmp.Or(c.MaxText, defaultText), cmp.Or(c.MaxResource, defaultResource)
	t := &tools{Config: c, matrix: capability.New(c.Registry, nil)}
	server := sdk.NewServer(&sdk.Implementation{Name: "filewright", Title: "Filewright", Version: cmp.Or(c.Version, "dev")}, &sdk.ServerOptions{
		Instructions: "Tools that convert, compress, merge, split, recognise, inspect and read files: documents, PDF, pictures, audio, video, tables and archives. " +
			"Call list_formats with a format to see its actions and parameters. Read a document with read_document. Results may come with warnings about what they lost; pass them on.",
	})
	t.addListFormats(server)
	for _, name := range c.Registry.Names() {
		t.addAction(server, name)
	}
	t.addReadDocument(server)
	if c.Resources != "" {
		server.AddResourceTemplate(&sdk.ResourceTemplate{
			Name: "file", Title: "File", URITemplate: c.Resources,
			Description: "Content of a file that a tool has made.",
		}, t.readResource)
	}
	return server
}

// tools implements the tools of one server.
type tools struct {
	Config
	matrix *capability.Matrix
}

// object is a JSON object.
type object map[string]any

// summaries describe actions that several engines share. The summary of a spec describes one engine.
var summaries = map[string]string{
	"convert":        "Convert a file to another format, or change it without changing its format (resize a picture, cut a video, take pages of a PDF).",
	"compress":       "Make a file smaller and keep its format.",
	"merge":          "Join several documents, pictures or PDF files, in the given order, into one PDF.",
	"zip":            "Put files into one ZIP archive.",
	"lock":           "Encrypt a PDF or Office file with a password.",
	"unlock":         "Remove the password from a PDF or Office file.",
	"reset_password": "Change the password of a PDF or Office file.",
	"split":          "Split a PDF into several: by groups of pages, by a number of pages, or at its bookmarks.",
	"extract_pages":  "Take pages of a PDF into a new PDF.",
	"rotate":         "Rotate pages of a PDF, a picture or a video.",
	"watermark":      "Draw a text or a picture over the pages of a PDF, over a picture or over a video.",
	"metadata":       "Set or remove metadata such as title, author and tags.",
	"bookmarks":      "Replace the bookmarks of a PDF.",
	"attach":         "Attach a file to a PDF.",
	"screenshot":     "Take a picture of a web page as a screen shows it.",
	"ocr":            "Recognise the text of a scan: the result is a PDF that looks the same and can be searched.",
	"inspect":        "Describe a file as JSON: format, pages, size in pixels, duration, codecs, encryption, fonts, metadata.",
	"thumbnail":      "Make a small preview picture of a file.",
	"extract":        "Unpack an archive, or the members that match patterns.",
}

// addAction adds the tool of an action. Its parameters are those of the action's specs.
func (t *tools) addAction(server *sdk.Server, name string) {
	var schemas []fileops.Schema
	var inputs []string
	joint, summary := false, summaries[name]
	for a := range t.Registry.Actions() {
		if a.Spec().Name == name {
			joint = joint || a.Spec().Joint
			summary = cmp.Or(summary, a.Spec().Summary)
		}
	}
	for e := range t.matrix.Entries() {
		if e.Action == name {
			schemas = append(schemas, e.Params)
			inputs = append(inputs, string(e.Format))
		}
	}
	slices.Sort(inputs)
	inputs = slices.Compact(inputs)
	if slices.Contains(inputs, string(format.Any)) {
		inputs = []string{"any file"}
	}
	schema := object(fileops.Merge(schemas...).JSONSchema())
	properties := object(maps.Clone(schema["properties"].(map[string]any)))
	required, _ := schema["required"].([]string)
	if joint {
		properties["files"] = object{"type": "array", "items": object{"type": "string"}, "minItems": 1, "description": "The inputs, in order. Each: " + t.Files}
		required = append(required, "files")
	} else {
		properties["file"] = object{"type": "string", "description": t.Files}
		required = append(required, "file")
	}
	if t.Output != "" && name != actionInspect {
		properties["output"] = object{"type": "string", "description": t.Output}
	}
	server.AddTool(&sdk.Tool{
		Name:        name,
		Description: summary + " Inputs: " + strings.Join(inputs, ", ") + ".",
		InputSchema: object{"type": "object", "properties": properties, "required": required, "additionalProperties": false},
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: name == actionInspect, DestructiveHint: new(bool), OpenWorldHint: new(bool)},
	}, t.handler(func(ctx context.Context, args fileops.Args, progress func(float64)) (*sdk.CallToolResult, error) {
		call := Call{Action: name, Args: args, Progress: progress}
		if joint {
			var err error
			if call.Files, err = stringList(args["files"]); err != nil || len(call.Files) == 0 {
				return nil, errors.New("files must be a list of at least one file")
			}
			delete(args, "files")
		} else {
			file, ok := args["file"].(string)
			if !ok || file == "" {
				return nil, errors.New("file is required: the file to work on")
			}
			call.Files = []string{file}
			delete(args, "file")
		}
		if call.Output, _ = args["output"].(string); call.Output != "" {
			delete(args, "output")
		}
		if name == actionInspect {
			call.Temporary = true
			text, _, err := t.text(ctx, call)
			return textResult(text), err
		}
		results, err := t.Backend.Run(ctx, call)
		if err != nil {
			return nil, err
		}
		return t.describe(results), nil
	}))
}

const (
	actionConvert = "convert"
	actionInspect = "inspect"
)

func stringList(v any) (out []string, err error) {
	l, ok := v.([]any)
	if !ok {
		return nil, errors.New("not a list")
	}
	for _, e := range l {
		s, ok := e.(string)
		if !ok || s == "" {
			return nil, errors.New("not a list of texts")
		}
		out = append(out, s)
	}
	return out, nil
}

// handler returns a tool that calls run. An error of run becomes a result that the agent can read.
func (t *tools) handler(run func(ctx context.Context, args fileops.Args, progress func(float64)) (*sdk.CallToolResult, error)) sdk.ToolHandler {
	return func(ctx context.Context, req *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		var args fileops.Args
		if len(req.Params.Arguments) > 0 {
			if err := json.Unmarshal(req.Params.Arguments, &args); err != nil {
				return errorResult(errors.New("the arguments are not a JSON object")), nil //nolint:nilerr // the agent reads it
			}
		}
		if args == nil {
			args = fileops.Args{}
		}
		result, err := run(ctx, args, reporter(ctx, req))
		if err != nil {
			return errorResult(err), nil
		}
		return result, nil
	}
}

// reporter returns a function that sends the progress of a request to its client, if that asked for
// it, in whole percents.
func reporter(ctx context.Context, req *sdk.CallToolRequest) func(float64) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return func(float64) {}
	}
	var mu sync.Mutex // an action reports from any goroutine
	last := 0.0
	return func(done float64) {
		mu.Lock()
		defer mu.Unlock()
		percent := float64(int(done * 100))
		if percent <= last {
			return
		}
		last = percent
		// A client that is gone does not read its progress; its request is cancelled anyway.
		_ = req.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: percent, Total: 100})
	}
}

// describe returns the result of a tool: a line for each file, its warnings, and a link to the
// resource.
func (t *tools) describe(results []Result) *sdk.CallToolResult {
	var text strings.Builder
	out := &sdk.CallToolResult{Content: []sdk.Content{nil}}
	for _, r := range results {
		fmt.Fprintf(&text, "%s (%d bytes)\n", r.File, r.Size)
		if r.Name != "" && !strings.HasSuffix(r.File, r.Name) {
			fmt.Fprintf(&text, "  name: %s\n", r.Name)
		}
		if r.Link != "" {
			fmt.Fprintf(&text, "  download: %s\n", r.Link)
		}
		for _, w := range r.Warnings {
			fmt.Fprintf(&text, "  warning: %s (%s)\n", w.Message, w.Code)
		}
		if r.URI != "" {
			out.Content = append(out.Content, &sdk.ResourceLink{URI: r.URI, Name: r.Name, MIMEType: format.Parse(r.Name).MIME(), Size: &r.Size})
		}
	}
	out.Content[0] = &sdk.TextContent{Text: text.String()}
	return out
}

// text runs a call with one result, which it returns as text, with the result's warnings.
func (t *tools) text(ctx context.Context, c Call) (string, []fileops.Warning, error) {
	results, err := t.Backend.Run(ctx, c)
	if err != nil {
		return "", nil, err
	}
	var b bytes.Buffer
	var warnings []fileops.Warning
	for _, r := range results {
		err = errors.Join(err, t.read(ctx, &b, r.File), t.Backend.Remove(context.WithoutCancel(ctx), r.File))
		warnings = append(warnings, r.Warnings...)
	}
	return embedded.ReplaceAllString(strings.ToValidUTF8(b.String(), "\uFFFD"), "left-out"), warnings, err
}

// embedded matches the content of a picture in a Markdown text, which an agent cannot see.
var embedded = regexp.MustCompile(`data:[a-z]+/[a-z0-9.+-]+;base64,[A-Za-z0-9+/=%]+`)

// largestText limits the size of a text that read_document reads before it selects sections.
const largestText = 64 << 20

func (t *tools) read(ctx context.Context, to *bytes.Buffer, file string) error {
	f, err := t.Backend.Open(ctx, file)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := io.Copy(to, io.LimitReader(f, largestText+1))
	if err == nil && n > largestText {
		err = fileops.Fail(fileops.ErrLimit, nil, "the text is larger than %d MiB", largestText>>20)
	}
	return err
}

func textResult(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

func errorResult(err error) *sdk.CallToolResult {
	r := textResult(message(err))
	r.IsError = true
	return r
}

// message returns an error with its stable name, for an agent.
func message(err error) string {
	var failure *fileops.Failure
	if errors.As(err, &failure) {
		return fmt.Sprintf("%s (%s)", fileops.Message(err), fileops.Code(err))
	}
	return err.Error()
}

// addListFormats adds the tool that shows the capabilities.
func (t *tools) addListFormats(server *sdk.Server) {
	server.AddTool(&sdk.Tool{
		Name:        "list_formats",
		Description: "List the formats that can be read, with their actions and the formats they convert to. With a format: the parameters of each action for it.",
		InputSchema: object{"type": "object", "additionalProperties": false, "properties": object{
			"format": object{"type": "string", "description": `An extension such as "docx".`},
		}},
		Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true, OpenWorldHint: new(bool)},
	}, t.handler(func(_ context.Context, args fileops.Args, _ func(float64)) (*sdk.CallToolResult, error) {
		ext, _ := args["format"].(string)
		if ext == "" {
			return textResult(t.allFormats()), nil
		}
		actions := make(object)
		for _, name := range t.matrix.Query(capability.Query{Ext: ext}).AvailableActions {
			a := t.matrix.Query(capability.Query{Ext: ext, Action: name})
			actions[name] = object{"parameters": a.Parameters}
			if a.Changes != nil {
				actions[name].(object)["same_format"] = a.Changes
			}
		}
		if len(actions) == 0 {
			return nil, fmt.Errorf("no action reads the format %q; list_formats without a format shows all", ext)
		}
		b, err := json.Marshal(object{"format": string(format.Parse(ext)), "actions": actions})
		return textResult(string(b)), err
	}))
}

// allFormats returns a line for each format.
func (t *tools) allFormats() string {
	actions := make(map[format.Format][]string)
	for e := range t.matrix.Entries() {
		actions[e.Format] = append(actions[e.Format], e.Action)
	}
	var b strings.Builder
	for _, f := range slices.Sorted(maps.Keys(actions)) {
		names := slices.Compact(slices.Sorted(slices.Values(actions[f])))
		name := string(f)
		if f == format.Any {
			name = "any file"
		}
		fmt.Fprintf(&b, "%s: %s", name, strings.Join(names, " "))
		if to, ok := t.matrix.Query(capability.Query{Ext: string(f), Action: actionConvert}).Parameters["convert_to"].([]string); ok {
			fmt.Fprintf(&b, " → %s", strings.Join(to, " "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// readResource returns the content of a result.
func (t *tools) readResource(ctx context.Context, req *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
	prefix, _, _ := strings.Cut(t.Resources, "{")
	file, ok := strings.CutPrefix(req.Params.URI, prefix)
	file, err := url.PathUnescape(file)
	if !ok || err != nil {
		return nil, sdk.ResourceNotFoundError(req.Params.URI)
	}
	f, err := t.Backend.Open(ctx, file)
	if err != nil {
		return nil, sdk.ResourceNotFoundError(req.Params.URI)
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, t.MaxResource+1))
	if err != nil {
		return nil, errors.New(message(err))
	}
	if int64(len(b)) > t.MaxResource {
		return nil, fmt.Errorf("the file is larger than %d bytes; download it instead", t.MaxResource)
	}
	mimeType := format.Parse(f.Name).MIME()
	content := &sdk.ResourceContents{URI: req.Params.URI, MIMEType: mimeType}
	if (strings.HasPrefix(mimeType, "text/") || strings.Contains(mimeType, "json") || strings.Contains(mimeType, "xml") && !strings.Contains(mimeType, "openxml")) && utf8.Valid(b) {
		content.Text = string(b)
	} else {
		content.Blob = b
	}
	return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{content}}, nil
}
