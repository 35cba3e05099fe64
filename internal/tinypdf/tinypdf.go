// Package tinypdf writes small PDF files from the text of their objects (ISO 32000-2, 7.5), for
// tests, samples and checks of servers.
//
//	b := tinypdf.File("1.4",
//		"<</Type/Catalog/Pages 2 0 R>>",
//		"<</Type/Pages/Kids[3 0 R]/Count 1>>",
//		"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]>>")
package tinypdf

import (
	"bytes"
	"fmt"
)

// File returns a PDF file with the objects 1, 2, …; the first is the catalog.
func File(version string, objects ...string) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%%PDF-%s\n%%\xe2\xe3\xcf\xd3\n", version)
	at := make([]int, len(objects))
	for i, o := range objects {
		at[i] = b.Len()
		fmt.Fprintf(&b, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	table := b.Len()
	fmt.Fprintf(&b, "xref\n0 %d\n0000000000 65535 f \n", len(objects)+1)
	for _, n := range at {
		fmt.Fprintf(&b, "%010d 00000 n \n", n)
	}
	fmt.Fprintf(&b, "trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n", len(objects)+1, table)
	return b.Bytes()
}

// Stream returns an object with data. dict holds its other entries, such as "/Filter/DCTDecode".
func Stream(dict, data string) string {
	return fmt.Sprintf("<<%s/Length %d>>stream\n%s\nendstream", dict, len(data), data)
}
