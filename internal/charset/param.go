package charset

import (
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"

	"github.com/filewright/filewright/fileops"
)

const encodingParam = "encoding"

// EncodingParam returns the parameter for the encoding of a text.
func EncodingParam() fileops.Param {
	return fileops.Param{
		Name: encodingParam, Min: 1, Max: 40, Pattern: `[A-Za-z0-9_:.-]+`, Scope: fileops.ScopeInput,
		Doc: "Character encoding of the text, such as big5, windows-1250 or utf-16le; detected by default.",
	}
}

// Encoding returns the value of [EncodingParam], nil if it is absent. It accepts
// the labels of the WHATWG Encoding Standard.
func Encoding(p fileops.Params) (encoding.Encoding, error) {
	label := p.Get(encodingParam)
	if label == "" {
		return nil, nil
	}
	enc, err := htmlindex.Get(label)
	if err != nil {
		return nil, &fileops.ParamError{Param: encodingParam, Reason: "is not a known character encoding"}
	}
	return enc, nil
}

// IsUTF16 reports whether an encoding is UTF-16.
func IsUTF16(enc encoding.Encoding) bool {
	name := Name(enc)
	return name == "utf-16le" || name == "utf-16be"
}

// Name returns the name of an encoding in the WHATWG Encoding Standard, or "".
func Name(enc encoding.Encoding) string {
	if enc == nil {
		return "utf-8"
	}
	name, err := htmlindex.Name(enc)
	if err != nil {
		return ""
	}
	return name
}
