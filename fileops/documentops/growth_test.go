package documentops

import (
	"testing"

	"github.com/filewright/filewright/internal/systest"
)

func FuzzGrowth(f *testing.F) {
	systest.FuzzGrowth(f, func(_ testing.TB, _ string, b []byte) {
		for tg, err := range tags(b) {
			if err != nil {
				break
			}
			for a := range tg.attrs() {
				_ = a.end
			}
		}
		d := &drawing{images: map[string]*entry{"rId1": {}}, needs: needs{}, scale: [][2]float64{{1, 1}}}
		_ = d.read(b)
		_ = properties(b)
	}, systest.Growing{Unit: "<a>"}, systest.Growing{Unit: "<!--"}, systest.Growing{Head: "<a ", Unit: `b="c" `, Tail: ">"}, systest.Growing{Unit: "<p:grpSp>"}, systest.Growing{Unit: `<a:blip r:embed="rId1"/>`}, systest.Growing{Unit: "<![CDATA["})
}
