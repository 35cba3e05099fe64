package s3blob

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/filewright/filewright/upload/blob"
)

// BeginDirect implements blob.DirectUploader. It refuses an empty object and one whose
// parts S3 would not join, see [MinPart].
func (s *Store) BeginDirect(ctx context.Context, key string, size int64, parts int) (blob.DirectUpload, error) {
	n := int64(parts)
	switch {
	case s.private:
		return blob.DirectUpload{}, fmt.Errorf("s3: clients cannot reach the bucket: %w", errors.ErrUnsupported)
	case size <= 0 || parts < 1 || parts > MaxParts || (size+n-1)/n > MaxPart || parts > 1 && size/n < MinPart:
		return blob.DirectUpload{}, fmt.Errorf("s3: %d bytes in %d parts: %w", size, parts, errors.ErrUnsupported)
	}
	name, err := s.name(key)
	if err != nil {
		return blob.DirectUpload{}, err
	}
	if err := ctx.Err(); err != nil {
		return blob.DirectUpload{}, err
	}
	// Even a single part is a multipart upload: a URL for the object itself could
	// replace it until the URL expires.
	id, err := s.c.NewMultipartUpload(countSilences(ctx), s.bucket, name, minio.PutObjectOptions{})
	if err != nil {
		return blob.DirectUpload{}, fail("begin upload", err)
	}
	return blob.DirectUpload{Key: key, ID: id, Begun: time.Now()}, nil
}

// PresignPart implements blob.DirectUploader.
func (s *Store) PresignPart(ctx context.Context, u blob.DirectUpload, n int, size int64, ttl time.Duration) (*url.URL, error) {
	name, err := s.name(u.Key)
	if err != nil {
		return nil, err
	}
	q := url.Values{"partNumber": {strconv.Itoa(n)}, "uploadId": {u.ID}}
	var h http.Header
	if size >= 0 {
		h = http.Header{"Content-Length": {strconv.FormatInt(size, 10)}}
	}
	link, err := s.sign(ctx, http.MethodPut, name, ttl, q, h)
	return link, fail("presign part", err)
}

// DirectParts implements blob.DirectUploader.
func (s *Store) DirectParts(ctx context.Context, u blob.DirectUpload) ([]blob.DirectPart, error) {
	name, err := s.name(u.Key)
	if err != nil {
		return nil, err
	}
	var all []blob.DirectPart
	for marker := 0; ; {
		r, err := s.c.ListObjectParts(countSilences(ctx), s.bucket, name, u.ID, marker, 1000)
		if err != nil {
			return nil, fail("list parts", err)
		}
		for _, p := range r.ObjectParts {
			all = append(all, blob.DirectPart{Part: blob.Part{Number: p.PartNumber, ETag: strings.Trim(p.ETag, `"`)}, Size: p.Size})
		}
		if !r.IsTruncated || r.NextPartNumberMarker <= marker {
			return all, nil
		}
		marker = r.NextPartNumberMarker
	}
}

// CommitDirect implements blob.DirectUploader.
func (s *Store) CommitDirect(ctx context.Context, u blob.DirectUpload, parts []blob.DirectPart) error {
	name, err := s.name(u.Key)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = countSilences(ctx)
	var size int64
	list := make([]minio.CompletePart, len(parts))
	for i, p := range parts {
		if i < len(parts)-1 && p.Size < MinPart {
			// Not every server returns this error.
			return fmt.Errorf("s3: part %d has %d bytes; all but the last need %d: %w", p.Number, p.Size, MinPart, blob.ErrPartSize)
		}
		list[i] = minio.CompletePart{PartNumber: p.Number, ETag: strings.Trim(p.ETag, "\" \t")}
		size += p.Size
	}
	return s.complete(ctx, name, u.ID, list, size)
}

// AbortDirect implements blob.DirectUploader.
func (s *Store) AbortDirect(ctx context.Context, u blob.DirectUpload) error {
	name, err := s.name(u.Key)
	if err != nil {
		return err
	}
	err = s.c.AbortMultipartUpload(countSilences(ctx), s.bucket, name, u.ID)
	if hasCode(err, minio.NoSuchUpload) {
		return nil
	}
	return fail("abort upload", err)
}

// ListDirect implements blob.DirectUploader. MinIO lists no uploads.
func (s *Store) ListDirect(ctx context.Context) iter.Seq2[blob.DirectUpload, error] {
	return func(yield func(blob.DirectUpload, error) bool) {
		keyMarker, idMarker := "", ""
		for {
			r, err := s.c.ListMultipartUploads(countSilences(ctx), s.bucket, s.prefix, keyMarker, idMarker, "", 1000)
			if err != nil {
				yield(blob.DirectUpload{}, fail("list uploads", err))
				return
			}
			for _, u := range r.Uploads {
				key, ok := s.key(u.Key)
				if ok && !yield(blob.DirectUpload{Key: key, ID: u.UploadID, Begun: u.Initiated}, nil) {
					return
				}
			}
			if !r.IsTruncated || r.NextKeyMarker == keyMarker && r.NextUploadIDMarker == idMarker {
				return
			}
			keyMarker, idMarker = r.NextKeyMarker, r.NextUploadIDMarker
		}
	}
}

// Link implements blob.Linker.
func (s *Store) Link(ctx context.Context, key string, o blob.LinkOptions) (*url.URL, error) {
	if s.private {
		return nil, fmt.Errorf("s3: clients cannot reach the bucket: %w", errors.ErrUnsupported)
	}
	name, err := s.name(key)
	if err != nil {
		return nil, err
	}
	q := make(url.Values)
	if o.ContentType != "" {
		q.Set("response-content-type", o.ContentType)
	}
	if o.ContentDisposition != "" {
		q.Set("response-content-disposition", o.ContentDisposition)
	}
	u, err := s.sign(ctx, http.MethodGet, name, o.TTL, q, nil)
	return u, fail("presign", err)
}

// Origin returns the web origin of all URLs for clients, such as
// https://files.s3.eu-central-1.amazonaws.com, which must be in the
// Content-Security-Policy of pages that upload to the bucket. It is "" if clients
// cannot reach the bucket. If the region is not configured, Origin queries the server
// for it.
func (s *Store) Origin(ctx context.Context) (string, error) {
	if s.private {
		return "", nil
	}
	u, err := s.sign(ctx, http.MethodGet, s.prefix+"origin", time.Minute, nil, nil)
	if err != nil {
		return "", fail("origin", err)
	}
	return u.Scheme + "://" + u.Host, nil
}

// sign returns a URL of an object that works for a while without credentials.
func (s *Store) sign(ctx context.Context, method, name string, ttl time.Duration, q url.Values, h http.Header) (*url.URL, error) {
	c, err := s.signer(ctx)
	if err != nil {
		return nil, err
	}
	return c.PresignHeader(ctx, method, s.bucket, name, ttl, q, h)
}
