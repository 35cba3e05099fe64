package specimen

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/aes"
	"crypto/cipher"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"slices"
	"strings"

	"github.com/filewright/filewright/fileops/format"
)

// ArchiveEntries returns the names and contents of the entries of an archive
// specimen, in order.
func ArchiveEntries() [][2]string {
	return [][2]string{{"a.txt", Text}, {"dir/b.txt", strings.Repeat(Text, 100)}}
}

// archiveSpecimen selects by the name of the format, because some formats are
// known only to programs that use this package, not to package format.
func archiveSpecimen(f format.Format) ([]byte, error) {
	entries := ArchiveEntries()
	switch f {
	case format.ZIP:
		var b bytes.Buffer
		err := writeZIP(&b, entries[0][0], entries[0][1], entries[1][0], entries[1][1])
		return b.Bytes(), err
	case format.RAR:
		return storedRAR(entries, "")
	case format.SevenZip:
		return packed("out.7z", "7z", "a", "-bd", "-y", "out.7z", "a.txt", "dir")
	case format.ISO:
		return packed("out.iso", "bsdtar", "-cf", "out.iso", "--format", "iso9660", "--options", "joliet", "a.txt", "dir")
	case format.CPIO:
		return packed("out.cpio", "bsdtar", "-cf", "out.cpio", "--format", "newc", "a.txt", "dir")
	case format.AR:
		return arOf(entries, "_"), nil
	case format.DEB:
		data, err := tarOf(entries)
		return arOf([][2]string{{"debian-binary", "2.0\n"}, {"control.tar", string(make([]byte, 1024))}, {"data.tar", string(data)}}, "/"), err
	case format.CAB:
		return storedCAB(entries), nil
	case format.LZH:
		return storedLZH(entries), nil
	case format.RPM:
		payload, err := packed("out.cpio", "bsdtar", "-cf", "out.cpio", "--format", "newc", "a.txt", "dir")
		return rpmOf(payload), err
	}
	content := []byte(entries[0][1])
	name, isTar := strings.CutPrefix(string(f), "tar.")
	if isTar || f == format.TAR {
		var err error
		if content, err = tarOf(entries); err != nil || f == format.TAR {
			return content, err
		}
	}
	switch name {
	case "gz":
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		if !isTar {
			z.Name = entries[0][0]
		}
		if _, err := z.Write(content); err != nil {
			return nil, err
		}
		err := z.Close()
		return b.Bytes(), err
	case "bz2", "xz", "zst", "lz4", "lzma", "lz":
		program := map[string]string{"bz2": "bzip2", "xz": "xz", "zst": "zstd", "lz4": "lz4", "lzma": "lzma", "lz": "lzip"}[name]
		in := [][2]string{{"in", string(content)}}
		if name == "lz4" {
			return inDir(in, "in.lz4", program, "-q", "in", "in.lz4")
		}
		return inDir(in, "in."+name, program, "-k", "-q", "in")
	}
	return nil, fmt.Errorf("no specimen of this format")
}

func tarOf(entries [][2]string) ([]byte, error) {
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, e := range entries {
		if err := w.WriteHeader(&tar.Header{Name: e[0], Mode: 0o644, Size: int64(len(e[1]))}); err != nil {
			return nil, err
		}
		if _, err := w.Write([]byte(e[1])); err != nil {
			return nil, err
		}
	}
	err := w.Close()
	return b.Bytes(), err
}

// packed runs an archiver in a directory with the entries of a specimen. out is the
// name of the archive.
func packed(out string, args ...string) ([]byte, error) {
	return inDir(ArchiveEntries(), out, args...)
}

// storedRAR returns a RAR 5.0 archive without compression ("RAR 5.0 archive
// format" by its author: general archive structure, file header), because no
// free program writes RAR. With a password the contents are encrypted.
func storedRAR(entries [][2]string, password string) ([]byte, error) {
	out := []byte("Rar!\x1a\x07\x01\x00")
	add := func(header []byte, data string) {
		h := append(binary.AppendUvarint(nil, uint64(len(header))), header...)
		out = binary.LittleEndian.AppendUint32(out, crc32.ChecksumIEEE(h))
		out = append(append(out, h...), data...)
	}
	add(rarFields(1, 0, 0), "") // main header: type, flags, archive flags
	for _, e := range entries {
		n := uint64(len(e[1]))
		h, data, extra := rarFields(2, 2), e[1], []byte(nil) // type, flags: data follows
		if password != "" {
			var err error
			if extra, data, err = rarEncrypted(e[1], password); err != nil {
				return nil, err
			}
			h = rarFields(2, 1|2, uint64(len(extra))) // has an extra area too
		}
		h = append(h, rarFields(uint64(len(data)), 4, n, 0o100644)...) // flags (has a CRC), size, mode
		h = binary.LittleEndian.AppendUint32(h, crc32.ChecksumIEEE([]byte(e[1])))
		// stored, made on Unix, the name
		h = append(append(h, rarFields(0, 1, uint64(len(e[0])))...), e[0]...)
		add(append(h, extra...), data)
	}
	add(rarFields(5, 0, 0), "") // end of archive
	return out, nil
}

func rarFields(fields ...uint64) []byte {
	var b []byte
	for _, v := range fields {
		b = binary.AppendUvarint(b, v)
	}
	return b
}

// rarEncrypted returns encrypted content and the file encryption record:
// AES-256-CBC, with a key derived by PBKDF2.
func rarEncrypted(content, password string) (record []byte, data string, err error) {
	const log = 10 // log2 of the number of rounds
	salt, iv := []byte("salt of 16 bytes"), []byte("and an IV of 16.")
	key, err := pbkdf2.Key(sha256.New, password, salt, 1<<log, 32)
	if err != nil {
		return nil, "", err
	}
	last, err := pbkdf2.Key(sha256.New, password, salt, 1<<log+32, 32) // 32 more rounds: the password check value
	if err != nil {
		return nil, "", err
	}
	check := make([]byte, 8)
	for i, b := range last {
		check[i%8] ^= b
	}
	sum := sha256.Sum256(check)
	record = append(rarFields(1, 0, 1), log) // type, version, flags: has a check value
	record = slices.Concat(record, salt, iv, check, sum[:4])
	record = append(rarFields(uint64(len(record))), record...)

	c, err := aes.NewCipher(key)
	if err != nil {
		return nil, "", err
	}
	padded := append([]byte(content), make([]byte, -len(content)&15)...)
	cipher.NewCBCEncrypter(c, iv).CryptBlocks(padded, padded)
	return record, string(padded), nil
}
