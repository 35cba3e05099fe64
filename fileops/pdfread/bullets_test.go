package pdfread_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/fileops/pdfread"
)

// disc draws a circle as browsers do, of four curves.
func disc(x, y, r float64) string {
	k := 0.5523 * r
	return fmt.Sprintf("%.2f %.2f m %.2f %.2f %.2f %.2f %.2f %.2f c %.2f %.2f %.2f %.2f %.2f %.2f c %.2f %.2f %.2f %.2f %.2f %.2f c %.2f %.2f %.2f %.2f %.2f %.2f c f\n",
		x+r, y, x+r, y+k, x+k, y+r, x, y+r, x-k, y+r, x-r, y+k, x-r, y,
		x-r, y-k, x-k, y-r, x, y-r, x+k, y-r, x+r, y-k, x+r, y)
}

// Drawn bullets make a list too. A dot in the middle of a line does not, and
// neither does a box that is larger than a bullet.
func TestDrawnBullets(t *testing.T) {
	t.Parallel()
	text := func(x, y float64, s string) string {
		return fmt.Sprintf("BT /F1 11 Tf %.0f %.0f Td (%s) Tj ET\n", x, y, s)
	}
	content := text(72, 760, "What is to be bought for the weekend, before the shops close:") +
		disc(80, 733.5, 2) + text(90, 730, "apples from the market") +
		disc(80, 717.5, 2) + text(90, 714, "pears, if there are any") +
		"78 696 4 4 re f\n" + text(90, 694, "bread") +
		text(72, 650, "Nine") + disc(104, 653.5, 2) + text(110, 650, "ten is what is written on the door of the shop around the corner.") +
		"72 608 10 10 re f\n" + text(90, 610, "This is a box to tick and no bullet at all.")
	e := newEngine(t, pdfread.Options{})
	md := string(mustConvert(t, e, fileops.Args{"convert_to": "md"}, pages(pdfPage{content: content}))[0].b)
	for _, want := range []string{"\n- apples from the market\n", "\n- pears, if there are any\n", "\n- bread\n"} {
		if !strings.Contains(md, want) {
			t.Errorf("no item %q", want)
		}
	}
	if n := strings.Count(md, "\n- "); n != 3 || strings.Contains(md, "•") {
		t.Errorf("%d items, want 3:\n%s", n, md)
	}
}
