package compound

import "encoding/binary"

// WordEncrypted reports whether the document of a stream WordDocument is encrypted
// (FibBase.fEncrypted, MS-DOC 2.5.2). b is the start of the stream, 12 bytes or more.
func WordEncrypted(b []byte) bool {
	return len(b) >= 12 && binary.LittleEndian.Uint16(b[10:])&0x0100 != 0
}

// ExcelEncrypted reports whether the workbook of a stream Workbook or Book has a record
// FilePass (MS-XLS 2.4.117), perhaps with the default password. b is the start of the
// stream; 64 KiB have the record.
func ExcelEncrypted(b []byte) bool {
	const filePass, endOfGlobals = 0x2f, 0x0a
	for len(b) >= 4 {
		kind, n := binary.LittleEndian.Uint16(b), int(binary.LittleEndian.Uint16(b[2:]))
		if kind == filePass {
			return true
		}
		if kind == endOfGlobals || 4+n > len(b) {
			break
		}
		b = b[4+n:]
	}
	return false
}

// PowerPointEncrypted reports whether the presentation of a stream Current User is
// encrypted (CurrentUserAtom.headerToken, MS-PPT 2.3.2). b is the start of the stream, 16
// bytes or more.
func PowerPointEncrypted(b []byte) bool {
	return len(b) >= 16 && binary.LittleEndian.Uint32(b[12:]) == 0xf3d1c4df
}
