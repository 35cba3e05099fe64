// Package s3test runs a real S3 server for tests: versitygw, on files in a temporary
// directory. The server is built from a separate module, internal/tools/versitygw, so
// that this module does not depend on it.
package s3test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/filewright/filewright/internal/systest"
	"github.com/filewright/filewright/upload/blob/s3blob"
)

// Credentials and region of every [Server].
const (
	AccessKey = "testaccesskey"
	SecretKey = "testsecretkey"
	Region    = "eu-test-1"
)

// A Server is a running S3 server.
type Server struct {
	Endpoint string // http://127.0.0.1:port
	addr     string
	dir      string
	args     []string
	cmd      *exec.Cmd
}

// program builds the server once and returns its path.
var program = sync.OnceValues(func() (string, error) { return systest.Tool("versitygw") })

// Own returns a server with a bucket for one test, which may stop it. It is closed when
// the test ends.
func Own(t testing.TB, bucket string) *Server {
	t.Helper()
	s, err := New()
	systest.NoError(t, err)
	t.Cleanup(func() { s.Close() })
	systest.NoError(t, s.MakeBucket(t.Context(), bucket))
	return s
}

// New starts a server. It must be closed.
func New() (*Server, error) {
	dir, err := os.MkdirTemp("", "s3test-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir}
	data := filepath.Join(dir, "data")
	if err := os.Mkdir(data, 0o700); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	s.args = []string{"--access", AccessKey, "--secret", SecretKey, "--region", Region, "--keep-alive", "--quiet", "--health", "/health", "posix"}
	// The server stores object metadata in extended attributes if the file system
	// supports them; tmpfs does so only in recent kernels.
	if !hasAttributes(data) {
		sidecar := filepath.Join(dir, "meta")
		if err := os.Mkdir(sidecar, 0o700); err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.args = append(s.args, "--sidecar", sidecar)
	}
	s.args = append(s.args, data)
	// Another process may take the port before the server does.
	for try := 1; ; try++ {
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.addr = ln.Addr().String()
		ln.Close()
		s.Endpoint = "http://" + s.addr
		if err = s.Start(); err == nil {
			return s, nil
		}
		if try == 5 {
			return nil, errors.Join(err, s.Close())
		}
	}
}

// Start restarts a killed server with its data. It returns when the server responds.
func (s *Server) Start() error {
	path, err := program()
	if err != nil {
		return err
	}
	s.cmd = exec.Command(path, append([]string{"--port", s.addr}, s.args...)...)
	log, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	s.cmd.Stdout, s.cmd.Stderr = log, log
	// If the tests are killed, the server must stop too.
	s.cmd.SysProcAttr = &syscall.SysProcAttr{}
	systest.DieWithParent(s.cmd.SysProcAttr, syscall.SIGKILL)
	if err := s.cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	cmd := s.cmd
	go func() {
		_ = cmd.Wait()
		close(ended)
	}()
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
		resp, err := http.Get(s.Endpoint + "/health")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return nil
			}
		}
		select {
		case <-ended:
			return fmt.Errorf("versitygw stopped: %s", s.log())
		default:
		}
		if time.Now().After(deadline) {
			s.Kill()
			return fmt.Errorf("versitygw does not respond: %w: %s", err, s.log())
		}
	}
}

// log returns the server's output.
func (s *Server) log() []byte {
	b, err := os.ReadFile(filepath.Join(s.dir, "log"))
	if err != nil {
		return []byte(err.Error())
	}
	return b
}

// Kill kills the server without warning.
func (s *Server) Kill() {
	if s.cmd == nil || s.cmd.Process == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	for s.cmd.Process.Signal(syscall.Signal(0)) == nil {
		time.Sleep(time.Millisecond)
	}
}

// Freeze suspends the server until Thaw: connections stay open but get no response.
func (s *Server) Freeze() error {
	if err := s.cmd.Process.Signal(systest.Stop); err != nil {
		return err
	}
	// Its threads stop one after the other.
	tasks := fmt.Sprintf("/proc/%d/task", s.cmd.Process.Pid)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
		all, err := os.ReadDir(tasks)
		if err != nil {
			return err
		}
		stopped := true
		for _, task := range all {
			stat, err := os.ReadFile(filepath.Join(tasks, task.Name(), "stat"))
			_, state, _ := strings.Cut(string(stat), ") ")
			stopped = stopped && (err != nil || strings.HasPrefix(state, "T"))
		}
		if stopped {
			return nil
		}
		if time.Now().After(deadline) {
			return errors.New("the server does not stop")
		}
	}
}

// Thaw ends Freeze.
func (s *Server) Thaw() error { return s.cmd.Process.Signal(systest.Cont) }

// Close stops the server and removes its data.
func (s *Server) Close() error {
	s.Kill()
	return os.RemoveAll(s.dir)
}

// Client returns a separate client for inspecting the server.
func (s *Server) Client() (*minio.Core, error) {
	return minio.NewCore(s.addr, &minio.Options{Creds: s.credentials(), Region: Region, BucketLookup: minio.BucketLookupPath})
}

func (s *Server) credentials() *credentials.Credentials {
	return credentials.NewStaticV4(AccessKey, SecretKey, "")
}

// MakeBucket creates a bucket.
func (s *Server) MakeBucket(ctx context.Context, name string) error {
	c, err := s.Client()
	if err != nil {
		return err
	}
	return c.MakeBucket(ctx, name, minio.MakeBucketOptions{Region: Region})
}

// Config returns the configuration for a bucket of the server.
func (s *Server) Config(bucket string) s3blob.Config {
	return s3blob.Config{
		Bucket: bucket, Endpoint: s.Endpoint, Region: Region, Addressing: s3blob.PathStyle, Credentials: s.credentials(),
	}
}
