package delimited_test

import (
	"bytes"
	"testing"

	"github.com/filewright/filewright/internal/delimited"
	"github.com/filewright/filewright/internal/systest"
)

func FuzzGrowth(f *testing.F) {
	systest.FuzzGrowth(f, func(_ testing.TB, _ string, b []byte) {
		comma, rest, err := delimited.Sniff(bytes.NewReader(b), 0)
		if err != nil {
			return
		}
		r := delimited.NewReader(rest, rune(comma))
		r.LazyQuotes = true
		for r.Next() == nil {
		}
	}, systest.Growing{Unit: `",`}, systest.Growing{Unit: "\"\n"}, systest.Growing{Unit: ",;\t|"}, systest.Growing{Head: "sep=;", Unit: "\r\n"}, systest.Growing{Unit: `""`})
}
