package gotenberg

import (
	"encoding/json"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"strings"

	"github.com/filewright/filewright/internal/netguard"
)

// A download is a file that the service loads itself.
type download struct {
	URL      string            `json:"url"`
	Headers  map[string]string `json:"extraHttpHeaders"`
	Embedded bool              `json:"embedded"`
	Field    string            `json:"field"`
}

// fetchFiles loads the files of the field downloadFrom.
func (c *call) fetchFiles() error {
	values := c.form.values["downloadFrom"]
	if len(values) == 0 || values[0] == "" {
		return nil
	}
	var list []download
	if err := json.Unmarshal([]byte(values[0]), &list); err != nil {
		return refuse(http.StatusBadRequest, "Invalid 'downloadFrom' form field value: %v", err)
	}
	if !c.remote() {
		return refuse(http.StatusForbidden, "Forbidden")
	}
	if most := c.svc.Limits().Files; len(c.form.files)+len(list) > most {
		return refuse(http.StatusBadRequest, "Invalid form data: a request can have at most %d files", most)
	}
	for i, d := range list {
		if strings.TrimSpace(d.URL) == "" {
			return refuse(http.StatusBadRequest, "Invalid 'downloadFrom' form field entry %d: URL must be set", i)
		}
		if err := c.fetchFile(d); err != nil {
			return err
		}
	}
	return nil
}

func (c *call) fetchFile(d download) error {
	resp, err := c.get(d.URL, d.Headers)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	disposition := resp.Header.Get("Content-Disposition")
	if disposition == "" {
		return refuse(http.StatusBadRequest, "No 'Content-Disposition' header from '%s'", d.URL)
	}
	_, params, err := mime.ParseMediaType(disposition)
	if err != nil {
		return refuse(http.StatusBadRequest, "Invalid 'Content-Disposition' header '%s' from '%s': %v", disposition, d.URL, err)
	}
	name := cleanName(params["filename"])
	if name == "" {
		return refuse(http.StatusBadRequest, "Invalid 'Content-Disposition' header '%s' from '%s': no filename", disposition, d.URL)
	}
	f, err := c.store(name, resp.Header.Get("Content-Type"), resp.Body, -1)
	if err != nil {
		return err
	}
	field := "files"
	switch {
	case d.Embedded || d.Field == "embedded":
		field = "embeds"
	case d.Field == "watermark", d.Field == "stamp":
		field = d.Field
	}
	c.add(file{field, name, f.Key, f.Size})
	return nil
}

// maxRedirects bounds the redirects of a download.
const maxRedirects = 10

// redirectable returns an error for a redirect that is not followed.
func redirectable(r *http.Request, via []*http.Request) error {
	if len(via) >= maxRedirects || !webURL(r.URL.String()) {
		return errors.New("too many redirects, or one to another scheme")
	}
	return nil
}

// get requests a URL of a client. The status of the response is 200.
func (c *call) get(target string, header map[string]string) (*http.Response, error) {
	if !webURL(target) {
		return nil, refuse(http.StatusForbidden, "Forbidden")
	}
	req, err := http.NewRequestWithContext(c.ctx, http.MethodGet, target, nil)
	if err != nil {
		return nil, refuse(http.StatusBadRequest, "Unable to download file from '%s': invalid URL", target)
	}
	req.Header.Set("User-Agent", "Gotenberg")
	for name, v := range header {
		req.Header.Set(name, v)
	}
	req.Header.Set(traceHeader, c.trace)
	trusted := true
	client := http.Client{Transport: c.cfg.Outbound, CheckRedirect: func(r *http.Request, via []*http.Request) error {
		if err := redirectable(r, via); err != nil {
			return err
		}
		sameOrigin, err := netguard.Redirect(via[len(via)-1].URL, r.URL)
		if trusted = trusted && sameOrigin; !trusted {
			r.Header = http.Header{"User-Agent": {"Gotenberg"}, traceHeader: {c.trace}}
		}
		return err
	}}
	resp, err := client.Do(req)
	if err != nil {
		c.svc.Log(c.r).Debug("download failed", "trace", c.trace, "err", err)
		return nil, &unreachable{target, err}
	}
	if resp.StatusCode != http.StatusOK {
		resp.Body.Close()
		return nil, &badStatus{target, resp.StatusCode, resp.Status}
	}
	return resp, nil
}

// An unreachable is the error of a URL without a response. Its text does not reveal the network of the
// service.
type unreachable struct {
	url string
	err error
}

// Error implements error.
func (u *unreachable) Error() string { return fmt.Sprintf("%s: %v", u.url, u.err) }

// A badStatus is the error of a URL whose response has another status than 200.
type badStatus struct {
	url    string
	code   int
	status string
}

// Error implements error.
func (b *badStatus) Error() string { return fmt.Sprintf("%s: %s", b.url, b.status) }
