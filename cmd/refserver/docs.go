package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"github.com/filewright/filewright/docs"
	"github.com/filewright/filewright/internal/docsite"
)

// withDocs serves the documentation below /docs. All other requests, and those for the API reference,
// go to next. document returns the OpenAPI document, whose endpoints and actions the search finds. The
// pages are rendered when somebody reads one.
func withDocs(next http.Handler, log *slog.Logger, document func() []byte) http.Handler {
	render := sync.OnceValues(func() (*docsite.Site, error) {
		entries, err := apiEntries(document())
		if err != nil {
			return nil, err
		}
		return docsite.New(docs.Files, entries)
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		below := r.URL.Path == docsite.Path || strings.HasPrefix(r.URL.Path, docsite.Path+"/")
		if below && r.URL.Path != docsite.Reference && (r.Method == http.MethodGet || r.Method == http.MethodHead) {
			w.Header().Set("X-Request-Id", uuid.NewString()) // as all responses of the service
			site, err := render()
			if err != nil {
				log.Error("cannot render the documentation", "err", err)
				http.Error(w, "internal error", http.StatusInternalServerError)
				return
			}
			site.ServeHTTP(w, r)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// apiEntries returns the endpoints and actions of an OpenAPI document.
func apiEntries(document []byte) ([]docsite.Entry, error) {
	var d struct {
		Paths      map[string]map[string]json.RawMessage
		Components struct {
			Schemas map[string]struct {
				Title       string
				Description string
			}
		}
	}
	if err := json.Unmarshal(document, &d); err != nil {
		return nil, fmt.Errorf("OpenAPI document: %w", err)
	}
	const page = "API reference"
	var out []docsite.Entry
	for _, path := range slices.Sorted(maps.Keys(d.Paths)) {
		for _, method := range slices.Sorted(maps.Keys(d.Paths[path])) {
			var op struct{ OperationID, Summary, Description string }
			if json.Unmarshal(d.Paths[path][method], &op) == nil && op.OperationID != "" { // else an extension, or common parameters
				out = append(out, docsite.Entry{URL: docsite.Reference + "#" + op.OperationID, Page: page, Section: op.Summary,
					Text: strings.ToUpper(method) + " " + path + " " + strings.Join(strings.Fields(op.Description), " ")})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.Components.Schemas[name]
		if strings.HasPrefix(name, "Do") && s.Title != "" && s.Title != "steps" {
			out = append(out, docsite.Entry{URL: docsite.Reference + "#action-" + s.Title, Page: page, Section: s.Title, Text: s.Description})
		}
	}
	return out, nil
}

// writeDocs returns the command docs.
func writeDocs(c *cli) *cobra.Command {
	var cfg serverConfig
	return c.command(spec{
		use: "docs DIR", short: "write the documentation as static pages", min: 1, max: 1,
		long: `Writes the documentation as static pages into DIR, for a web server. The pages expect to be at
/docs: DIR becomes the root of the server. The API reference, and the OpenAPI documents beside
/docs, describe a server of this host: actions whose engines are missing are not in them.`,
		flags: func(f *flagSet) {
			cfg.register(newFlagSet(pflag.NewFlagSet("", pflag.ContinueOnError))) // the defaults of a server
			f.StringVar(&cfg.publicURL, "public-url", "http://localhost:8080", "`URL` of the server in the examples of the API reference")
			cfg.engines.register(f)
		},
		run: func(ctx context.Context, args []string) error {
			reference, err := c.reference(ctx, cfg)
			if err != nil {
				return err
			}
			entries, err := apiEntries(reference["/openapi.json"])
			if err != nil {
				return err
			}
			site, err := docsite.New(docs.Files, entries)
			if err != nil {
				return err
			}
			files := maps.Collect(site.Files())
			maps.Copy(files, reference)
			for url, content := range files {
				name := filepath.FromSlash(url)
				if filepath.Ext(name) == "" {
					name = filepath.Join(name, "index.html")
				}
				name = filepath.Join(args[0], name)
				if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
					return err
				}
				if err := os.WriteFile(name, content, 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	})
}

// reference returns the API reference and the OpenAPI documents of a server, by their paths.
func (c *cli) reference(ctx context.Context, cfg serverConfig) (files map[string][]byte, err error) {
	if cfg.dataDir, err = os.MkdirTemp("", "refserver-docs-"); err != nil {
		return nil, err
	}
	defer os.RemoveAll(cfg.dataDir)
	if err := cfg.finish(c.env); err != nil {
		return nil, err
	}
	app, err := open(ctx, cfg, slog.New(slog.DiscardHandler))
	if err != nil {
		return nil, err
	}
	defer app.close()
	files = make(map[string][]byte)
	for _, path := range []string{docsite.Reference, "/openapi.json", "/openapi.yaml", "/openapi-3.0.json"} {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://localhost"+path, nil)
		if err != nil {
			return nil, err
		}
		w := &kept{header: make(http.Header)}
		if app.service.ServeHTTP(w, r); w.status != http.StatusOK {
			return nil, fmt.Errorf("%s: status %d: %s", path, w.status, w.Bytes())
		}
		files[path] = w.Bytes()
	}
	return files, nil
}

// A kept is a response in memory.
type kept struct {
	bytes.Buffer
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (k *kept) Header() http.Header { return k.header }

// WriteHeader implements http.ResponseWriter.
func (k *kept) WriteHeader(status int) { k.status = status }

// writeManual returns the command man.
func writeManual(c *cli, root func() *cobra.Command) *cobra.Command {
	return c.command(spec{
		use: "man DIR", short: "write the manual pages of all commands", min: 1, max: 1,
		long: "Writes a manual page for each command into DIR, such as /usr/local/share/man/man1.",
		run: func(_ context.Context, args []string) error {
			if err := os.MkdirAll(args[0], 0o755); err != nil {
				return err
			}
			return doc.GenManTree(root(), &doc.GenManHeader{Section: "1", Source: "Filewright " + version(), Manual: "Filewright"}, args[0])
		},
	})
}

// configuration returns the page docs/configuration.md: every flag of the server.
func configuration() string {
	var b strings.Builder
	b.WriteString(`# Configuration

Every setting of ` + "`refserver serve`" + ` is a flag, a variable of the environment and a key of the configuration file. The command line takes precedence over the environment, and the environment over the file (` + "`--config FILE`, YAML" + `). ` + "`refserver config`" + ` prints the values in force and where each comes from.

` + "```yaml" + `
# refserver serve --config filewright.yaml
listen: 0.0.0.0:8080
public-url: https://files.example.com
cors-origins: [https://app.example.com]
concurrency: {office: 2, image: 4}
file-ttl: 48h
` + "```" + `

The variable of ` + "`--data-dir`" + ` is ` + "`FILEWRIGHT_DATA_DIR`" + `; the others follow the same rule. This page is generated from the flags.
`)
	var cfg serverConfig
	fs := newFlagSet(pflag.NewFlagSet("", pflag.ContinueOnError))
	cfg.register(fs)
	general := fs.names()
	for _, s := range fs.sections {
		general = slices.DeleteFunc(general, func(name string) bool { return slices.Contains(s.names, name) })
	}
	for _, s := range append([]section{{"General", general}}, fs.sections...) {
		fmt.Fprintf(&b, "\n## %s\n\n| Setting | Default | Meaning |\n|---|---|---|\n", s.title)
		for _, name := range s.names {
			f := fs.Lookup(name)
			kind, text := pflag.UnquoteUsage(f)
			if kind != "" {
				kind = " " + strings.ToUpper(strings.NewReplacer(" ", "-", "_", "-").Replace(kind))
			}
			def := defaultOf(f)
			if def != "" {
				def = "`" + def + "`"
			}
			fmt.Fprintf(&b, "| `--%s%s` | %s | %s |\n", name, kind, strings.ReplaceAll(def, "|", "\\|"), strings.ReplaceAll(text, "|", "\\|"))
		}
	}
	return b.String()
}
