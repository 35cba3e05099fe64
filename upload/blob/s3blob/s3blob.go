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
// The object of a key has the name Prefix + "/" + the key + "-", so that servers
// which keep objects in files can hold all keys beside each other. Bytes up to
// "." are written as "." and two hexadecimal digits. Nothing else under the
// prefix is touched; two programs must not share one.
//
// # What clients can do themselves
//
// A [Store] is a blob.DirectUploader and a blob.Linker: clients send parts to the
// bucket and fetch objects from it by URLs that are signed with the credentials
// of the store. They die with those, if the credentials are temporary ones.
// Parts must satisfy the rules of S3: all but the last have at least [MinPart]
// bytes, no more than [MaxPart], and there are at most [MaxParts] of them.
//
// # ETags
//
// The ETags of direct parts come from the server. They are the MD5 of the bytes
// unless it encrypts with keys that it has from elsewhere (SSE-KMS, SSE-C): then
// they have the same form, but only identify the part.
//
// # Errors
//
// What may go away by itself matches blob.ErrUnavailable: networks, a server
// that is down (5xx) or wants to be spared (503 SlowDown). It has then been tried
// for several seconds already. Errors show neither credentials nor keys.
//
// # Reading
//
// Open reads the first 64 KiB, and nothing more of small objects. The rest is
// read in ranges that grow while they follow on each other. If an object is
// replaced or deleted before it is read to its end, reading fails; it never
// yields a mixture.
//
// # Durability
//
// An object is as durable as the server makes it before it answers. Whatever a
// process that dies leaves behind is an incomplete multipart upload, see
// [Store.ListDirect]; MinIO does not list them and removes them by itself after
// 24 hours.
package s3blob

import (
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

// What S3 permits of the parts of an object.
const (
	MinPart  = 5 << 20 // bytes of a part that is not the last
	MaxPart  = 5 << 30 // bytes of any part
	MaxParts = 10_000
)

// A Config says where a bucket is. Only Bucket and Credentials are required.
type Config struct {
	Bucket string
	Prefix string // of the names of all objects, without slashes around it; "": none

	// Credentials sign requests. Package credentials of minio-go makes them of
	// keys, or fetches them from where the program runs.
	Credentials *credentials.Credentials

	// Endpoint is the server, as https://host:port; without a scheme it is
	// https. "" means Amazon S3.
	Endpoint string

	// PublicEndpoint is the server as clients reach it, if that is by another
	// name. It must pass on the Host header, because that is signed. "" means
	// Endpoint.
	PublicEndpoint string

	// Region is where the bucket is; "" asks the server.
	Region string

	// Addressing is where the bucket is in URLs.
	Addressing Addressing

	// Private says that clients cannot reach the bucket. Then there are
	// neither direct uploads nor links.
	Private bool

	// Memory bounds what is held of objects that are being written, in bytes,
	// so that requests can be repeated: 0 means 64 MiB. What goes beyond it is
	// passed on as it comes, and a request that fails is not repeated.
	Memory int64

	// Silence is how long the server may keep a connection waiting; 0 means
	// 1 minute. A call gives up after the second time. It has no meaning if
	// there is a Transport.
	Silence time.Duration

	// Transport does the requests; nil means one that uses no proxy.
	Transport http.RoundTripper

	// Observer is told of each request to the server; nil means nobody is.
	Observer Observer
}

// An Observer measures requests. It must be safe for concurrent use.
type Observer interface {
	// Observe is called after a request with the status of the response, 0 if
	// there was none, and the time until its header came.
	Observe(method string, status int, took time.Duration)
}

// Addressing is where the name of the bucket is in URLs.
type Addressing int

const (
	// Auto is VirtualHosted for the clouds that are known to want it, and
	// PathStyle for all others.
	Auto          Addressing = iota
	PathStyle                // https://host/bucket/name
	VirtualHosted            // https://bucket.host/name
)

// check looks for what is wrong without asking anybody.
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

// A Store is a blob.Store in a bucket. It must be made by [New].
type Store struct {
	bucket, prefix string // the prefix ends with a slash, or is empty
	private        bool
	secure         bool                                       // by TLS
	where          string                                     // the server, for messages
	c              *minio.Core                                // as we reach it
	signer         func(context.Context) (*minio.Core, error) // signs URLs of the server as clients reach it
	memory         budget
	close          func()
}

// New returns a Store. It does not talk to the server yet; see [Store.Check].
func New(c Config) (*Store, error) {
	if err := c.check(); err != nil {
		return nil, fmt.Errorf("s3: %w", err)
	}
	if c.Credentials == nil {
		return nil, errors.New("s3: no credentials")
	}
	s := &Store{bucket: c.Bucket, private: c.Private, close: func() {}}
	if c.Prefix != "" {
		s.prefix = c.Prefix + "/"
	}
	s.memory.left = c.Memory
	if c.Memory == 0 {
		s.memory.left = 64 << 20
	}
	if c.Transport == nil {
		if c.Silence == 0 {
			c.Silence = time.Minute
		}
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

// publicOnceRegionKnown makes a client for the public endpoint as soon as the region
// is known. That client must not ask for it: the public endpoint may be out of reach
// from here.
func (s *Store) publicOnceRegionKnown(c Config) func(context.Context) (*minio.Core, error) {
	var known atomic.Pointer[minio.Core]
	return func(ctx context.Context) (*minio.Core, error) {
		if public := known.Load(); public != nil {
			return public, nil
		}
		region, err := s.c.GetBucketLocation(patient(ctx), c.Bucket)
		if err != nil {
			return nil, err
		}
		c := c // others may be here too
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
	if endpoint == "" {
		endpoint = "s3.amazonaws.com"
	}
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

// Close lets go of idle connections. What is going on is not ended.
func (s *Store) Close() error {
	s.close()
	return nil
}

// Check asks the server whether the bucket is there and may be used, and says
// what is wrong if not. The credentials need s3:ListBucket for it, which the
// store needs anyway.
func (s *Store) Check(ctx context.Context) error {
	ctx, cancel := context.WithCancel(patient(ctx))
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
	ctx = patient(ctx)
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
	for name, err := range s.removeAll(patient(ctx), maps.Keys(left)) {
		if err == nil {
			delete(left, name)
		}
	}
	// The server has not answered for the others, or has refused them.
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

// removeAll removes objects and yields what the server says of them, by name. It does not
// say something of each.
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
		if strings.HasPrefix(prefix, "/") { // no key does
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
		// Without it the client library would go on after a break.
		ctx, cancel := context.WithCancel(patient(ctx))
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
