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

	"github.com/filewright/filewright/httpapi/client"
	"github.com/filewright/filewright/internal/oidctest"
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

// nginxPath returns the path of nginx, which is not in the PATH of ordinary users. scripts/setup.sh
// takes it out of its package.
func nginxPath(t *testing.T) string {
	t.Helper()
	own, err := filepath.Abs(filepath.Join("..", "..", ".tools", "usr", "sbin", "nginx"))
	systest.NoError(t, err)
	for _, path := range []string{"nginx", "/usr/sbin/nginx", own} {
		if found, err := exec.LookPath(path); err == nil {
			return found
		}
	}
	t.Fatal("there is no nginx; scripts/setup.sh test installs it")
	return ""
}

// TestNginx runs the service behind nginx with the configuration of examples/deploy.
func TestNginx(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	outside := oidctest.Address(t)
	public := "https://" + outside
	s := startLean(t, filepath.Join(dir, "data"), "--public-url", public, "--trust-proxy")

	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	browser := certificate(t, cert, key)
	config := string(systest.ReadFile(t, filepath.Join("..", "..", "examples", "deploy", "nginx.conf")))
	for _, change := range [][2]string{
		{"listen 443 ssl", "listen " + outside + " ssl"}, {"server_name files.example.com", "server_name 127.0.0.1"},
		{"/etc/ssl/files.example.com.pem", cert}, {"/etc/ssl/files.example.com.key", key}, {"http://127.0.0.1:8080", s.url},
	} {
		if !strings.Contains(config, change[0]) {
			t.Fatalf("nginx.conf has no %q", change[0])
		}
		config = strings.ReplaceAll(config, change[0], change[1])
	}
	path := filepath.Join(dir, "nginx.conf")
	systest.NoError(t, os.WriteFile(path, fmt.Appendf(nil, `daemon off;
pid %[1]s/nginx.pid;
error_log stderr warn;
events {}
http {
access_log off;
client_body_temp_path %[1]s/body; proxy_temp_path %[1]s/proxy; fastcgi_temp_path %[1]s/f; uwsgi_temp_path %[1]s/u; scgi_temp_path %[1]s/s;
%[2]s
}
`, dir, config), 0o600))
	nginx := exec.Command(nginxPath(t), "-p", dir, "-c", path)
	var log bytes.Buffer
	nginx.Stdout, nginx.Stderr = &log, &log
	nginx.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	systest.NoError(t, nginx.Start())
	t.Cleanup(func() {
		nginx.Process.Signal(syscall.SIGTERM)
		nginx.Wait()
		if t.Failed() {
			t.Logf("nginx: %s", &log)
		}
	})
	eventually(t, "nginx responds", func() bool {
		resp, err := browser.Get(public + "/healthz")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})

	// The whole flow, with a body above nginx's own limit of 1 MiB and with events.
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
