package benchmarks

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/minio/minio-go/v7"

	"github.com/filewright/filewright/internal/s3test"
	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload/blob/s3blob"
)

// bucket starts an S3 server and returns its configuration.
func bucket(b *testing.B) (*s3test.Server, s3blob.Config) {
	b.Helper()
	srv, err := s3test.New()
	systest.NoError(b, err)
	b.Cleanup(func() { srv.Close() })
	systest.NoError(b, srv.MakeBucket(b.Context(), "files"))
	return srv, srv.Config("files")
}

func bucketService(b *testing.B, c s3blob.Config, redirect bool) string {
	b.Helper()
	s, err := s3blob.New(c)
	systest.NoError(b, err)
	b.Cleanup(func() { s.Close() })
	return durableOn(b, s, redirect)
}

const bucketFile, bucketParts = 256 << 20, 4

// uploadParts uploads a file in parts, all concurrently.
func uploadParts(b *testing.B, base string, size int64, parts int) string {
	m := post(b, base, "initiate-upload", map[string]any{"file_name": "data.bin", "size": size, "mime_type": "application/octet-stream", "parts": parts})
	list := make([]map[string]any, parts)
	chunk := (size + int64(parts) - 1) / int64(parts)
	var wg sync.WaitGroup
	for i, u := range m["presigned_urls"].([]any) {
		wg.Go(func() {
			n := min(chunk, size-int64(i)*chunk)
			resp, _ := call(b, "PUT", u.(string), io.LimitReader(zeros{}, n), n)
			list[i] = map[string]any{"part_number": i + 1, "etag": strings.Trim(resp.Header.Get("ETag"), `"`)}
		})
	}
	wg.Wait()
	post(b, base, "complete-upload", map[string]any{"file_key": m["file_key"], "object_name": m["object_name"], "upload_id": m["upload_id"], "parts": list})
	return m["file_key"].(string)
}

// BenchmarkBucketUpload uploads a file of 256 MiB in four parts to a bucket: with an S3 client
// alone, with URLs that lead to the bucket, and through the service. It also uploads a file of 32
// MiB in parts that are too small for S3.
func BenchmarkBucketUpload(b *testing.B) {
	srv, c := bucket(b)
	b.Run("S3 alone", func(b *testing.B) {
		client, err := srv.Client()
		systest.NoError(b, err)
		b.SetBytes(bucketFile)
		for b.Loop() {
			id, err := client.NewMultipartUpload(b.Context(), "files", "alone", minio.PutObjectOptions{})
			systest.NoError(b, err)
			parts := make([]minio.CompletePart, bucketParts)
			var wg sync.WaitGroup
			for i := range parts {
				wg.Go(func() {
					u, err := client.Presign(b.Context(), "PUT", "files", "alone", 3600e9, url.Values{"partNumber": {fmt.Sprint(i + 1)}, "uploadId": {id}})
					if err != nil {
						b.Error(err)
						return
					}
					resp, _ := call(b, "PUT", u.String(), io.LimitReader(zeros{}, bucketFile/bucketParts), bucketFile/bucketParts)
					parts[i] = minio.CompletePart{PartNumber: i + 1, ETag: strings.Trim(resp.Header.Get("ETag"), `"`)}
				})
			}
			wg.Wait()
			if _, err := client.CompleteMultipartUpload(b.Context(), "files", "alone", id, parts, minio.PutObjectOptions{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	for _, private := range []bool{false, true} {
		c.Private = private
		name := map[bool]string{false: "direct", true: "through the service"}[private]
		b.Run(name, func(b *testing.B) {
			base := bucketService(b, c, false)
			b.SetBytes(bucketFile)
			for b.Loop() {
				uploadParts(b, base, bucketFile, bucketParts)
			}
		})
	}
	b.Run("32MiB in parts of 4MiB", func(b *testing.B) {
		base := bucketService(b, c, false)
		b.SetBytes(32 << 20)
		for b.Loop() {
			uploadParts(b, base, 32<<20, 8)
		}
	})
}

// BenchmarkBucketDownload downloads a file of 256 MiB from a bucket: through the service, and by
// its redirect.
func BenchmarkBucketDownload(b *testing.B) {
	_, c := bucket(b)
	for _, redirect := range []bool{false, true} {
		name := map[bool]string{false: "through the service", true: "redirect"}[redirect]
		b.Run(name, func(b *testing.B) {
			base := bucketService(b, c, redirect)
			key := uploadParts(b, base, bucketFile, bucketParts)
			b.SetBytes(bucketFile)
			for b.Loop() {
				resp, err := http.Get(base + "/v1/download/" + key)
				systest.NoError(b, err)
				n, err := io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				if err != nil || n != bucketFile {
					b.Fatalf("%d bytes, %v", n, err)
				}
			}
		})
	}
}
