// Package documentops has the actions on documents that are packages: ZIP archives
// of XML parts and pictures, as Office Open XML (docx, xlsx, pptx), OpenDocument
// (odt, ods, odp) and EPUB are. It works on them without an office program.
//
// [Compress] makes them smaller, mostly by what it does to their pictures.
// [Lock], [Unlock] and [ResetPassword] encrypt and decrypt Office Open XML
// documents the way Office does ([MS-OFFCRYPTO], [MS-CFB]).
//
//	err := fileops.Run(ctx, documentops.Lock(), fileops.Args{"password": "s3cret"},
//		fileops.ToDir("out"), fileops.Path("report.docx"))
//
// # Limits
//
// An archive may have 10,000 parts and expand to 2 GiB, and no part larger than
// 10 MiB may be more than 200 times as large as its compressed data. Parts are
// compressed one after the other; pictures, of at most 128 MiB, are worked on as
// many at once as there are processors. A document to be encrypted may have 2 GiB;
// it is encrypted and decrypted in pieces of 4 KiB.
//
// [MS-OFFCRYPTO]: https://learn.microsoft.com/openspecs/office_file_formats/ms-offcrypto
// [MS-CFB]: https://learn.microsoft.com/openspecs/windows_protocols/ms-cfb
package documentops
