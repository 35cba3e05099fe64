package inputs

import (
	"bytes"
	"fmt"
	"image/jpeg"
	"os"
	"strings"
)

// writeScan writes a PDF (ISO 32000-2, 7.5) with a JPEG on each A4 page, like scanners.
func writeScan(path string, pictures []string) error {
	var objects []string
	var kids []string
	for _, p := range pictures {
		data, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		c, err := jpeg.DecodeConfig(bytes.NewReader(data))
		if err != nil {
			return err
		}
		n := 3 + len(objects)
		kids = append(kids, fmt.Sprintf("%d 0 R", n))
		draw := "q 595 0 0 842 0 0 cm /I Do Q"
		objects = append(objects,
			fmt.Sprintf("<</Type/Page/Parent 2 0 R/MediaBox[0 0 595 842]/Resources<</XObject<</I %d 0 R>>>>/Contents %d 0 R>>", n+1, n+2),
			fmt.Sprintf("<</Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter/DCTDecode/Length %d>>stream\n%s\nendstream",
				c.Width, c.Height, len(data), data),
			fmt.Sprintf("<</Length %d>>stream\n%s\nendstream", len(draw), draw))
	}
	objects = append([]string{
		"<</Type/Catalog/Pages 2 0 R>>",
		fmt.Sprintf("<</Type/Pages/Kids[%s]/Count %d>>", strings.Join(kids, " "), len(kids)),
	}, objects...)
	var b, xref bytes.Buffer
	b.WriteString("%PDF-1.4\n")
	fmt.Fprintf(&xref, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for i, o := range objects {
		fmt.Fprintf(&xref, "%010d 00000 n \n", b.Len())
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	start := b.Len()
	fmt.Fprintf(&b, "%strailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", xref.Bytes(), len(objects)+1, start)
	return os.WriteFile(path, b.Bytes(), 0o600)
}
