package client

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

const (
	defaultPartSize = 16 << 20
	largestPart     = 5 << 30 // of a signed upload
	defaultParallel = 4
	mostParts       = 10_000
)

// randomKey returns a key that no other request has.
func randomKey() string { return rand.Text() }

// UploadOptions are the optional settings of an upload. The zero value is usable.
type UploadOptions struct {
	MIMEType string // "" means the type of the name's extension

	// Progress is called after each finished part, from one goroutine at a time; may be nil.
	Progress func(sent, total int64)
}

// An Upload is an upload that has begun. Stored as JSON, it can be continued by another process with
// [Client.Send]. It contains signed URLs, so treat it as a secret.
type Upload struct {
	FileKey    string   `json:"file_key"`
	ObjectName string   `json:"object_name"`
	UploadID   string   `json:"upload_id"`
	URLs       []string `json:"presigned_urls"`
	Size       int64    `json:"size"`
	MIMEType   string   `json:"mime_type"`
	ETags      []string `json:"etags"` // of the sent parts, "" for the others; index 0 is part 1
}

// part returns the range of a part, counted from 0.
func (u *Upload) part(i int) (offset, length int64) {
	size := (u.Size + int64(len(u.URLs)) - 1) / int64(len(u.URLs))
	offset = min(int64(i)*size, u.Size)
	return offset, min(size, u.Size-offset)
}

// sent returns the number of bytes in finished parts.
func (u *Upload) sent() (n int64) {
	for i, tag := range u.ETags {
		if _, length := u.part(i); tag != "" {
			n += length
		}
	}
	return n
}

// Begin starts an upload. name is the name of the file with its extension, size its size in bytes.
func (c *Client) Begin(ctx context.Context, name string, size int64, mimeType string) (*Upload, error) {
	part := min(cmp.Or(c.PartSize, defaultPartSize), largestPart)
	parts := max(1, (size+part-1)/part)
	for parts > mostParts {
		part *= 2
		parts = (size + part - 1) / part
	}
	mimeType = cmp.Or(mimeType, mime.TypeByExtension(filepath.Ext(name)), "application/octet-stream")
	u := &Upload{Size: size, MIMEType: mimeType}
	// An upload that was started twice costs nothing and expires.
	err := c.call(ctx, request{method: http.MethodPost, path: "/api/v1/initiate-upload", body: map[string]any{
		"file_name": name, "size": size, "mime_type": mimeType, "parts": parts,
	}, repeatable: true}, u)
	if err == nil && int64(len(u.URLs)) != parts {
		err = fmt.Errorf("the server returned %d upload URLs for %d parts", len(u.URLs), parts)
	}
	if err != nil {
		return nil, err
	}
	u.ETags = make([]string, parts)
	return u, nil
}

// Send sends the parts of an upload that are missing, several at the same time, and completes it. It
// updates u.ETags, so u can be sent again after an error. progress may be nil.
func (c *Client) Send(ctx context.Context, u *Upload, content io.ReaderAt, progress func(sent, total int64)) error {
	if len(u.URLs) == 0 || len(u.ETags) != len(u.URLs) {
		return errors.New("an upload needs as many ETags as URLs, at least one")
	}
	var missing []int
	for i, tag := range u.ETags {
		if tag == "" {
			missing = append(missing, i)
		}
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var mu sync.Mutex
	next := make(chan int)
	var wg sync.WaitGroup
	for range min(cmp.Or(c.Parallel, defaultParallel), len(missing)) {
		wg.Go(func() {
			for i := range next {
				offset, length := u.part(i)
				tag, err := c.put(ctx, u.URLs[i], u.MIMEType, content, offset, length)
				if err != nil {
					cancel(fmt.Errorf("part %d of %d: %w", i+1, len(u.URLs), err))
					return
				}
				mu.Lock()
				u.ETags[i] = tag
				if progress != nil {
					progress(u.sent(), u.Size)
				}
				mu.Unlock()
			}
		})
	}
feed:
	for _, i := range missing {
		select {
		case next <- i:
		case <-ctx.Done():
			break feed
		}
	}
	close(next)
	wg.Wait()
	if err := context.Cause(ctx); err != nil {
		return err
	}
	type part struct {
		ETag   string `json:"etag"`
		Number int    `json:"part_number"`
	}
	parts := make([]part, len(u.ETags))
	for i, tag := range u.ETags {
		parts[i] = part{tag, i + 1}
	}
	return c.call(ctx, request{method: http.MethodPost, path: "/api/v1/complete-upload", body: map[string]any{
		"file_key": u.FileKey, "object_name": u.ObjectName, "upload_id": u.UploadID, "parts": parts,
	}, repeatable: true}, nil)
}

// put sends one part and returns its ETag.
func (c *Client) put(ctx context.Context, to, mimeType string, content io.ReaderAt, offset, length int64) (tag string, err error) {
	err = c.retry(ctx, true, func() error {
		var body io.Reader = io.NewSectionReader(content, offset, length)
		if length == 0 {
			body = http.NoBody
		}
		req, err := http.NewRequestWithContext(ctx, http.MethodPut, to, body)
		if err != nil {
			return permanentError{err}
		}
		req.ContentLength = length
		req.Header.Set("Content-Type", mimeType)
		resp, err := c.answer(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			return err
		}
		if tag = strings.Trim(resp.Header.Get("ETag"), `"`); tag == "" {
			return permanentError{errors.New("the server returned no ETag")}
		}
		return nil
	})
	return tag, err
}

// Upload uploads size bytes of content and returns the file key. o may be nil.
func (c *Client) Upload(ctx context.Context, name string, content io.ReaderAt, size int64, o *UploadOptions) (fileKey string, err error) {
	if o == nil {
		o = new(UploadOptions)
	}
	u, err := c.Begin(ctx, name, size, o.MIMEType)
	if err != nil {
		return "", err
	}
	return u.FileKey, c.Send(ctx, u, content, o.Progress)
}

// UploadFile uploads a file and returns its file key. o may be nil.
func (c *Client) UploadFile(ctx context.Context, path string, o *UploadOptions) (fileKey string, err error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return "", err
	}
	return c.Upload(ctx, filepath.Base(path), f, st.Size(), o)
}

// Download writes the file of a download link, which may be relative to BaseURL, to w. It returns the
// number of bytes written. If the connection breaks, it continues where it stopped.
func (c *Client) Download(ctx context.Context, link string, w io.Writer) (int64, error) {
	base, err := url.Parse(strings.TrimSuffix(c.BaseURL, "/") + "/")
	if err != nil {
		return 0, err
	}
	ref, err := url.Parse(link)
	if err != nil {
		return 0, err
	}
	if !ref.IsAbs() {
		// A server below a path has links below that path.
		ref.Path = strings.TrimPrefix(ref.Path, "/")
	}
	at := base.ResolveReference(ref)
	own := at.Scheme == base.Scheme && at.Host == base.Host
	var written int64
	var tag string
	err = c.retry(ctx, true, func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
		if err != nil {
			return permanentError{err}
		}
		if own { // other hosts do not get the key
			c.authorize(req)
		}
		if written > 0 {
			req.Header.Set("Range", "bytes="+strconv.FormatInt(written, 10)+"-")
			if tag != "" {
				req.Header.Set("If-Range", tag)
			}
		}
		resp, err := c.answer(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if written > 0 && resp.StatusCode != http.StatusPartialContent {
			return permanentError{errors.New("the file changed while it was downloaded")}
		}
		tag = resp.Header.Get("ETag")
		n, err := io.Copy(writer{w}, resp.Body)
		written += n
		return err
	})
	return written, err
}

// A writer marks the errors of the target, which no attempt repairs.
type writer struct{ to io.Writer }

func (w writer) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	if err != nil {
		err = permanentError{err}
	}
	return n, err
}

// DownloadFile saves the file of a download link at path. It fails with [fs.ErrExist] if that exists.
// The file appears only when it is complete.
func (c *Client) DownloadFile(ctx context.Context, link, path string) error {
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return cmp.Or(err, error(&fs.PathError{Op: "create", Path: path, Err: fs.ErrExist}))
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".download-*")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	_, err = c.Download(ctx, link, f)
	if err := errors.Join(err, f.Chmod(0o644), f.Close()); err != nil {
		return err
	}
	if err := os.Link(f.Name(), path); err == nil || errors.Is(err, fs.ErrExist) {
		return err
	}
	return os.Rename(f.Name(), path) // some file systems have no links
}
