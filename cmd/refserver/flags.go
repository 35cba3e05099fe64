package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
)

// envPrefix is the prefix of the environment variables for flags.
const envPrefix = "FILEWRIGHT_"

// envName returns the variable of a flag: FILEWRIGHT_DATA_DIR for data-dir.
func envName(flag string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(flag, "-", "_"))
}

// A flagSet is a pflag.FlagSet whose help has sections, and whose flags can also be set in
// the environment and in a file.
type flagSet struct {
	*pflag.FlagSet
	config   string              // the file of --config
	sections []section           // in the order of the help
	choices  map[string][]string // possible values by flag
	secret   map[string]bool     // flags whose values are not shown
	origins  map[string]string   // where a value comes from, by flag; defaults are not in it
}

type section struct {
	title string
	names []string
}

func newFlagSet(fs *pflag.FlagSet) *flagSet {
	out := &flagSet{FlagSet: fs, choices: make(map[string][]string), secret: make(map[string]bool), origins: make(map[string]string)}
	out.StringVar(&out.config, "config", "", "YAML `file` with values of flags: data-dir: /srv/files")
	return out
}

// section registers the flags of a section.
func (fs *flagSet) section(title string, register func(*flagSet)) {
	earlier := fs.names()
	register(fs)
	names := slices.DeleteFunc(fs.names(), func(name string) bool { return slices.Contains(earlier, name) })
	fs.sections = append(fs.sections, section{title, names})
}

func (fs *flagSet) names() (names []string) {
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Name != "help" {
			names = append(names, f.Name)
		}
	})
	return names
}

// Func registers a flag that set parses. usage may end with the default in brackets.
func (fs *flagSet) Func(name, usage string, set func(string) error) {
	def := ""
	if text, ok := strings.CutSuffix(usage, "]"); ok {
		i := strings.LastIndex(text, " [")
		usage, def = text[:i], text[i+2:]
	}
	fs.Var(&funcValue{set, def}, name, usage)
}

// A funcValue is the value of a flag that a function parses.
type funcValue struct {
	set  func(string) error
	text string
}

// String implements pflag.Value.
func (v *funcValue) String() string { return v.text }

// Type implements pflag.Value.
func (v *funcValue) Type() string { return "" }

// Set implements pflag.Value.
func (v *funcValue) Set(text string) error {
	if err := v.set(text); err != nil {
		return err
	}
	v.text = text
	return nil
}

// choice registers a flag with a few possible values. *to holds the default.
func (fs *flagSet) choice(to *string, name, usage string, values ...string) {
	fs.choices[name] = values
	fs.Func(name, usage+" ["+*to+"]", func(v string) error {
		if !slices.Contains(values, v) {
			last := len(values) - 1
			return fmt.Errorf("must be %s or %s", strings.Join(values[:last], ", "), values[last])
		}
		*to = v
		return nil
	})
}

// list registers a flag for a comma-separated list.
func (fs *flagSet) list(to *[]string, name, usage string) {
	fs.Func(name, usage, func(v string) error {
		*to = splitList(v)
		return nil
	})
}

// size registers a flag for a number of bytes.
func (fs *flagSet) size(to *int64, name, usage string) {
	fs.Func(name, usage, func(v string) (err error) {
		*to, err = parseSize(v)
		return err
	})
}

// sizeOrZero is like size, but also accepts 0, which sets *to to zero.
func (fs *flagSet) sizeOrZero(to *int64, zero int64, name, usage string) {
	fs.Func(name, usage, func(v string) (err error) {
		if v == "0" {
			*to = zero
			return nil
		}
		*to, err = parseSize(v)
		return err
	})
}

// token registers a flag for a secret text.
func (fs *flagSet) token(to *string, minLength int, name, usage string) {
	fs.secret[name] = true
	fs.Func(name, fmt.Sprintf(usage, minLength)+"; better set in the environment as "+envName(name), func(v string) error {
		if len(v) < minLength {
			return fmt.Errorf("must have at least %d characters", minLength)
		}
		*to = v
		return nil
	})
}

// load sets the flags that are not on the command line: from the environment, or else from
// the file of --config.
func (fs *flagSet) load(env func(string) (string, bool)) error {
	var bad error
	fs.VisitAll(func(f *pflag.Flag) {
		if f.Changed {
			fs.origins[f.Name] = "command line"
		} else if v, ok := env(envName(f.Name)); ok && bad == nil {
			bad = fs.set(f.Name, v, envName(f.Name))
		}
	})
	if bad != nil || fs.config == "" {
		return bad
	}
	settings, err := readConfig(fs.config)
	if err != nil {
		return err
	}
	for _, s := range settings {
		if f := fs.Lookup(s.name); f != nil && !f.Changed {
			bad = errors.Join(bad, fs.set(s.name, s.value, s.origin))
		}
	}
	return bad
}

// set sets a flag. origin names the place of the value in errors.
func (fs *flagSet) set(name, value, origin string) error {
	f := fs.Lookup(name)
	if err := f.Value.Set(value); err != nil {
		return fmt.Errorf("%s: invalid value %q: %w", origin, value, err)
	}
	f.Changed = true
	fs.origins[name] = origin
	return nil
}

// shortTime drops the zeros at the end of a time.Duration: 24h0m0s.
var shortTime = strings.NewReplacer("h0m0s ", "h", "m0s ", "m")

// defaultOf returns the default of a flag for people, or "" if it is zero.
func defaultOf(f *pflag.Flag) string {
	def := strings.TrimSpace(shortTime.Replace(f.DefValue + " "))
	if slices.Contains([]string{"false", "0", "0s"}, def) {
		return ""
	}
	return def
}

// help prints the flags with their sections.
func (fs *flagSet) help(w io.Writer) {
	general := fs.names()
	for _, s := range fs.sections {
		general = slices.DeleteFunc(general, func(name string) bool { return slices.Contains(s.names, name) })
	}
	fmt.Fprintf(w, "\nFlags, with defaults in brackets; --FLAG=false switches a flag without a value off:\n")
	for _, s := range append([]section{{"", general}}, fs.sections...) {
		if s.title != "" {
			fmt.Fprintf(w, "\n%s:\n", s.title)
		}
		for _, name := range s.names {
			describe(w, fs.Lookup(name))
		}
	}
}

// describe prints the help of a flag.
func describe(w io.Writer, f *pflag.Flag) {
	kind, text := pflag.UnquoteUsage(f)
	if kind != "" {
		kind = " " + kind
	}
	if def := defaultOf(f); def != "" {
		text += " [" + def + "]"
	}
	fmt.Fprintf(w, "  --%s%s", f.Name, kind)
	const width, indent = 88, "\n        "
	column := width
	for _, word := range strings.Fields(text) {
		if column += 1 + len(word); column > width {
			fmt.Fprint(w, indent, word)
			column = len(indent) - 1 + len(word)
			continue
		}
		fmt.Fprint(w, " ", word)
	}
	fmt.Fprintln(w)
}
