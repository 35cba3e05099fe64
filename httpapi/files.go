package httpapi

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"time"

	"github.com/filewright/filewright/upload"
)

// States of a file in [FileInfo].
const (
	FileImporting = "importing" // the service is reading it from its URL
	FileUploading = "uploading" // its upload is not complete
	FileReady     = "ready"     // it can be used
	FileFailed    = "failed"    // its import failed, see ErrorCode
)

// A FileInfo describes an upload, an import or a result to its owner.
type FileInfo struct {
	FileKey      string    `json:"file_key"`
	State        string    `json:"state"`
	FileName     string    `json:"file_name,omitempty"`
	Size         *int64    `json:"size,omitempty"`
	MimeType     string    `json:"mime_type,omitempty"`
	CreatedAt    time.Time `json:"created_at,omitzero"`
	ExpiresAt    time.Time `json:"expires_at,omitzero"`
	ErrorCode    string    `json:"error_code,omitempty"`
	ErrorMessage string    `json:"error_message,omitempty"`
}

// A FileSource knows files that an [Extension] has accepted but not stored yet.
type FileSource interface {
	// PendingFile returns such a file of an account, with the state FileImporting or FileFailed. It
	// waits until the state is another one than FileImporting, or ctx is done. If there is no such
	// file (any more), the error matches fs.ErrNotExist.
	PendingFile(ctx context.Context, owner, key string) (*FileInfo, error)

	// DropFile stops and forgets such a file. If there is none, the error matches fs.ErrNotExist.
	DropFile(ctx context.Context, owner, key string) error
}

// fileInfo answers GET /files/<file_key>. With ?wait=30s it waits for an import.
func (s *Service) fileInfo(w http.ResponseWriter, r *http.Request) {
	var d time.Duration
	if text := r.URL.Query().Get("wait"); text != "" {
		var err error
		if d, err = ParseWait(text); err != nil {
			s.fail(w, r, err)
			return
		}
	}
	f, err := s.File(r.Context(), principal(r).Account, r.PathValue("file_key"), min(d, s.cfg.Limits.LongPoll))
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.reply(w, f)
}

// File returns a file of owner. If it is being imported, File waits for up to d, or until the service
// is about to stop. The error of an expired file matches upload.ErrExpired.
func (s *Service) File(ctx context.Context, owner, key string, d time.Duration) (*FileInfo, error) {
	f, err := s.storedFile(ctx, owner, key)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	limited, cancel := context.WithTimeout(ctx, d)
	defer cancel()
	defer context.AfterFunc(s.closing, cancel)()
	f, perr := s.pendingFile(limited, owner, key)
	if errors.Is(perr, fs.ErrNotExist) { // it may have been stored between the two looks
		return s.storedFile(ctx, owner, key)
	}
	return f, perr
}

func (s *Service) storedFile(ctx context.Context, owner, key string) (*FileInfo, error) {
	f, err := s.uploads.Get(ctx, owner, key)
	if err != nil {
		return nil, err
	}
	info := &FileInfo{
		FileKey: f.Key, State: FileReady, FileName: f.Name, Size: &f.Size, MimeType: f.ContentType,
		CreatedAt: stamp(f.Created), ExpiresAt: stamp(f.Expires),
	}
	switch f.State {
	case upload.Expired:
		return nil, upload.ErrExpired
	case upload.Open:
		info.State = FileUploading
	}
	return info, nil
}

func (s *Service) pendingFile(ctx context.Context, owner, key string) (*FileInfo, error) {
	for _, e := range s.extensions {
		if e.Files == nil {
			continue
		}
		if f, err := e.Files.PendingFile(ctx, owner, key); !errors.Is(err, fs.ErrNotExist) {
			return f, err
		}
	}
	return nil, fs.ErrNotExist
}

// dropPending drops a file that is not stored yet.
func (s *Service) dropPending(ctx context.Context, owner, key string) error {
	for _, e := range s.extensions {
		if e.Files == nil {
			continue
		}
		if err := e.Files.DropFile(ctx, owner, key); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return fs.ErrNotExist
}

// pendingError returns the error for an operation on a file that is not stored yet, or nil if there
// is no such file.
func (s *Service) pendingError(ctx context.Context, owner, key string) error {
	done, cancel := context.WithCancel(ctx)
	cancel() // only a look
	f, err := s.pendingFile(done, owner, key)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case f.State == FileFailed:
		return problem(http.StatusConflict, "upload_incomplete", "the import of the file failed: %s", f.ErrorMessage)
	}
	return problem(http.StatusConflict, "upload_incomplete", "the import of the file is not finished; wait for it with GET /api/v1/files/%s?wait=60s", f.FileKey)
}
