package fileops

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/filewright/filewright/fileops/format"
)

// A Schema lists the parameters of an action. [Schema.Parse] validates a request,
// [Schema.Options] answers supported-operation, and [Schema.JSONSchema] goes into the
// OpenAPI document. All three use the same list, so they cannot disagree.
type Schema []Param

// A Param describes one parameter.
type Param struct {
	Name     string
	Doc      string // one sentence
	Type     Type   // default String
	Required bool
	Default  any               // for an absent parameter; nil means no default
	Enum     []string          // allowed values of a String or an Integer, in canonical spelling
	Aliases  map[string]string // maps accepted spellings, in lower case, to canonical values
	Min, Max float64           // bounds of a number, of a String's length in bytes, or of the members of an Object or a List; 0, 0 means no bounds
	Pattern  string            // regular expression that the whole String must match; "" matches everything
	Formats  []format.Format   // that an Upload may have; format.Any: all
	Secret   bool              // never logged, never stored after the run
	Scope    Scope             // selects the step of a multi-step conversion that takes it
	OneOf    string            // at most one of the parameters with the same value may be given; "" means no limit
}

// A Scope says what a parameter controls. It decides which step of a multi-step
// conversion takes the parameter.
type Scope int

// The scopes of parameters.
const (
	ScopeResult  Scope = iota // the result: passed to the last step
	ScopeContent              // which part of the input is read, such as its pages: passed to the last step that knows the parameter
	ScopeInput                // how the input is opened, such as its password or encoding: passed to the first step
	ScopeFile                 // how text is laid out in the file: passed to no step, because we write the intermediate file
)

// A Type is a JSON type.
type Type int

// The parameter types.
const (
	String Type = iota
	Integer
	Number
	Boolean
	Object // names and values of any JSON type; see [Params.Object]
	List   // strings; one string stands for a list of one; see [Params.List]
	Upload // a second file, such as a picture to draw; see [Params.Uploads]
)

// Enum returns a required String parameter with the given values.
func Enum(name, doc string, values ...string) Param {
	return Param{Name: name, Doc: doc, Required: true, Enum: values}
}

// Secret returns a required, non-empty String parameter that is never logged and never
// kept in the task store.
func Secret(name, doc string) Param {
	return Param{Name: name, Doc: doc, Required: true, Min: 1, Max: 1024, Secret: true}
}

// Values of the [Compression] parameter.
const (
	LessCompression        = "less_compression"
	RecommendedCompression = "recommended_compression"
	ExtremeCompression     = "extreme_compression"
)

// Compression returns the optional String parameter compression_value of all compress
// actions: how much quality may be lost to save space.
func Compression(doc string) Param {
	return Param{
		Name: "compression_value", Doc: doc,
		Enum:    []string{LessCompression, RecommendedCompression, ExtremeCompression},
		Default: RecommendedCompression,
		Aliases: map[string]string{
			"low": LessCompression, "less": LessCompression,
			"recommended": RecommendedCompression, "medium": RecommendedCompression,
			"high": ExtremeCompression, "extreme": ExtremeCompression,
		},
	}
}

// Angle returns the required Integer parameter angle of all rotate actions.
func Angle() Param {
	return Param{
		Name: "angle", Doc: "Degrees to turn clockwise.", Type: Integer, Required: true,
		Enum: []string{"90", "180", "270"}, Aliases: map[string]string{"-90": "270", "-180": "180", "-270": "90"},
	}
}

// Thumbnail returns the parameters convert_to, width and height of all thumbnail actions
// for those of the formats in can that previews have: jpg, png and webp. It returns nil
// if there are none.
func Thumbnail(can ...format.Format) Schema {
	to := Param{Name: "convert_to", Doc: "Format of the preview.", Aliases: make(map[string]string)}
	for _, f := range []format.Format{format.JPG, format.PNG, format.WebP} {
		if !slices.Contains(can, f) {
			continue
		}
		to.Enum = append(to.Enum, string(f))
		for _, a := range f.Aliases() {
			to.Aliases[string(a)] = string(f)
		}
	}
	if len(to.Enum) == 0 {
		return nil
	}
	to.Default = to.Enum[0]
	side := func(name string) Param {
		return Param{Name: name, Doc: "Largest " + name + " in pixels; 256 if neither width nor height is given.", Type: Integer, Min: 1, Max: 4096}
	}
	return Schema{to, side("width"), side("height")}
}

// ThumbnailBox returns the box in pixels that a preview with the parameters of
// [Thumbnail] fits into.
func ThumbnailBox(p Params) (width, height int) {
	const usual, most = 256, 4096
	width, height = p.Int("width"), p.Int("height")
	switch {
	case width == 0 && height == 0:
		return usual, usual
	case width == 0:
		width = most
	case height == 0:
		height = most
	}
	return width, height
}

// check returns an error if the schema is inconsistent. [NewRegistry] calls it.
func (s Schema) check() error {
	seen := make(map[string]bool)
	for _, d := range s {
		if d.Name == "" || seen[d.Name] {
			return fmt.Errorf("parameter %q has no name or is listed twice", d.Name)
		}
		seen[d.Name] = true
		if err := d.check(); err != nil {
			return fmt.Errorf("parameter %q: %w", d.Name, err)
		}
	}
	return nil
}

// check returns an error if the parts of a parameter contradict each other.
func (d Param) check() error {
	switch {
	case d.Type != String && d.Pattern != "":
		return errors.New("only a string can have a pattern")
	case d.Type != String && d.Type != Object && d.Secret:
		return errors.New("only a string or an object can be secret")
	case (d.Type == Object || d.Type == List || d.Type == Upload) && d.Default != nil:
		return errors.New("an object, a list or a file cannot have a default")
	case (d.Type == Upload) != (len(d.Formats) > 0):
		return errors.New("a file, and nothing else, must have formats")
	case d.Min > d.Max:
		return errors.New("its minimum is above its maximum")
	case d.OneOf != "" && (d.Required || d.Default != nil):
		return errors.New("one of several cannot be required or have a default")
	}
	if _, err := regexp.Compile(d.Pattern); err != nil {
		return err
	}
	if err := d.checkEnum(); err != nil {
		return err
	}
	if d.Default == nil {
		return nil
	}
	unknown := d
	unknown.Default = nil // see parseString
	if _, err := unknown.parse(d.Default); err != nil {
		return fmt.Errorf("default: %w", err)
	}
	return nil
}

// checkEnum returns an error if the listed values or their aliases are inconsistent.
func (d Param) checkEnum() error {
	if len(d.Enum) > 0 && d.Type != String && d.Type != Integer {
		return errors.New("only a string or an integer can have listed values")
	}
	if d.Type == Integer {
		for _, v := range d.Enum {
			if _, err := strconv.Atoi(v); err != nil {
				return fmt.Errorf("the listed value %q is no integer", v)
			}
		}
	}
	for alias, v := range d.Aliases {
		if alias != strings.ToLower(alias) || !slices.Contains(d.Enum, v) {
			return fmt.Errorf("alias %q must be lower case and stand for a listed value", alias)
		}
	}
	return nil
}

// Parse validates args. Its errors are of type *[ParamError].
func (s Schema) Parse(args Args) (Params, error) {
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if args[name] != nil && !slices.ContainsFunc(s, func(d Param) bool { return d.Name == name }) {
			return Params{}, s.unknown(name)
		}
	}
	p := Params{schema: s, m: make(map[string]any, len(s))}
	given := make(map[string]string) // names of parameters, by OneOf
	for _, d := range s {
		v := args[d.Name]
		if v != nil && d.OneOf != "" {
			if other := given[d.OneOf]; other != "" {
				return Params{}, &ParamError{Param: d.Name, Reason: "cannot be combined with " + other}
			}
			given[d.OneOf] = d.Name
		}
		if v == nil {
			if d.Required {
				return Params{}, &ParamError{Param: d.Name, Reason: "is required", Allowed: d.Enum, Missing: true}
			}
			if v = d.Default; v == nil {
				continue
			}
		}
		v, err := d.parse(v)
		if err != nil {
			return Params{}, err
		}
		p.m[d.Name] = v
	}
	return p, nil
}

// unknown returns the error for a parameter that the schema does not have.
func (s Schema) unknown(name string) *ParamError {
	if len(s) == 0 {
		return &ParamError{Param: name, Reason: "is not known here; this operation takes no parameters"}
	}
	e := &ParamError{Param: name}
	for _, d := range s {
		e.Allowed = append(e.Allowed, d.Name)
	}
	e.Reason = "is not known here; known are: " + strings.Join(e.Allowed, ", ")
	return e
}

// parse validates a value and returns it with the type that [Params] has for the parameter.
func (d Param) parse(v any) (any, error) {
	if text, ok := v.(Text); ok {
		v = d.read(string(text))
	}
	switch d.Type {
	case String:
		return d.parseString(v)
	case Boolean:
		if _, ok := v.(bool); !ok {
			return d.refuse("must be true or false")
		}
		return v, nil
	case Object:
		m, ok := asObject(v)
		if !ok {
			return d.refuse("must be a JSON object")
		}
		if !d.holds(len(m)) {
			return d.refuse("must have %v to %v members", d.Min, d.Max)
		}
		return m, nil
	case List:
		l, ok := asList(v)
		if !ok {
			return d.refuse("must be a list of strings")
		}
		if !d.holds(len(l)) {
			return d.refuse("must have %v to %v elements", d.Min, d.Max)
		}
		return l, nil
	case Upload:
		return d.parseUpload(v)
	default:
		return d.parseNumber(v)
	}
}

// refuse returns the error for a value that the parameter does not take.
func (d Param) refuse(reason string, a ...any) (any, error) {
	return nil, &ParamError{Param: d.Name, Reason: fmt.Sprintf(reason, a...), Allowed: d.Enum}
}

// holds reports whether a value may have n bytes, members or elements.
func (d Param) holds(n int) bool {
	return d.Max == 0 || float64(n) >= d.Min && float64(n) <= d.Max
}

func (d Param) parseString(v any) (any, error) {
	s, ok := v.(string)
	if !ok || !utf8.ValidString(s) {
		return d.refuse("must be a string")
	}
	if len(d.Enum) > 0 {
		c, ok := d.listed(s)
		if !ok {
			return d.refuse("must be one of: %s", strings.Join(d.Enum, ", "))
		}
		return c, nil
	}
	if !d.holds(len(s)) {
		return d.refuse("must be %v to %v bytes long", d.Min, d.Max)
	}
	// A default was checked before. Compiling a pattern takes longer than the rest.
	if d.Pattern != "" && s != d.Default && !regexp.MustCompile(`^(?:`+d.Pattern+`)$`).MatchString(s) {
		return d.refuse("must have the form %s", d.Pattern)
	}
	return s, nil
}

func (d Param) parseUpload(v any) (any, error) {
	switch v := v.(type) {
	case *File:
		if f := v.Format(); !slices.Contains(d.Formats, f) && !slices.Contains(d.Formats, format.Any) {
			f = cmp.Or(f, "without extension")
			return d.refuse("must be a file of format %s, not %s", join(d.Formats), f)
		}
		return v, nil
	case string:
		if v != "" && len(v) <= maxKey && utf8.ValidString(v) {
			return v, nil
		}
	}
	return d.refuse("must be the key of an uploaded file")
}

func (d Param) parseNumber(v any) (any, error) {
	if text, ok := v.(string); ok && len(d.Enum) > 0 {
		v = d.read(text)
	}
	n, ok := number(v)
	if !ok || math.IsNaN(n) || math.IsInf(n, 0) {
		return d.refuse("must be a number")
	}
	if d.Type == Integer && (n != math.Trunc(n) || math.Abs(n) > 1<<53) {
		return d.refuse("must be a whole number")
	}
	if len(d.Enum) > 0 {
		c, ok := d.listed(strconv.FormatFloat(n, 'f', -1, 64))
		if !ok {
			return d.refuse("must be one of: %s", strings.Join(d.Enum, ", "))
		}
		return strconv.ParseFloat(c, 64)
	}
	if (d.Min != 0 || d.Max != 0) && (n < d.Min || n > d.Max) {
		return d.refuse("must be from %v to %v", d.Min, d.Max)
	}
	return n, nil
}

// maxKey limits the bytes of the key of an uploaded file.
const maxKey = 255

// join returns a list of formats for messages.
func join(formats []format.Format) string {
	names := make([]string, len(formats))
	for i, f := range formats {
		names[i] = string(f)
	}
	return strings.Join(names, ", ")
}

// asObject returns a copy of a JSON object, with the types of [json.Unmarshal].
func asObject(v any) (m map[string]any, ok bool) {
	if reflect.ValueOf(v).Kind() != reflect.Map {
		return nil, false
	}
	b, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(b, &m)
	}
	return m, err == nil && m != nil
}

// asList returns a copy of a list of strings.
func asList(v any) ([]string, bool) {
	switch v := v.(type) {
	case string:
		return []string{v}, utf8.ValidString(v)
	case []string:
		return slices.Clone(v), !slices.ContainsFunc(v, func(s string) bool { return !utf8.ValidString(s) })
	case []any:
		out := make([]string, len(v))
		for i, e := range v {
			s, ok := e.(string)
			if !ok || !utf8.ValidString(s) {
				return nil, false
			}
			out[i] = s
		}
		return out, true
	}
	return nil, false
}

// listed returns the canonical spelling of a listed value.
func (d Param) listed(s string) (string, bool) {
	if c, ok := d.Aliases[strings.ToLower(s)]; ok {
		return c, true
	}
	for _, spelling := range []string{s, strings.TrimPrefix(s, ".")} { // an extension may have its dot
		if i := slices.IndexFunc(d.Enum, func(e string) bool { return strings.EqualFold(e, spelling) }); i >= 0 {
			return d.Enum[i], true
		}
	}
	return "", false
}

// isDefault reports whether a validated value equals the default.
func (d Param) isDefault(v any) bool {
	if d.Default == nil {
		return false
	}
	def, err := d.parse(d.Default)
	return err == nil && def == v
}

// values returns the listed values with the parameter's type.
func (d Param) values() any {
	if d.Type != Integer {
		return d.Enum
	}
	var out []int
	for _, v := range d.Enum {
		if n, err := strconv.Atoi(v); err == nil { // always, see check
			out = append(out, n)
		}
	}
	return out
}

// read converts text to the parameter's type. It returns text unchanged if that fails.
func (d Param) read(text string) any {
	switch d.Type {
	case Integer, Number:
		if n, err := strconv.ParseFloat(text, 64); err == nil {
			return n
		}
	case Boolean:
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	case Object:
		var m map[string]any
		if err := json.Unmarshal([]byte(text), &m); err == nil {
			return m
		}
	case List:
		var l []any
		if err := json.Unmarshal([]byte(text), &l); err == nil {
			return l
		}
		parts := strings.Split(text, ",")
		for i := range parts {
			parts[i] = strings.TrimSpace(parts[i])
		}
		return parts
	}
	return text
}

func number(v any) (float64, bool) {
	if n, ok := v.(json.Number); ok {
		f, err := n.Float64()
		return f, err == nil
	}
	switch r := reflect.ValueOf(v); {
	case r.CanFloat():
		return r.Float(), true
	case r.CanInt():
		return float64(r.Int()), true
	case r.CanUint():
		return float64(r.Uint()), true
	}
	return 0, false
}

// Options returns the metadata that supported-operation shows: the values of a String
// with an Enum, and an object that describes any other parameter.
func (s Schema) Options() map[string]any {
	out := make(map[string]any, len(s))
	for _, d := range s {
		if len(d.Enum) > 0 && d.Type == String {
			out[d.Name] = d.Enum
			continue
		}
		m := d.jsonSchema()
		m["required"] = d.Required
		out[d.Name] = m
	}
	return out
}

// JSONSchema returns a JSON Schema (2020-12) object for OpenAPI 3.1.
func (s Schema) JSONSchema() map[string]any {
	props, required := map[string]any{}, []string{}
	for _, d := range s {
		props[d.Name] = d.jsonSchema()
		if d.Required {
			required = append(required, d.Name)
		}
	}
	return map[string]any{"type": "object", "properties": props, "required": required, "additionalProperties": false}
}

func (d Param) jsonSchema() map[string]any {
	m := map[string]any{"type": [...]string{"string", "integer", "number", "boolean", "object", "array", "string"}[d.Type], "description": d.Doc}
	if d.Type == List {
		m["type"], m["items"] = []string{"array", "string"}, map[string]any{"type": "string"}
	}
	if len(d.Enum) > 0 {
		m["enum"] = d.values()
	}
	if d.Default != nil {
		m["default"] = d.Default
	}
	if d.Secret {
		m["writeOnly"] = true
		if d.Type == String {
			m["format"] = "password"
		}
	}
	if d.Type == Upload {
		m["format"], m["maxLength"], m["x-file-formats"] = "file-key", maxKey, d.Formats
	}
	if d.Pattern != "" {
		m["pattern"] = "^(?:" + d.Pattern + ")$"
	}
	if d.Min != 0 || d.Max != 0 {
		lo, hi := "minimum", "maximum"
		switch d.Type {
		case String:
			lo, hi = "minLength", "maxLength"
		case Object:
			lo, hi = "minProperties", "maxProperties"
		case List:
			lo, hi = "minItems", "maxItems"
		}
		m[lo], m[hi] = d.Min, d.Max
	}
	return m
}

// Merge returns the union of schemas: a parameter that several schemas share accepts the
// values of each. It is required if every schema requires it.
func Merge(schemas ...Schema) Schema {
	var out Schema
	count := make(map[string]int)
	for _, s := range schemas {
		for _, d := range s {
			count[d.Name]++
			i := slices.IndexFunc(out, func(o Param) bool { return o.Name == d.Name })
			if i < 0 {
				out = append(out, d)
				continue
			}
			o := &out[i]
			if len(o.Enum) == 0 || len(d.Enum) == 0 {
				o.Enum, o.Aliases = nil, nil // one of the two takes any value
			} else {
				o.Enum = slices.Compact(slices.Sorted(slices.Values(slices.Concat(o.Enum, d.Enum))))
			}
			if len(d.Aliases) > 0 && len(o.Enum) > 0 {
				o.Aliases = maps.Clone(o.Aliases)
				if o.Aliases == nil {
					o.Aliases = make(map[string]string)
				}
				maps.Copy(o.Aliases, d.Aliases)
			}
			for _, f := range d.Formats {
				if !slices.Contains(o.Formats, f) {
					o.Formats = append(slices.Clip(o.Formats), f)
				}
			}
			o.Required = o.Required && d.Required
			o.Secret = o.Secret || d.Secret
			switch {
			case o.Min == 0 && o.Max == 0, d.Min == 0 && d.Max == 0:
				o.Min, o.Max = 0, 0 // one of the two has no bounds
			default:
				o.Min, o.Max = min(o.Min, d.Min), max(o.Max, d.Max)
			}
			switch {
			case o.Pattern == "" || d.Pattern == "":
				o.Pattern = ""
			case o.Pattern != d.Pattern:
				o.Pattern = o.Pattern + "|" + d.Pattern // the user of the pattern puts it in a group
			}
		}
	}
	for i := range out {
		out[i].Required = out[i].Required && count[out[i].Name] == len(schemas)
	}
	return out
}

// Params are validated parameters. A getter returns the zero value of its type if the
// parameter is absent.
type Params struct {
	schema Schema
	m      map[string]any
}

// Get returns a String parameter, or "".
func (p Params) Get(name string) string { s, _ := p.m[name].(string); return s }

// Int returns an Integer parameter, or 0.
func (p Params) Int(name string) int { return int(p.Float(name)) }

// Float returns a Number or Integer parameter, or 0.
func (p Params) Float(name string) float64 { n, _ := p.m[name].(float64); return n }

// Bool returns a Boolean parameter, or false.
func (p Params) Bool(name string) bool { b, _ := p.m[name].(bool); return b }

// Object returns a copy of an Object parameter, or nil. Its values have the types of
// [json.Unmarshal].
func (p Params) Object(name string) map[string]any {
	m, _ := p.m[name].(map[string]any)
	return maps.Clone(m)
}

// List returns a copy of a List parameter, or nil.
func (p Params) List(name string) []string { l, _ := p.m[name].([]string); return slices.Clone(l) }

// Uploads yields the names of Upload parameters whose value is the key of an uploaded
// file, and the keys. The caller of a run replaces each key by the [File], in arguments
// that it resolves again, because only the caller knows who may read which file.
func (p Params) Uploads() iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, d := range p.schema {
			if key, ok := p.m[d.Name].(string); ok && d.Type == Upload && !yield(d.Name, key) {
				return
			}
		}
	}
}

// files yields the names and values of Upload parameters that are files.
func (p Params) files() iter.Seq2[string, *File] {
	return func(yield func(string, *File) bool) {
		for _, d := range p.schema {
			if f, ok := p.m[d.Name].(*File); ok && !yield(d.Name, f) {
				return
			}
		}
	}
}

// Has reports whether a parameter was given or has a default.
func (p Params) Has(name string) bool { _, ok := p.m[name]; return ok }

// Args converts the parameters back to arguments, including secrets and files.
func (p Params) Args() Args { return maps.Clone(Args(p.m)) }

// Secrets returns the texts of the secret parameters, so that callers can remove them from the
// output of programs.
func (p Params) Secrets() (list []string) {
	for _, d := range p.schema {
		if !d.Secret {
			continue
		}
		list = appendTexts(list, p.m[d.Name])
	}
	return list
}

// appendTexts appends the texts in a value to list. Names of members are no secrets.
func appendTexts(list []string, v any) []string {
	switch v := v.(type) {
	case string:
		return append(list, v)
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			list = appendTexts(list, v[name])
		}
	case []any:
		for _, one := range v {
			list = appendTexts(list, one)
		}
	}
	return list
}

// LogValue redacts secret parameters. It implements [slog.LogValuer].
func (p Params) LogValue() slog.Value {
	var attrs []slog.Attr
	for _, d := range p.schema {
		v, ok := p.m[d.Name]
		if !ok {
			continue
		}
		if d.Secret {
			v = "REDACTED"
		}
		if f, ok := v.(*File); ok {
			v = f.Name()
		}
		attrs = append(attrs, slog.Any(d.Name, v))
	}
	return slog.GroupValue(attrs...)
}

// String redacts secret parameters too, so that a stray %v leaks nothing.
func (p Params) String() string { return p.LogValue().String() }

// Format redacts secret parameters for all verbs, including %d and %#v. It implements
// [fmt.Formatter].
func (p Params) Format(w fmt.State, verb rune) {
	if verb == 'q' {
		fmt.Fprintf(w, "%q", p.String())
		return
	}
	fmt.Fprint(w, p.String())
}
