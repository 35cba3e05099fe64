// Package archiveops creates, converts, encrypts and compresses ZIP archives, and
// extracts files from archives.
//
// [Zip] packs files of any kind. It compresses blocks on all cores, so one large
// file is as fast as many small files. Only a few blocks are in memory at a time.
// Incompressible content is stored. [EntryNames] makes the names safe and unique.
// With a password the content is encrypted.
//
// [Convert] converts tar, 7z and rar archives and compressed files to ZIP, entry
// by entry, without unpacking them to disk.
//
// [Extract] extracts files from these archives and from ZIP archives.
//
// [Lock], [Unlock] and [ResetPassword] change the encryption of an archive's
// entries, without recompression. They write WinZip's AES-256. They also read
// its shorter keys and the traditional encryption of PKZIP.
//
// [Compress] recompresses the entries of an archive at the strongest level and
// changes nothing else.
package archiveops
