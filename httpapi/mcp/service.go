package mcp

import (
	"cmp"
	"context"
	_ "embed"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"path"
	"strconv"
	"strings"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/httpapi"
	"github.com/filewright/filewright/httpapi/client"
)

//go:embed openapi.yaml
var document []byte

// Options configure the endpoint of [New]. The zero value is usable.
type Options struct {
	Version string // of the program, for clients

	// MaxBody limits the size in bytes of a request, and with it of files that an agent sends in a
	// request (the tool upload); 0 means 8 MiB.
	MaxBody int64

	// Imports adds the tool import. The service must have the endpoint POST /import of package remote.
	Imports bool
}

const (
	serviceFiles     = "The file_key of an upload or a result."
	serviceResources = "filewright://files/{file_key}"
)

// New returns the extension that adds POST /mcp to a service (streamable HTTP, without sessions, so
// that each server of a cluster answers each request). A caller needs an API key; each tool needs the
// scopes that the same calls of the API need. Limits and quotas are those of the API, which the tools
// call. A client that closes the connection cancels its operation.
func New(o Options) func(*httpapi.Service) httpapi.Extension {
	return func(svc *httpapi.Service) httpapi.Extension {
		s := &endpoint{svc, o}
		// The handler asks for the server of a request more than once.
		of := func(r *http.Request) *sdk.Server { return r.Context().Value(serverKey{}).(*sdk.Server) }
		handler := sdk.NewStreamableHTTPHandler(of, &sdk.StreamableHTTPOptions{
			Stateless: true, MaxRequestBodyBytes: cmp.Or(o.MaxBody, 8<<20), PropagateRequestCancellation: true,
			// Requests need a key that browsers do not send by themselves, so another site that
			// reaches this server through a name of its own can do nothing.
			DisableLocalhostProtection: true,
		})
		return httpapi.Extension{OpenAPI: document, Routes: []httpapi.Route{{
			Method: http.MethodPost, Path: "/mcp",
			Handler: func(w http.ResponseWriter, r *http.Request) {
				r = r.WithContext(context.WithValue(r.Context(), serverKey{}, s.server(r)))
				handler.ServeHTTP(&patient{ResponseWriter: w}, r)
			},
		}}}
	}
}

// serverKey is the context key of the server for a request.
type serverKey struct{}

// A patient writer has no deadline between two events: an operation may take long.
type patient struct{ http.ResponseWriter }

// Unwrap supports http.ResponseController.
func (p *patient) Unwrap() http.ResponseWriter { return p.ResponseWriter }

// Flush implements http.Flusher.
func (p *patient) Flush() {
	rc := http.NewResponseController(p.ResponseWriter)
	// A connection that cannot be flushed or has no deadlines works too.
	_ = rc.Flush()
	_ = rc.SetWriteDeadline(time.Time{})
}

type endpoint struct {
	svc *httpapi.Service
	Options
}

// server returns the server for one request. Its tools are what the service offers now.
func (e *endpoint) server(r *http.Request) *sdk.Server {
	key, _ := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
	c := &client.Client{
		BaseURL: "http://" + cmp.Or(r.Host, "localhost"), Key: key, Attempts: 2,
		HTTP: &http.Client{Transport: inside{e.svc, r}},
	}
	b := &remote{Client: c, gone: r.Context()}
	server := NewServer(Config{
		Backend: b, Registry: e.svc.Capabilities().Registry(), Version: e.Version,
		Files: serviceFiles, Resources: serviceResources,
	})
	b.addUpload(server)
	if e.Imports {
		b.addImport(server)
	}
	return server
}

// inside sends requests to the service without a connection, on behalf of the caller of outer.
type inside struct {
	svc   *httpapi.Service
	outer *http.Request
}

// RoundTrip implements http.RoundTripper.
func (in inside) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.RequestURI, r.RemoteAddr, r.TLS = r.URL.RequestURI(), in.outer.RemoteAddr, in.outer.TLS
	for _, name := range []string{"X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "Cookie", "User-Agent"} {
		if values := in.outer.Header.Values(name); len(values) > 0 {
			r.Header[name] = values
		}
	}
	if r.Body == nil {
		r.Body = http.NoBody
	}
	body, to := io.Pipe()
	w := &response{header: make(http.Header), to: to, started: make(chan struct{})}
	go func() {
		defer func() {
			if p := recover(); p != nil { // the service has logged it
				to.CloseWithError(io.ErrUnexpectedEOF)
			}
			w.WriteHeader(http.StatusOK)
			to.Close()
		}()
		in.svc.ServeHTTP(w, r)
	}()
	select {
	case <-w.started:
	case <-r.Context().Done():
		body.CloseWithError(r.Context().Err())
		return nil, r.Context().Err()
	}
	return &http.Response{
		Status: http.StatusText(w.status), StatusCode: w.status, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: w.sent, Body: body, ContentLength: -1, Request: r,
	}, nil
}

// A response passes what a handler writes to the reader of an http.Response.
type response struct {
	header  http.Header
	to      *io.PipeWriter
	started chan struct{} // closed when status and sent are set
	status  int           // 0 until then
	sent    http.Header
}

// Header implements http.ResponseWriter.
func (w *response) Header() http.Header { return w.header }

// WriteHeader implements http.ResponseWriter.
func (w *response) WriteHeader(status int) {
	if w.status != 0 || status < 200 {
		return
	}
	w.status, w.sent = status, w.header.Clone()
	close(w.started)
}

// Write implements http.ResponseWriter.
func (w *response) Write(b []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	return w.to.Write(b)
}

// Flush implements http.Flusher; the pipe holds nothing back.
func (w *response) Flush() { w.WriteHeader(http.StatusOK) }

// remote is the [Backend] of a caller of the service. Files are file keys.
type remote struct {
	*client.Client
	gone context.Context // done when the client has closed the connection
}

// Run implements [Backend].
func (b *remote) Run(ctx context.Context, c Call) ([]Result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.gone, cancel)()
	id, err := b.Do(ctx, client.Request{Action: c.Action, FileKeys: c.Files, Parameters: c.Args})
	if err != nil {
		return nil, err
	}
	op, err := b.Wait(ctx, id, func(op *client.Operation) { c.Progress(float64(op.Progress) / 100) })
	if err != nil {
		if ctx.Err() != nil {
			after, stop := context.WithTimeout(context.WithoutCancel(ctx), 10*time.Second)
			defer stop()
			_, _ = b.Cancel(after, id) // it may have ended
		}
		return nil, err
	}
	if err := op.Err(); err != nil {
		return nil, err
	}
	var results []Result
	for _, f := range op.Files {
		r := Result{File: f.Key, Name: f.Name, Size: f.Size, Link: f.DownloadLink, URI: strings.Replace(serviceResources, "{file_key}", f.Key, 1)}
		for _, w := range f.Warnings {
			r.Warnings = append(r.Warnings, fileops.Warning{Code: w.Code, Message: w.Message})
		}
		results = append(results, r)
	}
	return results, nil
}

// Open implements [Backend].
func (b *remote) Open(ctx context.Context, file string) (*Content, error) {
	if file == "" || strings.ContainsAny(file, "/?#") {
		return nil, fmt.Errorf("%q is not a file key", file)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.BaseURL+"/v1/download/"+file, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+b.Key)
	resp, err := b.HTTP.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, fmt.Errorf("there is no file with the key %q; it may have expired", file)
	}
	_, params, err := mime.ParseMediaType(resp.Header.Get("Content-Disposition"))
	if err != nil {
		resp.Body.Close()
		return nil, err
	}
	size, err := strconv.ParseInt(resp.Header.Get("Content-Length"), 10, 64)
	if err != nil {
		size = -1
	}
	return &Content{ReadCloser: resp.Body, Name: params["filename"], Size: size}, nil
}

// Remove implements [Backend].
func (b *remote) Remove(ctx context.Context, file string) error {
	err := b.Delete(ctx, file)
	if errors.Is(err, &client.Error{Slug: "not_found"}) {
		return nil
	}
	return err
}

// addUpload adds the tool with which an agent sends a small file. Larger files come through the upload
// of the API.
func (b *remote) addUpload(server *sdk.Server) {
	type input struct {
		Name   string `json:"name" jsonschema:"name of the file with its extension"`
		Text   string `json:"text,omitempty" jsonschema:"content of a text file"`
		Base64 string `json:"base64,omitempty" jsonschema:"content of any other file, in base64"`
	}
	sdk.AddTool(server, &sdk.Tool{
		Name:        "upload",
		Description: "Store a small file and return its file key, for the other tools. Send text or base64. For larger files use POST /api/v1/initiate-upload of the HTTP API.",
		Annotations: &sdk.ToolAnnotations{DestructiveHint: new(bool), OpenWorldHint: new(bool)},
	}, func(ctx context.Context, _ *sdk.CallToolRequest, in input) (*sdk.CallToolResult, any, error) {
		content := in.Text
		if in.Base64 != "" {
			raw, err := base64.StdEncoding.DecodeString(in.Base64)
			if err != nil {
				return nil, nil, errors.New("base64 is not valid base64")
			}
			content += string(raw)
		}
		if in.Text != "" && in.Base64 != "" || path.Base(in.Name) != in.Name {
			return nil, nil, errors.New("send a name without a path, and either text or base64")
		}
		key, err := b.Upload(ctx, in.Name, strings.NewReader(content), int64(len(content)), nil)
		if err != nil {
			return nil, nil, err
		}
		return textResult(key), nil, nil
	})
}

// addImport adds the tool that makes the service read a file from a URL.
func (b *remote) addImport(server *sdk.Server) {
	type input struct {
		URL     string            `json:"url" jsonschema:"http or https URL of the file"`
		Name    string            `json:"name,omitempty" jsonschema:"name of the file with its extension; without it the name is that of the response or of the URL"`
		Headers map[string]string `json:"headers,omitempty" jsonschema:"headers of the request, such as Authorization"`
	}
	open := true
	sdk.AddTool(server, &sdk.Tool{
		Name:        "import",
		Description: "Load a file from a public URL, store it, and return its file key, for the other tools. Redirects are followed.",
		Annotations: &sdk.ToolAnnotations{DestructiveHint: new(bool), OpenWorldHint: &open},
	}, func(ctx context.Context, _ *sdk.CallToolRequest, in input) (*sdk.CallToolResult, any, error) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		defer context.AfterFunc(b.gone, cancel)()
		key, err := b.Import(ctx, client.Import{URL: in.URL, FileName: in.Name, Headers: in.Headers})
		if err != nil {
			return nil, nil, err
		}
		return textResult(key), nil, nil
	})
}
