package httpapi

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/filewright/filewright/upload"
	"github.com/filewright/filewright/upload/blob"
)

// initiateUpload answers POST /initiate-upload.
func (s *Service) initiateUpload(w http.ResponseWriter, r *http.Request) {
	var req initiateRequest
	body, err := s.decode(w, r, &req, false)
	if err == nil {
		err = req.check()
	}
	idem, ierr := idempotencyKey(r)
	if err == nil {
		err = ierr
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	who := principal(r)
	f, urls, err := s.uploads.Start(r.Context(), upload.Request{
		Owner: who.Account, Name: req.FileName, ContentType: req.MimeType, Size: *req.Size, Parts: req.Parts,
		IdempotencyKey: idem, Fingerprint: fingerprint(body),
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	resp := initiateResponse{FileKey: f.Key, ObjectName: f.Object, UploadID: f.UploadID, ExpiresAt: f.Expires.UTC().Truncate(time.Second)}
	base := s.baseURL(r)
	for _, u := range urls {
		full := u
		if !u.IsAbs() { // else it leads straight to the store
			full = base.JoinPath(u.Path)
			full.RawQuery = u.RawQuery
		}
		resp.PresignedURLs = append(resp.PresignedURLs, full.String())
	}
	s.reply(w, resp)
}

func (req *initiateRequest) check() error {
	switch {
	case strings.TrimSpace(req.FileName) == "":
		return invalid("file_name", "file_name is required")
	case req.Size == nil:
		return invalid("size", "size is required: the length of the file in bytes")
	case *req.Size < 0:
		return invalid("size", "size must not be negative")
	case req.Parts < 0:
		return invalid("parts", "parts must not be negative")
	case req.MimeType == "":
		return invalid("mime_type", "mime_type is required, such as application/pdf")
	}
	if mt, _, err := mime.ParseMediaType(req.MimeType); err != nil || !strings.Contains(mt, "/") || len(req.MimeType) > 255 {
		return invalid("mime_type", "mime_type must have the form type/subtype")
	}
	return nil
}

// baseURL returns the public address of the service.
func (s *Service) baseURL(r *http.Request) *url.URL {
	return PublicURL(r, s.cfg.BaseURL, s.cfg.TrustProxy)
}

// PublicURL returns the address of the service as the client of a request knows it:
// base, or else what the request was sent to, believing X-Forwarded-Proto and
// X-Forwarded-Host only if trustProxy is set.
func PublicURL(r *http.Request, base *url.URL, trustProxy bool) *url.URL {
	if base != nil {
		return base
	}
	u := &url.URL{Scheme: "http", Host: r.Host, Path: "/"}
	if r.TLS != nil {
		u.Scheme = "https"
	}
	if trustProxy {
		if p := r.Header.Get("X-Forwarded-Proto"); p == "http" || p == "https" {
			u.Scheme = p
		}
		if h := r.Header.Get("X-Forwarded-Host"); h != "" {
			u.Host = h
		}
	}
	return u
}

// putPart answers PUT on an upload URL. It has no authentication but the
// signature in the URL, which is checked before the body is read.
func (s *Service) putPart(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Content-Encoding") != "" {
		s.fail(w, r, problem(http.StatusUnsupportedMediaType, "unsupported_media_type", "send the bytes of the file as they are, without Content-Encoding"))
		return
	}
	etag, err := s.uploads.PutPart(r.Context(), r.Method, r.URL, r.Body, upload.PutOptions{
		Size: r.ContentLength, ContentMD5: r.Header.Get("Content-MD5"),
	})
	if err != nil {
		// What is left of the body is not worth reading.
		w.Header().Set("Connection", "close")
		s.fail(w, r, err)
		return
	}
	s.metrics.received(r.ContentLength)
	w.Header().Set("ETag", `"`+etag+`"`)
	w.Header().Set("Content-Length", "0")
	w.WriteHeader(http.StatusOK)
}

// completeUpload answers POST /complete-upload.
func (s *Service) completeUpload(w http.ResponseWriter, r *http.Request) {
	var req completeRequest
	if _, err := s.decode(w, r, &req, false); err != nil {
		s.fail(w, r, err)
		return
	}
	switch {
	case req.FileKey == "":
		s.fail(w, r, invalid("file_key", "file_key is required"))
		return
	case len(req.Parts) > s.cfg.Limits.Parts:
		s.fail(w, r, invalid("parts", "parts has more than %d entries", s.cfg.Limits.Parts))
		return
	}
	parts := make([]blob.Part, len(req.Parts))
	for i, p := range req.Parts {
		parts[i] = blob.Part{Number: p.PartNumber, ETag: p.ETag}
	}
	f, again, err := s.uploads.Complete(r.Context(), principal(r).Account, req.FileKey, req.ObjectName, req.UploadID, parts)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	message := "file upload completed"
	if !again {
		message = fmt.Sprintf("file upload completed, ETag: %q", f.ETag)
	}
	s.reply(w, messageResponse{Message: message, FileKey: f.Key})
}

// deleteFile answers DELETE /files/<file_key>.
func (s *Service) deleteFile(w http.ResponseWriter, r *http.Request) {
	key := r.PathValue("file_key")
	if err := s.uploads.Delete(r.Context(), principal(r).Account, key); err != nil {
		s.fail(w, r, err)
		return
	}
	s.reply(w, messageResponse{Message: "file deleted", FileKey: key})
}

// idempotencyKey returns the Idempotency-Key of a request, or "".
func idempotencyKey(r *http.Request) (string, error) {
	key := r.Header.Get("Idempotency-Key")
	if len(key) > 255 {
		return "", invalid("Idempotency-Key", "the header Idempotency-Key is longer than 255 bytes")
	}
	return key, nil
}

// fingerprint identifies the body of a request.
func fingerprint(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
