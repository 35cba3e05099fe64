package httpapi

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/filewright/filewright/trace"
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
	if err := s.checkParts(*req.Size, req.Parts); err != nil {
		s.fail(w, r, err)
		return
	}
	// The request itself is already counted.
	if err := s.limitMore(w, who, req.Parts/partsPerRequest); err != nil {
		s.fail(w, r, err)
		return
	}
	if req.Parts > freeParts {
		if !s.longAnswers.enter(who.Account) {
			p := problem(http.StatusTooManyRequests, "rate_limit_exceeded", "too many large uploads are starting at the same time; try again in a moment")
			p.RetryAfter = time.Second
			s.fail(w, r, p)
			return
		}
		defer s.longAnswers.leave(who.Account)
	}
	f, sign, err := s.uploads.Begin(r.Context(), upload.Request{
		Owner: who.Account, Name: req.FileName, ContentType: req.MimeType, Size: *req.Size, Parts: req.Parts,
		IdempotencyKey: idem, Fingerprint: fingerprint(canonical(body)),
	})
	if err != nil {
		s.fail(w, r, err)
		return
	}
	markReplay(w, f.Repeated())
	base := s.baseURL(r)
	s.replySession(w, r, f, func(part int) (string, error) {
		u, err := sign(part)
		if err != nil {
			return "", err
		}
		if !u.IsAbs() { // otherwise the URL leads straight to the store
			full := base.JoinPath(u.Path)
			full.RawQuery = u.RawQuery
			u = full
		}
		return u.String(), nil
	})
}

// Limits of the number of parts of an upload.
const (
	// freeParts is the number of parts that a file of any size may have. Published clients split a
	// file into clamp(ceil(size / 5 MiB), 1, 100) parts.
	freeParts = 100

	// minPart is the least average part size in bytes for uploads with more parts than freeParts,
	// not counting the last part. It is the minimum part size of S3.
	minPart = 5 << 20

	// partsPerRequest is the number of parts that cost one more request of the rate limit.
	partsPerRequest = 100
)

// checkParts returns an error for more parts than a file of size bytes can need.
func (s *Service) checkParts(size int64, parts int) error {
	maxCount := min(max(freeParts, (size+minPart-1)/minPart), int64(s.cfg.Limits.Parts))
	if int64(parts) <= maxCount {
		return nil
	}
	err := invalid("parts", "a file of %d bytes can have at maxCount %d parts; with more than %d parts, each must have at least 5 MiB", size, maxCount, freeParts)
	err.Allowed = []string{fmt.Sprintf("1-%d", maxCount)}
	return err
}

// replySession answers with an upload session. It signs many URLs while it sends them, twice in the
// dual envelope, so that memory does not grow with the response.
func (s *Service) replySession(w http.ResponseWriter, r *http.Request, f *upload.File, urlOf func(part int) (string, error)) {
	resp := initiateResponse{
		FileKey: f.Key, ObjectName: f.Object, UploadID: f.UploadID, ExpiresAt: f.Expires.UTC().Truncate(time.Second),
		PresignedURLs: make([]string, 0, min(f.Parts, freeParts)),
	}
	if f.Parts <= freeParts {
		for part := range f.Parts {
			u, err := urlOf(part + 1)
			if err != nil {
				s.fail(w, r, err)
				return
			}
			resp.PresignedURLs = append(resp.PresignedURLs, u)
		}
		s.reply(w, resp)
		return
	}
	if _, err := urlOf(1); err != nil { // while an error response is still possible
		s.fail(w, r, err)
		return
	}
	frame, err := marshal(resp)
	if err != nil { // only a type that JSON cannot represent; a bug
		panic(err)
	}
	const empty = `"presigned_urls":[]` // cannot occur inside a value, where quotation marks are escaped
	before, after, _ := bytes.Cut(frame, []byte(empty))
	out := bufio.NewWriterSize(w, 16<<10)
	urls := func() {
		out.WriteString(strings.TrimSuffix(empty, "]"))
		for part := range f.Parts {
			u, err := urlOf(part + 1)
			var b []byte
			if err == nil {
				b, err = marshal(u)
			}
			if err == nil && part > 0 {
				err = out.WriteByte(',')
			}
			if err == nil {
				_, err = out.Write(b)
			}
			if err != nil {
				panic(http.ErrAbortHandler) // a partial response must not look complete
			}
		}
		out.WriteByte(']')
	}
	jsonHeader(w.Header(), "application/json")
	w.WriteHeader(http.StatusOK)
	if s.cfg.Envelope == EnvelopeData {
		out.WriteString(`{"data":`)
	}
	out.Write(before)
	urls()
	if s.cfg.Envelope == EnvelopeDual {
		out.Write(after[:len(after)-1])
		out.WriteString(`,"data":`)
		out.Write(before)
		urls()
	}
	out.Write(after)
	if s.cfg.Envelope != EnvelopePlain {
		out.WriteByte('}')
	}
	out.WriteByte('\n')
	if out.Flush() != nil {
		panic(http.ErrAbortHandler)
	}
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

// PublicURL returns the service's address as the client of a request sees it: base, or else the
// address of the request. X-Forwarded-Proto and X-Forwarded-Host count only if trustProxy is set.
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
		if h := r.Header.Get("X-Forwarded-Host"); h != "" && validHost(h) {
			u.Host = h
		}
	}
	return u
}

// putPart answers PUT on an upload URL. The signature in the URL is its only authentication;
// putPart checks it before it reads the body.
func (s *Service) putPart(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Content-Encoding") != "" {
		s.fail(w, r, problem(http.StatusUnsupportedMediaType, "unsupported_media_type", "Content-Encoding is not supported; send the bytes of the file unencoded"))
		return
	}
	ctx, span := trace.Start(r.Context(), "store put", trace.Client)
	span.Int("filewright.bytes", r.ContentLength)
	etag, err := s.uploads.PutPart(ctx, r.Method, r.URL, r.Body, upload.PutOptions{
		Size: r.ContentLength, ContentMD5: r.Header.Get("Content-MD5"),
	})
	span.End(spanCode(err))
	if err != nil {
		// The rest of the body is not worth reading.
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
	ctx, span := trace.Start(r.Context(), "store complete", trace.Client)
	f, again, err := s.uploads.Complete(ctx, principal(r).Account, req.FileKey, req.ObjectName, req.UploadID, parts)
	span.End(spanCode(err))
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
	err := s.uploads.Delete(r.Context(), principal(r).Account, key)
	if errors.Is(err, fs.ErrNotExist) {
		if perr := s.dropPending(r.Context(), principal(r).Account, key); !errors.Is(perr, fs.ErrNotExist) {
			err = perr
		}
	}
	if err != nil {
		s.fail(w, r, err)
		return
	}
	s.changed(r, "file.delete", key)
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

// markReplay marks the response to a repeated request.
func markReplay(w http.ResponseWriter, replayed bool) {
	if replayed {
		w.Header().Set("Idempotency-Replayed", "true")
	}
}

// canonical returns a JSON object in a form that depends only on its meaning: members are sorted, and
// those that are null are left out, as in requests. Text that is not an object is returned unchanged.
func canonical(body []byte) []byte {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v map[string]any
	if d.Decode(&v) != nil {
		return body
	}
	b, err := marshal(withoutNull(v))
	if err != nil {
		return body
	}
	return b
}

// withoutNull removes the members of objects that are null.
func withoutNull(v any) any {
	switch v := v.(type) {
	case map[string]any:
		for name, member := range v {
			if member == nil {
				delete(v, name)
			} else {
				withoutNull(member)
			}
		}
	case []any:
		for _, element := range v {
			withoutNull(element)
		}
	}
	return v
}

// fingerprint returns the SHA-256 of a request body in hexadecimal.
func fingerprint(body []byte) string {
	sum := sha256.Sum256(body)
	return hex.EncodeToString(sum[:])
}
