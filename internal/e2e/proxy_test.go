//go:build linux

package e2e

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/filewright/filewright/httpapi/client"
	"github.com/filewright/filewright/internal/systest"
)

// certificate writes a certificate for 127.0.0.1 with its key, and returns a client that trusts it.
func certificate(t *testing.T, certFile, keyFile string) *http.Client {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	systest.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	systest.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	systest.NoError(t, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
	systest.NoError(t, os.WriteFile(certFile, certPEM, 0o600))
	systest.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private}), 0o600))
	pool := x509.NewCertPool()
	pool.AppendCertsFromPEM(certPEM)
	return &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
}

// proxyPath returns the path of a proxy, which may not be in the PATH of ordinary users.
// scripts/setup.sh takes it out of its package.
func proxyPath(t *testing.T, dir, name string) string {
	t.Helper()
	own, err := filepath.Abs(filepath.Join("..", "..", ".tools", dir, name))
	systest.NoError(t, err)
	for _, path := range []string{name, filepath.Join("/", dir, name), own} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	t.Fatalf("there is no %s; scripts/setup.sh test installs it", name)
	return ""
}

// example reads a file of examples/deploy and replaces each text, which must be there.
func example(t *testing.T, name string, changes ...[2]string) string {
	t.Helper()
	config := string(systest.ReadFile(t, filepath.Join("..", "..", "examples", "deploy", filepath.FromSlash(name))))
	for _, change := range changes {
		if !strings.Contains(config, change[0]) {
			t.Fatalf("%s has no %q", name, change[0])
		}
		config = strings.ReplaceAll(config, change[0], change[1])
	}
	return config
}

// runProxy starts a proxy, which ends with the test.
func runProxy(t *testing.T, cmd *exec.Cmd) {
	t.Helper()
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	systest.NoError(t, cmd.Start())
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		if t.Failed() {
			t.Logf("%s: %s", cmd.Path, &log)
		}
	})
}

// A front is a server, and what a proxy in front of it needs.
type front struct {
	s         *server
	dir       string // for files of the proxy
	address   string // of the proxy
	public    string // its URL
	cert, key string // files
	browser   *http.Client
}

func newFront(t *testing.T) *front {
	t.Helper()
	dir, address := t.TempDir(), systest.FreeAddr(t)
	f := &front{dir: dir, address: address, public: "https://" + address, cert: filepath.Join(dir, "cert.pem"), key: filepath.Join(dir, "key.pem")}
	f.browser = certificate(t, f.cert, f.key)
	f.s = startLean(t, filepath.Join(dir, "data"), "--public-url", f.public, "--trust-proxy")
	return f
}

// TestNginx runs the service behind nginx with the configuration of examples/deploy.
func TestNginx(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	config := example(t, "nginx.conf",
		[2]string{"listen 443 ssl", "listen " + f.address + " ssl"}, [2]string{"server_name files.example.com", "server_name 127.0.0.1"},
		[2]string{"/etc/ssl/files.example.com.pem", f.cert}, [2]string{"/etc/ssl/files.example.com.key", f.key}, [2]string{"http://127.0.0.1:8080", f.s.url})
	path := filepath.Join(f.dir, "nginx.conf")
	systest.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `daemon off;
pid %[1]s/nginx.pid;
error_log stderr warn;
events {}
http {
access_log off;
client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
%[2]s
}
`, f.dir, config), 0o600))
	runProxy(t, exec.Command(proxyPath(t, "usr/sbin", "nginx"), "-p", f.dir, "-c", path))
	throughProxy(t, f)
}

// TestCaddy runs the service behind Caddy with the configuration of examples/deploy.
func TestCaddy(t *testing.T) {
	t.Parallel()
	f := newFront(t)
	config := example(t, "Caddyfile",
		[2]string{"\nfiles.example.com {\n", fmt.Sprintf("\n{\n\tadmin off\n\tauto_https disable_redirects\n}\n%s {\n\ttls %s %s\n", f.public, f.cert, f.key)},
		[2]string{"127.0.0.1:8080", strings.TrimPrefix(f.s.url, "http://")})
	path := filepath.Join(f.dir, "Caddyfile")
	systest.NoError(t, os.WriteFile(path, []byte(config), 0o600))
	caddy := exec.Command(proxyPath(t, "usr/bin", "caddy"), "run", "--adapter", "caddyfile", "--config", path)
	caddy.Env = append(os.Environ(), "HOME="+f.dir, "XDG_DATA_HOME="+f.dir, "XDG_CONFIG_HOME="+f.dir)
	runProxy(t, caddy)
	throughProxy(t, f)
}

// A traefikConfig has the fields of Traefik 3 that the examples use: the static configuration and that
// of the provider file.
type traefikConfig struct {
	EntryPoints map[string]struct {
		Address string
		HTTP    struct {
			Redirections struct {
				EntryPoint struct{ To, Scheme string } `yaml:"entryPoint"`
			}
		} `yaml:"http"`
		Transport struct {
			RespondingTimeouts struct {
				ReadTimeout  *time.Duration `yaml:"readTimeout"`
				WriteTimeout *time.Duration `yaml:"writeTimeout"`
			} `yaml:"respondingTimeouts"`
		}
	} `yaml:"entryPoints"`
	CertificatesResolvers map[string]struct {
		ACME struct {
			Email, Storage string
			TLSChallenge   struct{} `yaml:"tlsChallenge"`
		} `yaml:"acme"`
	} `yaml:"certificatesResolvers"`
	Providers struct {
		File struct{ Filename string }
	}
	HTTP struct {
		Routers map[string]struct {
			Rule        string
			EntryPoints []string `yaml:"entryPoints"`
			Service     string
			TLS         *struct {
				CertResolver string `yaml:"certResolver"`
			} `yaml:"tls"`
		}
		Services map[string]struct {
			LoadBalancer struct {
				PassHostHeader bool `yaml:"passHostHeader"`
				Servers        []struct{ URL string }
				HealthCheck    struct {
					Path     string
					Interval time.Duration
				} `yaml:"healthCheck"`
			} `yaml:"loadBalancer"`
		}
	} `yaml:"http"`
}

// TestTraefik checks the configuration of Traefik in examples/deploy, which is not in Debian: only known
// fields, names that refer to each other, no time limit of a body, and the path of the health check.
func TestTraefik(t *testing.T) {
	t.Parallel()
	var c traefikConfig
	for _, name := range []string{"traefik/traefik.yaml", "traefik/filewright.yaml"} {
		d := yaml.NewDecoder(strings.NewReader(example(t, name)))
		d.KnownFields(true)
		if err := d.Decode(&c); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
	}
	if filepath.Base(c.Providers.File.Filename) != "filewright.yaml" {
		t.Errorf("Traefik reads %s, not the routes of this example", c.Providers.File.Filename)
	}
	for name, e := range c.EntryPoints {
		to := e.HTTP.Redirections.EntryPoint.To
		limits := e.Transport.RespondingTimeouts
		switch {
		case to != "":
			if c.EntryPoints[to].Address == "" {
				t.Errorf("entry point %s redirects to %s, which does not exist", name, to)
			}
		case limits.ReadTimeout == nil || *limits.ReadTimeout != 0 || limits.WriteTimeout == nil || *limits.WriteTimeout != 0:
			t.Errorf("entry point %s limits the time of a body", name)
		}
	}
	s := startLean(t, filepath.Join(t.TempDir(), "data"))
	if len(c.HTTP.Routers) == 0 {
		t.Error("there is no router")
	}
	for name, r := range c.HTTP.Routers {
		if r.TLS == nil || c.CertificatesResolvers[r.TLS.CertResolver].ACME.Storage == "" {
			t.Errorf("router %s has no certificate", name)
		}
		for _, e := range r.EntryPoints {
			if c.EntryPoints[e].Address == "" {
				t.Errorf("router %s has no entry point %s", name, e)
			}
		}
		b := c.HTTP.Services[r.Service].LoadBalancer
		if !b.PassHostHeader || len(b.Servers) != 1 || b.Servers[0].URL != "http://127.0.0.1:8080" || b.HealthCheck.Interval <= 0 {
			t.Errorf("router %s leads to %+v", name, b)
		}
		systest.Until(t, "health of the server", func() bool {
			resp, err := http.Get(s.url + b.HealthCheck.Path)
			systest.NoError(t, err)
			resp.Body.Close()
			return resp.StatusCode == http.StatusOK
		})
	}
}

// throughProxy waits for the proxy, and runs an action and a login through it.
func throughProxy(t *testing.T, f *front) {
	t.Helper()
	s, public, browser := f.s, f.public, f.browser
	eventually(t, "the proxy responds", func() bool {
		resp, err := browser.Get(public + "/healthz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})

	// The whole flow, with a body above the 1 MiB that nginx allows by default, and with events.
	c := &client.Client{BaseURL: public, Key: s.key, HTTP: browser}
	table := "name,number\n" + strings.Repeat("some name,1234567\n", 150_000)
	file, err := c.Upload(t.Context(), "table.csv", strings.NewReader(table), int64(len(table)), nil)
	systest.NoError(t, err)
	id, err := c.Do(t.Context(), client.Request{Action: "convert", FileKeys: []string{file}, Parameters: map[string]any{"convert_to": "tsv"}})
	systest.NoError(t, err)
	op, err := c.Wait(t.Context(), id, nil)
	systest.NoError(t, err)
	systest.NoError(t, op.Err())
	var out bytes.Buffer
	_, err = c.Download(t.Context(), op.Files[0].DownloadLink, &out)
	systest.NoError(t, err)
	if want := strings.ReplaceAll(table, ",", "\t"); strings.ReplaceAll(out.String(), "\r\n", "\n") != want {
		t.Errorf("the result has %d bytes, want %d", out.Len(), len(want))
	}

	// The server knows that clients use TLS, whatever they claim.
	m := passwordLine.FindStringSubmatch(s.banner)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, public+"/dashboard/login", strings.NewReader(url.Values{"name": {m[1]}, "password": {m[2]}}.Encode()))
	systest.NoError(t, err)
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("X-Forwarded-Proto", "http")
	browser.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	resp, err := browser.Do(r)
	systest.NoError(t, err)
	resp.Body.Close()
	if cookies := resp.Cookies(); len(cookies) != 1 || cookies[0].Name != "__Host-filewright_session" || !cookies[0].Secure {
		t.Errorf("%s with cookies %v", resp.Status, cookies)
	}
}
