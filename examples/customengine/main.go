// Command customengine is the service with a custom engine: an external program, confined like the
// engines of this module.
package main

import (
	"cmp"
	"context"
	"errors"
	"log"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/fileops/standard"
	"github.com/filewright/filewright/httpapi"
)

// A linearizer is a fileops.Engine that runs qpdf to optimise PDF files for the web.
type linearizer struct {
	program *engine.Program
	about   fileops.Dependency
}

// newLinearizer is one of standard.Options.Engines.
func newLinearizer(ctx context.Context, sandbox *engine.Sandbox) (fileops.Engine, error) {
	about := fileops.Dependency{Name: "linearizer", Purpose: "PDF files for the web", Packages: []string{"qpdf"}}
	program, err := sandbox.Find(ctx, []string{"--version"}, "qpdf")
	if err != nil {
		return nil, fileops.Missing(about, err)
	}
	about.Path, about.Version = program.Path, program.Version
	return &linearizer{program, about}, nil
}

func (l *linearizer) Dependencies() []fileops.Dependency { return []fileops.Dependency{l.about} }

func (l *linearizer) Actions() []fileops.Action {
	return []fileops.Action{fileops.Func(fileops.Spec{
		Name: "linearize", Engine: "qpdf " + l.about.Version, Family: "pdf", Summary: "Orders a PDF file for reading on the web.",
		Accepts: []fileops.Accept{{Formats: []format.Format{format.PDF}}},
	}, l.linearize)}
}

func (l *linearizer) linearize(ctx context.Context, job *fileops.Job) error {
	in, err := job.Path(job.Input())
	if err != nil {
		return err
	}
	err = job.WriteFile(job.Input().Name(), func(out string) error {
		return l.program.Run(ctx, engine.Cmd{
			Args: []string{"--linearize", in, out},
			Dir:  filepath.Dir(out), Access: engine.Access{Read: []string{filepath.Dir(in)}}, // nothing else can be opened
			Limits: engine.Limits{CPU: time.Minute, Memory: 1 << 30, FileSize: job.MaxOutput()},
		})
	})
	var exit *engine.ExitError
	switch {
	case errors.As(err, &exit) && exit.Limit():
		return fileops.Fail(fileops.ErrLimit, err, "the file needs more %s than is allowed", exit.Which())
	case exit != nil:
		return fileops.Fail(fileops.ErrCorruptInput, err, "")
	}
	return err
}

func main() {
	ctx := context.Background()
	set := standard.Probe(ctx, &standard.Options{Engines: []func(context.Context, *engine.Sandbox) (fileops.Engine, error){newLinearizer}})
	svc, err := httpapi.New(httpapi.Config{Actions: set.Actions(), Auth: httpapi.StaticKeys(os.Getenv("API_KEY"))})
	if err != nil {
		log.Fatal(err)
	}
	go func() { log.Fatal(svc.Run(ctx)) }()
	log.Fatal(http.ListenAndServe(cmp.Or(os.Getenv("ADDR"), "127.0.0.1:8080"), svc))
}
