package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// A setting is the value of a flag in a configuration file.
type setting struct {
	name, value string
	origin      string // file and line
}

// readConfig reads a YAML file with the values of flags of the server:
//
//	listen: 0.0.0.0:8080
//	cors-origins: [https://a.example, https://b.example]
//	concurrency: {office: 2, image: 4}
//
// A list stands for its values with commas between them, and a map for NAME=VALUE.
func readConfig(path string) ([]setting, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("--config: cannot read %q: %w", path, withoutPath(err))
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(b, &doc); err != nil {
		return nil, fmt.Errorf("--config: %s: %w", path, err)
	}
	if len(doc.Content) == 0 {
		return nil, nil // empty
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return nil, fmt.Errorf("--config: %s:%d: expected lines such as listen: 127.0.0.1:8080", path, root.Line)
	}
	var cfg serverConfig
	known := newFlagSet(pflag.NewFlagSet("", pflag.ContinueOnError))
	cfg.register(known)
	var out []setting
	for i := 0; i < len(root.Content); i += 2 {
		key, value := root.Content[i], root.Content[i+1]
		s := setting{name: key.Value, origin: fmt.Sprintf("%s:%d: %s", path, key.Line, key.Value)}
		same := func(o setting) bool { return o.name == s.name }
		switch {
		case s.name == "config", known.Lookup(s.name) == nil:
			return nil, fmt.Errorf("%s: unknown setting; refserver config lists all", s.origin)
		case slices.ContainsFunc(out, same):
			return nil, fmt.Errorf("%s: set twice", s.origin)
		}
		if s.value, err = flagValue(value); err != nil {
			return nil, fmt.Errorf("%s: %w", s.origin, err)
		}
		out = append(out, s)
	}
	return out, nil
}

// flagValue returns a YAML value as on the command line.
func flagValue(n *yaml.Node) (string, error) {
	var parts []string
	switch {
	case n.Kind == yaml.ScalarNode && n.Tag != "!!null":
		return n.Value, nil
	case n.Kind == yaml.SequenceNode:
		for _, e := range n.Content {
			v, err := flagValue(e)
			if err != nil || e.Kind != yaml.ScalarNode {
				return "", errors.New("the values of a list must be single values")
			}
			parts = append(parts, v)
		}
	case n.Kind == yaml.MappingNode:
		for i := 0; i < len(n.Content); i += 2 {
			if n.Content[i+1].Kind != yaml.ScalarNode {
				return "", errors.New("the values of a map must be single values")
			}
			parts = append(parts, n.Content[i].Value+"="+n.Content[i+1].Value)
		}
	default:
		return "", errors.New("expected a value, a list or a map")
	}
	return strings.Join(parts, ","), nil
}

// An effective is the value of a flag that is in force.
type effective struct {
	Name    string `json:"name"`
	Value   string `json:"value"`            // without secrets
	Origin  string `json:"origin"`           // default, command line, a variable, or file and line
	Hidden  bool   `json:"hidden,omitempty"` // the value is a secret, or contains one that is left out
	section string // of the help
}

// showConfig prints the configuration of a server.
func showConfig(c *cli) *cobra.Command {
	var cfg serverConfig
	var flags *flagSet
	var asJSON bool
	return c.command(spec{
		use: "config", short: "print the settings of a server and where they come from",
		long: `Prints the settings of a server as a file for --config: those that are set, with their
origin, and the defaults as comments. Takes the same flags and variables as serve. The
command line takes precedence over the environment, and the environment over the file.
Secrets are not printed.`,
		flags: func(fs *flagSet) {
			flags = fs
			fs.BoolVar(&asJSON, "json", false, "print one JSON array of objects with name, value and origin")
			cfg.register(fs)
		},
		run: func(_ context.Context, _ []string) error {
			if err := cfg.finish(c.env); err != nil {
				return usageError{err}
			}
			all := flags.effective()
			if asJSON {
				return c.printJSON(all)
			}
			return printConfig(c.out, all)
		},
	})
}

// effective returns the values of the flags that a configuration file can have.
func (fs *flagSet) effective() (out []effective) {
	for _, s := range fs.sections {
		for _, name := range s.names {
			f := fs.Lookup(name)
			e := effective{Name: name, Value: f.Value.String(), Origin: "default", section: s.title}
			if origin, ok := fs.origins[name]; ok {
				e.Origin = strings.TrimSuffix(origin, ": "+name)
			} else {
				e.Value = strings.TrimSpace(shortTime.Replace(e.Value + " "))
			}
			if fs.secret[name] {
				shown := withoutSecret(e.Value)
				e.Value, e.Hidden = shown, shown != e.Value
			}
			out = append(out, e)
		}
	}
	return out
}

// withoutSecret returns a URL without its password, and hides any other text.
func withoutSecret(v string) string {
	if u, err := url.Parse(v); err == nil && u.Scheme != "" {
		return u.Redacted()
	}
	if v != "" {
		return "(hidden)"
	}
	return ""
}

// plainValue matches values that YAML does not need in quotes.
var plainValue = regexp.MustCompile(`^([0-9.]+|true|false)$`)

func printConfig(w io.Writer, all []effective) error {
	section := ""
	for _, e := range all {
		v := []byte(e.Value)
		if !plainValue.Match(v) {
			var err error
			if v, err = yaml.Marshal(e.Value); err != nil {
				return err
			}
		}
		line := fmt.Sprintf("%s: %s", e.Name, strings.TrimSpace(string(v)))
		if e.Origin == "default" || e.Hidden {
			line = "# " + line
		}
		if e.section != section {
			section = e.section
			line = "\n## " + section + "\n" + line
		}
		if _, err := fmt.Fprintf(w, "%s  # %s\n", line, e.Origin); err != nil {
			return err
		}
	}
	return nil
}
