package specimen

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"
)

// This file writes archives of formats for which Debian has no writer that is small. They
// contain their files uncompressed.

// arOf returns an ar archive (ar(5)). slash replaces the slash in names, which the format
// does not allow.
func arOf(entries [][2]string, slash string) []byte {
	var b bytes.Buffer
	b.WriteString("!<arch>\n")
	for _, e := range entries {
		fmt.Fprintf(&b, "%-16s%-12d%-6d%-6d%-8o%-10d`\n%s", strings.ReplaceAll(e[0], "/", slash), 1_000_000_000, 0, 0, 0o100644, len(e[1]), e[1])
		if len(e[1])%2 != 0 {
			b.WriteByte('\n')
		}
	}
	return b.Bytes()
}

// storedCAB returns a cabinet with one folder of one block for each file (Microsoft Cabinet
// Format, 2). Checksums of 0 are not verified.
func storedCAB(entries [][2]string) []byte {
	le := binary.LittleEndian
	var folders, files, data []byte
	dataAt := 36
	for _, e := range entries {
		dataAt += 8 + 16 + len(e[0]) + 1
	}
	for i, e := range entries {
		folders = le.AppendUint16(le.AppendUint16(le.AppendUint32(folders, uint32(dataAt+len(data))), 1), 0) // blocks, no compression
		files = le.AppendUint32(le.AppendUint32(files, uint32(len(e[1]))), 0)                                // size, offset in the folder
		files = le.AppendUint16(files, uint16(i))
		files = le.AppendUint16(le.AppendUint16(le.AppendUint16(files, (2011-1980)<<9|12<<5|13), 14<<11), 0x20) // date, time, attributes
		files = append(append(files, strings.ReplaceAll(e[0], "/", `\`)...), 0)
		data = le.AppendUint32(data, 0)
		data = le.AppendUint16(le.AppendUint16(data, uint16(len(e[1]))), uint16(len(e[1])))
		data = append(data, e[1]...)
	}
	b := append([]byte("MSCF"), 0, 0, 0, 0)
	b = le.AppendUint32(le.AppendUint32(b, uint32(dataAt+len(data))), 0)
	b = le.AppendUint32(le.AppendUint32(b, uint32(36+len(folders))), 0)
	b = append(b, 3, 1) // version 1.3
	b = le.AppendUint16(le.AppendUint16(b, uint16(len(entries))), uint16(len(entries)))
	b = append(b, 0, 0, 0, 0, 0, 0) // flags, set, number in the set
	return append(append(append(b, folders...), files...), data...)
}

// storedLZH returns an LHA archive with headers of level 0 and the method -lh0-.
func storedLZH(entries [][2]string) []byte {
	le := binary.LittleEndian
	var b []byte
	for _, e := range entries {
		h := []byte("-lh0-")
		h = le.AppendUint32(le.AppendUint32(h, uint32(len(e[1]))), uint32(len(e[1])))
		h = le.AppendUint32(h, (2011-1980)<<25|12<<21|13<<16|14<<11)
		h = append(h, 0x20, 0, byte(len(e[0]))) // attribute, level
		h = append(h, strings.ReplaceAll(e[0], "/", `\`)...)
		h = le.AppendUint16(h, crc16(e[1]))
		sum := byte(0)
		for _, c := range h {
			sum += c
		}
		b = append(append(append(b, byte(len(h)), sum), h...), e[1]...)
	}
	return append(b, 0)
}

// crc16 returns the checksum CRC-16/ARC.
func crc16(s string) (crc uint16) {
	for i := range len(s) {
		crc ^= uint16(s[i])
		for range 8 {
			low := crc & 1
			if crc >>= 1; low != 0 {
				crc ^= 0xa001
			}
		}
	}
	return crc
}

// rpmOf returns an RPM package with a payload: the lead, an empty signature, an empty
// header, and the payload (RPM V4 Package Format).
func rpmOf(payload []byte) []byte {
	lead := make([]byte, 96)
	copy(lead, "\xed\xab\xee\xdb\x03\x00")
	copy(lead[10:], "specimen-1-1")
	lead[79] = 5 // the signature is a header
	header := append([]byte("\x8e\xad\xe8\x01"), make([]byte, 12)...)
	return append(append(append(lead, header...), header...), payload...)
}
