// Package s3blob keeps blobs in a bucket of Amazon S3 or of a server that speaks
// its protocol, such as MinIO, Ceph or versitygw.
//
//	c, err := s3blob.ParseURL("s3://files/filewright?region=eu-central-1")
//	c.Credentials = credentials.NewStaticV4(accessKey, secretKey, sessionToken)
//	store, err := s3blob.New(c)
//	err = store.Check(ctx)
//
// # Names
//
// The object of a key has the name Prefix + "/" + the key + "-", so that servers that
// keep objects in files can store all keys. Bytes up to "." are written as "." and two
// hexadecimal digits. The store touches no other names under the prefix; two programs
// must not share a prefix.
//
// # Direct access by clients
//
// A [Store] is a blob.DirectUploader and a blob.Linker: clients send parts to the
// bucket and fetch objects from it by URLs that are signed with the credentials of the
// store. The URLs expire with the credentials if those are temporary. Parts must
// satisfy the rules of S3: at least [MinPart] bytes except for the last, at most
// [MaxPart] bytes, and at most [MaxParts] parts.
//
// # ETags
//
// The ETags of direct parts come from the server. They are the MD5 of the bytes unless
// the server encrypts with external keys (SSE-KMS, SSE-C): then they have the same
// form, but only identify the part.
//
// # Errors
//
// Errors that may be transient match blob.ErrUnavailable: network errors, a server that
// is down (5xx) or overloaded (503 SlowDown). The store has then retried for several
// seconds. Errors contain neither credentials nor keys.
//
// # Reading
//
// Open reads the first 64 KiB, and nothing more of small objects. The rest is read in
// ranges that grow while reading is sequential. If an object is replaced or deleted
// before it is read to its end, reading fails; it never returns a mixture.
//
// # Durability
//
// An object is as durable as the server makes it before it responds. A process that
// dies leaves only incomplete multipart uploads behind, see [Store.ListDirect]; MinIO
// does not list them but removes them after 24 hours.
package s3blob

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/filewright/filewright/upload/blob"
)

// Limits of S3 for the parts of an object.
const (
	MinPart  = 5 << 20 // bytes; the last part may be smaller
	MaxPart  = 5 << 30 // bytes
	MaxParts = 10_000
)

// A Config configures access to a bucket. Only Bucket and Credentials are required.
type Config struct {
	Bucket string
	Prefix string // prefix of all object names, without slashes around it; "": none

	// Credentials sign requests. Package credentials of minio-go creates them from
	// keys, or fetches them from the environment.
	Credentials *credentials.Credentials

	// Endpoint is the server, as https://host:port; the default scheme is https. ""
	// means Amazon S3.
	Endpoint string

	// PublicEndpoint is the address of the server for clients, if it differs. A proxy
	// there must pass on the Host header, because it is signed. "" means Endpoint.
	PublicEndpoint string

	// Region is the region of the bucket; "" queries the server for it.
	Region string

	// Addressing is the place of the bucket's name in URLs.
	Addressing Addressing

	// Private declares that clients cannot reach the bucket. It disables direct uploads
	// and links.
	Private bool

	// Memory is the maximum number of bytes of objects being written that are held in
	// memory, so that requests can be repeated: 0 means 64 MiB. Bytes beyond it are
	// passed on as they arrive, and a failed request is not repeated.
	Memory int64

	// Silence is how long the server may send nothing on a connection; 0 means 1
	// minute. A call fails after the second such timeout. Silence has no effect if
	// Transport is set.
	Silence time.Duration

	// Transport sends the requests; nil means a transport without a proxy.
	Transport http.RoundTripper

	// Observer observes each request to the server; nil means none.
	Observer Observer
}

// An Observer measures requests. It must be safe for concurrent use.
type Observer interface {
	// Observe is called after a request with the status of the response, 0 if there was
	// none, and the time until its header arrived.
	Observe(method string, status int, took time.Duration)
}

// Addressing is the place of the bucket's name in URLs.
type Addressing int

const (
	// Auto is VirtualHosted for the clouds that are known to need it, and PathStyle for
	// all others.
	Auto Addressing = iota
	// PathStyle is https://host/bucket/name.
	PathStyle
	// VirtualHosted is https://bucket.host/name.
	VirtualHosted
)

// check validates c without contacting the server.
func (c *Config) check() error {
	if c.Bucket == "" {
		return errors.New("no bucket")
	}
	if c.Prefix != "" && (!fs.ValidPath(c.Prefix) || c.Prefix == ".") {
		return fmt.Errorf("prefix %q is not a path such as a/b", c.Prefix)
	}
	if c.Memory < 0 || c.Silence < 0 {
		return errors.New("negative Memory or Silence")
	}
	for name, e := range map[string]string{"endpoint": c.Endpoint, "public_endpoint": c.PublicEndpoint} {
		if e != "" {
			if _, _, err := parseEndpoint(e); err != nil {
				return fmt.Errorf("%s: %w", name, err)
			}
		}
	}
	return nil
}

// A Store is a blob.Store in a bucket. It must be created by [New].
type Store struct {
	bucket, prefix string // the prefix ends with a slash, or is empty
	private        bool
	secure         bool                                       // by TLS
	where          string                                     // the server, for messages
	c              *minio.Core                                // client for this process
	signer         func(context.Context) (*minio.Core, error) // returns the client that signs URLs for clients
	memory         budget
	maxCopy        int64 // bytes that the server copies in one request, for Compose
	close          func()
}

// New returns a Store. It does not contact the server; see [Store.Check].
func New(c Config) (*Store, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	if c.Credentials == nil {
		return nil, errors.New("s3: no credentials")
	}
	s := &Store{bucket: c.Bucket, private: c.Private, maxCopy: maxCopy, close: func() {}}
	if c.Prefix != "" {
		s.prefix = c.Prefix + "/"
	}
	s.memory.left = c.Memory
	if c.Memory == 0 {
		s.memory.left = 64 << 20
	}
	if c.Transport == nil {
		c.Silence = cmp.Or(c.Silence, time.Minute)
		t := transport(c.Silence)
		c.Transport, s.close = t, t.CloseIdleConnections
	}
	c.Transport = guarded{c.Transport, c.Observer}
	var err error
	if s.c, err = c.client(c.Endpoint); err != nil {
		return nil, err
	}
	s.where, s.secure = s.c.EndpointURL().Host, s.c.EndpointURL().Scheme == "https"
	s.signer = func(context.Context) (*minio.Core, error) { return s.c, nil }
	if c.PublicEndpoint != "" {
		public, err := c.client(c.PublicEndpoint)
		if err != nil {
			return nil, err
		}
		s.signer = func(context.Context) (*minio.Core, error) { return public, nil }
		if c.Region == "" {
			s.signer = s.publicOnceRegionKnown(c)
		}
	}
	return s, nil
}

// publicOnceRegionKnown returns a function that creates the client for the public
// endpoint once the region is known. That client must not query the region itself: this
// process may be unable to reach the public endpoint.
func (s *Store) publicOnceRegionKnown(c Config) func(context.Context) (*minio.Core, error) {
	var known atomic.Pointer[minio.Core]
	return func(ctx context.Context) (*minio.Core, error) {
		if public := known.Load(); public != nil {
			return public, nil
		}
		region, err := s.c.GetBucketLocation(countSilences(ctx), c.Bucket)
		if err != nil {
			return nil, err
		}
		c := c // other goroutines may be here too
		c.Region = region
		public, err := c.client(c.PublicEndpoint)
		if err != nil {
			return nil, err
		}
		known.Store(public)
		return public, nil
	}
}

func (c *Config) client(endpoint string) (*minio.Core, error) {
	endpoint = cmp.Or(endpoint, "s3.amazonaws.com")
	host, secure, err := parseEndpoint(endpoint)
	if err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	lookup := map[Addressing]minio.BucketLookupType{PathStyle: minio.BucketLookupPath, VirtualHosted: minio.BucketLookupDNS}[c.Addressing]
	core, err := minio.NewCore(host, &minio.Options{
		Creds: c.Credentials, Secure: secure, Transport: c.Transport, Region: c.Region, BucketLookup: lookup, MaxRetries: 8,
	})
	if err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	return core, nil
}

// Close closes idle connections. It does not interrupt running calls.
func (s *Store) Close() error {
	s.close()
	return nil
}

// Check returns an error unless the bucket exists and can be used. The credentials need
// s3:ListBucket for it, which the store needs anyway.
func (s *Store) Check(ctx context.Context) error {
	ctx, cancel := context.WithCancel(countSilences(ctx))
	defer cancel()
	for o := range s.c.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix, Recursive: true, MaxKeys: 1}) {
		if o.Err != nil {
			return fail(fmt.Sprintf("bucket %q at %s", s.bucket, s.where), o.Err)
		}
		break
	}
	return ctx.Err()
}

// Delete implements blob.Store.
func (s *Store) Delete(ctx context.Context, key string) error {
	name, err := s.name(key)
	if err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	ctx = countSilences(ctx)
	err = s.c.RemoveObject(ctx, s.bucket, name, minio.RemoveObjectOptions{})
	if hasCode(err, minio.NoSuchKey) {
		return nil
	}
	return fail("delete", err)
}

// DeleteAll implements blob.Remote. It takes one request for a thousand objects.
func (s *Store) DeleteAll(ctx context.Context, keys []string) map[string]error {
	failed := make(map[string]error)
	left := make(map[string]string) // key by name
	for _, key := range keys {
		name, err := s.name(key)
		if err != nil {
			failed[key] = err
			continue
		}
		left[name] = key
	}
	for name, err := range s.removeAll(countSilences(ctx), maps.Keys(left)) {
		if err == nil {
			delete(left, name)
		}
	}
	// The server has not responded about the others, or has refused them.
	var away error
	for _, key := range left {
		err := away
		if err == nil {
			err = s.Delete(ctx, key)
		}
		if err != nil {
			failed[key] = err
		}
		if errors.Is(err, blob.ErrUnavailable) {
			away = err
		}
	}
	return failed
}

// removeAll removes objects and yields the server's results by name. The server may
// omit some objects.
func (s *Store) removeAll(ctx context.Context, names iter.Seq[string]) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		var infos iter.Seq[minio.ObjectInfo] = func(yield func(minio.ObjectInfo) bool) {
			for name := range names {
				if !yield(minio.ObjectInfo{Key: name}) {
					return
				}
			}
		}
		results, err := s.c.RemoveObjectsWithIter(ctx, s.bucket, infos, minio.RemoveObjectsOptions{})
		if err != nil {
			yield("", err)
			return
		}
		for r := range results {
			if !yield(r.ObjectName, r.Err) {
				return
			}
		}
	}
}

// List implements blob.Store.
func (s *Store) List(ctx context.Context, prefix string) iter.Seq2[blob.Info, error] {
	return func(yield func(blob.Info, error) bool) {
		if strings.HasPrefix(prefix, "/") { // no key starts with a slash
			return
		}
		for i, err := range s.list(ctx, prefix) {
			if !yield(i.Info, err) {
				return
			}
		}
	}
}

// A listed object has an ETag too.
type listed struct {
	blob.Info
	etag string
}

func (s *Store) list(ctx context.Context, prefix string) iter.Seq2[listed, error] {
	return func(yield func(listed, error) bool) {
		// Without it the client library would continue after a break.
		ctx, cancel := context.WithCancel(countSilences(ctx))
		defer cancel()
		for o := range s.c.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: s.prefix + escape(prefix), Recursive: true}) {
			if o.Err != nil {
				yield(listed{}, fail("list", o.Err))
				return
			}
			key, ok := s.key(o.Key)
			if !ok {
				continue
			}
			if !yield(listed{blob.Info{Key: key, Size: o.Size, ModTime: o.LastModified}, o.ETag}, nil) {
				return
			}
		}
		if err := ctx.Err(); err != nil {
			yield(listed{}, err)
		}
	}
}

var (
	_ blob.Store          = (*Store)(nil)
	_ blob.Composer       = (*Store)(nil)
	_ blob.Remote         = (*Store)(nil)
	_ blob.DirectUploader = (*Store)(nil)
	_ blob.Linker         = (*Store)(nil)
	_ io.Closer           = (*Store)(nil)
)
