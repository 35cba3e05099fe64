// Package archiveops makes ZIP archives and makes them smaller.
//
// [Zip] packs files of any kind. It compresses on all cores, in blocks, so that
// one large file is as fast as many small ones, and holds only a few blocks in
// memory. What does not compress is stored as it is. Names are made safe and
// unique; see [EntryNames]. With a password the content is encrypted.
//
// [Convert] makes ZIP archives from tar and gzip files, entry by entry, without
// unpacking them to disk.
//
// [Compress] compresses the entries of an archive anew with the strongest
// setting and touches nothing else.
package archiveops
