package s3blob

import (
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"
)

// ParseURL returns the Config for a URL of the form
//
//	s3://bucket/prefix?endpoint=…&region=…
//
// The parameters endpoint, public_endpoint, region and private are the fields of
// the same name. path_style=true stands for the addressing [PathStyle], and
// path_style=false for [VirtualHosted]. The URL holds no credentials, because it
// is shown in lists of processes and in logs.
func ParseURL(raw string) (Config, error) {
	u, err := url.Parse(raw)
	if err != nil {
		// The error of package url quotes the URL, which may contain secrets.
		return Config{}, errors.New("not a URL such as s3://bucket/prefix?endpoint=https://host&region=name")
	}
	switch {
	case u.Scheme != "s3":
		return Config{}, errors.New("the URL of a bucket must start with s3://")
	case u.User != nil:
		return Config{}, errors.New("the URL of a bucket must not contain credentials")
	case u.Host == "":
		return Config{}, errors.New("the URL names no bucket; it must have the form s3://bucket")
	case u.Fragment != "":
		return Config{}, errors.New("the URL of a bucket must not contain #")
	}
	c := Config{Bucket: u.Host, Prefix: strings.Trim(u.Path, "/")}
	q, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Config{}, errors.New("the URL has malformed parameters")
	}
	for name, values := range q {
		if len(values) != 1 {
			return Config{}, fmt.Errorf("parameter %q is given more than once", name)
		}
		v := values[0]
		var err error
		switch name {
		case "endpoint":
			c.Endpoint = v
		case "public_endpoint":
			c.PublicEndpoint = v
		case "region":
			c.Region = v
		case "path_style":
			var path bool
			if path, err = parseBool(v); path {
				c.Addressing = PathStyle
			} else {
				c.Addressing = VirtualHosted
			}
		case "private":
			c.Private, err = parseBool(v)
		default:
			return Config{}, fmt.Errorf("unknown parameter %q; parameters are endpoint, public_endpoint, region, path_style and private", name)
		}
		if err != nil {
			return Config{}, fmt.Errorf("parameter %q: %w", name, err)
		}
	}
	if err := c.check(); err != nil {
		return Config{}, err
	}
	return c, nil
}

func parseBool(v string) (bool, error) {
	b, err := strconv.ParseBool(v)
	if err != nil {
		return false, errors.New("must be true or false")
	}
	return b, nil
}

// parseEndpoint returns the host of an endpoint, with its port, and whether it uses
// TLS, which is the default without a scheme.
func parseEndpoint(s string) (host string, secure bool, err error) {
	if !strings.Contains(s, "://") {
		s = "https://" + s
	}
	u, err := url.Parse(s)
	switch {
	case err != nil:
		return "", false, errors.New("an endpoint must have the form https://host:port")
	case u.Scheme != "http" && u.Scheme != "https":
		return "", false, errors.New("an endpoint must start with http:// or https://")
	case u.User != nil:
		return "", false, errors.New("an endpoint must not contain credentials")
	case u.Host == "" || u.Path != "" && u.Path != "/" || u.RawQuery != "" || u.Fragment != "":
		return "", false, errors.New("an endpoint must have the form https://host:port, with nothing after it")
	}
	return u.Host, u.Scheme == "https", nil
}
