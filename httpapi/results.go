package httpapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strconv"
	"strings"

	"github.com/filewright/filewright/httpapi/internal/zipstream"
	"github.com/filewright/filewright/status"
	"github.com/filewright/filewright/upload"
)

// downloadResults answers GET /operations/<main_task_id>/download with all results as a ZIP.
func (s *Service) downloadResults(w http.ResponseWriter, r *http.Request) {
	op, err := s.tracker.Get(r.Context(), principal(r).Account, r.PathValue("main_task_id"))
	if err == nil && !op.State.Final() {
		err = problem(http.StatusConflict, "conflict", "the operation is not finished; wait for it with GET /api/v1/status/%s?wait=60s", op.ID)
	}
	if err == nil {
		err = s.serveResults(w, r, op, true)
	}
	if err != nil {
		s.fail(w, r, err)
	}
}

// ServeResults answers a request to an [Extension] with the results of an operation: the only
// result itself, or a ZIP of all. Failed files are listed in errors.json in the ZIP; deleted and
// expired results are left out. If all files failed, the response is a [Problem] with the
// error_code of the first. Pass the error to [Service.Fail]; it is returned before anything is
// written.
func (s *Service) ServeResults(w http.ResponseWriter, r *http.Request, op *status.Operation) error {
	return s.serveResults(w, r, op, false)
}

func (s *Service) serveResults(w http.ResponseWriter, r *http.Request, op *status.Operation, zipped bool) error {
	w.Header().Set("X-Main-Task-Id", op.ID)
	op = op.Shown()
	files, failed, err := s.resultsOf(r.Context(), op)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		return noResults(op, failed)
	}
	if codes := warningCodes(op); codes != "" {
		w.Header().Set("X-Warnings", codes)
	}
	if len(files) == 1 && len(failed) == 0 && !zipped {
		obj, err := s.uploads.OpenFile(r.Context(), op.Owner, files[0])
		if err != nil {
			return err
		}
		defer obj.Close()
		f := files[0]
		s.serveContent(w, r, attachment{f.Name, safeType(f.Name), f.ETag, f.Created, contentOf(obj)})
		return nil
	}
	archive, etag, err := s.archive(r.Context(), op, files, failed)
	if err != nil {
		return err
	}
	defer archive.Close()
	if start := rangeStart(r); start > 0 {
		// Reading what the client already has can take longer than it waits for a byte, so it
		// comes before the response.
		w.(*recorder).idle()
		if err := archive.Prepare(start); err != nil {
			return err
		}
	}
	s.serveContent(w, r, attachment{archiveName(op), "application/zip", etag, op.Finished, archive})
	return nil
}

// resultsOf returns the results of an operation that exist, and the items that failed.
func (s *Service) resultsOf(ctx context.Context, op *status.Operation) (files []*upload.File, failed []status.Item, err error) {
	for _, it := range op.Items {
		if it.State == status.Failed {
			failed = append(failed, it)
		}
		for _, res := range it.Results {
			f, err := s.uploads.Ready(ctx, op.Owner, res.Key)
			switch {
			case errors.Is(err, fs.ErrNotExist), errors.Is(err, upload.ErrExpired):
			case err != nil:
				return nil, nil, err
			default:
				files = append(files, f)
			}
		}
	}
	return files, failed, nil
}

// noResults returns the problem of an operation without results.
func noResults(op *status.Operation, failed []status.Item) *Problem {
	if len(failed) == 0 {
		return problem(http.StatusGone, "expired", "the results have expired or were deleted")
	}
	e := status.Error{Code: status.CodeCancelled, Message: "the operation was cancelled"}
	if failed[0].Error != nil {
		e = *failed[0].Error
	}
	p := problem(http.StatusUnprocessableEntity, "operation_failed", "%s", e.Message)
	if n := len(failed) - 1; n > 0 {
		p.Detail += fmt.Sprintf(" (and %d more files failed)", n)
	}
	p.ErrorCode, p.MainTaskID = e.Code, op.ID
	return p
}

// warningCodes returns the codes of an operation's warnings, separated by commas.
func warningCodes(op *status.Operation) string {
	var codes []string
	seen := make(map[string]bool)
	for _, it := range op.Items {
		for _, one := range it.Warnings {
			if !seen[one.Code] {
				seen[one.Code] = true
				codes = append(codes, one.Code)
			}
		}
	}
	return strings.Join(codes, ",")
}

// archiveName returns the name of the ZIP of an operation's results: report.zip for report.pdf.
func archiveName(op *status.Operation) string {
	if len(op.Items) == 1 && len(op.Items[0].Inputs) == 1 {
		name := op.Items[0].Inputs[0].Name
		if stem := strings.TrimSuffix(name, path.Ext(name)); stem != "" {
			return stem + ".zip"
		}
	}
	return "results.zip"
}

// errorsName is the name of the list of failed files in a ZIP of results.
const errorsName = "errors.json"

// A failedFile is an element of errors.json.
type failedFile struct {
	FileName     string `json:"file_name"`
	InputFileKey string `json:"input_file_key"`
	ErrorCode    string `json:"error_code"`
	ErrorMessage string `json:"error_message"`
}

// archive returns the ZIP of an operation's results, and its ETag.
func (s *Service) archive(ctx context.Context, op *status.Operation, files []*upload.File, failed []status.Item) (a *zipstream.Archive, etag string, err error) {
	var names zipstream.Namer
	hash := sha256.New()
	fmt.Fprintf(hash, "zip 1\n%s\n", op.ID)
	var list []zipstream.File
	if len(failed) > 0 {
		text, err := errorList(failed)
		if err != nil {
			return nil, "", err
		}
		sum := sha256.Sum256(text)
		list = append(list, zipstream.File{
			Name: names.Unique(errorsName), Key: hex.EncodeToString(sum[:]), Size: int64(len(text)), Modified: op.Finished,
			Open: func(context.Context) (zipstream.Content, error) { return textContent{bytes.NewReader(text)}, nil },
		})
		hash.Write(text)
	}
	for _, f := range files {
		list = append(list, zipstream.File{
			Name: names.Unique(f.Name), Key: f.Key, Size: f.Size, Modified: f.Created,
			Open: func(ctx context.Context) (zipstream.Content, error) { return s.uploads.OpenFile(ctx, op.Owner, f) },
		})
		fmt.Fprintln(hash, f.Key)
	}
	a, err = zipstream.New(ctx, list, &s.sums)
	return a, hex.EncodeToString(hash.Sum(nil)[:16]), err
}

// errorList returns the content of errors.json.
func errorList(failed []status.Item) ([]byte, error) {
	list := []failedFile{}
	for _, it := range failed {
		for _, in := range it.Inputs {
			one := failedFile{FileName: in.Name, InputFileKey: in.Key}
			if it.Error != nil {
				one.ErrorCode, one.ErrorMessage = it.Error.Code, it.Error.Message
			}
			list = append(list, one)
		}
	}
	b, err := json.MarshalIndent(list, "", "  ")
	return append(b, '\n'), err
}

// A textContent is the content of a file in memory.
type textContent struct{ *bytes.Reader }

// Close implements io.Closer.
func (textContent) Close() error { return nil }

// rangeStart returns the first byte of the range that a request names, or 0 if there is none or
// its form is another one.
func rangeStart(r *http.Request) int64 {
	text, ok := strings.CutPrefix(r.Header.Get("Range"), "bytes=")
	if !ok {
		return 0
	}
	first, _, _ := strings.Cut(text, "-")
	n, err := strconv.ParseInt(first, 10, 64)
	if err != nil {
		return 0
	}
	return n
}
