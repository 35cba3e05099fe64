package dataops_test

import (
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

func FuzzGrowth(f *testing.F) {
	systest.FuzzGrowth(f, func(t testing.TB, kind string, b []byte) {
		target := "csv"
		if kind == "csv" {
			target = "json"
		}
		_, _, _ = convert(t, "x."+kind, string(b), to(target))
	},
		systest.Growing{Kind: "html", Head: "<table>", Unit: "<tr><td>a"}, systest.Growing{Kind: "html", Unit: "<table>"}, systest.Growing{Kind: "html", Head: "<table><tr>", Unit: "<td rowspan=9 colspan=9>a"}, systest.Growing{Kind: "html", Unit: "<!--"},
		systest.Growing{Kind: "json", Head: "[", Unit: `{"a":1},`, Tail: "{}]"}, systest.Growing{Kind: "json", Unit: "["}, systest.Growing{Kind: "json", Head: `[{"`, Unit: `a":1,"`, Tail: `b":1}]`},
		systest.Growing{Kind: "csv", Unit: "a,b\n"}, systest.Growing{Kind: "csv", Unit: "a,"}, systest.Growing{Kind: "csv", Unit: `"`})
}
