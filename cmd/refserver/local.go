package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	iofs "io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/format"
	"github.com/filewright/filewright/internal/batch"
)

// A deed is a command that runs one action on local files.
type deed struct {
	action, use, short string
	joint              bool // takes several files together
	target             bool // the extension of OUT decides the format
}

// deeds are the actions of this module. Actions of other engines have the command run.
var deeds = []deed{
	{action: "convert", use: "IN OUT", short: "convert a file to the format that the extension of OUT names", target: true},
	{action: "compress", use: "IN OUT", short: "make a file smaller"},
	{action: "merge", use: "IN... OUT", short: "join files into one PDF", joint: true},
	{action: "zip", use: "IN... OUT", short: "put files into one ZIP archive", joint: true},
	{action: "extract", use: "IN DIR", short: "unpack an archive"},
	{action: "lock", use: "IN OUT", short: "encrypt a PDF or Office file (--param password=@FILE)"},
	{action: "unlock", use: "IN OUT", short: "remove the password of a file (--param password=@FILE)"},
	{action: "reset_password", use: "IN OUT", short: "change the password of a file"},
	{action: "split", use: "IN DIR", short: "split a PDF into several (--param every=1)"},
	{action: "extract_pages", use: "IN OUT", short: "take pages of a PDF (--param pages=1-3)"},
	{action: "rotate", use: "IN OUT", short: "rotate a PDF, picture or video (--param angle=90)"},
	{action: "watermark", use: "IN OUT", short: "write a text or picture over a PDF or picture (--param text=DRAFT, --file image_key=logo.png)"},
	{action: "page_numbers", use: "IN OUT", short: "number the pages of a PDF"},
	{action: "flatten", use: "IN OUT", short: "turn forms and annotations of a PDF into page content"},
	{action: "fill_form", use: "IN OUT", short: "fill a PDF form (--param fields=@FILE, JSON)"},
	{action: "metadata", use: "IN OUT", short: "set or remove metadata"},
	{action: "bookmarks", use: "IN OUT", short: "replace the bookmarks of a PDF (--param outline=@FILE)"},
	{action: "attach", use: "IN OUT", short: "attach a file to a PDF (--file file_key=FILE)"},
	{action: "screenshot", use: "IN OUT", short: "take a picture of a web page", target: true},
	{action: "ocr", use: "IN OUT", short: "recognise a scan: the result is a PDF with text"},
	{action: "inspect", use: "IN [OUT]", short: "describe a file as JSON"},
	{action: "thumbnail", use: "IN OUT", short: "make a preview picture", target: true},
}

// local returns the command of a deed.
func (d deed) command(c *cli) *cobra.Command {
	var r localRun
	s := spec{
		use: d.action + " " + d.use, short: d.short + ", without a server",
		long: strings.ToUpper(d.short[:1]) + d.short[1:] + `, without a server. OUT may be a directory; "out/"
creates it. Several results are numbered. Existing files are kept unless --force is given.
"-" stands for standard input (with --from) and standard output.`,
		min: 2, max: 2,
		flags: r.register,
		run: func(ctx context.Context, args []string) error {
			if d.action == "inspect" && len(args) == 1 {
				args = append(args, "-")
			}
			return c.runLocal(ctx, d, &r, args[:len(args)-1], args[len(args)-1])
		},
	}
	switch {
	case d.joint:
		s.max = -1
	case d.action == "inspect":
		s.min = 1
	}
	return c.command(s)
}

// A localRun configures a deed.
type localRun struct {
	engines  engineConfig
	args     argFlags
	from, to string
	force    bool
	json     bool
}

func (r *localRun) register(fs *flagSet) {
	r.args.register(fs)
	fs.StringVar(&r.from, "from", "", "`format` of standard input")
	fs.StringVar(&r.to, "to", "", "`format` of the result, if OUT does not name it")
	fs.BoolVar(&r.force, "force", false, "replace existing files")
	fs.BoolVar(&r.json, "json", false, "write a line of JSON with the results, the warnings and the error")
	r.engines.register(fs)
}

// runLocal runs a deed on files.
func (c *cli) runLocal(ctx context.Context, d deed, r *localRun, in []string, out string) error {
	if !r.json {
		e, err := c.process(ctx, d, r, in, out)
		for _, w := range e.Warnings {
			fmt.Fprintf(c.err, "refserver %s: warning: %s (%s)\n", d.action, w.Message, w.Code)
		}
		for _, path := range e.Outputs {
			fmt.Fprintln(c.out, path)
		}
		return err
	}
	if out == "-" {
		return usageError{errors.New("--json and the result cannot both go to standard output; name a file")}
	}
	e, err := c.process(ctx, d, r, in, out)
	if errors.As(err, new(usageError)) {
		return err
	}
	e.Err = err
	return errors.Join(err, writeEvent(c.out, e))
}

// process runs a deed on files. The outputs of the event are files: a result that goes to standard output
// is not among them.
func (c *cli) process(ctx context.Context, d deed, r *localRun, in []string, out string) (e batch.Event, err error) {
	e.Inputs = in
	// Report path errors before the slow probe of the engines.
	dir, err := checkPaths(in, out, r.force)
	if err != nil {
		return e, err
	}
	args, err := r.args.args()
	if err != nil {
		return e, usageError{err}
	}
	switch {
	case d.target && r.to != "":
		args["convert_to"] = string(format.Parse(r.to))
	case d.target && out != "-" && !isDir(out) && !isNewDir(out):
		args["convert_to"] = string(format.Parse(out))
	case d.target && args["convert_to"] == nil:
		return e, usageError{fmt.Errorf("--to is required, because %s names no format", out)}
	}
	// On the file system of the target, so that results need no copy.
	scratch, err := os.MkdirTemp(dir, ".refserver-")
	if err != nil {
		return e, fmt.Errorf("cannot write to %q: %w", dir, withoutPath(err))
	}
	defer os.RemoveAll(scratch)
	if in, err = c.stdin(in, r.from, scratch); err != nil {
		return e, err
	}
	set := probeToWork(ctx, c, r.engines)
	defer set.Close()
	reg, err := fileops.NewRegistry(set.Actions()...)
	if err != nil {
		return e, err
	}
	made := filepath.Join(scratch, "results")
	if err := os.Mkdir(made, 0o700); err != nil {
		return e, err
	}
	local := batch.Local{Registry: reg, TempDir: scratch, MaxOutput: r.engines.output}
	results, err := local.Process(ctx, batch.Task{Action: d.action, Args: args, Files: in}, made)
	var param *fileops.ParamError
	switch {
	case errors.As(err, &param) && param.Param != "convert_to":
		return e, usageError{err}
	case err != nil:
		return e, failure{err}
	}
	names := make([]string, len(results))
	for i, res := range results {
		names[i] = res.Name
		e.Warnings = append(e.Warnings, res.Warnings...)
	}
	e.Outputs, err = c.place(made, names, out, r.force)
	return e, err
}

// A failure is an error of an action with its text for people.
type failure struct{ error }

// Error implements error.
func (f failure) Error() string { return batch.Message(f.error) }

// Unwrap returns the cause.
func (f failure) Unwrap() error { return f.error }

// place moves results to their place and returns their paths, or writes the only one to standard output.
func (c *cli) place(from string, names []string, out string, force bool) (placed []string, err error) {
	if out == "-" {
		if len(names) != 1 {
			return nil, fmt.Errorf("there are %d results, which do not fit into standard output; name a directory", len(names))
		}
		f, err := os.Open(filepath.Join(from, names[0]))
		if err != nil {
			return nil, err
		}
		defer f.Close()
		_, err = io.Copy(c.out, f)
		return nil, err
	}
	if isNewDir(out) {
		if err := os.Mkdir(out, 0o777); err != nil {
			return nil, fmt.Errorf("cannot create %q: %w", out, withoutPath(err))
		}
	}
	to := make([]string, len(names))
	for i, name := range names {
		switch ext := filepath.Ext(out); {
		case isDir(out):
			to[i] = filepath.Join(out, name)
		case format.Parse(name) != format.Parse(out):
			return nil, fmt.Errorf("the result is a %s file, so it cannot be named %q", strings.TrimPrefix(filepath.Ext(name), "."), out)
		case len(names) > 1:
			to[i] = fmt.Sprintf("%s-%03d%s", strings.TrimSuffix(out, ext), i+1, ext)
		default:
			to[i] = out
		}
		if err := checkTarget(to[i], force); err != nil {
			return nil, err
		}
	}
	for i, name := range names {
		if err := batch.Move(filepath.Join(from, name), to[i], force); err != nil {
			var exists *batch.ExistsError
			if errors.As(err, &exists) { // created in the meantime
				return placed, cmp.Or(checkTarget(to[i], force), err)
			}
			return placed, err
		}
		placed = append(placed, to[i])
	}
	return placed, nil
}

// stdin returns the paths of inputs, with the content of standard input in a file in place of "-".
func (c *cli) stdin(in []string, from, dir string) ([]string, error) {
	out := append([]string{}, in...)
	for i, path := range in {
		if path != "-" {
			continue
		}
		if !format.Parse(from).Known() {
			return nil, usageError{errors.New("standard input has no name; say its format with --from")}
		}
		f, err := os.Create(filepath.Join(dir, "stdin."+string(format.Parse(from))))
		if err != nil {
			return nil, err
		}
		_, err = io.Copy(f, c.in)
		if err := errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("cannot read standard input: %w", err)
		}
		out[i] = f.Name()
	}
	return out, nil
}

func isDir(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.IsDir()
}

// isNewDir reports whether a path names a directory, by a slash at its end, that does not exist. Only such
// a path creates a directory, so a typo does not.
func isNewDir(path string) bool {
	_, err := os.Stat(path)
	return strings.HasSuffix(path, string(filepath.Separator)) && errors.Is(err, iofs.ErrNotExist)
}

// checkPaths returns an error for invalid paths, else the directory of the results, or its parent if it does not
// exist yet.
func checkPaths(in []string, out string, force bool) (dir string, err error) {
	dst, derr := os.Stat(out)
	piped := false
	for _, path := range in {
		if path == "-" {
			if piped {
				return "", usageError{errors.New("standard input can be only one of the files")}
			}
			piped = true
			continue
		}
		src, err := os.Stat(path)
		switch {
		case err != nil:
			return "", fmt.Errorf("cannot read %q: %w", path, withoutPath(err))
		case !src.Mode().IsRegular():
			return "", fmt.Errorf("cannot read %q: not a regular file", path)
		case derr == nil && os.SameFile(src, dst):
			return "", fmt.Errorf("%q and %q are the same file", path, out)
		}
	}
	switch {
	case out == "-":
		return "", nil
	case derr == nil && dst.IsDir():
		return out, nil
	}
	dir = filepath.Dir(filepath.Clean(out))
	switch st, err := os.Stat(dir); {
	case err != nil:
		return "", fmt.Errorf("cannot write to %q: %w", dir, withoutPath(err))
	case !st.IsDir():
		return "", fmt.Errorf("cannot write to %q: not a directory", dir)
	case isNewDir(out):
		return dir, nil
	}
	return dir, checkTarget(out, force)
}

// checkTarget returns an error if no result may be written to path.
func checkTarget(path string, force bool) error {
	switch st, err := os.Lstat(path); {
	case errors.Is(err, iofs.ErrNotExist):
		return nil
	case err != nil:
		return fmt.Errorf("cannot write to %q: %w", path, withoutPath(err))
	case st.IsDir():
		return fmt.Errorf("%q is a directory", path)
	case !force:
		return &takenError{path}
	}
	return nil
}

// A takenError reports that a file exists, which --force would replace.
type takenError struct{ path string }

// Error implements error.
func (e *takenError) Error() string {
	return fmt.Sprintf("%q exists; use --force to replace it", e.path)
}

// Is makes the error match [iofs.ErrExist].
func (e *takenError) Is(target error) bool { return target == iofs.ErrExist }

// withoutPath returns an operating system error without the call and the path.
func withoutPath(err error) error {
	var errno syscall.Errno
	if errors.As(err, &errno) {
		return errno
	}
	return err
}

// argFlags collects the arguments of an action.
type argFlags struct{ params, files pairFlags }

func (a *argFlags) register(fs *flagSet) {
	fs.Var(&a.params, "param", "a parameter of the action as `NAME=VALUE`; may be repeated; @FILE reads the value from a file")
	fs.Var(&a.files, "file", "a second file that the action needs as `NAME=PATH`, such as image_key=logo.png for watermark; may be repeated")
}

// args returns the arguments, with the content of a file in place of @FILE.
func (a *argFlags) args() (fileops.Args, error) {
	args := make(fileops.Args)
	for name, v := range a.params {
		text, err := orFile(v)
		if err != nil {
			return nil, fmt.Errorf("--param %s: %w", name, err)
		}
		args[name] = fileops.Text(text)
	}
	for name, path := range a.files {
		args[name] = fileops.Path(path)
	}
	return args, nil
}

// pairFlags collects NAME=VALUE.
type pairFlags map[string]string

// String implements pflag.Value.
func (p *pairFlags) String() string { return "" }

// Type implements pflag.Value.
func (p *pairFlags) Type() string { return "" }

// Set implements pflag.Value.
func (p *pairFlags) Set(v string) error {
	name, value, ok := strings.Cut(v, "=")
	if !ok || name == "" {
		return errors.New("must be NAME=VALUE")
	}
	if *p == nil {
		*p = make(pairFlags)
	}
	(*p)[name] = value
	return nil
}
