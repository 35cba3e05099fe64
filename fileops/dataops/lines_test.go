package dataops_test

import (
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/systest"
)

// Values keep their order, their digits and their duplicates.
func TestJSONLines(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct{ name, content, to, want string }{
		{"a.json", ` [ {"a": 1.0, "a": 2}, [1, 2], "x y", null ] `, "jsonl", "{\"a\":1.0,\"a\":2}\n[1,2]\n\"x y\"\nnull\n"},
		{"a.json", `{"b": 12345678901234567890}`, "jsonl", "{\"b\":12345678901234567890}\n"},
		{"a.json", "\ufeff[]", "jsonl", ""},
		{"a.ndjson", "{\"a\": 1}\r\n\r\n[2]\n", "json", "[\n  {\"a\":1},\n  [2]\n]\n"},
		{"a.jsonl", "\n", "json", "[]\n"},
		{"a.jsonl", "{\"a\":\"Ä\"}\n{\"b\":2}\n", "csv", "a,b\nÄ,\n,2\n"},
		{"a.csv", "a,b\n1,x\n", "jsonl", "{\"a\": \"1\", \"b\": \"x\"}\n"},
		{"a.tsv", "a\tb\n1\tx\n", "ndjson", "{\"a\": \"1\", \"b\": \"x\"}\n"},
		{"a.html", "<table><tr><th>a</th></tr><tr><td>1</td></tr></table>", "jsonl", "{\"a\": \"1\"}\n"},
	} {
		name, got, err := convert(t, tt.name, tt.content, to(tt.to))
		systest.NoError(t, err)
		if got != tt.want {
			t.Errorf("%s %q: %q, want %q", tt.name, tt.content, got, tt.want)
		}
		if want := map[string]string{"ndjson": "a.jsonl"}[tt.to]; want != "" && name != want {
			t.Errorf("the result is named %s", name)
		}
	}
	_, got, err := convert(t, "a.csv", "a,b\n1,true\n", fileops.Args{"convert_to": "jsonl", "typed": true})
	if systest.NoError(t, err); got != "{\"a\": 1, \"b\": true}\n" {
		t.Errorf("typed: %q", got)
	}
}

func TestJSONLinesErrors(t *testing.T) {
	t.Parallel()
	large := `"` + strings.Repeat("x", 33<<20) + `"`
	for _, tt := range []struct{ name, content, to, code string }{
		{"a.json", `[1, 2`, "jsonl", "corrupt_input"},
		{"a.json", `[1 2]`, "jsonl", "corrupt_input"},
		{"a.json", `[1] x`, "jsonl", "corrupt_input"},
		{"a.jsonl", "{\"a\":1}\n{\"a\"\n", "json", "corrupt_input"},
		{"a.jsonl", large, "json", "limit_exceeded"},
		{"a.json", "[" + large + "]", "jsonl", "limit_exceeded"},
	} {
		if _, _, err := convert(t, tt.name, tt.content, to(tt.to)); fileops.Code(err) != tt.code {
			t.Errorf("%s %.20q: %v, want %s", tt.name, tt.content, err, tt.code)
		}
	}
}
