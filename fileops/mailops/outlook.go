package mailops

import (
	"cmp"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
	"unicode/utf16"

	whatwg "golang.org/x/net/html/charset"
	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"

	"github.com/filewright/filewright/fileops"
	"github.com/filewright/filewright/internal/charset"
	"github.com/filewright/filewright/internal/compound"
)

// Properties of messages ([MS-OXPROPS]).
const (
	propSubject           = 0x0037
	propSubmitTime        = 0x0039
	propRepresentingName  = 0x0042
	propRepresentingEmail = 0x0065
	propHeaders           = 0x007d
	propRecipientType     = 0x0c15
	propSenderName        = 0x0c1a
	propSenderEmail       = 0x0c1f
	propDeliveryTime      = 0x0e06
	propBody              = 0x1000
	propRTF               = 0x1009
	propHTML              = 0x1013
	propMessageID         = 0x1035
	propDisplayName       = 0x3001
	propEmail             = 0x3003
	propAttachData        = 0x3701
	propAttachExtension   = 0x3703
	propAttachShortName   = 0x3704
	propAttachMethod      = 0x3705
	propAttachName        = 0x3707
	propAttachType        = 0x370e
	propAttachID          = 0x3712
	propSMTP              = 0x39fe
	propInternetCodePage  = 0x3fde
	propCodePage          = 0x3ffd
	propLocale            = 0x3ff1
	propSenderSMTP        = 0x5d01
	propRepresentingSMTP  = 0x5d02
)

// Types of properties ([MS-OXCDATA] 2.11.1).
const (
	typeLong    = 0x0003
	typeObject  = 0x000d
	typeString8 = 0x001e
	typeString  = 0x001f
	typeTime    = 0x0040
	typeBinary  = 0x0102
)

// A storage has the properties of a message, recipient or attachment.
type storage struct {
	p     *parser
	file  *compound.File
	fixed map[uint16]uint64 // numbers and times by property
	page  encoding.Encoding // of 8-bit strings
}

// maxEntries limits the directory of a message.
const maxEntries = 200_000

// outlook reads a message of Outlook.
func (p *parser) outlook(in *fileops.File) (*message, error) {
	f, err := compound.Open(in.Reader(), in.Size(), maxEntries)
	if err != nil {
		return nil, damaged(err)
	}
	return p.stored(f, 32, 0)
}

// stored reads the message in a storage. head is the size of the header of its list of
// properties ([MS-OXMSG] 2.4.1).
func (p *parser) stored(f *compound.File, head, depth int) (*message, error) {
	if err := p.part(depth); err != nil {
		return nil, err
	}
	s, err := p.storage(f, head, nil)
	if err != nil {
		return nil, err
	}
	m := &message{subject: s.text(propSubject), id: s.text(propMessageID)}
	m.from = person(first(s, propRepresentingName, propSenderName), address(s, propRepresentingSMTP, propSenderSMTP, propRepresentingEmail, propSenderEmail))
	for _, id := range []uint16{propSubmitTime, propDeliveryTime} {
		if t := s.fixed[id]; t != 0 && m.date.IsZero() {
			const since1601 = 11644473600
			m.date = time.Unix(int64(t/1e7)-since1601, 0).UTC()
		}
	}
	if err := s.recipients(m); err != nil {
		return nil, err
	}
	// The header is as the message came from the internet.
	if text := s.text(propHeaders); text != "" {
		h, _ := splitHeader([]byte(text))
		if m.from == "" {
			m.from = strings.Join(p.addresses(h["from"]), ", ")
		}
		if len(m.to) == 0 {
			m.to, m.cc = p.addresses(h["to"]), p.addresses(h["cc"])
		}
		m.id = firstOf(m.id, h.get("message-id"))
	}
	if err := s.body(m); err != nil {
		return nil, err
	}
	return m, s.attached(m, depth)
}

// storage reads the list of properties in a storage.
func (p *parser) storage(f *compound.File, head int, page encoding.Encoding) (*storage, error) {
	s := &storage{p: p, file: f, fixed: make(map[uint16]uint64), page: page}
	list, err := s.stream("__properties_version1.0")
	if err != nil {
		return nil, err
	}
	if list == nil {
		return nil, damaged(nil)
	}
	le := binary.LittleEndian
	for list = list[min(head, len(list)):]; len(list) >= 16; list = list[16:] {
		switch kind := le.Uint16(list); kind {
		case typeLong:
			s.fixed[le.Uint16(list[2:])] = uint64(le.Uint32(list[8:]))
		case typeTime:
			s.fixed[le.Uint16(list[2:])] = le.Uint64(list[8:])
		}
	}
	for _, n := range []int{int(s.fixed[propCodePage]), localePages[int(s.fixed[propLocale])], int(s.fixed[propInternetCodePage])} {
		if enc := codePage(n); enc != nil {
			s.page = enc
			break
		}
	}
	if s.page == nil {
		s.page = charmap.Windows1252
	}
	return s, nil
}

// localePages are the code pages of locales of Windows ([MS-LCID]) that do not use 1252.
var localePages = map[int]int{
	1025: 1256, 1026: 1251, 1028: 950, 1029: 1250, 1032: 1253, 1037: 1255, 1038: 1250, 1041: 932, 1042: 949, 1045: 1250, 1048: 1250, 1049: 1251,
	1050: 1250, 1051: 1250, 1054: 874, 1055: 1254, 1058: 1251, 1059: 1251, 1060: 1250, 1061: 1257, 1062: 1257, 1063: 1257, 1065: 1256, 1066: 1258,
	2052: 936, 3076: 950, 4100: 936,
}

// codePage returns the encoding of a code page of Windows, or nil.
func codePage(n int) encoding.Encoding {
	label := fmt.Sprintf("windows-%d", n)
	switch n {
	case 65001:
		label = "utf-8"
	case 20127:
		label = "us-ascii"
	case 932:
		label = "shift_jis"
	case 936, 54936:
		label = "gb18030"
	case 949:
		label = "euc-kr"
	case 950:
		label = "big5"
	case 20866:
		label = "koi8-r"
	case 21866:
		label = "koi8-u"
	case 50220, 50221, 50222:
		label = "iso-2022-jp"
	case 51932:
		label = "euc-jp"
	case 437, 850, 858:
		return charmap.CodePage850
	}
	if n >= 28591 && n <= 28605 {
		label = fmt.Sprintf("iso-8859-%d", n-28590)
	}
	enc, _ := whatwg.Lookup(label)
	return enc
}

// stream returns the content of a stream, or nil if there is none.
func (s *storage) stream(name string) ([]byte, error) {
	r, ok, err := s.file.Stream(name)
	if err != nil {
		return nil, damaged(err)
	}
	if !ok {
		return nil, nil
	}
	if err := s.p.keep(int(r.Size())); err != nil {
		return nil, err
	}
	b := make([]byte, r.Size())
	if _, err := io.ReadFull(r, b); err != nil {
		return nil, damaged(err)
	}
	return b, nil
}

// value returns the content of a property of variable size, or nil.
func (s *storage) value(id uint16, kind int) []byte {
	b, err := s.stream(fmt.Sprintf("__substg1.0_%04X%04X", id, kind))
	if err != nil {
		return nil
	}
	return b
}

// text returns a property that is a string.
func (s *storage) text(id uint16) string {
	if b := s.value(id, typeString); b != nil {
		u := make([]uint16, len(b)/2)
		for i := range u {
			u[i] = binary.LittleEndian.Uint16(b[2*i:])
		}
		return strings.TrimRight(string(utf16.Decode(u)), "\x00")
	}
	b := s.value(id, typeString8)
	if out, err := s.page.NewDecoder().Bytes(b); err == nil {
		b = out
	}
	return strings.TrimRight(strings.ToValidUTF8(string(b), "\ufffd"), "\x00")
}

func first(s *storage, ids ...uint16) string {
	for _, id := range ids {
		if v := s.text(id); v != "" {
			return v
		}
	}
	return ""
}

// address returns the first address that is one of the internet, or else the name in a
// directory.
func address(s *storage, ids ...uint16) string {
	for _, id := range ids {
		if v := s.text(id); strings.Contains(v, "@") {
			return v
		}
	}
	return ""
}

// children returns the storages whose names start with prefix, in order.
func (s *storage) children(prefix string) (out []*compound.File) {
	names := slices.Sorted(s.file.Storages())
	for _, name := range names {
		if strings.HasPrefix(name, prefix) {
			if f, ok := s.file.Storage(name); ok {
				out = append(out, f)
			}
		}
	}
	return out
}

func (s *storage) recipients(m *message) error {
	for _, f := range s.children("__recip_version1.0_#") {
		if s.p.ctx.Err() != nil {
			return context.Cause(s.p.ctx)
		}
		r, err := s.p.storage(f, 8, s.page)
		if err != nil {
			continue // others are still useful
		}
		who := person(r.text(propDisplayName), address(r, propSMTP, propEmail))
		switch {
		case who == "":
		case r.fixed[propRecipientType] == 2:
			m.cc = append(m.cc, who)
		case r.fixed[propRecipientType] != 3: // a blind copy
			m.to = append(m.to, who)
		}
	}
	return nil
}

// body reads the body: HTML, else the HTML or text in compressed RTF, and the text.
func (s *storage) body(m *message) error {
	m.text = s.text(propBody)
	page := s.value(propHTML, typeBinary)
	if page == nil {
		if text := s.text(propHTML); text != "" {
			m.html = text
			return nil
		}
	}
	if page != nil {
		if enc := codePage(int(s.fixed[propInternetCodePage])); enc != nil {
			if out, err := enc.NewDecoder().Bytes(page); err == nil {
				m.html = strings.ToValidUTF8(string(out), "\ufffd")
				return nil
			}
		}
		m.html = string(charset.DecodeHTML(page))
		return nil
	}
	packed := s.value(propRTF, typeBinary)
	if packed == nil {
		return nil
	}
	rtf, err := unpackRTF(packed)
	if err != nil {
		if m.text != "" {
			return nil
		}
		return damaged(err)
	}
	if err := s.p.keep(len(rtf)); err != nil {
		return err
	}
	text, isPage := readRTF(rtf)
	switch {
	case isPage:
		m.html = text
	case strings.TrimSpace(m.text) == "":
		m.text = text
	}
	return nil
}

// attached reads the attachments.
func (s *storage) attached(m *message, depth int) error {
	for i, f := range s.children("__attach_version1.0_#") {
		if err := s.p.part(depth + 1); err != nil {
			return err
		}
		a, err := s.p.storage(f, 8, s.page)
		if err != nil {
			return err
		}
		out := attachment{
			name: first(a, propAttachName, propAttachShortName, propDisplayName), id: a.text(propAttachID), mediaType: strings.ToLower(a.text(propAttachType)),
		}
		switch inner, ok := f.Storage(fmt.Sprintf("__substg1.0_%04X%04X", propAttachData, typeObject)); {
		case ok && a.fixed[propAttachMethod] == 5: // a message
			sub, err := s.p.stored(inner, 24, depth+1)
			if err != nil {
				return err
			}
			out.name, out.mediaType, out.data = firstOf(sub.subject, fmt.Sprintf("message-%d", i+1))+".eml", "message/rfc822", sub.eml()
			if err := s.p.keep(len(out.data)); err != nil {
				return err
			}
		case ok: // an object of another program, such as a drawing
			continue
		default:
			if out.data, err = a.stream(fmt.Sprintf("__substg1.0_%04X%04X", propAttachData, typeBinary)); err != nil {
				return err
			}
			if out.data == nil {
				continue // only a reference to a file elsewhere
			}
			if ext := a.text(propAttachExtension); ext != "" && strings.HasPrefix(ext, ".") && out.name == "" {
				out.name = fmt.Sprintf("attachment-%d%s", i+1, ext)
			}
		}
		out.mediaType = cmp.Or(out.mediaType, "application/octet-stream")
		m.attachments = append(m.attachments, out)
	}
	return nil
}
