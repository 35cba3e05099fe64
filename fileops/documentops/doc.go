// Package documentops provides actions on documents that are ZIP archives of XML
// parts and pictures: Office Open XML (docx, xlsx, pptx), OpenDocument (odt,
// ods, odp) and EPUB. It needs no office program.
//
// [Compress] makes them smaller, mainly by encoding their pictures again.
// [Lock], [Unlock] and [ResetPassword] encrypt and decrypt Office Open XML
// documents as Office does ([MS-OFFCRYPTO], [MS-CFB]).
//
//	err := fileops.Run(ctx, documentops.Lock(), fileops.Args{"password": "s3cret"},
//		fileops.ToDir("out"), fileops.Path("report.docx"))
//
// # Limits
//
// An archive may have 10,000 parts and expand to 2 GiB. A part larger than 10
// MiB may be at most 500 times as large as its compressed data. Parts are
// compressed one after the other. Pictures of up to 128 MiB are processed
// concurrently, one for each processor. A document to encrypt may have 2 GiB; it
// is encrypted and decrypted in segments of 4 KiB.
//
// [MS-OFFCRYPTO]: https://learn.microsoft.com/openspecs/office_file_formats/ms-offcrypto
// [MS-CFB]: https://learn.microsoft.com/openspecs/windows_protocols/ms-cfb
package documentops
