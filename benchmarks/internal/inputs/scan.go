package inputs

import (
	"bytes"
	"fmt"
	"image/jpeg"
	"os"
	"strings"

	"github.com/filewright/filewright/internal/tinypdf"
)

// WriteScan writes a PDF (ISO 32000-2, 7.5) with a JPEG on each A4 page, like scanners.
func WriteScan(path string, pictures []string) error {
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
			tinypdf.Stream(fmt.Sprintf("/Type/XObject/Subtype/Image/Width %d/Height %d/ColorSpace/DeviceRGB/BitsPerComponent 8/Filter/DCTDecode", c.Width, c.Height), string(data)),
			tinypdf.Stream("", draw))
	}
	objects = append([]string{
		"<</Type/Catalog/Pages 2 0 R>>",
		fmt.Sprintf("<</Type/Pages/Kids[%s]/Count %d>>", strings.Join(kids, " "), len(kids)),
	}, objects...)
	return os.WriteFile(path, tinypdf.File("1.4", objects...), 0o600)
}
