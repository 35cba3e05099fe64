// Package archiveops makes ZIP archives and makes them smaller.
//
// [Zip] packs files of any kind. It compresses on all cores, in blocks, so that
// one large file is as fast as many small ones, and holds only a few blocks in
// memory. What does not compress is stored as it is. Names are made safe and
// unique; see [EntryNames]. With a password the content is encrypted.
//
// [Convert] makes ZIP archives from tar, 7z and rar archives and from compressed
// files, entry by entry, without unpacking them to disk.
//
// [Lock], [Unlock] and [ResetPassword] change how the entries of an archive are
// encrypted. They write WinZip's AES-256 and also read its shorter keys and the
// traditional encryption of PKZIP. Nothing is compressed anew.
//
// [Compress] compresses the entries of an archive anew with the strongest
// setting and touches nothing else.
package archiveops
