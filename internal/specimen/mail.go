package specimen

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"mime"
	"strings"
	"time"
	"unicode/utf16"

	"github.com/filewright/filewright/internal/compound"
)

// Sender and Recipient are the addresses of a specimen that is a message. It was sent at
// [Sent] and has an attachment, [Attachment], with [Text].
const (
	Sender     = "ada@example.com"
	Recipient  = "charles@example.com"
	Attachment = "Anhang ü.txt"
)

// Sent returns when a specimen that is a message was sent.
func Sent() time.Time { return time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC) }

func lines76(s string) string {
	var b strings.Builder
	for len(s) > 76 {
		b.WriteString(s[:76] + "\r\n")
		s = s[76:]
	}
	return b.String() + s + "\r\n"
}

func mailPage() string {
	return "<html><head><title>ignored</title></head><body>" + htmlBody("cid:patches@example.com") + "</body></html>"
}

// writeEML writes a message with a page, a picture in it, and an attachment (RFC 5322
// and RFC 2045).
func writeEML(b *bytes.Buffer) {
	encoded := func(s string) string { return lines76(base64.StdEncoding.EncodeToString([]byte(s))) }
	fmt.Fprintf(b, "From: Ada Lovelace <%s>\r\nTo: Charles Babbage <%s>\r\nSubject: %s\r\nDate: %s\r\nMessage-ID: <1@example.com>\r\nMIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary=\"outer\"\r\n\r\n",
		Sender, Recipient, mime.QEncoding.Encode("utf-8", Heading+" ✓"), Sent().Format(time.RFC1123Z))
	fmt.Fprintf(b, "--outer\r\nContent-Type: multipart/related; boundary=\"inner\"\r\n\r\n--inner\r\nContent-Type: multipart/alternative; boundary=\"either\"\r\n\r\n")
	fmt.Fprintf(b, "--either\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Transfer-Encoding: 8bit\r\n\r\n%s\r\n\r\n%s\r\n%s\r\nFruit Count\r\nApple 3\r\nPear 4\r\n", Heading, Text, Scripts)
	fmt.Fprintf(b, "--either\r\nContent-Type: text/html; charset=utf-8\r\nContent-Transfer-Encoding: base64\r\n\r\n%s--either--\r\n", encoded(mailPage()))
	fmt.Fprintf(b, "--inner\r\nContent-Type: image/png\r\nContent-ID: <patches@example.com>\r\nContent-Transfer-Encoding: base64\r\n\r\n%s--inner--\r\n", encoded(string(patchesPNG())))
	fmt.Fprintf(b, "--outer\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Disposition: attachment; filename*=utf-8''Anhang%%20%%C3%%BC.txt\r\nContent-Transfer-Encoding: base64\r\n\r\n%s--outer--\r\n", encoded(Text))
}

// An outlookProperty is a property of a message ([MS-OXMSG] 2.4).
type outlookProperty struct {
	id    uint16
	value any // string, []byte, int32 or time.Time
}

// properties returns the entries of a storage with properties. reserved is the size of
// the header of their list.
func properties(reserved int, all ...outlookProperty) []*compound.Node {
	le := binary.LittleEndian
	list := make([]byte, reserved)
	var nodes []*compound.Node
	for _, p := range all {
		var kind uint16
		var data []byte
		fixed := make([]byte, 8)
		switch v := p.value.(type) {
		case string:
			kind = 0x001f
			for _, u := range utf16.Encode([]rune(v)) {
				data = le.AppendUint16(data, u)
			}
			le.PutUint32(fixed, uint32(len(data)+2))
		case []byte:
			kind, data = 0x0102, v
			le.PutUint32(fixed, uint32(len(data)))
		case int32:
			kind = 0x0003
			le.PutUint32(fixed, uint32(v))
		case time.Time: // 100 ns since 1601
			kind = 0x0040
			le.PutUint64(fixed, uint64(v.Unix()+11644473600)*1e7)
		}
		list = le.AppendUint16(list, kind)
		list = le.AppendUint16(list, p.id)
		list = le.AppendUint32(list, 6) // readable and writable
		list = append(list, fixed...)
		if kind == 0x001f || kind == 0x0102 {
			nodes = append(nodes, stored(fmt.Sprintf("__substg1.0_%04X%04X", p.id, kind), data))
		}
	}
	return append(nodes, stored("__properties_version1.0", list))
}

// writeMSG writes the message of [writeEML] as a file of Outlook ([MS-OXMSG]).
func writeMSG() ([]byte, error) {
	root := properties(32,
		outlookProperty{0x001a, "IPM.Note"}, outlookProperty{0x0037, Heading + " ✓"},
		outlookProperty{0x0c1a, "Ada Lovelace"}, outlookProperty{0x0c1f, Sender}, outlookProperty{0x0c1e, "SMTP"},
		outlookProperty{0x0039, Sent()}, outlookProperty{0x3fde, int32(65001)},
		outlookProperty{0x1000, Heading + "\r\n" + Text + "\r\n" + Scripts + "\r\nFruit Count\r\nApple 3\r\nPear 4"}, outlookProperty{0x1013, []byte(mailPage())})
	root = append(root,
		&compound.Node{Name: "__nameid_version1.0", Children: []*compound.Node{stored("__substg1.0_00020102", nil)}},
		&compound.Node{Name: "__recip_version1.0_#00000000", Children: properties(8,
			outlookProperty{0x3001, "Charles Babbage"}, outlookProperty{0x39fe, Recipient}, outlookProperty{0x0c15, int32(1)})},
		&compound.Node{Name: "__attach_version1.0_#00000000", Children: properties(8,
			outlookProperty{0x3705, int32(1)}, outlookProperty{0x3701, patchesPNG()}, outlookProperty{0x3707, "patches.png"},
			outlookProperty{0x370e, "image/png"}, outlookProperty{0x3712, "patches@example.com"})},
		&compound.Node{Name: "__attach_version1.0_#00000001", Children: properties(8,
			outlookProperty{0x3705, int32(1)}, outlookProperty{0x3701, []byte(Text)}, outlookProperty{0x3707, Attachment}, outlookProperty{0x370e, "text/plain"})})
	return compoundFile(root...)
}
