package officeops

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/md5"
	"crypto/rand"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf16"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/engine"
	"github.com/filewright/filewright/internal/worktime"
)

//go:embed worker.py
var workerPy []byte

//go:embed merge.py
var mergePy []byte

//go:embed profile.xcu
var profileXCU []byte

//go:embed fonts.conf
var fontsConf []byte

const (
	startTime = time.Minute // maximum work until a process is ready; normally about a second
	maxOutput = 2 << 30     // bytes in one file

	// exitRestart is the exit code of soffice.bin after it has set up a profile, when it
	// requests a restart.
	exitRestart = 81
)

// A process is a program that the pool started.
type process struct {
	*engine.Process
	done chan struct{} // closed when it has ended
	err  error         // its error, valid after done is closed
}

// spawn starts prog.
func (p *pool) spawn(prog *engine.Program, c engine.Cmd) (*process, error) {
	proc, err := prog.Start(p.ctx, c)
	if err != nil {
		return nil, err
	}
	x := &process{Process: proc, done: make(chan struct{})}
	p.wg.Go(func() {
		x.err = x.Wait()
		close(x.done)
	})
	return x, nil
}

func (x *process) ended() bool {
	select {
	case <-x.done:
		return true
	default:
		return false
	}
}

// A place holds the directories of a process. The process may not write to its input:
// that may be a hard link to the uploaded file.
type place struct {
	dir     string // no access
	in      string // read-only
	work    string // writable: home and working directory
	profile string // writable
}

// A worker is a LibreOffice process and the Python process that drives it.
type worker struct {
	pool      *pool
	at        place
	sockets   []string
	office    *process
	python    *process
	in        *os.File // to python
	replies   chan reply
	documents int
	clean     sync.Once
}

// A reply is a line that worker.py writes.
type reply struct {
	Phase  string `json:"phase"`
	OK     bool   `json:"ok"`
	Clean  bool   `json:"clean"`
	Error  string `json:"error"`
	Detail string `json:"detail"`
	Sheets int    `json:"sheets"` // with content that the result lacks
	Pages  int    `json:"pages"`  // of the document, in the phase "pages"

	Names []string `json:"names"` // of the sheets that became files
}

// dir returns the directory of the pool. It contains a profile that was used once, so
// that copies of it start at once.
func (p *pool) dir() (string, error) {
	p.prepare.Lock()
	defer p.prepare.Unlock()
	if p.ready {
		return p.base, nil
	}
	if p.base == "" {
		d, err := os.MkdirTemp(p.opts.TempDir, "officeops-")
		if err != nil {
			return "", err
		}
		if d, err = filepath.Abs(d); err != nil {
			return "", err
		}
		p.base = d
	}
	user := filepath.Join(p.base, "template", "user")
	err := errors.Join(os.MkdirAll(user, 0o700), os.MkdirAll(p.drivers(), 0o700))
	for _, f := range []struct {
		path string
		data []byte
	}{
		{filepath.Join(user, "registrymodifications.xcu"), profileXCU},
		{filepath.Join(p.base, "fonts.conf"), fontsConf},
		{filepath.Join(p.drivers(), "worker.py"), workerPy},
		{filepath.Join(p.drivers(), "merge.py"), mergePy},
	} {
		if err == nil {
			err = os.WriteFile(f.path, f.data, 0o600)
		}
	}
	if err != nil {
		return "", err
	}
	at, err := p.newPlace()
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(at.dir)
	at.profile = filepath.Join(p.base, "template")
	defer removeSockets(officeSockets(at.profile, ""))
	for try := 0; ; try++ {
		err := p.office.RunWithin(p.ctx, p.command(at, "--terminate_after_init"), p.startTime, errSlow)
		var exit *engine.ExitError
		if errors.As(err, &exit) && exit.Code == exitRestart && try < 3 {
			continue
		}
		if exit != nil && p.allocator != "" { // one that was built for other memory pages ends each program
			p.log.Warn("LibreOffice does not start with jemalloc, so it runs without", "path", p.allocator, "err", err)
			p.allocator = ""
			continue
		}
		if err != nil {
			return "", fmt.Errorf("prepare profile: %w", err)
		}
		break
	}
	p.ready = true
	return p.base, nil
}

// drivers returns the directory of the Python code that controls LibreOffice.
func (p *pool) drivers() string { return filepath.Join(p.base, "drivers") }

// socketsHere makes LibreOffice and its driver create their sockets in their working
// directory. A sandbox shows them /tmp as read-only.
const socketsHere = "OSL_SOCKET_PATH=."

// command returns the command that starts soffice.bin.
func (p *pool) command(at place, args ...string) engine.Cmd {
	c := engine.Cmd{
		Dir: at.work,
		Env: []string{"SAL_USE_VCLPLUGIN=svp", socketsHere},
		Args: append([]string{
			"-env:UserInstallation=" + fileURL(at.profile), "--headless", "--invisible", "--nodefault",
			"--nologo", "--norestore", "--nolockcheck", "--nofirststartwizard",
		}, args...),
		Limits: engine.Limits{Memory: p.opts.MemoryLimit, FileSize: maxOutput},
		Access: engine.Access{
			Read:  []string{filepath.Join(p.base, "fonts.conf"), at.in},
			Write: []string{at.profile},
		},
	}
	if p.allocator != "" {
		c.Env = append(c.Env, preload(p.allocator))
	}
	if olderThan(p.office.Version, 7, 5) {
		c.Env = append(c.Env, "FONTCONFIG_FILE="+filepath.Join(p.base, "fonts.conf"))
	}
	return c
}

// newPlace creates the directories of a process, except the profile.
func (p *pool) newPlace() (place, error) {
	dir, err := os.MkdirTemp(p.base, "process-")
	if err != nil {
		return place{}, err
	}
	at := place{dir: dir, in: filepath.Join(dir, "in"), work: filepath.Join(dir, "work"), profile: filepath.Join(dir, "profile")}
	if err := errors.Join(os.Mkdir(at.in, 0o700), os.Mkdir(at.work, 0o700)); err != nil {
		os.RemoveAll(dir)
		return place{}, err
	}
	return at, nil
}

// newProfile creates a place with a copy of the profile.
func (p *pool) newProfile() (place, error) {
	base, err := p.dir()
	if err != nil {
		return place{}, err
	}
	at, err := p.newPlace()
	if err != nil {
		return place{}, err
	}
	if err = os.CopyFS(at.profile, os.DirFS(filepath.Join(base, "template"))); err != nil {
		os.RemoveAll(at.dir)
		return place{}, err
	}
	return at, nil
}

// start starts a worker and waits until it is ready for a document.
func (p *pool) start() (_ *worker, err error) {
	at, err := p.newProfile()
	if err != nil {
		return nil, err
	}
	pipe := "filewright-" + rand.Text()
	w := &worker{pool: p, at: at, sockets: officeSockets(at.profile, pipe), replies: make(chan reply)}
	defer func() {
		if err != nil {
			w.stop()
		}
	}()
	w.office, err = p.spawn(p.office, p.command(at, "--accept=pipe,name="+pipe+";urp;StarOffice.ComponentContext"))
	if err != nil {
		w.office = nil
		return nil, err
	}
	inR, inW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer inR.Close()
	w.in = inW
	outR, outW, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer outW.Close()
	w.python, err = p.spawn(p.python, engine.Cmd{
		Dir: at.work, Args: []string{"-I", "-B", filepath.Join(p.drivers(), "worker.py"), pipe}, Env: []string{socketsHere},
		Stdin: inR, Stdout: outW, Limits: engine.Limits{Memory: 1 << 30},
		// LibreOffice reads the documents. The driver itself reads only the documents to
		// merge, as LibreOffice has stored them.
		Access: engine.Access{Read: []string{p.drivers()}, Connect: true, Unwritable: true},
	})
	if err != nil {
		w.python = nil
		outR.Close()
		return nil, err
	}
	p.wg.Go(func() { w.read(outR) })
	ctx, stop := worktime.Context(p.ctx, p.startTime, errSlow, w.office.Work(), w.python.Work())
	defer stop()
	select {
	case r, ok := <-w.replies:
		if ok && r.Phase == "ready" {
			return w, nil
		}
		<-w.python.done
		return nil, fmt.Errorf("driver: %w", errors.Join(w.python.err, errors.New(r.Detail)))
	case <-w.office.done:
		return nil, fmt.Errorf("soffice.bin ended: %w", errors.Join(w.office.err, errCrashed))
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// read forwards the output of python until it exits.
func (w *worker) read(r *os.File) {
	defer close(w.replies)
	defer r.Close()
	for lines := bufio.NewScanner(r); lines.Scan(); {
		var m reply
		if err := json.Unmarshal(lines.Bytes(), &m); err != nil {
			continue // output of a library, not of worker.py
		}
		select {
		case w.replies <- m:
		case <-w.python.done:
			return
		}
	}
}

// convert converts one document with the worker. It calls stored when the result is complete and the document
// is being closed, unless sheets become files. If it fails with errCrashed or because ctx is done, the worker
// cannot be used again.
func (w *worker) convert(ctx context.Context, r request, onPhase func(string), stored func()) error {
	// A compromised process may have left files in its way.
	work, err := os.MkdirTemp(w.at.work, "document-")
	if err != nil {
		return fmt.Errorf("%w: %w", errCrashed, err)
	}
	defer os.RemoveAll(work)
	in := filepath.Join(w.at.in, filepath.Base(work))
	if err := os.Mkdir(in, 0o700); err != nil {
		return err
	}
	defer os.RemoveAll(in)
	own, err := r.within(in, work)
	if err != nil {
		return err
	}
	own.Choose = r.choose != nil
	own.URL = neutralURL(r.Name, own.In)
	for i := range own.More {
		own.More[i].URL = neutralURL(own.More[i].Name, own.More[i].In)
	}
	line, err := json.Marshal(own)
	if err != nil {
		return err
	}
	w.documents++
	var chosen error // of r.choose
	defer w.office.Watch(w.pool.opts.Run)()
	if _, err := w.in.Write(append(line, '\n')); err != nil {
		return fmt.Errorf("%w: %w", errCrashed, err)
	}
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-w.office.done:
			return w.crashed(errors.Join(w.office.err))
		case m, ok := <-w.replies:
			switch {
			case !ok || m.Error == "gone":
				return w.crashed(errors.New(m.Detail))
			case m.Phase == "pages":
				var pages []int
				pages, chosen = r.choose(m.Pages)
				line, err := json.Marshal(pages)
				if err == nil {
					_, err = w.in.Write(append(line, '\n'))
				}
				if err != nil {
					return fmt.Errorf("%w: %w", errCrashed, err)
				}
			case m.Error != "" && chosen != nil:
				return chosen
			case m.Phase != "":
				if m.Sheets > 0 && r.onSheets != nil {
					r.onSheets(m.Sheets)
				}
				onPhase(m.Phase)
				if m.Phase == "stored" && !r.AllSheets {
					if err := w.at.deliver(own.Out, r.Out); err != nil {
						w.documents = w.pool.opts.RecycleAfter // its next reply belongs to this document
						return err
					}
					stored()
				}
			case m.Error != "":
				return failure(m, r)
			default:
				if !m.Clean {
					w.documents = w.pool.opts.RecycleAfter // a document is still open
				}
				if !r.AllSheets {
					return nil
				}
				for i := range m.Names {
					if err := w.at.deliver(sheetFile(own.Out, i), sheetFile(r.Out, i)); err != nil {
						return err
					}
				}
				r.onNames(m.Names)
				return nil
			}
		}
	}
}

// sheetFile returns the path of the file for sheet i, if the result is for path.
func sheetFile(path string, i int) string {
	ext := filepath.Ext(path)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(path, ext), i, ext)
}

// crashed returns the error for a process that exited by itself or exceeded a limit.
func (w *worker) crashed(cause error) error {
	if what := w.office.Exceeded(); what != "" {
		return fileops.Fail(fileops.ErrLimit, cause, "the document needs more %s than is allowed", what)
	}
	return fmt.Errorf("%w: %w", errCrashed, cause)
}

// failure returns the error that a reply reports.
func failure(m reply, r request) error {
	cause := fmt.Errorf("libreoffice: %s: %s", m.Error, m.Detail)
	switch m.Error {
	case "sheet":
		return fileops.Fail(fileops.ErrUnsupportedInput, cause, "the workbook has no sheet %q", cmp.Or(r.Sheet, r.Sheets))
	case "empty":
		return fileops.Fail(fileops.ErrUnsupportedInput, cause, "the chosen sheets are empty")
	case "load":
		if r.Password != "" || slices.ContainsFunc(r.More, func(a addition) bool { return a.Password != "" }) {
			return fileops.Fail(fileops.ErrWrongPassword, cause, "the password is wrong")
		}
		return fileops.Fail(fileops.ErrCorruptInput, cause, "the document is damaged or cannot be read")
	case "limit":
		return fileops.Fail(fileops.ErrLimit, cause, "a sheet has more than %d rows or %d columns, the limits of this format", r.MaxRows, r.MaxColumns)
	}
	return fileops.Fail(fileops.ErrEngine, cause, "the document could not be converted")
}

// spent returns the reason why the worker should be replaced after a conversion that
// ended with err, or "".
func (w *worker) spent(ctx context.Context, err error) string {
	switch {
	case err != nil && ctx.Err() != nil:
		return "stopped"
	case errors.Is(err, errCrashed), w.gone():
		return "crashed"
	case w.documents >= w.pool.opts.RecycleAfter:
		return "count"
	case w.rss() > w.pool.opts.RecycleRSS:
		return "memory"
	}
	return ""
}

func (w *worker) gone() bool { return w.office.ended() || w.python.ended() }

// rss returns the resident memory of the LibreOffice process in bytes, or 0 if it is
// unknown (proc_pid_statm(5)).
func (w *worker) rss() int64 {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(w.office.Pid()) + "/statm")
	if err != nil {
		return 0
	}
	var pages [2]int64
	if _, err := fmt.Fscan(bytes.NewReader(b), &pages[0], &pages[1]); err != nil {
		return 0
	}
	return pages[1] * int64(os.Getpagesize())
}

// reap waits until one of the processes has ended and stops the other.
func (w *worker) reap() {
	select {
	case <-w.office.done:
	case <-w.python.done:
	}
	w.stop()
}

// stop kills the processes, waits for them, and removes their files. It may be called
// several times.
func (w *worker) stop() {
	w.clean.Do(func() {
		for _, x := range []*process{w.office, w.python} {
			if x != nil {
				x.Kill()
				<-x.done
			}
		}
		if w.in != nil {
			w.in.Close()
		}
		removeSockets(w.sockets)
		if err := os.RemoveAll(w.at.dir); err != nil {
			w.pool.log.Error("profile directory not removed", "err", err)
		}
	})
}

// oneShot converts a document with a separate process.
func (p *pool) oneShot(ctx context.Context, r request) error {
	at, err := p.newProfile()
	if err != nil {
		return fileops.Fail(fileops.ErrUnavailable, err, "LibreOffice could not be started")
	}
	defer os.RemoveAll(at.dir)
	defer removeSockets(officeSockets(at.profile, ""))
	ext := strings.TrimPrefix(filepath.Ext(r.Out), ".")
	to := ext + ":" + r.Filter
	if r.Data != nil {
		data := make(map[string]any)
		for k, v := range r.Data {
			kind := "boolean"
			if _, ok := v.(int); ok {
				kind = "long"
			}
			data[k] = map[string]string{"type": kind, "value": fmt.Sprint(v)}
		}
		b, err := json.Marshal(data)
		if err != nil {
			return err
		}
		to += ":" + string(b)
	} else if r.Options != "" {
		to += ":" + r.Options
	}
	args := []string{"--convert-to", to, "--outdir", at.work}
	if r.InFilter != "" {
		in := r.InFilter
		if r.InOptions != "" {
			in += ":" + r.InOptions
		}
		args = append(args, "--infilter="+in)
	}
	own, err := r.within(at.in, at.work)
	if err != nil {
		return err
	}
	// The path of the document can become part of the result. A path through a file
	// descriptor reveals nothing about this host.
	dir, err := os.Open(filepath.Dir(own.In))
	if err != nil {
		return err
	}
	defer dir.Close()
	c := p.command(at, append(args, "/proc/self/fd/3/"+filepath.Base(own.In))...)
	c.Files = []*os.File{dir}
	c.Limits = c.Limits.Or(p.opts.Run)
	for try := 0; ; try++ {
		err = p.office.RunWithin(ctx, c, p.opts.Timeout, tooLong(p.opts.Timeout))
		var exit *engine.ExitError
		if errors.As(err, &exit) && exit.Code == exitRestart && try < 3 {
			continue
		}
		break
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if errors.Is(err, fileops.ErrLimit) {
		return err
	}
	var exit *engine.ExitError
	if errors.As(err, &exit) && exit.Exceeded != "" {
		return fileops.Fail(fileops.ErrLimit, err, "the document needs more %s than is allowed", exit.Which())
	}
	if err != nil {
		return fileops.Fail(fileops.ErrEngine, err, "the document could not be converted")
	}
	made := filepath.Join(at.work, strings.TrimSuffix(filepath.Base(own.In), filepath.Ext(own.In))+"."+ext)
	if st, err := os.Lstat(made); err != nil || st.Size() == 0 { // it exits with 0 even then
		return fileops.Fail(fileops.ErrCorruptInput, errors.Join(err, errors.New("libreoffice: no output")), "the document is damaged or cannot be read")
	}
	return at.deliver(made, r.Out)
}

// within returns r with its documents in the directory in and its results in the
// directory work. A process can access only these directories.
func (r request) within(in, work string) (request, error) {
	link := func(path *string, name string) error {
		to := filepath.Join(in, name+filepath.Ext(*path))
		err := fileops.Path(*path).LinkTo(to)
		*path = to
		return err
	}
	if r.changes() { // the driver opens it for writing
		to := filepath.Join(work, "in"+filepath.Ext(r.In))
		if err := copyFile(r.In, to); err != nil {
			return r, err
		}
		r.In = to
	} else if err := link(&r.In, "in"); err != nil {
		return r, err
	}
	r.More = slices.Clone(r.More)
	for i := range r.More {
		if err := link(&r.More[i].In, fmt.Sprintf("more-%d", i)); err != nil {
			return r, err
		}
	}
	r.Out = filepath.Join(work, "out"+filepath.Ext(r.Out))
	if r.Scratch != "" {
		r.Scratch = filepath.Join(work, "scratch")
	}
	return r, nil
}

// changes reports whether the driver changes a sheet before it is stored.
func (r request) changes() bool { return r.Widest > 0 }

func copyFile(from, to string) error {
	src, err := os.Open(from)
	if err != nil {
		return err
	}
	defer src.Close()
	dst, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	return errors.Join(err, dst.Close())
}

// deliver moves a result to its destination.
func (at place) deliver(made, to string) error {
	name, err := filepath.Rel(at.work, made)
	if err != nil {
		return err
	}
	f, err := engine.Open(at.work, name)
	if err != nil {
		return fileops.Fail(fileops.ErrEngine, err, "the document could not be converted")
	}
	defer f.Close()
	return engine.Take(f, to)
}

// officeSockets returns the paths of LibreOffice's UNIX sockets, which a killed process
// leaves behind. They are the UNO pipe and the socket of the profile. The name of the
// latter contains the MD5 sum of the profile's URL in UTF-16, as hexadecimal bytes
// without leading zeros.
func officeSockets(profile, pipe string) []string {
	var b []byte
	for _, u := range utf16.Encode([]rune(fileURL(profile))) {
		b = append(b, byte(u), byte(u>>8))
	}
	name := "SingleOfficeIPC_"
	for _, c := range md5.Sum(b) {
		name += strconv.FormatUint(uint64(c), 16)
	}
	var paths []string
	for _, dir := range []string{"/tmp", "/var/tmp"} { // the second if the first is not writable
		// In a sandbox it cannot determine the user.
		for _, user := range []string{strconv.Itoa(os.Getuid()) + "_", ""} {
			prefix := filepath.Join(dir, "OSL_PIPE_"+user)
			paths = append(paths, prefix+name)
			if pipe != "" {
				paths = append(paths, prefix+pipe)
			}
		}
	}
	return paths
}

func removeSockets(paths []string) {
	for _, path := range paths {
		if st, err := os.Lstat(path); err == nil && st.Mode()&os.ModeSocket != 0 {
			os.Remove(path)
		}
	}
}

func fileURL(path string) string { return (&url.URL{Scheme: "file", Path: path}).String() }

// olderThan reports whether a version such as "7.4.7.2" is known to be lower than
// major.minor.
func olderThan(version string, major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(version, "%d.%d", &a, &b); n < 2 {
		return false
	}
	return a < major || a == major && b < minor
}
